"""Tables as files: whatever spreadsheets and people write, read into rows of texts. Nothing here knows of studies.

CSV with commas, semicolons or tabs, in UTF-8 (with or without a mark), UTF-16 or Latin-1, with a decimal point or
comma; .xlsx by ``spreadsheet``.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from edrbo.errors import StudyError
from edrbo.lab.entry import Point
from edrbo.lab.tables.cell_text import unshielded

MAX_BYTES = 64 * 2**20  # bytes
MOST_TITLES = 10  # lines above the headings
MARKS = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig"))


@dataclass(frozen=True)
class SheetRow:
    """Texts by heading, without those that are empty; ``line`` is the row's number in a spreadsheet."""

    line: int
    cells: dict[str, str]


@dataclass(frozen=True)
class Sheet:
    """``point`` is the decimal sign, None if it is not known."""

    file: str
    headings: tuple[str, ...]
    rows: tuple[SheetRow, ...]
    point: Point | None = None
    places: dict[str, str] = field(default_factory=dict)  # heading → letters of its column

    def place(self, line: int, heading: str | None = None) -> str:
        """Where a row stands, or one of its cells, in words."""
        if heading is None:
            return f"{self.file}, row {line}"
        return f"{self.file}, row {line}, column {heading} (cell {self.places[heading]}{line})"


def read_sheet(path: Path) -> Sheet:
    try:
        if path.suffix.lower() in (".xlsx", ".xlsm"):
            from edrbo.lab.tables.spreadsheet import read_xlsx

            return make_sheet(path.name, read_xlsx(path), None)
        if path.stat().st_size > MAX_BYTES:
            raise StudyError(f"{path} has {path.stat().st_size} bytes", "split it into smaller tables")
        data = path.read_bytes()
    except OSError as problem:
        raise StudyError(f"cannot read {path}: {problem.strerror}") from None
    if b"\x00" in data[:4000] and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise StudyError(f"{path} is not a table in text", "save it as CSV or .xlsx")
    return sheet_of_text(path.name, _decode(data))


def sheet_of_text(file: str, text: str) -> Sheet:
    """Cells with tabs, semicolons or commas between them, from a file or as people paste them."""
    separator = _separator(text)
    try:
        lines = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True))
    except csv.Error as problem:
        raise StudyError(f"{file} is not a CSV file: {problem}", "is a quotation mark missing?") from None
    return make_sheet(file, lines, None if separator == "," else _point(lines))


def make_sheet(file: str, lines: list[list[str]], point: Point | None) -> Sheet:
    """Lines of cells, headings first."""
    if not lines:
        raise StudyError(f"{file} is empty", "its first row has the names of the columns")
    above = _titles(lines)
    headings = [unshielded(text.lstrip("\ufeff")) for text in lines[above]]
    while headings and not headings[-1]:  # separators at the ends of lines
        headings.pop()
    for k, heading in enumerate(headings):
        if not heading:
            raise StudyError(f"{file}: column {letters(k)} has no name", "name it in the first row, or delete it")
        if heading in headings[:k]:
            raise StudyError(f"{file}: two columns are called {heading!r}", "each needs a name of its own")
    rows = tuple(_rows(file, headings, lines[above + 1 :], above + 2))
    return Sheet(file, tuple(headings), rows, point, {heading: letters(k) for k, heading in enumerate(headings)})


def _titles(lines: list[list[str]]) -> int:
    """How many lines stand above the headings: of one cell at most, above the longest line, which holds no number."""
    filled = [[text for text in cells if text.strip()] for cells in lines[: MOST_TITLES + 1]]
    first = next((k for k, cells in enumerate(filled) if len(cells) > 1), 0)
    longest = len(filled[first]) == max(map(len, filled))
    return first if longest and not any(text.strip()[0] in "+-.0123456789" for text in filled[first]) else 0


def _rows(file: str, headings: list[str], lines: list[list[str]], start: int) -> Iterator[SheetRow]:
    for line, cells in enumerate(lines, start=start):
        more = [text for text in cells[len(headings) :] if text.strip()]
        if more:
            raise StudyError(f"{file}, row {line}: {more[0]!r} stands in no column", "name its column, or delete it")
        texts = {h: unshielded(text) for h, text in zip(headings, cells, strict=False)}
        filled = {heading: text for heading, text in texts.items() if text}
        if filled:
            yield SheetRow(line, filled)


def letters(column: int) -> str:
    """The letters of a column in a spreadsheet, from 0: A, B, …, Z, AA."""
    text = ""
    column += 1
    while column:
        column, rest = divmod(column - 1, 26)
        text = chr(ord("A") + rest) + text
    return text


def _decode(data: bytes) -> str:
    for mark, encoding in MARKS:
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("cp1252", errors="replace")  # Latin-1 as Windows has it


def _separator(text: str) -> str:
    """Of the first line, outside quotation marks."""
    first, inside = "", False
    for letter in text.split("\n\n", 1)[0]:
        inside ^= letter == '"'
        if letter in "\r\n" and not inside:
            break
        first += "" if inside else letter
    return max(("\t", ";", ","), key=first.count) if any(sign in first for sign in "\t;,") else ","


def _point(lines: list[list[str]]) -> Point | None:
    """The decimal sign where commas do not separate cells: a comma, if some cell shows it and none shows a point."""
    numbers = [text for cells in lines[1:] for text in cells if text.strip()[:1].isdigit() or text.strip()[:1] in "+-"]
    commas = any("," in text for text in numbers)
    points = any("." in text and text.count(".") == 1 and "," not in text for text in numbers)
    return "," if commas and not points else None
