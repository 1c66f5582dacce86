"""Tables as .xlsx files, with openpyxl."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path
from typing import Any, BinaryIO

from edrbo.entry.numbers import is_percent_format, percent_text
from edrbo.errors import MissingExtraError, StudyError
from edrbo.records.state import State
from edrbo.study.csv_file import columns, headings, outcome_columns, table_rows

NUMBERS = ("id", "value", "noise", "weight", "run_cost", "batch", "count")


def _openpyxl() -> Any:
    try:
        import openpyxl
    except ModuleNotFoundError:
        raise MissingExtraError("Excel files need openpyxl", "pip install 'edrbo[xlsx]', or save as CSV") from None
    return openpyxl


def read_xlsx(path: Path) -> list[list[str]]:
    """The rows of the first sheet, as texts; numbers come back exactly."""
    library = _openpyxl()
    from zipfile import BadZipFile

    try:
        book = library.load_workbook(path, read_only=True, data_only=True)
        lines = [[_shown(cell) for cell in row] for row in book.worksheets[0].iter_rows()]
        book.close()
    except (BadZipFile, KeyError, ValueError, IndexError, library.utils.exceptions.InvalidFileException):
        raise StudyError(f"{path} cannot be read as an Excel file", "save it again as .xlsx, or as CSV") from None
    while lines and not any(lines[-1]):
        lines.pop()
    return lines


def _shown(cell: Any) -> str:
    """As the spreadsheet shows it where that matters: 0.52 formatted as per cent is 52 %."""
    value = cell.value
    if type(value) in (int, float) and is_percent_format(cell.number_format):
        return percent_text(value)
    return _text(value)


def _text(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, datetime | date):
        return cell.isoformat()
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 2**53 else repr(cell)
    return str(cell)


def export_xlsx(state: State, file: BinaryIO) -> int:
    """Write everything; gives the number of rows."""
    library = _openpyxl()
    names = headings(state)
    book = library.Workbook(write_only=True)
    sheet = book.create_sheet("runs")
    sheet.freeze_panes = "C2"
    sheet.append([_legal(name, library) for name in names])
    variables = {**state.space.design, **state.space.context}
    numbers = {h for h, (_, name) in columns(state.space).items() if variables[name].kind != "categorical"}
    numeric = {*NUMBERS, *numbers, *outcome_columns(state.settings)}
    count = 0
    for row in table_rows(state):
        cells = [row.get(name, "") for name in names]
        sheet.append([_cell(text, name in numeric, sheet, library) for name, text in zip(names, cells, strict=True)])
        count += 1
    book.save(file)
    return count


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
    cell = library.cell.WriteOnlyCell(sheet, _legal(text, library))
    cell.data_type = "s"
    return cell


def _legal(text: str, library: Any) -> str:
    """Control characters cannot stand in a spreadsheet."""
    legal: str = library.cell.cell.ILLEGAL_CHARACTERS_RE.sub("\ufffd", text)
    return legal
