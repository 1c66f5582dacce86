"""``edrbo new`` and ``edrbo amend``: describe a study by flags or by answering plain questions, and change one's mind
about it. Each setting has an option, made by looping over ``Settings.choices``.
"""

from __future__ import annotations

import inspect
import os
import shlex
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

import typer

from edrbo.errors import EdrboError, ExistsAlreadyError, InvalidSpaceError, StudyError
from edrbo.lab.cli.options import ByOption, JsonOption, NameOption, NoteOption, StudyOption, YesOption
from edrbo.lab.cli.output import confirm, plain_warnings, print_json, print_table, say
from edrbo.lab.cli.read_arguments import described_at, only_toml, remember, split_argument
from edrbo.lab.entry import HELP, NUMBER, RANGE, read_specification, read_variable_argument, specification
from edrbo.records.descriptions import format_setting, heading, limit_needs
from edrbo.records.settings import Settings
from edrbo.records.suggested_ranges import SuggestedRanges, keeping_runs
from edrbo.space import Categorical, Integer, Real, Space, Variable
from edrbo.space.point_tables import close_match

if TYPE_CHECKING:
    from edrbo.lab.study import Study
    from edrbo.records.state import State


SEVERAL = "Of several, what each is for: gloss=maximize, cost=minimize,weight=0.1, roughness=limit,upper=2. Repeat."


def _read_outcomes(words: list[str]) -> dict[str, Any]:
    """The name of the only outcome, or several with their aims."""
    if len(words) == 1 and not any(sign in words[0] for sign in "=<>≤≥"):
        return {"outcome": words[0]}
    from edrbo.lab.entry import read_outcome_words

    found = read_outcome_words(words)
    return {"outcomes": found} if found else {}


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """``command`` with an option for each setting in place of its ``choices``: a dict of those that were given."""
    hints = get_type_hints(command, include_extras=True)
    signature = inspect.signature(command)
    kept = [part for name, part in signature.parameters.items() if name != "choices"]
    names = []
    for choice in Settings.choices():
        if choice.name == "outcomes":  # said by --outcome
            continue
        names.append(choice.name)
        default = format_setting(choice.default)
        about = f"{choice.metadata['about']} [default: {default}]"
        kind = choice.metadata["kind"]
        flag = f"--{choice.name.replace('_', '-')}"
        hints[choice.name] = Annotated[kind | None, typer.Option(flag, help=about)]
        if choice.name == "earlier":
            hints[choice.name] = Annotated[list[str] | None, typer.Option(flag, help=f"{about} Repeat for each.")]
        if choice.name == "outcome":
            hints[choice.name] = Annotated[list[str] | None, typer.Option(flag, help=f"{about} {SEVERAL}")]
        kept.append(inspect.Parameter(choice.name, inspect.Parameter.KEYWORD_ONLY, default=None))

    @wraps(command)
    def wrapped(**given: Any) -> None:
        chosen = {name: given.pop(name) for name in names}
        chosen |= _read_outcomes(chosen.pop("outcome") or [])
        chosen["earlier"] = ",".join(chosen["earlier"] or []) or None
        if chosen["outcome_range"] is not None:
            from edrbo.lab.entry import read_setting

            chosen["outcome_range"] = read_setting("outcome_range", chosen["outcome_range"])
        command(choices={name: value for name, value in chosen.items() if value is not None}, **given)

    keyword = [part.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[part.name]) for part in kept]
    wrapped.__signature__ = signature.replace(parameters=keyword)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {name: hint for name, hint in hints.items() if name != "choices"}
    return wrapped


T = TypeVar("T")


class BackError(Exception):
    """Somebody wants to go back to the question before."""


FEW_COUNTS = 12  # a range of so few whole numbers may well be one of counts


def _is_count(variable: Real) -> bool:
    low, high = variable.bounds()
    return low.is_integer() and high.is_integer() and high - low <= FEW_COUNTS and not variable.log


def _take_last(variables: dict[str, Variable]) -> str:
    name = list(variables)[-1]
    del variables[name]
    return name


MORE, LESS = ("more", "max", "maximize", "higher", "up"), ("less", "min", "minimize", "lower", "down")
FEW_VALUES = "a range as 10-60, 10..60 or 10 to 60, or names as plain, glossy"


