"""``edrbo new``: describe a study by flags or by answering questions."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from edrbo.cli.output import plain_warnings, print_json, say
from edrbo.errors import EdrboError, InvalidSpaceError, StudyError

if TYPE_CHECKING:
    from edrbo.space import Variable

DESIGN_HELP = "A design variable: speed=1:9, rate=1e-4:1:log, layers=1:8:int or kind=a,b,c. Repeat for each."
CONTEXT_HELP = "A context variable: humidity=0:1, or just price if its bounds are not known. Repeat for each."


def register(app: typer.Typer) -> None:
    app.command("new")(new)


def new(
    file: Annotated[Path, typer.Argument(help="The .toml file to write; the study is kept beside it.")],
    design: Annotated[list[str] | None, typer.Option("--design", "-d", help=DESIGN_HELP)] = None,
    context: Annotated[list[str] | None, typer.Option("--context", "-c", help=CONTEXT_HELP)] = None,
    direction: Annotated[str, typer.Option(help="maximize or minimize")] = "maximize",
    method: Annotated[str, typer.Option(help="edrbo, edrbo-warped, erbo, wdrbo, …: see docs/methods")] = "edrbo",
    storage: Annotated[str | None, typer.Option(help="A file beside the TOML, or postgresql://user@host/db.")] = None,
    name: Annotated[str | None, typer.Option(help="The study's name in its storage.")] = None,
    seed: Annotated[int, typer.Option(help="Same seed and data, same suggestions.")] = 0,
    initial: Annotated[int, typer.Option(min=1, help="Quasi-random designs before the model takes over.")] = 5,
    forgetting: Annotated[float | None, typer.Option(help="Contexts until an old one counts half.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
) -> None:
    """Make a study: a .toml file that describes it, and the file that keeps it."""
    from edrbo.records.settings import Settings
    from edrbo.space import Space
    from edrbo.study.toml_file import read_toml, write_toml

    if file.suffix != ".toml":
        raise StudyError(f"{file} does not end in .toml", f"write {file}.toml")
    if file.exists():
        raise StudyError(f"{file} exists already", "choose another name, or delete it")
    if not design:
        design, context, direction = _ask_questions()
    way: Literal["maximize", "minimize"] = "minimize" if direction == "minimize" else "maximize"
    if direction not in ("maximize", "minimize"):
        raise StudyError(f"direction is {direction!r}", "write maximize or minimize")
    space = Space(dict(map(read_word, design)), dict(map(read_word, context or [])))
    settings = Settings(space, method, way, seed, forgetting, initial)
    write_toml(file, storage or file.with_suffix(".db").name, name or file.stem, settings)
    try:
        with plain_warnings():
            study = read_toml(file).open()
    except EdrboError:
        file.unlink()
        raise
    if as_json:
        print_json({"file": str(file), "name": study.name, "settings": settings.to_dict()})
    else:
        say(f"{file} describes the study; next: edrbo ask --study {file}")


def read_word(word: str) -> tuple[str, Variable]:
    """``NAME=SPECIFICATION`` as a variable: LOW:HIGH, LOW:HIGH:log, LOW:HIGH:int, A,B,C, or nothing."""
    from edrbo.space import Categorical, Integer, Real

    name, _, text = word.partition("=")
    if not text:
        return name, Real()
    if ":" not in text:
        return name, Categorical(tuple(part.strip() for part in text.split(",")))
    low, high, *marks = text.split(":")
    if not set(marks) <= {"log", "int"}:
        raise InvalidSpaceError(f"{word!r} cannot be read", DESIGN_HELP)
    try:
        if "int" in marks:
            return name, Integer(int(low), int(high), log="log" in marks)
        return name, Real(float(low) if low else None, float(high) if high else None, log="log" in marks)
    except ValueError as problem:
        if isinstance(problem, EdrboError):
            raise
        raise InvalidSpaceError(f"a bound in {word!r} is not a number", DESIGN_HELP) from None


def _ask_questions() -> tuple[list[str], list[str], str]:
    if not sys.stdin.isatty():
        raise StudyError("no design variable was given", "add --design speed=1:9, or run this in a terminal")
    say("What do you choose? One variable per line, as speed=1:9, layers=1:8:int or kind=a,b,c.")
    design = _ask_lines("design variable")
    say("What does the world choose, and you only see afterwards? As humidity=0:1, or price.")
    context = _ask_lines("context variable")
    direction = typer.prompt("Is more better, or less? (maximize/minimize)", default="maximize")
    return design, context, direction


def _ask_lines(what: str) -> list[str]:
    lines: list[str] = []
    while True:
        line = typer.prompt(f"{what} (empty: no more)", default="", show_default=False).strip()
        if not line:
            return lines
        try:
            read_word(line)
        except EdrboError as problem:
            say(str(problem), style="yellow")
            continue
        lines.append(line)
