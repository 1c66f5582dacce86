"""A misspelled argument is named with the one that was meant; signatures stay explicit."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from edrbo.space.point_tables import close_match

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


def spell_checked(function: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
    """A function whose TypeError for an argument that it does not have says which one is spelled alike."""
    names = [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]
    title = function.__qualname__.removesuffix(".__init__")

    @wraps(function)
    def checked(*arguments: Arguments.args, **named: Arguments.kwargs) -> Answer:
        for name in named:
            if name not in names:
                hint = close_match(name, names, f"its arguments are {', '.join(names)}")
                raise TypeError(f"{title}() has no argument {name!r} (hint: {hint})")
        return function(*arguments, **named)

    return checked
