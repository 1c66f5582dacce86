"""Tables as .xlsx files: written with openpyxl, read by the few parts of the format that hold a table.

A file of 500 kB may unpack to gigabytes, or name one cell in the last column of every row. So a reader of our own keeps
to limits: the sizes of the parts it needs, what they declare and hold, are checked before anything is parsed; the
parsers build no tree; cells are counted as they come, those that are left empty too. Which numbers are dates is
openpyxl's to say.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO
from xml.etree.ElementTree import ParseError, XMLParser
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

from edrbo.cancellation import checkpoint
from edrbo.errors import MissingExtraError, StudyError
from edrbo.lab.entry import is_percent_format, percent_text
from edrbo.lab.files import open_regular
from edrbo.lab.tables.cell_text import needs_shield
from edrbo.lab.tables.csv_export import columns, headings, outcome_columns, plain_table, table_rows
from edrbo.records.descriptions import heading, outcome_headings
from edrbo.records.state import State

NUMBERS = ("id", "value", "control", "noise_variance", "weight", "run_cost", "batch", "count")

LARGEST_FILE = 64 * 2**20  # bytes on disk, pictures included
LARGEST_PARTS = 48 * 2**20  # bytes of workbook, styles, texts and the first sheet, unpacked
MOST_TAGS = 2_000_000  # in these parts: a cell has four, its text four more
MOST_PARTS = 2_000  # of the archive
MOST_SHEETS = 500
MOST_STYLES = 65_000  # Excel's own limit is 65,490
MOST_CELLS = 400_000  # empty ones between and before others included
MOST_ROWS = 100_000
LONGEST_TEXT = 32_767  # characters of a cell, Excel's own limit
LONGEST_TEXTS = 48 * 2**20  # characters of all cells
LONGEST_FORMAT = 255
LONGEST_STRETCH = 2**20  # bytes without a tag
CHUNK = 2**16  # to unpack at once
FEED = 2**22  # to parse at once: some parsers begin a tag or a comment again with every piece of it that comes
DAMAGED = (
    *(BadZipFile, ParseError, zlib.error, struct.error, EOFError, KeyError, ValueError, IndexError),
    *(NotImplementedError, RuntimeError, OverflowError, TypeError),  # archives that are locked, or of another kind
    OSError,  # places outside of the file
)
ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")
# What no XML can hold, and what a reader would take for such an escape.
NEEDS_ESCAPE = re.compile(r"[\x00-\x08\x0b-\x1f\ud800-\udfff\ufffe\uffff]|_(?=x[0-9A-Fa-f]{4}_)")


def _openpyxl() -> Any:
    try:
        import openpyxl
    except ModuleNotFoundError:
        raise MissingExtraError("Excel files need openpyxl", "pip install 'edrbo[xlsx]', or save as CSV") from None
    return openpyxl


# -------------------------------------------------------------------- reading


class _TooMuch(Exception):
    """A limit is passed; the text says which."""


def read_xlsx(path: Path) -> list[list[str]]:
    """The rows of the first sheet, as texts; numbers come back exactly.

    Raises:
        StudyError: the file is damaged, or passes a limit.
        OSError: it cannot be opened.
    """
    _openpyxl()
    with open_regular(path) as file:
        try:
            if (size := file.seek(0, 2)) > LARGEST_FILE:
                raise _TooMuch(f"{size // 2**20} MB, {LARGEST_FILE // 2**20} MB at most")
            with ZipFile(file) as archive:
                lines = _Book(archive).rows()
        except _TooMuch as problem:
            hint = "keep the table alone on the first sheet, delete what stands far from it, or save it as CSV"
            raise StudyError(f"{path} is too large for a table: {problem}", hint) from None
        except DAMAGED:
            raise StudyError(f"{path} cannot be read as an Excel file", "save it again as .xlsx, or as CSV") from None
    while lines and not any(lines[-1]):
        lines.pop()
    return lines


class _Book:
    """The parts of an archive that hold the table on its first sheet."""

    def __init__(self, archive: ZipFile) -> None:
        self._archive = archive
        self._bytes = self._tags = 0
        if len(archive.infolist()) > MOST_PARTS:
            raise _TooMuch(f"{len(archive.infolist())} parts, {MOST_PARTS} at most")

    def rows(self) -> list[list[str]]:
        starts = _Relations()
        self._parse("_rels/.rels", starts)
        book = starts.only("/officeDocument", "")
        named = _Relations()
        self._parse(str(PurePosixPath(book).parent / "_rels" / f"{PurePosixPath(book).name}.rels"), named)
        sheets = _Workbook()
        self._parse(book, sheets)
        folder = str(PurePosixPath(book).parent)
        places = (named.of_kind(key, "/worksheet", folder) for key in sheets.keys)
        sheet = next((place for place in places if place is not None), "")
        styles, texts = _Styles(), _Texts()
        if (place := named.first("/styles", folder)) is not None:
            self._parse(place, styles)
        if (place := named.first("/sharedStrings", folder)) is not None:
            self._parse(place, texts)
        table = _Table(texts.found, styles.kinds(), sheets.from_1904)
        self._parse(sheet, table)
        return table.lines

    def _parse(self, name: str, target: _Target) -> None:
        """Check the size of a part, then parse it."""
        info = self._archive.getinfo(name)
        if info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
            raise BadZipFile("no other way to compress belongs to the format")
        self._bytes += info.file_size  # no more than is declared is ever unpacked
        if self._bytes > LARGEST_PARTS:
            raise _TooMuch(f"it unpacks to more than {LARGEST_PARTS // 2**20} MB")
        stretch = 0
        with self._archive.open(info) as part:
            while chunk := part.read(CHUNK):
                self._tags += chunk.count(b"<")
                stretch = stretch + len(chunk) if b"<" not in chunk else 0
                if self._tags > MOST_TAGS or stretch > LONGEST_STRETCH:
                    raise _TooMuch(f"more than {MOST_CELLS:,} cells, or one that is very long")
        parser = XMLParser(target=target)
        with self._archive.open(info) as part:
            while chunk := part.read(FEED):
                checkpoint()
                parser.feed(chunk)
        parser.close()


class _Target:
    """What an XML parser reports to; nothing of the document is kept but what a subclass picks."""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        raise NotImplementedError

    def end(self, tag: str) -> None:
        """Most have nothing to do here."""

    def data(self, text: str) -> None:
        """Most have nothing to do here."""

    def doctype(self, *_: str | None) -> None:
        raise BadZipFile("no document type belongs to the format")  # its entities could grow without end

    def close(self) -> None:
        """Nothing is left to do."""


def _plain(tag: str) -> str:
    """Without its namespace, of which there are two sets."""
    return tag.rpartition("}")[2]


class _Relations(_Target):
    def __init__(self) -> None:
        self._found: dict[str, tuple[str, str]] = {}

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if _plain(tag) == "Relationship" and attributes.get("TargetMode") != "External":
            if len(self._found) > MOST_PARTS:
                raise _TooMuch(f"more than {MOST_PARTS} parts")
            self._found[attributes["Id"]] = (attributes["Type"], attributes["Target"])

    def first(self, kind: str, folder: str) -> str | None:
        places = (self.of_kind(key, kind, folder) for key in self._found)
        return next((place for place in places if place is not None), None)

    def only(self, kind: str, folder: str) -> str:
        place = self.first(kind, folder)
        if place is None:
            raise KeyError(kind)
        return place

    def of_kind(self, key: str, kind: str, folder: str) -> str | None:
        """The name of a part in the archive, if it is of that kind."""
        found, place = self._found[key]
        if not found.endswith(kind):
            return None
        parts: list[str] = []
        for part in (place if place.startswith("/") else f"{folder}/{place}").split("/"):
            if part == "..":
                parts.pop()
            elif part not in ("", "."):
                parts.append(part)
        return "/".join(parts)


class _Workbook(_Target):
    """The keys of the sheets' relations, in order, and from when dates are counted."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.from_1904 = False

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        name = _plain(tag)
        if name == "workbookPr":
            self.from_1904 = attributes.get("date1904") in ("1", "true", "on")
        elif name == "sheet":
            self.keys.append(next((value for key, value in attributes.items() if key.endswith("}id")), ""))
            if len(self.keys) > MOST_SHEETS:
                raise _TooMuch(f"more than {MOST_SHEETS} sheets")