def ask_file() -> Path:
    """Where to write the description of a study that was given no file."""
    while True:
        with suppress(BackError):
            return ask("What is the study called, for instance coating?", _new_file, "")


def _new_file(answer: str) -> Path:
    if not answer or "/" in answer or answer.startswith("."):
        raise InvalidSpaceError(f"{answer!r} is no name for a file", "for instance coating")
    file = Path(answer if answer.endswith(".toml") else f"{answer}.toml")
    if file.exists():
        raise InvalidSpaceError(f"{file} exists already", "choose another name")
    return file


def converse(file: Path, choices: dict[str, Any]) -> Settings:
    """Settings from questions and answers; ``choices`` were given as flags and are not asked for."""
    conversation = Conversation(dict(choices))
    try:
        conversation.ask_all()
        while not conversation.confirmed():
            with suppress(BackError):
                conversation.mend()
        return conversation.settings()
    except (typer.Abort, KeyboardInterrupt):
        say("")
        say(f"stopped; to go on from here: {conversation.command(file)}", err=True)
        raise typer.Exit(130) from None


class Conversation:
    """What was answered so far."""

    def __init__(self, choices: dict[str, Any]) -> None:
        self.choices = choices
        self.design: dict[str, Variable] = {}
        self.context: dict[str, Variable] = {}

    def ask_all(self) -> None:
        say("A few questions. Enter alone takes what is in brackets, and < goes back.")
        say("Nothing is stored before you say yes.")
        steps = [self._ask_outcome, self._ask_unit, self._ask_direction, self._ask_designs, self._ask_contexts]
        given = dict(self.choices)  # as flags, which nobody is asked about
        asked = [step for step, name in zip(steps, ("outcome", "unit", "direction"), strict=False) if name not in given]
        steps, place = [*asked, *steps[3:]], 0
        while place < len(steps):
            try:
                steps[place]()
                place += 1
            except BackError:
                place = max(place - 1, 0)

    def _ask_outcome(self) -> None:
        was = str(self.choices.get("outcome", "value"))
        self.choices["outcome"] = ask("What do you measure after each run, for instance gloss?", str, was)

    def _ask_unit(self) -> None:
        question = f"In which unit is {self.choices['outcome']}? (Enter: none)"
        self.choices["unit"] = ask(question, str, str(self.choices.get("unit", "")))

    def _ask_direction(self) -> None:
        question = f"Is more {self.choices['outcome']} better, or less?"
        self.choices["direction"] = ask(question, _direction, "more")

    def _ask_designs(self) -> None:
        say("")
        say("Now what you set before each run, one after the other.")
        self._ask_variables(self.design, "Name of something you set, for instance speed", needed=True)

    def _ask_contexts(self) -> None:
        say("")
        say("And what you cannot set and only see during or after a run, as the humidity of the day.")
        self._ask_variables(self.context, "Name of something you meet and cannot set", needed=False)

    def _ask_variables(self, variables: dict[str, Variable], question: str, *, needed: bool) -> None:
        while True:
            optional = not needed or bool(variables)
            try:
                name = ask(f"{question}{' (Enter: no more)' if optional else ''}", self._name(optional), "")
            except BackError:
                if not variables:
                    raise
                say(f"  {_take_last(variables)} is left out again")
                continue
            if not name:
                return
            before = variables.get(name)
            try:
                self._ask_variable(name, variables)
            except BackError:
                if before is None:
                    variables.pop(name, None)
                say(f"  {name} is left out")

    def _name(self, optional: bool) -> Callable[[str], str]:
        def read(answer: str) -> str:
            if not answer and not optional:
                raise InvalidSpaceError("at least one is needed", "for instance speed")
            if answer in self.design or answer in self.context:
                raise InvalidSpaceError(f"there is a {answer!r} already", "each needs a name of its own")
            return answer

        return read

    def _ask_variable(self, name: str, variables: dict[str, Variable]) -> None:
        """Each answer is kept at once, for one who stops in the middle."""
        context = variables is self.context
        values = "its usual range as 0-100 (Enter: not known)" if context else FEW_VALUES
        variable = ask(f"  Which values can {name} have? {values}", _context if context else _design, "")
        variables[name] = variable
        if not variable.numeric:
            return
        if not variable.unit:
            question = f"  In which unit is {name}? (Enter: none)"
            variable = variables[name] = ask(question, _with_unit(variable), "")
        if not isinstance(variable, Real) or variable.step is not None or context:
            return
        if _is_count(variable) and ask(f"  Is {name} a whole number, as 1, 2, 3? (yes or no)", _yes, "yes"):
            low, high = map(int, variable.bounds())
            variables[name] = Integer(low, high, unit=variable.unit)
        else:
            variables[name] = ask(f"  The smallest step of {name}? (Enter: any value)", _with_step(variable), "")

    # ---------------------------------------------------------------- the end

    def settings(self) -> Settings:
        return Settings(Space(self.design, self.context), **self.choices)

    def confirmed(self) -> bool:
        settings = self.settings()
        rows = [["you set", name, variable.describe()] for name, variable in self.design.items()]
        rows += [["you meet", name, variable.describe()] for name, variable in self.context.items()]
        better = "more" if settings.direction == "maximize" else "less"
        rows.append(["you measure", heading(settings.outcome, settings.unit), f"{better} is better"])
        say("")
        print_table("the study", ["", "name", "values"], rows)
        return bool(typer.confirm("Is this right?", default=True))

    def mend(self) -> None:
        """Ask again for one thing; the rest stays."""
        variables = [*self.design, *self.context]
        name = ask(f"Which one is wrong? ({', '.join(variables)}, or outcome)", _one_of([*variables, "outcome"]), "")
        if name == "outcome":
            for step in (self._ask_outcome, self._ask_unit, self._ask_direction):
                step()
            return
        self._ask_variable(name, self.design if name in self.design else self.context)

    def command(self, file: Path) -> str:
        """What was answered, as a command line."""
        words = ["edrbo", "new", str(file)]
        for flag, variables in (("-d", self.design), ("-c", self.context)):
            for name, variable in variables.items():
                words += [flag, f"{name}={specification(variable)}"]
        for name, value in self.choices.items():
            words += [f"--{name}", str(value)] if value != "" else []
        return shlex.join(words)


