"""``edrbo amend``: change one's mind about a study."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edrbo.errors import InvalidSpaceError, StudyError
from edrbo.lab.cli.location import only_toml
from edrbo.lab.cli.options import ByOption, JsonOption, NameOption, NoteOption, StudyOption, YesOption
from edrbo.lab.cli.output import confirm, plain_warnings, print_json, say
from edrbo.lab.cli.read_arguments import split_argument
from edrbo.lab.cli.settings_options import with_settings
from edrbo.lab.cli.trust import described_at
from edrbo.lab.entry.variables import read_variable_argument
from edrbo.records.settings import Settings
from edrbo.space import Categorical, Space, Variable
from edrbo.space.point_tables import close_match

if TYPE_CHECKING:
    from edrbo.lab import Study

DESIGN_HELP = "A variable that you set, with its new range or levels, or a new one: speed=10:80. Repeat for each."
CONTEXT_HELP = "A variable that the world sets, likewise."
WAS_HELP = "The value that all runs so far had of a new variable: dose=1.5."

CONSTRAINT_HELP = "One more thing that must hold between what you set: 'speed * dose <= 80'."
NO_CONSTRAINT_HELP = "A constraint that need not hold any more, as `edrbo show` writes it."


def register(app: typer.Typer) -> None:
    app.command("amend")(with_settings(amend))


def amend(
    study: StudyOption = None,
    name: NameOption = None,
    design: Annotated[list[str] | None, typer.Option("--design", "-d", help=DESIGN_HELP)] = None,
    context: Annotated[list[str] | None, typer.Option("--context", "-c", help=CONTEXT_HELP)] = None,
    level: Annotated[list[str] | None, typer.Option("--level", help="One more level: kind=matt.")] = None,
    constraint: Annotated[list[str] | None, typer.Option("--constraint", help=CONSTRAINT_HELP)] = None,
    no_constraint: Annotated[list[str] | None, typer.Option("--no-constraint", help=NO_CONSTRAINT_HELP)] = None,
    was: Annotated[list[str] | None, typer.Option("--was", help=WAS_HELP)] = None,
    note: NoteOption = None,
    by: ByOption = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
    *,
    choices: dict[str, Any],
) -> None:
    """Change a study that has begun: wider ranges, new levels and variables, another goal, a title.

    Without any change on the command line, what was changed in the .toml file is made official. The change is recorded,
    shown as old → new, and can be undone; the .toml file follows.
    """
    from edrbo.lab import Study
    from edrbo.lab.config import rewrite_toml
    from edrbo.records.descriptions import changes

    where = study or str(only_toml())
    described = described_at(Path(where)) if where.endswith(".toml") else None
    place = where if described is None else described.storage
    chosen = name or (None if described is None else described.name)
    with plain_warnings():
        opened_study = Study.open(place, name=chosen, by=by)
        old = opened_study.settings
        constraints = _constraints(old.space, constraint or [], no_constraint or [])
        if design or context or level or constraint or no_constraint or choices:
            new = _changed(old, design or [], context or [], level or [], constraints, choices)
        elif described is not None and described.name == opened_study.name:
            new = described.settings
        else:
            raise StudyError("nothing is amended", "say what changes, as --design speed=10:80")
        new = _with_defaults(new, was or [])
        lines = changes(old, new)
        if not lines:
            raise StudyError("nothing changes", "the study has these settings already")
        if not as_json:
            for line in lines:
                say(line)
        confirm("Change the study so?", yes=yes)
        _amend(opened_study, new, note)
    if described is not None and described.name == opened_study.name and described.settings != new:
        rewrite_toml(Path(where), described, new)
    if as_json:
        print_json({"changed": lines})
    else:
        say("amended")


def _changed(
    old: Settings,
    design: list[str],
    context: list[str],
    level: list[str],
    constraints: list[str],
    choices: dict[str, Any],
) -> Settings:
    designs: dict[str, Variable] = old.space.design
    contexts: dict[str, Variable] = dict(old.space.context)
    for words, variables in ((design, designs), (context, contexts)):
        for name, variable in map(read_variable_argument, words):
            variables[name] = _like(variable, variables.get(name))
    for name, text in map(split_argument, level):
        variables = designs if name in designs else contexts
        leveled = variables.get(name)
        if not isinstance(leveled, Categorical):
            raise InvalidSpaceError(f"{name!r} has no levels", "give a variable that has some")
        variables[name] = replace(leveled, choices=(*leveled.choices, text))
    if "outcomes" in choices:
        from edrbo.lab.entry.settings import with_units

        choices = {**choices, "outcomes": with_units(choices["outcomes"], old)}
    return replace(old, space=Space(designs, contexts, constraints), **choices)


def _constraints(space: Space, more: list[str], fewer: list[str]) -> list[str]:
    """Those of ``space`` with ``more`` and without ``fewer``; blanks do not matter."""
    kept = {"".join(constraint.text.split()): constraint.text for constraint in space.constraints}
    for text in fewer:
        if kept.pop("".join(text.split()), None) is None:
            hint = close_match(text, kept.values(), "`edrbo show` lists them")
            raise InvalidSpaceError(f"{text!r} is no constraint of this study", hint)
    return [*kept.values(), *more]


def _like(new: Variable, old: Variable | None) -> Variable:
    """``new`` with the unit, steps and digits of ``old`` where it says nothing of them."""
    if type(new) is not type(old):
        return new
    kept: dict[str, Any] = {
        name: getattr(old, name)
        for name in ("unit", "digits", "step", "default")
        if getattr(new, name, None) in (None, "") and getattr(old, name, None) not in (None, "")
    }
    return replace(new, **kept)


def _with_defaults(new: Settings, was: list[str]) -> Settings:
    """With the values that all runs so far had of variables that are new, as their defaults."""
    from edrbo.lab.entry.values import read_variable_value

    if not was:
        return new
    designs, contexts = new.space.design, new.space.context
    for name, text in map(split_argument, was):
        variables = designs if name in designs else contexts
        if name not in variables:
            raise InvalidSpaceError(f"{name!r} is no variable", "--was is for variables that are new")
        variables[name] = replace(variables[name], default=read_variable_value(text, variables[name]))
    return replace(new, space=Space(designs, contexts, new.space.constraints))


def _amend(study: Study, new: Settings, note: str | None) -> None:
    record, before = new.to_dict(), study.settings.to_dict()
    changed = {key: part for key, part in record.items() if key != "format" and part != before[key]}
    study.amend(changed, note=note)
