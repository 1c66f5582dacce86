"""The one reader of what people enter: numbers (1.5, 1,5, 1 234,5, 55 %, 38 m/min), settings, conditions and results by
name, times (seconds since 1970 in records), variables (10-60 m/min, 1e-4:1:log, 1 to 8 int, plain,glossy) and settings
of a study.

The command line, the lab page, files and TOML read through here, so that the same input is the same event everywhere.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Literal, get_args

from edrbo.errors import EdrboError, InvalidContextError, InvalidDesignError, InvalidSpaceError, InvalidValueError
from edrbo.records import outcomes as o
from edrbo.records.outcomes import Direction
from edrbo.records.settings import LEARNED, METHOD_NAMES, NoiseModel, Outliers, Purpose, Settings
from edrbo.space import Space
from edrbo.space.point_tables import close_match
from edrbo.space.variables import Categorical, Integer, Real, Variable

Point = Literal[".", ","]

_SPACES = "\u00a0\u2009\u202f "  # between groups of three digits, as are apostrophes
_GROUPED = re.compile(
    r"[+-]?[0-9]{1,3}(?:(?P<sign>[\u00a0\u2009\u202f '’])[0-9]{3})(?:(?P=sign)[0-9]{3})*([.,][0-9]*)?"
)
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?", re.IGNORECASE)
_ENDLESS = ("nan", "inf", "+inf", "-inf", "infinity", "+infinity", "-infinity")


class NotANumberError(ValueError):
    """Why a text is no number, and what to write."""

    def __init__(self, reason: str, hint: str = "write a number, as 1.7 or 1,7") -> None:
        super().__init__(reason)
        self.hint = hint


def read_number(
    given: Any, unit: str = "", *, share: bool = False, percent: bool = True, point: Point | None = None
) -> float:
    """A finite number from text, or from a number as JSON and TOML have it; NotANumberError says why it is none.

    Args:
        given: what was entered. A unit behind the number is passed over if it is ``unit``.
        unit: of what is entered.
        share: whether it lies between 0 and 1, so that a percent sign means hundredths.
        percent: whether a percent sign may stand behind a number without a unit.
        point: the decimal sign, if that is known.
    """
    if isinstance(given, str):
        number = _read_text(given.strip().replace("−", "-"), unit, share, percent, point)
    elif isinstance(given, int | float) and not isinstance(given, bool):
        try:
            number = float(given)
        except OverflowError:
            number = math.inf
    else:
        raise NotANumberError("not a number")
    if not math.isfinite(number):
        raise NotANumberError("not a finite number")
    return number


def _read_text(words: str, unit: str, share: bool, percent: bool, point: Point | None) -> float:
    try:
        return _read_plain(words, point)
    except NotANumberError as problem:
        number, behind = _split(words, unit)
        if unit and behind and _bare(behind) == _bare(unit):
            return _read_plain(number, point)
        if not behind or not _reads(number, point):
            raise
        if behind == "%" and percent and not unit:
            return _hundredth(_read_plain(number, point)) if share else _read_plain(number, point)
        hint = f"give it in {unit}" if unit else "write the number alone"
        raise NotANumberError(f"not in {unit}" if unit else str(problem), hint) from None


def is_percent_format(code: str) -> bool:
    """Whether a spreadsheet shows numbers of this format as hundredths with a per cent sign."""
    return "%" in re.sub(r'"[^"]*"|\\.|_.|\*.', "", code)


def percent_text(share: float) -> str:
    """``share`` as such a cell shows it, with all its digits: 52% for 0.52."""
    return f"{(Decimal(repr(share)) * 100).normalize():f}%"


def _split(words: str, unit: str) -> tuple[str, str]:
    """A number and what stands behind it; a unit may begin with a digit, after a space."""
    head, tail = words[: len(words) - len(unit)], words[len(words) - len(unit) :]
    if unit and head[-1:].isspace() and tail.casefold() == unit.casefold():
        return head.rstrip(), unit
    letters = enumerate(words)
    first = next((k for k, one in letters if not (one in "+-.,'’0123456789eE" or one in _SPACES)), len(words))
    number = words[:first].rstrip(f"{_SPACES}'’")
    if number[-1:] in ("e", "E"):  # the first letter of what stands behind
        number = number[:-1].rstrip(_SPACES)
    return number, words[len(number) :].strip()


def _bare(unit: str) -> str:
    return "".join(unit.split()).casefold()


def _hundredth(number: float) -> float:
    """As the decimal that people mean: 55 % is 0.55."""
    return float(f"{number / 100:.15g}")


def _reads(words: str, point: Point | None) -> bool:
    try:
        _read_plain(words, point)
    except NotANumberError:
        return False
    return True


def _read_plain(words: str, point: Point | None) -> float:
    if words.casefold() in _ENDLESS:
        return math.nan
    return float(_plain(words, point))


def _plain(words: str, point: Point | None) -> str:
    """The digits with a point, as Python reads them."""
    compact = words
    if any(space in words for space in f"{_SPACES}'’"):
        if not _GROUPED.fullmatch(words):
            raise NotANumberError("not a number")
        compact = re.sub(rf"[{_SPACES}'’]", "", words)
    if point == ".":
        compact = _without_groups(compact, ",")
    elif point == ",":
        compact = _without_groups(compact, ".").replace(",", ".")
    elif "," in compact and "." in compact:
        last, other = (",", ".") if compact.rindex(",") > compact.rindex(".") else (".", ",")
        compact = _without_groups(compact, other).replace(last, ".")
    elif compact.count(",") > 1:
        compact = _without_groups(compact, ",")
    elif re.fullmatch(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}", compact):
        dot, none = compact.replace(",", "."), compact.replace(",", "")
        raise NotANumberError("ambiguous: it can be read in two ways", f"write {dot} or {none}")
    else:
        compact = compact.replace(",", ".")
    if not _NUMBER.fullmatch(compact):
        raise NotANumberError("not a number")
    return compact


def _without_groups(words: str, sign: str) -> str:
    """Without the signs between groups of three digits."""
    if sign not in words:
        return words
    if not re.fullmatch(rf"[+-]?[0-9]{{1,3}}({re.escape(sign)}[0-9]{{3}})+([^0-9].*)?", words):
        raise NotANumberError("not a number")
    return words.replace(sign, "")


_DAY_FIRST = ("%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M", "%d.%m.%Y", "%d.%m.%y %H:%M", "%d.%m.%y")
_SLASHES = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4})(.*)")


def time_text(at: float | None) -> str:
    """ISO 8601 in UTC, exact to the microsecond; empty if it is not known."""
    return "" if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="microseconds")


def local_text(at: float | None) -> str:
    """To the minute, in the time of this place, for people."""
    return "" if at is None else datetime.fromtimestamp(at).strftime("%Y-%m-%d %H:%M")


def read_time(text: str) -> float:
    """Seconds since 1970 of a date or a time, as 2026-03-14 15:30 or 14.03.2026; one without a zone is local.

    ValueError says why a text is none.
    """
    words = text.strip()
    if found := _SLASHES.fullmatch(words):
        first, second = int(found[1]), int(found[2])
        if first <= 12 and second <= 12 and first != second:
            raise ValueError("ambiguous: day and month cannot be distinguished")
        day, month = (first, second) if first > 12 else (second, first)
        words = f"{found[3]}-{month:02}-{day:02}{found[4]}"
    for form in _DAY_FIRST:
        try:
            return datetime.strptime(words, form).timestamp()
        except ValueError:
            continue
    try:
        return datetime.fromisoformat(words).timestamp()
    except (ValueError, OverflowError):
        raise ValueError("not a date") from None


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


def read_control(settings: Settings, given: Any) -> float | None:
    """What a control run gave of the main outcome, in its unit; None where nothing was entered."""
    return None if given in (None, "") else _number(given, "the control", settings.unit)


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


NUMBER = r"[+-]?(?:\d+[.,]?\d*|[.,]\d+)(?:[eE][+-]?\d+)?"
RANGE = re.compile(rf"\s*({NUMBER})?\s*(?::|\.\.+|…|–|—|-|\bto\b|\bbis\b)\s*({NUMBER})?(.*)", re.DOTALL)
STEP = re.compile(rf"\b(?:in )?steps?(?: of|=| )\s*({NUMBER})")
TOLERANCE = re.compile(rf"\btolerance(?: of|=| )\s*((?:±|\+/-|\+-)?\s*{NUMBER}\s*%?)")
DEFAULT = re.compile(r"\bdefault[= ]\s*(\S+)")
DIGITS = re.compile(r"\bdigits[= ](\d+)")
UNIT = re.compile(r"\bunit=(\S+)")
MARKS = {  # as people write them; a unit of such a name is given by unit=
    **dict.fromkeys(("int", "integer", "integers", "whole"), "int"),
    **dict.fromkeys(("log", "logarithmic"), "log"),
}
HELP = (
    "write speed=10:60, 'speed=10:60 m/min step 0.5', rate=1e-4:1:log, layers=1:8:int, kind=a,b,c or size=small<large"
)


def read_variable_argument(word: str) -> tuple[str, Variable]:
    """``NAME=SPECIFICATION``, or a name alone for a context without bounds."""
    name, _, text = word.partition("=")
    return name.strip(), read_specification(text)


def read_specification(text: str) -> Variable:
    """A range (LOW:HIGH, LOW-HIGH, LOW..HIGH, LOW to HIGH) with marks and a unit, or names with
    commas between, with < if they have an order."""
    if not text.strip():
        return Real()
    default = DEFAULT.search(text)
    if default:
        variable = read_specification(DEFAULT.sub("", text))
        return replace(variable, default=read_variable_value(default[1], variable))
    found = RANGE.fullmatch(text)
    if found is None or (found[1] is None and found[2] is None):
        if "<" in text and "," not in text:
            return Categorical(tuple(part.strip() for part in text.split("<") if part.strip()), ordered=True)
        if len(levels := read_levels(text)) < 2:
            raise InvalidSpaceError(f"{text!r} is neither a range nor a list of names", HELP)
        return Categorical(levels)
    low, high = (None if part is None else part.replace(",", ".") for part in (found[1], found[2]))
    rest, extras = _extras(found[3])
    words = [word for word in re.split(r"[:\s]+", rest) if word]
    marks = {MARKS[word.casefold()] for word in words if word.casefold() in MARKS}
    unit = " ".join(word for word in words if word.casefold() not in MARKS)
    if unit:
        extras["unit"] = unit
    if "int" in marks:
        whole = {key: part for key, part in extras.items() if key == "unit"}
        return Integer(_whole(low), _whole(high), log="log" in marks, **whole)
    ends = [None if part is None else float(part) for part in (low, high)]
    return Real(ends[0], ends[1], log="log" in marks, **extras)


LAST = re.compile(r"\s+(?:or|and|oder|und)\s+")


def read_levels(text: str) -> tuple[str, ...]:
    """Names with commas or bars between, or with "or" and "and" before the last: A, B or C. What stands in quotation
    marks is one name."""
    text = " ".join(text.split())
    bars = "|" in text and '"' not in text
    *first, last = next(csv.reader([text], delimiter="|" if bars else ",", skipinitialspace=True), [""]) or [""]
    rest = [last] if bars or text.endswith('"') else LAST.split(last)
    return tuple(name.strip() for name in (*first, *rest) if name.strip())


def levels_text(choices: Sequence[Any]) -> str:
    """The inverse of ``read_levels``."""
    names = list(map(str, choices))
    return ", ".join(_quoted(name) if read_levels(name) != (name,) or '"' in name else name for name in names)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _whole(text: str | None) -> int:
    if text is None:
        raise InvalidSpaceError("a whole number needs both bounds", HELP)
    number = float(text)
    if not number.is_integer():
        raise InvalidSpaceError(f"the bound {text} is not a whole number", HELP)
    return int(number)


def _extras(rest: str) -> tuple[str, dict[str, Any]]:
    """Step, digits, tolerance and unit, and what is left of the text without them."""
    extras: dict[str, Any] = {}
    if step := STEP.search(rest):
        extras["step"] = float(step[1].replace(",", "."))
    if digits := DIGITS.search(rest):
        extras["digits"] = int(digits[1])
    if tolerance := TOLERANCE.search(rest):
        extras["tolerance"] = tolerance[1].replace(",", ".").strip()
    if unit := UNIT.search(rest):
        extras["unit"] = unit[1]
    for pattern in (STEP, DIGITS, TOLERANCE, UNIT):
        rest = pattern.sub("", rest)
    return rest, extras


def specification(variable: Variable) -> str:
    """The inverse of ``read_specification`` for what people typed here."""
    record = variable.to_dict()
    if record["kind"] == "categorical":
        return "<".join(map(str, record["choices"])) if "ordered" in record else levels_text(record["choices"])
    ends = ["" if record[end] is None else f"{record[end]:.17g}" for end in ("lower", "upper")]
    text = "" if ends == ["", ""] else ":".join(ends)
    text += ":int" * (record["kind"] == "integer") + ":log" * record["log"]
    text += f" step {record['step']:.17g}" if "step" in record else ""
    text += f" tolerance {record['tolerance']}" if "tolerance" in record else ""
    unit = record.get("unit", "")
    return f"{text} {'unit=' if unit.casefold() in MARKS else ''}{unit}".rstrip()


NOTHING = ("", "none")
OPTIONS: dict[str, tuple[str, ...]] = {
    "method": METHOD_NAMES,
    "direction": get_args(Direction),
    "aim": get_args(Purpose),
    "outliers": get_args(Outliers),
    "noise_model": get_args(NoiseModel),
}
Aim = o.Maximize | o.Minimize | o.Limit
BOUND = re.compile(r"\s*(?P<name>[^<>≤≥=]+?)\s*(?P<sign><=|>=|≤|≥)\s*(?P<number>.+)")
COMMA = re.compile(r"=\s*([+-]?[0-9]+),([0-9]+)(?=\s*(?:,|$))")
PERCENT = re.compile(r"=\s*([0-9]+(?:\.[0-9]+)?)\s*%")


def read_setting(name: str, given: Any) -> Any:
    """The value of the setting ``name``; None for "none". What it may be is checked by ``Settings``."""
    kinds = {choice.name: choice.metadata["kind"] for choice in Settings.choices()}
    if name not in kinds:
        raise InvalidValueError(f"{name!r} is no setting", close_match(name, kinds, f"they are {', '.join(kinds)}"))
    if isinstance(given, str) and given.strip().casefold() in NOTHING:
        return None
    if name == "earlier":  # who enters values need not be allowed to read the files of this machine
        hint = "write edrbo new --earlier line1.db, or earlier = [...] in the TOML file and edrbo amend"
        raise InvalidValueError("earlier studies are not entered here", hint)
    if name == "outcome_range" and isinstance(given, str):
        return _read_range(given)
    if name == "drift" and isinstance(given, str) and given.strip().casefold() == LEARNED:
        return LEARNED
    if kinds[name] not in (int, float) and name != "drift":
        return given.strip() if isinstance(given, str) else given
    try:
        number = read_number(given, share=name == "least_success")
    except NotANumberError as problem:
        raise InvalidValueError(f"{name.replace('_', ' ')} is {given!r}: {problem}", problem.hint) from None
    return int(number) if kinds[name] is int and number.is_integer() else number


def _read_range(text: str) -> tuple[float | None, ...]:
    """Two ends, as in 0:100 or 0:; how many there are is checked by ``Settings``."""
    try:
        return tuple(read_number(part) if part.strip() else None for part in text.split(":"))
    except NotANumberError as problem:
        raise InvalidValueError(f"outcome range is {text!r}: {problem}", problem.hint) from None


def read_outcome_words(words: Iterable[str]) -> dict[str, Aim]:
    """What each outcome is for, from words as roughness=limit,upper=2 or roughness <= 2 um."""
    found: dict[str, Aim] = {}
    for name, part in map(_read_word, words):
        if name in found:
            raise InvalidValueError(f"the outcome {name!r} is given twice", "each has a name of its own")
        found[name] = part
    return found


def with_units(outcomes: Mapping[str, Aim], old: Settings) -> dict[str, Aim]:
    """``outcomes`` with the units they had, where nothing is said of them."""
    return {name: part if part.unit else replace(part, unit=_unit_of(name, old)) for name, part in outcomes.items()}


def _read_word(word: str) -> tuple[str, Aim]:
    if bound := BOUND.fullmatch(word):
        end: Literal["upper", "lower"] = "upper" if bound["sign"] in ("<=", "≤") else "lower"
        number = re.fullmatch(r"([+-]?[0-9.,]+)\s*(.*)", bound["number"])
        unit = number[2] if number else ""
        try:
            limit = read_number(bound["number"], unit)
        except NotANumberError as problem:
            words = f"the limit of {bound['name']} is {bound['number']!r}: {problem}"
            raise InvalidValueError(words, problem.hint) from None
        return bound["name"], o.Limit(**{end: limit}, unit=unit)
    plain = COMMA.sub(r"=\1.\2", word)
    return o.read_outcome_argument(PERCENT.sub(lambda found: f"={float(found[1]) / 100:.15g}", plain))


def _unit_of(name: str, old: Settings) -> str:
    known: Mapping[str, Aim] = old.outcomes or {}
    return known[name].unit if name in known else old.unit if name == old.outcome else ""


def format_outcome(settings: Settings) -> list[str]:
    """The inverse of ``read_outcome_words``; none where there is one outcome."""
    return [] if settings.outcomes is None else settings.outcomes.to_text().split("; ")