# -------------------------------------------------------------------- questions


def ask(question: str, read: Callable[[str], T], default: str) -> T:
    """The answer as ``read`` makes it; asked again, with what is wrong, until it can be read."""
    while True:
        answer = str(typer.prompt(question, default=default, show_default=bool(default))).strip()
        if answer in ("<", "back"):
            raise BackError
        try:
            return read(answer)
        except EdrboError as problem:
            say(f"  {problem.message}{': ' if problem.hint else ''}{problem.hint or ''}", style="yellow")


def _direction(answer: str) -> str:
    if answer.casefold() in MORE:
        return "maximize"
    if answer.casefold() in LESS:
        return "minimize"
    raise InvalidSpaceError(f"{answer!r} is not understood", "answer more or less")


def _yes(answer: str) -> bool:
    if answer.casefold() in ("y", "yes", "j", "ja"):
        return True
    if answer.casefold() in ("n", "no", "nein"):
        return False
    raise InvalidSpaceError(f"{answer!r} is not understood", "answer yes or no")


def _design(answer: str) -> Variable:
    if not answer:
        raise InvalidSpaceError("this is needed", FEW_VALUES)
    return _checked(answer, lambda variable: Space({"x": variable}))


def _context(answer: str) -> Variable:
    return _checked(answer, lambda variable: Space({"x": (0, 1)}, {"c": variable}))


def _checked(answer: str, space: Callable[[Variable], Space]) -> Variable:
    """What was answered; what is wrong with it is said in the words of the question, not of a program."""
    if (ends := RANGE.fullmatch(answer)) and ends[1] and ends[2]:
        low, high = (float(end.replace(",", ".")) for end in ends.group(1, 2))
        if low >= high:
            raise InvalidSpaceError(f"{ends[1]} is not below {ends[2]}", "the lower end comes first, as in 10-60")
    try:
        variable = read_specification(answer)
        space(variable)
    except InvalidSpaceError as problem:
        hint = f"give {FEW_VALUES}" if problem.hint == HELP else problem.hint
        raise InvalidSpaceError(problem.message.split(": ", 1)[-1], hint) from None
    return variable


def _with_unit(variable: Variable) -> Callable[[str], Variable]:
    return lambda answer: replace(variable, unit=answer)


def _with_step(variable: Real) -> Callable[[str], Variable]:
    def read(answer: str) -> Variable:
        import re

        if not answer:
            return variable
        if not re.fullmatch(NUMBER, answer):
            raise InvalidSpaceError(f"{answer!r} is not a number", "for instance 0.5")
        return replace(variable, step=float(answer.replace(",", ".")))

    return read