class _Styles(_Target):
    """The number format of every style of cells."""

    def __init__(self) -> None:
        self._formats: dict[int, str] = {}
        self._cells: list[int] = []
        self._inside = False

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        name = _plain(tag)
        if name == "numFmt" and "formatCode" in attributes:
            self._formats[int(attributes["numFmtId"])] = attributes["formatCode"]
        elif name == "cellXfs":
            self._inside = True
        elif name == "xf" and self._inside:
            self._cells.append(int(attributes.get("numFmtId", "0")))
            if len(self._cells) > MOST_STYLES:
                raise _TooMuch(f"more than {MOST_STYLES:,} styles")

    def end(self, tag: str) -> None:
        if _plain(tag) == "cellXfs":
            self._inside = False

    def kinds(self) -> list[str]:
        """By style: "" for numbers, "percent" for shares shown so, "date" or "span" for days and hours as numbers."""
        numbers = _openpyxl().styles.numbers
        kinds: dict[int, str] = {}
        for key in set(self._cells):
            code = self._formats.get(key, numbers.BUILTIN_FORMATS.get(key, "General"))
            is_date = len(code) <= LONGEST_FORMAT and numbers.is_date_format(code)
            other = "percent" if len(code) <= LONGEST_FORMAT and is_percent_format(code) else ""
            kinds[key] = other if not is_date else "span" if numbers.is_timedelta_format(code) else "date"
        return [kinds[key] for key in self._cells]


