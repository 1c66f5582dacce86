"""The page in a real browser: it loads without a complaint, every control works, and it fits a phone."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from browser import CHROMIUM, Browser, Page
from made_up import METHODS, PROBLEMS, made_up
from typer.testing import CliRunner

from edrbo.bench.analysis.report import build_page, page_data, write_report
from edrbo.bench.analysis.results import FailedRun, Results, export
from edrbo.bench.analysis.stats import STATISTICS, critical_difference, rank, significance, summarize
from edrbo.bench.analysis.table import format_pair
from edrbo.bench.run.journal import Failure
from edrbo.lab.cli.bench import app

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
EVIL = "</script><script>window.broken = 1</script>"


def results() -> Results:
    failed = FailedRun("ackley", "ucb", 107, Failure(f"Error: {EVIL}", "Traceback (most recent call last): …"))
    return replace(
        made_up(), failures=(failed,), headers=({"settings": {"evaluations": 20}, "versions": {"edrbo": "x"}},)
    )


def browse(tmp_path: Path, visit: Callable[[Page, str], Awaitable[None]]) -> None:
    path = tmp_path / "report.html"
    write_report(results(), path, made_up(methods={"edrbo": 0.9}, suffix=" (published)"))

    async def main() -> None:
        async with Browser(tmp_path) as page:
            await visit(page, path.as_uri())
            assert page.problems == []

    asyncio.run(main())


def test_page_needs_nothing_from_outside() -> None:
    page = build_page(results())
    assert not re.findall(r"(?:src|href)\s*=\s*[\"'](?!data:)", page)
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "/*data*/" not in page
    assert "/*program*/" not in page


def test_data_hold_the_numbers_of_the_tables() -> None:
    data = page_data(results(), None, "title")
    for name in STATISTICS:
        for (problem, method), cell in summarize(results(), name).items():
            mean, std, seeds = data["cells"][name][problem][method]
            assert (mean, std, seeds) == (pytest.approx(cell.mean, rel=1e-4), pytest.approx(cell.std, rel=1e-4), 6)
    ranks = rank(summarize(results(), "final"), list(PROBLEMS), list(METHODS))
    k, n = len(METHODS), len(PROBLEMS)
    difference = data["critical"][k] * (k * (k + 1) / (6 * n)) ** 0.5
    assert difference == pytest.approx(critical_difference(ranks).difference, rel=1e-4)


def test_the_page_says_which_seeds_and_when() -> None:
    data = page_data(results(), None, "title")
    assert data["origin"].startswith("6 seeds (100–105); written on 20")
    assert data["against"] == "edrbo"
    assert page_data(results(), None, "title", "ucb")["tests"]["tables"]["final"][0][0] == "ucb against"


def test_long_curves_are_thinned_and_keep_their_ends() -> None:
    curve = page_data(made_up(seeds=2, steps=1_000), None, "title")["curves"]["cumulative"]["ackley"]
    assert len(curve["steps"]) == len(curve["methods"]["ucb"]["mean"]) == 200
    assert (curve["steps"][0], curve["steps"][-1]) == (1, 1_000)


@needs_browser
def test_every_control_does_what_it_says(tmp_path: Path) -> None:
    async def visit(page: Page, url: str) -> None:
        await page.open(url)
        lines = "document.querySelectorAll('polyline[data-method=\"ucb\"]').length"
        heading = "[...document.querySelectorAll('#table thead th')].map(cell => cell.textContent)"
        assert await page.evaluate(lines) == len(PROBLEMS)
        assert await page.evaluate(heading) == ["", *METHODS, "edrbo (published)"]
        await page.evaluate("document.querySelector('button[data-method=\"ucb\"]').click()")
        assert await page.evaluate(lines) == 0
        assert "ucb" not in await page.evaluate(heading)
        assert await page.evaluate("document.querySelector('[aria-pressed=false]').textContent") == "ucb"
        assert await page.evaluate("location.hash") == "#off=ucb"
        await page.evaluate("document.querySelector('button[data-method=\"ucb\"]').click()")
        assert await page.evaluate(lines) == len(PROBLEMS)
        await page.evaluate("document.getElementById('published').click()")
        assert await page.evaluate(heading) == ["", *METHODS]
        first = "document.querySelector('polyline').getAttribute('points')"
        assert await page.evaluate("document.querySelectorAll('.curve.strong[data-method=edrbo]').length") == len(
            PROBLEMS
        )
        assert await page.evaluate("document.querySelectorAll('.band').length") == 2 * len(PROBLEMS)
        await choose(page, "against", "erbo")
        assert await page.evaluate("document.querySelectorAll('.curve.strong[data-method=erbo]').length") == len(
            PROBLEMS
        )
        assert "against=erbo" in await page.evaluate("location.hash")
        await choose(page, "against", "edrbo")
        for control, value in (("axis", "linear"), ("curve", "instantaneous")):
            before = await page.evaluate(first)
            await choose(page, control, value)
            assert await page.evaluate(first) != before
        cell = "document.querySelector('#table tbody td').textContent"
        for name in STATISTICS:
            await choose(page, "statistic", name)
            expected = summarize(results(), name)["newsvendor", "edrbo"]
            assert await page.evaluate(cell) == " ± ".join(format_pair(expected.mean, expected.std))
            tested = await page.evaluate("document.querySelector('#test-table tbody').textContent")
            tests = significance(results(), name, "edrbo")
            assert tests is not None
            assert tests.table().rows[0].name + tests.table().rows[0].entries[0].text in tested
            assert tests.table().rows[0].entries[1].text in tested
        assert "statistic=worst-case" in await page.evaluate("location.hash")
        assert await page.evaluate("window.broken") is None

    browse(tmp_path, visit)


async def choose(page: Page, control: str, value: str) -> None:
    await page.evaluate(
        f"document.getElementById('{control}').value = '{value}';"
        f"document.getElementById('{control}').dispatchEvent(new Event('change'))"
    )


LONG = "a-method-with-a-rather-long-name"
LOOKS = "getComputedStyle(document.{0}).{1}"
OUTSIDE = """[...document.querySelectorAll("#ranks text, #timing text, #panels text")].filter((text) => {
  const box = text.getBoundingClientRect(), frame = text.ownerSVGElement.getBoundingClientRect();
  return box.left < frame.left - 1 || box.right > frame.right + 1; }).map((text) => text.textContent)"""


@needs_browser
def test_dark_pages_and_long_names(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    write_report(made_up(methods={"edrbo": 1.0, LONG: 1.3, "ucb": 2.0}), path)

    async def main() -> None:
        async with Browser(tmp_path) as page:
            for width in (390, 1280):
                await page.open(path.as_uri(), width=width, height=844)
                assert await page.evaluate(OUTSIDE) == []
            light = await page.evaluate(LOOKS.format("body", "backgroundColor"))
            night = [{"name": "prefers-color-scheme", "value": "dark"}]
            await page.call("Emulation.setEmulatedMedia", features=night)
            dark = [await page.evaluate(LOOKS.format("body", part)) for part in ("backgroundColor", "color")]
            assert (light, dark) == ("rgb(255, 255, 255)", ["rgb(18, 22, 28)", "rgb(232, 236, 241)"])
            await page.call("Emulation.setEmulatedMedia", media="print", features=night)
            assert await page.evaluate(LOOKS.format("body", "backgroundColor")) == light
            assert page.problems == []

    asyncio.run(main())


@needs_browser
def test_marks_ranks_hover_failures_and_a_phone(tmp_path: Path) -> None:
    async def visit(page: Page, url: str) -> None:
        await page.open(f"{url}#off=stableopt&spread=no", width=390, height=844)
        assert await page.evaluate("document.documentElement.scrollWidth") == 390
        pressed = "document.querySelector('button[data-method=\"stableopt\"]').getAttribute('aria-pressed')"
        assert await page.evaluate(pressed) == "false"
        assert await page.evaluate("document.querySelectorAll('.band').length") == 0
        assert await page.evaluate("document.querySelectorAll('td.first').length") == len(PROBLEMS) + 1
        assert await page.evaluate("document.querySelectorAll('td.second').length") == len(PROBLEMS) + 1
        assert await page.evaluate("document.querySelectorAll('#ranks circle').length") == len(METHODS) - 1
        assert await page.evaluate("document.querySelectorAll('#timing circle').length") == len(METHODS)
        assert EVIL in await page.evaluate("document.querySelector('#failures summary').textContent")
        await page.evaluate(
            "const svg = document.querySelector('#panels svg'); const box = svg.getBoundingClientRect();"
            "svg.dispatchEvent(new PointerEvent('pointermove', {clientX: box.right - 2, clientY: box.top + 20}))"
        )
        tip = await page.evaluate("document.getElementById('tip').textContent")
        assert tip.startswith("evaluation 20")
        assert "erbo" in tip
        assert "stableopt" not in tip
        assert await page.evaluate("document.getElementById('tip').getBoundingClientRect().right <= innerWidth")

    browse(tmp_path, visit)


def test_report_command_writes_a_page(tmp_path: Path) -> None:
    file = tmp_path / "runs.csv"
    export(made_up(seeds=2), file)
    page = tmp_path / "page.html"
    arguments = ["report", str(file), "--out", str(page), "--title", "Mine & yours", "--published", str(file)]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    text = page.read_text(encoding="utf-8")
    assert "Mine & yours" in text
    assert "edrbo (published)" in text