def _one_of(names: list[str]) -> Callable[[str], str]:
    def read(answer: str) -> str:
        if answer not in names:
            raise InvalidSpaceError(f"{answer!r} is none of them", f"they are {', '.join(names)}")
        return answer

    return read


DESIGN_HELP = (
    "What you set: 'speed=10:60 m/min step 0.5 tolerance 0.2', rate=1e-4:1:log, layers=1:8:int, kind=a,b,c, "
    "'size=s<m<l'."
)
CONTEXT_HELP = "A condition that you meet: humidity=0:100, or just price if its range is not known. Repeat for each."

CONSTRAINT_HELP = "What must hold between what you set: 'speed * dose <= 80', 'a + b + c == 1'. Repeat for each."


@with_settings
def new(
    file: Annotated[Path | None, typer.Argument(help="The .toml file to write; the study is kept beside it.")] = None,
    design: Annotated[list[str] | None, typer.Option("--design", "-d", help=DESIGN_HELP)] = None,
    context: Annotated[list[str] | None, typer.Option("--context", "-c", help=CONTEXT_HELP)] = None,
    constraint: Annotated[list[str] | None, typer.Option("--constraint", help=CONSTRAINT_HELP)] = None,
    storage: Annotated[str | None, typer.Option(help="A file beside the TOML, or postgresql://user@host/db.")] = None,
    name: Annotated[str | None, typer.Option(help="The study's name in its storage.")] = None,
    shared: Annotated[bool, typer.Option("--shared", help="Your group may read and write it too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
    *,
    choices: dict[str, Any],
) -> None:
    """Make a study: a .toml file that describes it, and the file that keeps it. Without -d it asks questions.

    With a .toml file that exists already, and no -d, the study that it describes is made.
    """
    if file is None:
        if design or as_json or not sys.stdin.isatty():
            raise StudyError("no file was given", "write edrbo new coating.toml, or run edrbo new alone in a terminal")
        file = _asked_for()
    if file.suffix != ".toml":
        raise StudyError(f"{file} does not end in .toml", f"write {file.with_suffix('.toml')}")
    if file.exists():
        _make_described(file, bool(design or context or constraint or choices), as_json)
        return
    if design:
        designs, contexts = (dict(map(read_variable_argument, words or [])) for words in (design, context))
        space = Space(designs, contexts, constraint or [])
        settings = Settings(space, **choices)
    elif sys.stdin.isatty() and not as_json:
        settings = converse(file, choices)
    else:
        raise StudyError("no setting was given", "add --design speed=1:9, or run this in a terminal")
    _write(file, storage or file.with_suffix(".db").name, name or file.stem, settings, shared)
    if as_json:
        print_json({"file": str(file), "name": name or file.stem, "settings": settings.to_dict()})
    else:
        for need in limit_needs(settings, 0):
            say(need, style="yellow")
        say(f"{file} describes the study; next: edrbo ask --study {file}")


def _asked_for() -> Path:
    try:
        return ask_file()
    except (typer.Abort, KeyboardInterrupt):
        say("")
        raise typer.Exit(130) from None


def _write(file: Path, storage: str, name: str, settings: Settings, shared: bool) -> None:
    """The description and the study; neither if one cannot be."""
    from edrbo.lab.config import read_toml, write_toml
    from edrbo.lab.files import is_url
    from edrbo.lab.study import Study

    mode = 0o660 if shared else 0o600
    write_toml(file, storage, name, settings, mode)
    try:
        with plain_warnings():
            described = read_toml(file)
            Study.described(described, "always")
        remember(file, described)
        if shared and not is_url(described.storage):
            os.chmod(described.storage, mode)
    except EdrboError:
        file.unlink()
        raise


def _make_described(file: Path, more: bool, as_json: bool) -> None:
    """The study of a file that was written by hand."""
    from edrbo.lab.files import is_url
    from edrbo.lab.store.event_store import EventStore
    from edrbo.lab.study import Study

    if more:
        raise ExistsAlreadyError(f"{file} exists already", "choose another name, or delete it")
    described = described_at(file)
    exists = is_url(described.storage) or Path(described.storage).exists()
    if exists and described.name in EventStore(described.storage).names():
        raise ExistsAlreadyError(f"{file} exists already, and so does its study", "choose another name")
    with plain_warnings():
        study = Study.described(described, "always")
    if as_json:
        print_json({"file": str(file), "name": study.name, "settings": described.settings.to_dict()})
    else:
        say(f"the study of {file} is made; next: edrbo ask --study {file}")


AMEND_DESIGN_HELP = "A setting with its new range or levels, or a new one: speed=10:80. Repeat for each."
AMEND_CONTEXT_HELP = "A condition, likewise."
WAS_HELP = "The value that all runs so far had of a new variable: dose=1.5."

AMEND_CONSTRAINT_HELP = "One more thing that must hold between what you set: 'speed * dose <= 80'."
NO_CONSTRAINT_HELP = "A constraint that need not hold any more, as `edrbo show` writes it."


@with_settings
def amend(
    study: StudyOption = None,
    name: NameOption = None,
    design: Annotated[list[str] | None, typer.Option("--design", "-d", help=AMEND_DESIGN_HELP)] = None,
    context: Annotated[list[str] | None, typer.Option("--context", "-c", help=AMEND_CONTEXT_HELP)] = None,
    level: Annotated[
        list[str] | None, typer.Option("--level", help="One more level, or one of before: kind=matt.")
    ] = None,
    constraint: Annotated[list[str] | None, typer.Option("--constraint", help=AMEND_CONSTRAINT_HELP)] = None,
    no_constraint: Annotated[list[str] | None, typer.Option("--no-constraint", help=NO_CONSTRAINT_HELP)] = None,
    was: Annotated[list[str] | None, typer.Option("--was", help=WAS_HELP)] = None,
    note: NoteOption = None,
    by: ByOption = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
    *,
    choices: dict[str, Any],
) -> None:
    """Change a study that has begun: ranges, levels, new settings and conditions, another goal, a title.

    Without any change on the command line, what was changed in the .toml file is made official. The change is recorded,
    shown as old → new, and can be undone; the .toml file follows.
    """
    from edrbo.lab.config import rewrite_toml
    from edrbo.lab.study import Study
    from edrbo.records.descriptions import changes

    where = study or str(only_toml())
    described = described_at(Path(where)) if where.endswith(".toml") else None
    place = where if described is None else described.storage
    chosen = name or (None if described is None else described.name)
    with plain_warnings():
        opened_study = Study.open(place, name=chosen, by=by)
        old = opened_study.settings
        state = opened_study.state_now
        if design or context or level or constraint or no_constraint or choices:
            new = _changed(
                state, design or [], context or [], level or [], constraint or [], no_constraint or [], choices
            )
        elif described is not None and described.name == opened_study.name:
            new = _keeping_runs(state, described.settings)
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
        for need in limit_needs(new, len(state.log)):
            say(need, style="yellow")
        say("amended")


def _keeping_runs(state: State, new: Settings) -> Settings:
    """With the ranges of a file to suggest from, and every run in the space."""
    texts = [constraint.text for constraint in new.space.constraints]
    return replace(new, space=keeping_runs(state, new.space.design, new.space.context, texts))


def _changed(
    state: State,
    design: list[str],
    context: list[str],
    level: list[str],
    more: list[str],
    fewer: list[str],
    choices: dict[str, Any],
) -> Settings:
    old = state.settings
    named = [word.partition("=")[0].strip() for word in (*design, *level)]
    suggested = SuggestedRanges.of(old.space, named)
    designs: dict[str, Variable] = suggested.design
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
        from edrbo.lab.entry import with_units

        choices = {**choices, "outcomes": with_units(choices["outcomes"], old)}
    constraints = _constraints(suggested.constraints, more, fewer)
    return replace(old, space=keeping_runs(state, designs, contexts, constraints), **choices)


def _constraints(known: list[str], more: list[str], fewer: list[str]) -> list[str]:
    """Those that are ``known`` with ``more`` and without ``fewer``; blanks do not matter."""
    kept = {"".join(text.split()): text for text in known}
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
        for name in ("unit", "digits", "step", "tolerance", "default")
        if getattr(new, name, None) in (None, "") and getattr(old, name, None) not in (None, "")
    }
    return replace(new, **kept)


def _with_defaults(new: Settings, was: list[str]) -> Settings:
    """With the values that all runs so far had of variables that are new, as their defaults."""
    from edrbo.lab.entry import read_variable_value

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
