"""Texts in cells of tables, so that spreadsheets show them as texts and they are read back as they were.

A spreadsheet that opens a CSV file computes what begins with =, +, - or @, and people's tables have blanks around words
that are not meant. So a text that would be computed, or that has blanks of its own at its ends, is written behind an
apostrophe, and so is one that already looks like that.
"""

from __future__ import annotations

APOSTROPHE = "'"
COMPUTED = tuple("=+-@\uff1d\uff0b\uff0d\uff20")  # the wide ones are the same to Excel


def shielded(text: str) -> str:
    """``text`` as it is written into a cell; numbers stay."""
    return APOSTROPHE + text if _is_computed(text) or needs_shield(text) else text


def needs_shield(text: str) -> bool:
    """Whether reading would change ``text``, in whatever kind of file."""
    return text != text.strip() or unshielded(text) != text


def unshielded(text: str) -> str:
    """What was meant by the text of a cell: without the blanks around it, unless an apostrophe protects them."""
    plain = text.lstrip()
    if plain.startswith(APOSTROPHE):
        rest = plain.removeprefix(APOSTROPHE)
        if _is_computed(rest) or rest != rest.strip() or rest.startswith(APOSTROPHE):
            return rest
    return text.strip()


def _is_computed(text: str) -> bool:
    if not text.lstrip().startswith(COMPUTED):
        return False
    try:
        float(text)
    except ValueError:
        return True
    return False
