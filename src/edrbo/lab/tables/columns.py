"""What the columns of a table are: variables, words of ours, or notes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from edrbo.errors import StudyError
from edrbo.lab.tables.csv_export import HEADINGS, columns, outcome_columns
from edrbo.lab.tables.sheet import Sheet
from edrbo.records.settings import Settings
from edrbo.space import Space

NOTED, UNREAD = "+", "-"  # of a column that is nobody's: its cells are added to the note, or passed over

ALIASES = {
    "id": ("run", "nr", "no", "number", "#"),
    "value": ("outcome", "result", "y"),
    "by": ("operator", "who", "user"),
    "at": ("date", "time", "datetime", "timestamp", "when", "datum", "zeit"),
    "note": ("notes", "comment", "comments", "remark", "remarks", "bemerkung"),
    "why": ("reason",),
    "status": ("state",),
    "run_cost": ("cost", "kosten"),
    "noise_variance": ("noise",),  # as version 0.2 named it
}


@dataclass(frozen=True)
class Columns:
    """``meaning``: heading → (role, name) with role design, context, outcome and noise (of those besides the main one),
    "" for a word of ours, note, or unread."""

    meaning: dict[str, tuple[str, str]]

    @property
    def noted(self) -> tuple[str, ...]:
        return tuple(heading for heading, (role, _) in self.meaning.items() if role == "note")


def match_columns(
    sheet: Sheet, settings: Settings | None, space: Space | None = None, chosen: Mapping[str, str] | None = None
) -> Columns:
    """Exact names first, then those that differ by capitals, spaces and units, then other words for ours.

    ``chosen`` says of some headings what their columns hold: one of ``targets``, or ``UNREAD`` for nothing.
    """
    known = settings.space if settings is not None else space
    assert known is not None
    exact = {heading: ("", heading) for heading in HEADINGS} | columns(known)
    exact |= {} if settings is None else outcome_columns(settings)
    loose = _loose(known, settings)
    meaning: dict[str, tuple[str, str]] = {}
    for heading in sheet.headings:
        meaning[heading] = exact.get(heading) or loose.get(_simple(heading)) or ("note", heading)
    exactly = {meaning[heading] for heading in sheet.headings if heading in exact}
    for heading in sheet.headings:
        other_word = heading not in exact and meaning[heading][0] == ""
        if other_word and meaning[heading] in exactly:  # date beside at: a note
            meaning[heading] = ("note", heading)
    for heading, target in (chosen or {}).items():
        if heading in meaning and target in (*exact, NOTED, UNREAD):
            meaning[heading] = exact.get(target) or ("note" if target == NOTED else "unread", heading)
    _check_once(sheet, meaning)
    return Columns(meaning)


def targets(settings: Settings) -> list[str]:
    """What a column can hold, as exports write their headings."""
    return [*columns(settings.space), "value", *outcome_columns(settings), *(h for h in HEADINGS if h != "value")]


def target_of(settings: Settings, kind: tuple[str, str]) -> str:
    """The one of ``targets`` that a column was taken for; ``NOTED`` or ``UNREAD``."""
    known = {("", heading): heading for heading in HEADINGS}
    known |= {kind: heading for heading, kind in (columns(settings.space) | outcome_columns(settings)).items()}
    return known.get(kind, UNREAD if kind[0] == "unread" else NOTED)


def _loose(space: Space, settings: Settings | None) -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    for ours, words in ALIASES.items():
        found |= {_simple(word): ("", ours) for word in words}
    found |= {_simple(heading): ("", heading) for heading in HEADINGS}
    if settings is not None:
        found[_simple(settings.outcome)] = ("", "value")
        found |= {_simple(heading): kind for heading, kind in outcome_columns(settings).items()}
    names = [("design", name) for name in space.design_names] + [("context", name) for name in space.context_names]
    simple = [_simple(name) for _, name in names]
    # Two variables that differ only by capitals must be written exactly.
    found |= {text: pair for text, pair in zip(simple, names, strict=True) if text and simple.count(text) == 1}
    return found


def _simple(heading: str) -> str:
    """Without capitals, spaces, and a unit in brackets at the end."""
    bare = re.sub(r"\s*[\[(][^\])]*[\])]\s*$", "", heading)
    return re.sub(r"[\s_\-.\x00-\x1f\ufffd]+", "", bare or heading).casefold()


def _check_once(sheet: Sheet, meaning: dict[str, tuple[str, str]]) -> None:
    seen: dict[tuple[str, str], str] = {}
    for heading, kind in meaning.items():
        if kind in seen and kind[0] not in ("note", "unread"):
            raise StudyError(
                f"{sheet.file}: the columns {seen[kind]!r} and {heading!r} both are {kind[1]}", "delete or rename one"
            )
        seen[kind] = heading
