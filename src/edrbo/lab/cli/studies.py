"""``edrbo studies``: which studies a storage holds."""

from __future__ import annotations

import typer

from edrbo.lab.cli.location import find_place
from edrbo.lab.cli.options import JsonOption, StudyOption
from edrbo.lab.cli.output import plain_warnings, print_json, print_table


def register(app: typer.Typer) -> None:
    app.command("studies")(studies)


def studies(study: StudyOption = None, as_json: JsonOption = False) -> None:
    """List the studies that are kept in one place."""
    from edrbo.lab.entry.times import local_text
    from edrbo.lab.store.place import describe
    from edrbo.lab.study import all_studies

    place = find_place(study)
    rows = []
    with plain_warnings():
        for found in all_studies(place):
            state = found.state_now
            latest = max((event.at for event in state.history if event.at is not None), default=None)
            rows.append((found.name, state.settings.title, len(state.reported), len(state.pending), local_text(latest)))
    if as_json:
        keys = ("name", "title", "outcomes", "pending", "last")
        print_json([dict(zip(keys, row, strict=True)) for row in rows])
    else:
        print_table(f"studies in {describe(place)}", ["name", "title", "outcomes", "pending", "last event"], rows)