@dataclass
class _Text:
    """The text that is being read, ``on`` between the tags that hold it; readings of Asian characters are not of it."""

    on: bool = False
    reading: int = 0
    parts: list[str] = field(default_factory=list)
    size: int = 0

    def start(self, name: str) -> None:
        self.reading += name == "rPh"
        self.on = name in ("t", "v") and not self.reading

    def end(self, name: str) -> None:
        self.reading -= name == "rPh"
        self.on = False

    def add(self, text: str) -> None:
        if self.on:
            self.parts.append(text)
            self.size += len(text)
            if self.size > LONGEST_TEXT + 6 * LONGEST_TEXT:  # every letter may be written with seven
                raise _TooMuch(f"a cell of more than {LONGEST_TEXT:,} characters")

    def take(self) -> str:
        text = "".join(self.parts)
        self.parts, self.size = [], 0
        if "_x" in text:
            text = ESCAPED.sub(_letter, text)
        if len(text) > LONGEST_TEXT:
            raise _TooMuch(f"a cell of more than {LONGEST_TEXT:,} characters")
        return text


def _letter(found: re.Match[str]) -> str:
    number = int(found[1], 16)
    return "\ufffd" if 0xD800 <= number < 0xE000 else chr(number)  # half a character is none


class _Texts(_Target):
    """The texts that cells refer to by number."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self._text = _Text()

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._text.start(_plain(tag))

    def data(self, text: str) -> None:
        self._text.add(text)

    def end(self, tag: str) -> None:
        name = _plain(tag)
        self._text.end(name)
        if name == "si":
            self.found.append(self._text.take())
            if len(self.found) > MOST_CELLS:
                raise _TooMuch(f"more than {MOST_CELLS:,} texts")


class _Table(_Target):
    """The rows of a sheet as texts."""

    def __init__(self, texts: list[str], kinds: list[str], from_1904: bool) -> None:
        self.lines: list[list[str]] = []
        self._texts, self._kinds = texts, kinds
        self._when: Callable[[float, str], str] = _dates_from(1904 if from_1904 else 1900)
        self._cells = self._letters = 0
        self._cell: dict[str, str] = {}
        self._filled = False
        self._text = _Text()

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        name = _plain(tag)
        if name == "row":
            self._row(int(attributes.get("r", len(self.lines) + 1)))
        elif name == "c":
            self._cell, self._filled = attributes, False
        else:
            self._text.start(name)
            self._filled |= self._text.on

    def data(self, text: str) -> None:
        self._text.add(text)

    def end(self, tag: str) -> None:
        name = _plain(tag)
        if name == "c":
            text = self._text.take()
            self._put(self._value(text) if self._filled else "")
        else:
            self._text.end(name)

    def _row(self, number: int) -> None:
        """Begin a row; those that are left out before it are empty."""
        if number <= len(self.lines):
            raise ValueError("rows are out of order")
        if number > MOST_ROWS:
            raise _TooMuch(f"more than {MOST_ROWS:,} rows")
        self.lines += [[] for _ in range(number - len(self.lines))]

    def _put(self, text: str) -> None:
        row = self.lines[-1]
        place = self._cell.get("r")
        column = len(row) if place is None else _column(place)
        if column < len(row):
            raise ValueError("cells are out of order")
        self._cells += 1 + column - len(row)
        self._letters += len(text)
        if self._cells > MOST_CELLS or self._letters > LONGEST_TEXTS:
            raise _TooMuch(f"more than {MOST_CELLS:,} cells, those that are left empty between others included")
        row += [""] * (column - len(row)) + [text]

    def _value(self, text: str) -> str:
        kind = self._cell.get("t", "n")
        if kind == "s":
            return self._texts[_index(text)]
        if kind == "b":
            return str(text.strip() in ("1", "true"))
        if kind == "d":
            return str(datetime.fromisoformat(text.strip()).isoformat())
        if kind != "n" or not text.strip():
            return text
        number: float = float(text) if any(sign in text for sign in ".eE") else int(text)
        style = self._cell.get("s")
        shown = self._kinds[_index(style)] if style and self._kinds else ""
        if shown == "percent":
            return percent_text(number)
        return self._when(number, shown) if shown else number_text(number)


def _index(text: str) -> int:
    number = int(text)
    if number < 0:
        raise IndexError(number)
    return number


def _column(place: str) -> int:
    """Of a cell as AB12, from 0."""
    letters = place.rstrip("0123456789").upper()
    if not re.fullmatch("[A-Z]{1,3}", letters):
        raise ValueError(f"{place!r} is no cell")
    number = 0
    for letter in letters:
        number = 26 * number + ord(letter) - ord("A") + 1
    return number - 1


def number_text(number: float) -> str:
    """A number that reads back exactly, whole ones without a point."""
    return str(int(number)) if abs(number) < 2**53 and number == int(number) else repr(number)


def _dates_from(year: int) -> Callable[[float, str], str]:
    def text(number: float, kind: str) -> str:
        """A day, a time or a span of time that is stored as a number of days."""
        dates = _openpyxl().utils.datetime
        epoch = dates.CALENDAR_MAC_1904 if year == 1904 else dates.WINDOWS_EPOCH
        found = dates.from_excel(number, epoch, timedelta=kind == "span")
        return found.isoformat() if isinstance(found, datetime | date) else str(found)

    return text


# -------------------------------------------------------------------- writing


def export_xlsx(state: State, file: BinaryIO, *, exact: bool = True) -> int:
    """Write everything, or what people read; gives the number of rows."""
    library = _openpyxl()
    variables = {**state.space.design, **state.space.context}
    if exact:
        names, rows = headings(state), list(table_rows(state))
        numbers = {h for h, (_, name) in columns(state.space).items() if variables[name].kind != "categorical"}
        numeric = {*NUMBERS, *numbers, *outcome_columns(state.settings)}
    else:
        names, rows = plain_table(state)
        numbers = {heading(name, v.unit) for name, v in variables.items() if v.kind != "categorical"}
        numeric = {"run", "cost", "control", *numbers, *outcome_headings(state.settings).values()}
    book = library.Workbook(write_only=True)
    sheet = book.create_sheet("runs")
    sheet.freeze_panes = "C2"
    sheet.append([_cell(name, False, sheet, library) for name in names])
    for row in rows:
        cells = [row.get(name, "") for name in names]
        sheet.append([_cell(text, name in numeric, sheet, library) for name, text in zip(names, cells, strict=True)])
    book.save(file)
    return len(rows)


def _cell(text: str, numeric: bool, sheet: Any, library: Any) -> Any:
    """A number as one; a text as a text, also if it looks like a formula.

    Numbers of more than 16 figures, which openpyxl would round, are written as text, so that they come back exactly.
    """
    if not text:
        return None
    if numeric:
        number = float(text)
        if text.lstrip("+-").isdigit() and abs(number) < 2**53:
            return int(text)
        if float(f"{number:.16g}") == number:
            return number
    cell = library.cell.WriteOnlyCell(sheet, escaped(f"'{text}" if needs_shield(text) else text))
    cell.data_type = "s"
    return cell


def escaped(text: str) -> str:
    """Characters that no spreadsheet can hold as such, in the format's own way of writing them."""
    return NEEDS_ESCAPE.sub(lambda found: f"_x{ord(found[0]):04X}_", text)
