"""``edrbo token``: made, listed and revoked; shown once and kept hashed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

Run = Callable[..., Any]


def test_a_token_is_made_shown_once_and_revoked(edrbo: Run, folder: Path) -> None:
    made = edrbo("token", "create", "Ada", "--role", "setup", "--tokens", "tokens.json", "--json")
    assert made.code == 0, made.err
    assert made.json["role"] == "setup"
    listed = edrbo("token", "list", "--tokens", "tokens.json", "--json")
    assert [(one["name"], one["role"]) for one in listed.json] == [("Ada", "setup")]
    assert made.json["token"] not in listed.out + (folder / "tokens.json").read_text()
    shown = edrbo("token", "list", "--tokens", "tokens.json")
    assert "Ada" in shown.out
    assert edrbo("token", "revoke", "Ada", "--yes", "--tokens", "tokens.json").code == 0
    assert edrbo("token", "list", "--tokens", "tokens.json", "--json").json == []


def test_without_a_file_it_is_the_users_own(edrbo: Run, folder: Path) -> None:
    assert edrbo("token", "create", "PLC 4").code == 0
    assert [one["name"] for one in edrbo("token", "list", "--json").json] == ["PLC 4"]
    assert list(folder.iterdir()) == []


def test_what_cannot_be_says_what_to_do(edrbo: Run) -> None:
    for words in (
        ("create", "Ada", "--role", "root"),
        ("create", " "),
        ("revoke", "nobody", "--yes"),
    ):
        refused = edrbo("token", *words)
        assert refused.code == 2
        assert "hint:" in refused.err
