"""``edrbo run``: evaluate suggestions with a command."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from edrbo.lab.cli.location import opened
from edrbo.lab.cli.options import ByOption, JsonOption, NameOption
from edrbo.lab.cli.output import print_json, say

if TYPE_CHECKING:
    from edrbo.lab.runner import Answer


def run(
    study: Annotated[str, typer.Argument(help="The study: its .toml file, its .db file or a PostgreSQL URL.")],
    command: Annotated[list[str], typer.Argument(help="The command, after --; {name} is replaced by a design value.")],
    evaluations: Annotated[int, typer.Option("--evaluations", "-n", min=1, help="How many evaluations.")] = 10,
    workers: Annotated[int, typer.Option("--workers", "-w", min=1, help="How many at the same time.")] = 1,
    timeout: Annotated[float | None, typer.Option(help="Seconds after which an evaluation has failed.")] = None,
    name: NameOption = None,
    by: ByOption = None,
    pending: Annotated[bool, typer.Option("--pending", help="First those left pending by a run that ended.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Run a command per suggestion: edrbo run coating.toml -- ./simulate {speed} {dose}

    The command prints JSON, as {"value": 1.7, "context": {"humidity": 0.4}}. One that crashes or hangs is a failed
    evaluation. Ctrl-C ends the running commands; their suggestions stay pending.
    """
    from edrbo.lab.runner import Runner

    with opened(study, name, by, create="first") as opened_study:
        runner = Runner(
            opened_study,
            command,
            workers=workers,
            timeout=timeout,
            report=_print_json if as_json else _print_line,
        )
        before = signal.signal(signal.SIGTERM, _interrupt)
        try:
            runner.run(evaluations, opened_study.pending if pending else [])
        except KeyboardInterrupt:
            say(f"stopped after {runner.succeeded + runner.failed} evaluations; the rest stays pending", err=True)
            raise typer.Exit(130) from None
        finally:
            signal.signal(signal.SIGTERM, before)
    if not as_json:
        say(f"{runner.succeeded} evaluated, {runner.failed} failed")
    if not runner.succeeded:
        raise typer.Exit(1)


def _interrupt(number: int, frame: Any) -> NoReturn:
    raise KeyboardInterrupt


def _print_line(answer: Answer) -> None:
    design = ", ".join(f"{name}={_short(value)}" for name, value in answer.suggestion.design.items())
    if answer.problem is not None:
        say(f"{answer.suggestion.id:>5}  {design}  failed: {answer.problem}", style="yellow")
        return
    context = "".join(f", {name}={_short(value)}" for name, value in (answer.context or {}).items())
    say(f"{answer.suggestion.id:>5}  {design}{context}  value {_short(answer.value)}")


def _print_json(answer: Answer) -> None:
    print_json(
        {
            "id": answer.suggestion.id,
            "design": answer.suggestion.design,
            "context": answer.context,
            "value": answer.value,
            "problem": answer.problem,
        }
    )


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
