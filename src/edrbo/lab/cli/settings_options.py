"""A command-line option for every setting of a study, made by looping over ``Settings.choices``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer

from edrbo.records.descriptions import format_setting
from edrbo.records.settings import Settings

SEVERAL = "Of several, what each is for: gloss=maximize, cost=minimize,weight=0.1, roughness=limit,upper=2. Repeat."


def _read_outcomes(words: list[str]) -> dict[str, Any]:
    """The name of the only outcome, or several with their aims."""
    if len(words) == 1 and not any(sign in words[0] for sign in "=<>≤≥"):
        return {"outcome": words[0]}
    from edrbo.lab.entry.settings import read_outcome_words

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
        if choice.name == "outcome":
            hints[choice.name] = Annotated[list[str] | None, typer.Option(flag, help=f"{about} {SEVERAL}")]
        kept.append(inspect.Parameter(choice.name, inspect.Parameter.KEYWORD_ONLY, default=None))

    @wraps(command)
    def wrapped(**given: Any) -> None:
        chosen = {name: given.pop(name) for name in names}
        chosen |= _read_outcomes(chosen.pop("outcome") or [])
        if chosen["outcome_range"] is not None:
            from edrbo.lab.entry.settings import read_setting

            chosen["outcome_range"] = read_setting("outcome_range", chosen["outcome_range"])
        command(choices={name: value for name, value in chosen.items() if value is not None}, **given)

    keyword = [part.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[part.name]) for part in kept]
    wrapped.__signature__ = signature.replace(parameters=keyword)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {name: hint for name, hint in hints.items() if name != "choices"}
    return wrapped
