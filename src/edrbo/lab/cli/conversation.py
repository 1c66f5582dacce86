"""``edrbo new`` as a conversation: plain questions, asked again where an answer cannot be; nothing typed is lost."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import typer

from edrbo.errors import EdrboError, InvalidSpaceError
from edrbo.lab.cli.output import print_table, say
from edrbo.lab.entry.variables import HELP, NUMBER, RANGE, read_specification, specification
from edrbo.records.descriptions import heading
from edrbo.records.settings import Settings
from edrbo.space import Real, Space, Variable

T = TypeVar("T")

MORE, LESS = ("more", "max", "maximize", "higher", "up"), ("less", "min", "minimize", "lower", "down")
FEW_VALUES = "a range as 10-60, 10..60 or 10 to 60, or names as plain, glossy"


def ask_file() -> Path:
    """Where to write the description of a study that was given no file."""
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
    draft = Draft(dict(choices))
    try:
        draft.ask_all()
        while not draft.confirmed():
            draft.mend()
        return draft.settings()
    except (typer.Abort, KeyboardInterrupt):
        say("")
        say(f"stopped; to go on from here: {draft.command(file)}", err=True)
        raise typer.Exit(130) from None


class Draft:
    """What was answered so far."""

    def __init__(self, choices: dict[str, Any]) -> None:
        self.choices = choices
        self.design: dict[str, Variable] = {}
        self.context: dict[str, Variable] = {}

    def ask_all(self) -> None:
        say("A few questions; Enter alone takes what is in brackets. Nothing is stored before you say yes.")
        if "outcome" not in self.choices:
            self.choices["outcome"] = ask("What do you measure after each run, for instance gloss?", str, "value")
        outcome = self.choices["outcome"]
        if "unit" not in self.choices:
            self.choices["unit"] = ask(f"In which unit is {outcome}? (Enter: none)", str, "")
        if "direction" not in self.choices:
            self.choices["direction"] = ask(f"Is more {outcome} better, or less?", _direction, "more")
        say("")
        say("Now what you set before each run, one after the other.")
        self._ask_variables(self.design, "Name of something you set, for instance speed", needed=True)
        say("")
        say("And what you cannot set and only see during or after a run, as the humidity of the day.")
        self._ask_variables(self.context, "Name of something the world sets", needed=False)

    def _ask_variables(self, variables: dict[str, Variable], question: str, *, needed: bool) -> None:
        while True:
            optional = not needed or bool(variables)
            name = ask(f"{question}{' (Enter: no more)' if optional else ''}", self._name(optional), "")
            if not name:
                return
            self._ask_variable(name, variables)

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
        if isinstance(variable, Real) and variable.step is None and not context:
            variables[name] = ask(f"  The smallest step of {name}? (Enter: any value)", _with_step(variable), "")

    # ---------------------------------------------------------------- the end

    def settings(self) -> Settings:
        return Settings(Space(self.design, self.context), **self.choices)

    def confirmed(self) -> bool:
        settings = self.settings()
        rows = [["you set", name, variable.describe()] for name, variable in self.design.items()]
        rows += [["the world sets", name, variable.describe()] for name, variable in self.context.items()]
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
            for key in ("outcome", "unit", "direction"):
                self.choices.pop(key, None)
            outcome = self.choices["outcome"] = ask("What do you measure?", str, "value")
            self.choices["unit"] = ask(f"In which unit is {outcome}? (Enter: none)", str, "")
            self.choices["direction"] = ask(f"Is more {outcome} better, or less?", _direction, "more")
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
