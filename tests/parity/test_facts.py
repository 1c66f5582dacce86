"""The same answer is given in the same words on the terminal, the lab page, its job card, the report and in JSON."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edrbo import Limit, Maximize, Real, Space, Study
from edrbo.lab.cli import main
from edrbo.lab.report import report_page
from edrbo.text import answer_text

pytest.importorskip("fastapi", reason="needs edrbo[web]")
sys.path.append(str(Path(__file__).parents[1] / "web"))

from live import study_server

SPACE = Space({"speed": Real(10, 60, unit="m/min")}, {"humidity": Real(0, 100, unit="%")})
CASES: dict[str, dict[str, Any]] = {
    "average": {"outcome": "gloss", "unit": "GU"},
    "the worst tenth, less is better": {"goal": "cvar:0.1", "direction": "minimize", "outcome": "<b>haze</b>"},
    "a limit": {"outcomes": {"gloss": Maximize(unit="GU"), "roughness": Limit(upper=2.0, unit="µm")}},
    "failures": {"outcome": "gloss", "goal": "reach:60"},
}


class Words(HTMLParser):
    """What of a page is read by people."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self._hidden = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden += tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in ("script", "style")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.found.append(data)


def plain(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def made(folder: Path, case: str) -> Study:
    study = Study.open(folder / "line.db", SPACE, name="line", method="erbo", initial=3, **CASES[case])
    draw = np.random.default_rng(len(case))
    for speed, humidity in draw.random((7, 2)) * (50, 60) + (10, 20):
        gloss = 70 - ((speed - 40) / 10) ** 2 - 0.1 * humidity + draw.normal()
        value = {"gloss": gloss, "roughness": 0.05 * speed} if study.settings.outcomes else gloss
        study.tell({"speed": speed}, [humidity], value)
    if case == "failures":
        study.tell({"speed": 59.0}, [50.0], failed=True)
    return study


@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("ignore")
def test_an_answer_is_the_same_everywhere(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    study = made(tmp_path, case)
    text = answer_text(study.recommend(), study.settings)
    facts = [*text.facts, *text.sources]
    assert len(facts) > 6

    def command(*words: str) -> str:
        monkeypatch.setenv("COLUMNS", "250")
        monkeypatch.setattr(sys, "argv", ["edrbo", "recommend", "--study", str(tmp_path / "line.db"), *words])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
        return capsys.readouterr().out

    assert json.loads(command("--json"))["facts"] == text.records()
    with study_server(tmp_path / "line.db") as client:
        page = client.until("/s/line/answer", lambda answer: "Job card" in answer.text).text
    shown: dict[str, Callable[[], str]] = {
        "terminal": lambda: command(),
        "page": lambda: " ".join(Words(page).found),
        "report": lambda: " ".join(Words(report_page(study)).found),
    }
    for place, read in shown.items():
        words = plain(read())
        for fact in facts:
            assert plain(" ".join(fact)) in words, place
        for doubt in text.doubts:
            assert plain(doubt) in words, place
    card = plain(" ".join(Words(page[page.index("job-card") :]).found))
    assert plain(f"{text.facts[0].value} ({text.facts[0].explanation})") in card
