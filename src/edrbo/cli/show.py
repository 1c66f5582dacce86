"""``edrbo show``: a study at a glance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from edrbo.cli.output import print_json, print_points, print_table, say
from edrbo.cli.place import JsonOption, StudyOption, opened

if TYPE_CHECKING:
    from edrbo.study import Study

LAST = 10  # observations shown


def register(app: typer.Typer) -> None:
    app.command("show")(show)


def show(study: StudyOption = None, as_json: JsonOption = False) -> None:
    """What the study is about, what is being tried and what was found."""
    with opened(study) as opened_study:
        if as_json:
            print_json(_record(opened_study))
        else:
            _print(opened_study)


def _record(study: Study) -> dict[str, Any]:
    state = study.state
    return {
        "name": study.name,
        "settings": study.settings.to_dict(),
        "asked": state.suggested,
        "failed": len(state.failed),
        "contexts": len(state.log),
        "observations": _observations(study),
        "pending": [{"id": suggestion.id, "design": suggestion.design} for suggestion in study.pending],
    }


def _observations(study: Study) -> list[dict[str, Any]]:
    state, space = study.state, study.space
    if not len(state.observations):
        return []
    designs = space.decode_designs(state.observations.x)
    contexts = space.name_contexts(state.observations.c)
    known = state.observations.complete
    return [
        {
            "id": key,
            "design": designs[row],
            "context": contexts[row] if known[row] else None,
            "value": float(state.observations.y[row]),
        }
        for key, row in state.told.items()
    ]


def _print(study: Study) -> None:
    from edrbo.study.storage import describe

    settings, space, state = study.settings, study.space, study.state
    where = describe(study.ledger.where)
    say(f"{study.name}: {settings.direction} by {settings.method}, in {where}", style="bold")
    for title, variables in (("design variables", space.design), ("context variables", space.context)):
        if variables:
            print_table(title, ["name", "kind"], [[name, repr(variable)] for name, variable in variables.items()])
    say(f"{len(state.observations)} told, {len(state.failed)} failed, {len(state.log)} contexts known")
    pending = study.pending
    if pending:
        print_points("pending", [suggestion.id for suggestion in pending], [s.design for s in pending])
    rows = [_cells(row, space.context_names) for row in _observations(study)[-LAST:]]
    if rows:
        print_table("told last", ["id", *space.design_names, *space.context_names, "value"], rows)


def _cells(row: dict[str, Any], context_names: tuple[str, ...]) -> list[Any]:
    context = row["context"] or dict.fromkeys(context_names)
    return [row["id"], *row["design"].values(), *context.values(), row["value"]]
