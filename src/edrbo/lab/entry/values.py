"""Settings, conditions and results as people enter them, by name; texts, or numbers as JSON and TOML have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from edrbo.errors import EdrboError, InvalidContextError, InvalidDesignError, InvalidValueError
from edrbo.lab.entry.numbers import NotANumberError, Point, read_number
from edrbo.records.settings import Settings
from edrbo.space import Space
from edrbo.space.point_tables import close_match
from edrbo.space.variables import Categorical, Integer, Variable

FAILED = "give a finite number, or tell a failed run as failed"


def read_variable_value(given: Any, variable: Variable, point: Point | None = None) -> Any:
    """A value of ``variable``; NotANumberError says why a text is none. An unknown choice is left as it is, to be
    refused by its name."""
    if isinstance(variable, Categorical):
        return _choice(given, variable)
    number = read_number(given, variable.unit, share=is_share(variable), point=point)
    return int(number) if isinstance(variable, Integer) and number.is_integer() else number


def is_share(variable: Variable) -> bool:
    """Whether the values lie between 0 and 1, so that 55 % of it is 0.55."""
    return variable.numeric and variable.limits()[1] <= 1


def _choice(given: Any, variable: Categorical) -> Any:
    """By its text, exactly or but for capitals and spaces around."""
    words = {_text(choice): choice for choice in variable.choices}
    if (text := _text(given)) in words:
        return words[text]
    plain = text.strip().casefold()
    loose = [choice for name, choice in words.items() if name.strip().casefold() == plain]
    return loose[0] if len(loose) == 1 else given


def _text(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)


def read_design(space: Space, given: Mapping[str, Any]) -> dict[str, Any]:
    """Some settings, or all."""
    return _read(space.design, given, "setting", InvalidDesignError)


def read_context(space: Space, given: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Conditions, as far as they are known; None without any."""
    return _read(space.context, given, "condition", InvalidContextError) if given else None


def _read(
    variables: Mapping[str, Variable], given: Mapping[str, Any], role: str, error: type[EdrboError]
) -> dict[str, Any]:
    found = {}
    for name, part in given.items():
        if name not in variables:
            known = f"the {role}s are {', '.join(variables)}" if variables else f"this study has no {role}s"
            raise error(f"{name!r} is not a {role}", close_match(name, variables, known))
        try:
            found[name] = read_variable_value(part, variables[name])
        except NotANumberError as problem:
            raise error(f"{name} is {_shown(part)}: {problem}", problem.hint) from None
    return found


def read_amount(given: Any, what: str) -> float | None:
    """A plain number such as a cost or a variance; None where nothing was entered."""
    return None if given in (None, "") else _number(given, what, "", percent=False)


def read_result(settings: Settings, given: Any) -> float | dict[str, float | None] | None:
    """The result of a run: one, or several by name, each in its unit; None where nothing was entered."""
    if settings.outcomes is None:
        if isinstance(given, Mapping):
            stray = next((name for name in given if name != settings.outcome), None)
            if stray is not None or not given:
                raise InvalidValueError(f"{stray!r} was reported, and this study has one outcome", "give one number")
            given = given[settings.outcome]
        return None if given in (None, "") else _number(given, _of(settings), settings.unit)
    if given in (None, ""):
        return None
    if not isinstance(given, Mapping):
        hint = f"write NAME={given}; the outcomes are {', '.join(settings.outcomes)}"
        raise InvalidValueError(f"the value is {_shown(given)}, and this study has several outcomes", hint)
    return {
        (known := settings.outcomes.known(name)): None
        if part in (None, "")
        else _number(part, known, settings.outcomes[known].unit)
        for name, part in given.items()
    }


def read_variances(settings: Settings, given: Any) -> float | dict[str, float | None] | None:
    """The noise of a result: a variance, or several by name."""
    if isinstance(given, Mapping):
        if settings.outcomes is None:
            raise InvalidValueError("the noise is given by name, and this study has one outcome", "give one number")
        named = {settings.outcomes.known(name): part for name, part in given.items()}
        return {name: read_amount(part, f"the noise of {name}") for name, part in named.items()}
    return read_amount(given, "the noise")


def _of(settings: Settings) -> str:
    return "the value" if settings.outcome == "value" else settings.outcome


def _number(given: Any, what: str, unit: str, *, percent: bool = True) -> float:
    try:
        return read_number(given, unit, percent=percent)
    except NotANumberError as problem:
        hint = FAILED if percent and "finite" in str(problem) else problem.hint
        raise InvalidValueError(f"{what} is {_shown(given)}: {problem}", hint) from None


def _shown(given: Any) -> str:
    """What was entered, cut where it is long."""
    text = repr(given)
    return text if len(text) <= 60 else f"{text[:50]}…"
