"""Variables and settings between forms and the records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from edrbo.errors import InvalidSpaceError, InvalidValueError
from edrbo.lab.entry import (
    NotANumberError,
    levels_text,
    read_levels,
    read_number,
    read_outcome_words,
    read_setting,
    read_variable_value,
    with_units,
)
from edrbo.lab.web import bodies
from edrbo.records.settings import Settings
from edrbo.records.state import State
from edrbo.records.suggested_ranges import SuggestedRanges, keeping_runs
from edrbo.space import Categorical, Integer, Real, Space

KINDS = {"real": "a number", "integer": "a whole number", "categorical": "one of several"}


def unit_of(variable: Any) -> str:
    return str(getattr(variable, "unit", None) or "")


def describe_variable(name: str, variable: Any) -> dict[str, Any]:
    """What forms and pages show of a variable."""
    record = variable.to_dict()
    return {
        "name": name,
        "kind": variable.kind,
        "low": record.get("lower"),
        "high": record.get("upper"),
        "log": bool(record.get("log", False)),
        "choices": [str(choice) for choice in record.get("choices", ())],
        "unit": unit_of(variable),
        "step": getattr(variable, "step", None),
        "digits": getattr(variable, "digits", None),
    }


def constraints_of(space: Space) -> list[str]:
    """What must hold, one text each."""
    return [constraint.describe() for constraint in space.constraints]


def read_space(
    design: Sequence[bodies.Variable],
    context: Sequence[bodies.Variable],
    constraints: Sequence[str],
    old: Space | None = None,
) -> Space:
    """The space of a form; what the form does not show of an ``old`` variable stays."""
    was: Mapping[str, Any] = {} if old is None else {**old.design, **old.context}
    return Space(
        {part.name: _variable(part, was.get(part.name)) for part in design},
        {part.name: _variable(part, was.get(part.name)) for part in context},
        [text.strip() for text in constraints if text.strip()],
    )


def _variable(part: bodies.Variable, old: Any) -> Any:
    if part.kind not in KINDS:
        raise InvalidSpaceError(f"{part.name!r} is {part.kind!r}", f"choose from {', '.join(KINDS)}")
    kind: Any = {"real": Real, "integer": Integer, "categorical": Categorical}[part.kind]
    known = {field.name for field in fields(kind)}
    kept = {name: getattr(old, name) for name in known if isinstance(old, kind)}
    if part.kind == "categorical":
        given: dict[str, Any] = {"choices": _choices(part, old)}
    else:
        low, high = (_bound(b, part, part.name) for b in (part.low, part.high))
        if low is not None and high is not None and not low < high:
            raise InvalidSpaceError(f"{part.name}: From ({low:g}) must be below To ({high:g})", "change one of them")
        given = {"lower": _whole(kind, low), "upper": _whole(kind, high), "log": part.log}
    if "unit" in known:
        given["unit"] = part.unit.strip()
    if "step" in known:
        given["step"] = _bound(part.step, part, f"the step of {part.name}")
    variable = kind(**{**kept, **given})
    if old is not None or part.before in (None, ""):
        return variable
    try:
        return replace(variable, default=read_variable_value(part.before, variable))
    except NotANumberError as problem:
        raise InvalidValueError(f"{part.name} is {part.before!r}: {problem}", problem.hint) from None


def _bound(given: Any, part: bodies.Variable, what: str) -> float | None:
    """A number in the unit of the variable; None where nothing was entered."""
    if given in (None, ""):
        return None
    try:
        return read_number(given, part.unit.strip())
    except NotANumberError as problem:
        raise InvalidValueError(f"{what} is {given!r}: {problem}", problem.hint) from None


def _choices(part: bodies.Variable, old: Any) -> tuple[Any, ...]:
    was = {str(choice): choice for choice in old.choices} if isinstance(old, Categorical) else {}
    return tuple(was.get(text, text) for text in read_levels(part.choices))


def _whole(kind: Any, bound: float | None) -> float | None:
    return int(bound) if kind is Integer and bound is not None and bound == int(bound) else bound


def read_new(body: bodies.New) -> Settings:
    choices: dict[str, Any] = {"direction": body.direction, "aim": body.aim}
    choices |= {
        name: text
        for name in ("goal", "outcome", "unit", "context_distribution", "cost")
        if (text := getattr(body, name).strip())
    }
    choices |= {name: value for name, part in body.settings.items() if (value := read_setting(name, part)) is not None}
    if body.outcomes:
        choices["outcomes"] = read_outcome_words(body.outcomes)
    return Settings(read_space(body.design, body.context, body.constraints), **choices)


def read_amendment(body: bodies.Amend, state: State) -> dict[str, Any]:
    """The settings that change, as ``amend`` takes them; new variables have the values of older runs as defaults."""
    changed: dict[str, Any] = {}
    settings = state.settings
    if body.design is not None or body.context is not None or body.constraints is not None:
        old, suggested = settings.space, SuggestedRanges.of(settings.space)
        design = body.design if body.design is not None else _as_bodies(suggested.design)
        context = body.context if body.context is not None else _as_bodies(old.context)
        constraints = body.constraints if body.constraints is not None else suggested.constraints
        wanted = read_space(design, context, constraints, old)
        texts = [constraint.text for constraint in wanted.constraints]
        space = keeping_runs(state, wanted.design, wanted.context, texts)
        if space != old:
            changed["space"] = space.to_dict()
    if body.goal is not None and body.goal.strip() and body.goal.strip() != settings.goal.to_text():
        changed["goal"] = body.goal.strip()
    if body.aim is not None and body.aim != settings.aim:
        changed["aim"] = body.aim
    for name in ("context_distribution", "cost"):
        text, old_one = (getattr(body, name) or "").strip(), getattr(settings, name)
        if text and text != ("none" if old_one is None else old_one.to_text()):
            changed[name] = text
    new = {name: read_setting(name, part) for name, part in body.settings.items()}
    if body.outcomes:
        new["outcomes"] = with_units(read_outcome_words(body.outcomes), settings)
    if new:
        old_record, new_record = settings.to_dict(), replace(settings, **new).to_dict()
        # with several outcomes the main one says what was said by settings of their own
        names = {*new, *(("outcome", "direction", "unit", "goal") if "outcomes" in new else ())}
        changed |= {name: new_record[name] for name in sorted(names) if new_record[name] != old_record[name]}
    return changed


def _as_bodies(variables: Mapping[str, Any]) -> list[bodies.Variable]:
    found = []
    for name, variable in variables.items():
        part = describe_variable(name, variable)
        found.append(
            bodies.Variable(
                **{key: part[key] for key in ("name", "kind", "low", "high", "log", "unit", "step")},
                choices=levels_text(part["choices"]),
            )
        )
    return found
