"""Tables: the right numbers, the right marks, every format readable by what it is meant for."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from made_up import METHODS, PROBLEMS, made_up
from typer.testing import CliRunner

from edrbo.bench.analysis.results import FailedRun, export
from edrbo.bench.analysis.stats import STATISTICS, Cell, summarize
from edrbo.bench.analysis.table import (
    RANK_ROW,
    Entry,
    build_table,
    format_pair,
    to_csv,
    to_latex,
    to_markdown,
    to_terminal,
)
from edrbo.bench.analysis.tables import notes, render
from edrbo.bench.run.journal import Failure
from edrbo.cli.bench import app
from edrbo.errors import UnknownNameError


def test_best_and_second_are_marked_by_their_means() -> None:
    results = made_up()
    table = build_table(results, "final")
    assert table is not None
    assert list(table.rows) == [*PROBLEMS, RANK_ROW]
    cells = summarize(results, "final")
    for problem in PROBLEMS:
        means = sorted(cells[problem, method].mean for method in METHODS)
        for method, entry in zip(table.methods, table.rows[problem], strict=True):
            assert entry.cell == cells[problem, method]
            assert entry.place == {means[0]: 1, means[1]: 2}.get(entry.cell.mean, 0)
    assert sorted(entry.place for entry in table.rows[RANK_ROW]) == [0, 0, 1, 2]


def test_a_method_that_is_alone_is_not_the_best() -> None:
    table = build_table(made_up(methods={"edrbo": 1.0}), "final")
    assert table is not None
    assert {entry.place for row in table.rows.values() for entry in row} == {0}


@pytest.mark.parametrize(
    ("mean", "std", "text"),
    [
        (1428.3, 12.34, ("1428", "12")),
        (12.345, 1.0, ("12.3", "1.0")),
        (0.01234, 0.001, ("0.0123", "0.0010")),
        (0.00001234, 1.0, ("1.2e-05", "1.0e+00")),
        (0.0, 0.0, ("0.00", "0.00")),
    ],
)
def test_numbers_have_three_digits(mean: float, std: float, text: tuple[str, str]) -> None:
    assert format_pair(mean, std) == text


def test_markdown_and_latex_mark_alike() -> None:
    table = build_table(made_up(), "final")
    assert table is not None
    markdown, latex = to_markdown(table), to_latex(table)
    # One of each per problem and one in the row of ranks; the title is bold as well.
    assert markdown.count("**") == 2 * (len(PROBLEMS) + 1) + 2
    assert markdown.count("<u>") == latex.count(r"\underline") == len(PROBLEMS) + 1
    assert latex.count(r"\mathbf") == len(PROBLEMS) + 1
    widths = {line.count("|") for line in markdown.splitlines() if line.startswith("|")}
    assert widths == {len(METHODS) + 2}
    body = [line for line in latex.splitlines() if line.endswith(r"\\")]
    assert {line.count("&") for line in body} == {len(METHODS)}
    assert latex.count("{") == latex.count("}")


def test_csv_has_all_digits() -> None:
    results = made_up()
    table = build_table(results, "simple")
    assert table is not None
    rows = list(csv.DictReader(StringIO(to_csv(table))))
    assert len(rows) == len(METHODS) * (len(PROBLEMS) + 1)
    cells = summarize(results, "simple")
    for row in rows[: len(METHODS) * len(PROBLEMS)]:
        assert float(row["mean"]) == cells[row["problem"], row["method"]].mean


@pytest.mark.parametrize("width", [40, 80, 200])
def test_terminal_tables_fit_and_show_every_number(width: int) -> None:
    results = made_up()
    text = render(results, statistic="final", width=width)
    assert max(map(len, text.splitlines())) <= width
    for cell in summarize(results, "final").values():
        assert format_pair(cell.mean, cell.std)[0] in text
    colored = render(results, statistic="final", width=width, color=True)
    assert "\x1b[1m" in colored
    assert "\x1b[4m" in colored
    if width == 40:
        table = build_table(results, "final")
        assert table is not None
        assert len(to_terminal(table, width)) > 1


def test_all_statistics_and_published_runs_are_shown() -> None:
    published = made_up(suffix=" (published)")
    text = render(made_up(), published, style="markdown")
    for title in STATISTICS.values():
        assert f"**{title}**" in text
    assert "final cumulative regret, published runs" in text
    assert text.count("edrbo (published)") >= 1
    assert "paired Wilcoxon tests" in text
    assert "paired" in render(made_up(), style="latex", statistic="final")
    lines = render(made_up(), style="csv").splitlines()
    assert len(set(map(len, csv.reader(lines)))) == 1
    assert sum(line.startswith("statistic,") for line in lines) == 1


def test_missing_cells_are_empty() -> None:
    results = made_up()
    less = replace(results, runs=tuple(r for r in results.runs if (r.problem, r.method) != ("ackley", "ucb")))
    table = build_table(less, "final")
    assert table is not None
    assert table.rows["ackley"][table.methods.index("ucb")] == Entry(None)
    assert Entry(None).text() == ""
    assert to_latex(table).count("&  &") + to_latex(table).count(r"&  \\") == 1
    assert table.rows[RANK_ROW][0].cell is not None
    assert table.rows[RANK_ROW][0].cell == Cell(pytest.approx(1.0), pytest.approx(0.0), 2)


def test_notes_say_what_is_missing() -> None:
    results = made_up()
    assert notes(results) == []
    headers = ({"settings": 1, "versions": 1, "data": None}, {"settings": 2, "versions": 2, "data": "regenerated"})
    failed = FailedRun("p", "m", 1, Failure("a", "b"))
    found = notes(replace(results, failures=(failed,), unfinished=2, headers=headers))
    assert [re.split(r"[ :]", note)[0] for note in found] == ["1", "2", "runs", "runs", "portfolio"]


def test_unknown_statistics_and_formats_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="median"):
        render(made_up(), statistic="median")
    with pytest.raises(UnknownNameError, match="html"):
        render(made_up(), style="html")


def test_commands_print_and_write(tmp_path: Path) -> None:
    file = tmp_path / "runs.csv"
    export(made_up(), file)
    shown = CliRunner().invoke(app, ["table", str(file), "--statistic", "final"], catch_exceptions=False)
    assert "newsvendor" in shown.output
    out = tmp_path / "table.md"
    arguments = ["table", str(file), "--format", "markdown", "--published", str(file), "--out", str(out)]
    CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert "published runs" in out.read_text(encoding="utf-8")
    copy = tmp_path / "copy.csv.gz"
    CliRunner().invoke(app, ["export", str(file), "--out", str(copy)], catch_exceptions=False)
    assert copy.exists()
