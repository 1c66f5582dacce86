"""Spreadsheets as an attacker writes them: small archives that are large inside, and large in what they name."""

from __future__ import annotations

import io
from collections.abc import Callable
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZipFile

import openpyxl

HEAD = b'<?xml version="1.0" encoding="UTF-8"?>'
MAIN = b'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'


def sound(rows: int = 12) -> bytes:
    """A table as openpyxl writes it: numbers, texts, dates."""
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(["speed", "humidity", "value", "note"])
    for k in range(rows):
        sheet.append([1.5 + k / 2, 0.5, k, f"note {k}"])
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def with_parts(change: dict[str, Callable[[bytes], bytes]], *, kind: int = ZIP_DEFLATED) -> bytes:
    """The sound table with some parts replaced; the archive stays sound."""
    out = io.BytesIO()
    with ZipFile(io.BytesIO(sound())) as source, ZipFile(out, "w", kind, compresslevel=1) as target:
        for info in source.infolist():
            data = source.read(info)
            target.writestr(info.filename, change.get(info.filename, bytes)(data))
        for name in set(change) - set(source.namelist()):
            target.writestr(name, change[name](b""))
    return out.getvalue()


def sheet(rows: bytes, head: bytes = b"") -> dict[str, Callable[[bytes], bytes]]:
    text = HEAD + b"<worksheet " + MAIN + b">" + head + b"<sheetData>" + rows + b"</sheetData></worksheet>"
    return {"xl/worksheets/sheet1.xml": lambda _: text}


def texts(items: bytes) -> dict[str, Callable[[bytes], bytes]]:
    kind = b"http://schemas.openxmlformats.org/officeDocument/2006/relationships/sharedStrings"
    relation = b'<Relationship Id="rId99" Type="' + kind + b'" Target="sharedStrings.xml"/></Relationships>'
    return {
        "xl/sharedStrings.xml": lambda _: HEAD + b"<sst " + MAIN + b">" + items + b"</sst>",
        "xl/_rels/workbook.xml.rels": lambda data: data.replace(b"</Relationships>", relation),
    }


def bombs() -> dict[str, bytes]:
    million = 2**20
    entities = b"".join(b'<!ENTITY e%d "%s">' % (k, b"&e%d;" % (k - 1) * 20) for k in range(1, 12))
    doctype = b'<!DOCTYPE x [<!ENTITY e0 "lol">' + entities + b"]>"
    row = b'<row r="%d"><c r="XFD%d"><v>1</v></c></row>'
    styles = b"<styleSheet " + MAIN + b"><cellXfs>" + b'<xf numFmtId="14"/>' * 400_000 + b"</cellXfs></styleSheet>"
    sheets = b"".join(b'<sheet name="s%d" sheetId="%d" r:id="rId1"/>' % (k, k) for k in range(400_000))
    space = b'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
    book = b"<workbook " + MAIN + b" " + space + b"><sheets>" + sheets + b"</sheets></workbook>"
    cells = b"".join(b"<row>" + b"<c><v>1</v></c>" * 1000 + b"</row>" for _ in range(800))
    return {
        "rows of empty cells": with_parts(sheet(b"<row><c/></row>" * (4 * million))),
        "one text of 64 MB": with_parts(texts(b"<si><t>" + b"x" * (64 * million) + b"</t></si>")),
        "one text of 40 MB": with_parts(texts(b"<si><t>" + b"x" * (40 * million) + b"</t></si>")),
        "texts without letters": with_parts(texts(b"<si><t/></si>" * (4 * million))),
        "a cell in the last column of every row": with_parts(sheet(b"".join(row % (k, k) for k in range(1, 20_001)))),
        "a cell in the last row": with_parts(sheet(b'<row r="1048576"><c r="A1048576"><v>1</v></c></row>')),
        "one long text in every cell": with_parts(
            {
                **texts(b"<si><t>" + b"x" * 30_000 + b"</t></si>"),
                **sheet((b"<row>" + b'<c t="s"><v>0</v></c>' * 1000 + b"</row>") * 300),
            }
        ),
        "800,000 cells": with_parts(sheet(cells)),
        "400,000 styles": with_parts({"xl/styles.xml": lambda _: HEAD + styles}),
        "400,000 sheets": with_parts({"xl/workbook.xml": lambda _: HEAD + book}),
        "entities in entities": with_parts(
            {"xl/worksheets/sheet1.xml": lambda data: HEAD + doctype + data.partition(b"?>")[2]}
        ),
        "tags in tags": with_parts(sheet(b"<row>" + b"<a>" * 900_000 + b"</a>" * 900_000 + b"</row>")),
        "another way to compress": with_parts(sheet(b"<row/>" * 1000), kind=ZIP_BZIP2),
        "one comment of 40 MB": with_parts(sheet(b"<row><!-- " + (b"<" + b"x" * 99) * (400_000) + b"--></row>")),
        "one attribute of 40 MB": with_parts(sheet(b'<row a="' + b"x" * (40 * million) + b'"/>')),
    }
