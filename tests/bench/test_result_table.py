"""Tables: the right numbers, the right marks, every format readable by what it is meant for."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from made_up import METHODS, PROBLEMS, made_up
from rich.console import Console
from typer.testing import CliRunner

from edrbo.bench.analysis.results import FailedRun, Results, export, only_problems
from edrbo.bench.analysis.stats import STATISTICS, significance, summarize
from edrbo.bench.analysis.table import BEST, CSV_COLUMNS, SECOND, Entry, Table, TableRow, format_pair
from edrbo.bench.analysis.tables import RANK_ROW, notes, regret_table, render
from edrbo.bench.run.journal import Failure
from edrbo.errors import UnknownNameError
from edrbo.lab.cli.bench import app


def table_of(results: Results, statistic: str = "final") -> Table:
    table = regret_table(results, statistic)
    assert table is not None
    return table


def rows_of(table: Table) -> dict[str, tuple[Entry, ...]]:
    return {row.name: row.entries for row in table.rows}


def test_best_and_second_are_marked_by_their_means() -> None:
    results = made_up()
    table = table_of(results)
    rows = rows_of(table)
    assert list(rows) == [*PROBLEMS, RANK_ROW]
    cells = summarize(results, "final")
    for problem in PROBLEMS:
        means = sorted(cells[problem, method].mean for method in METHODS)
        for method, entry in zip(table.columns, rows[problem], strict=True):
            cell = cells[problem, method]
            assert (entry.value, entry.spread, entry.count) == (cell.mean, cell.std, cell.seeds)
            assert entry.place == {means[0]: BEST, means[1]: SECOND}.get(cell.mean, 0)
    assert sorted(entry.place for entry in rows[RANK_ROW]) == [0, 0, BEST, SECOND]


def test_a_method_that_is_alone_is_not_the_best() -> None:
    table = table_of(made_up(methods={"edrbo": 1.0}))
    assert {entry.place for row in table.rows for entry in row.entries} == {0}


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
    table = table_of(made_up())
    markdown, latex = table.to_markdown(), table.to_latex()
    # One of each per problem and one in the row of ranks; the title is bold as well.
    assert markdown.count("**") == 2 * (len(PROBLEMS) + 1) + 2
    assert markdown.count("<u>") == latex.count(r"\underline") == len(PROBLEMS) + 1
    assert latex.count(r"\textbf") == len(PROBLEMS) + 1
    widths = {line.count("|") for line in markdown.splitlines() if line.startswith("|")}
    assert widths == {len(METHODS) + 2}
    body = [line for line in latex.splitlines() if line.endswith(r"\\")]
    assert {line.count("&") for line in body} == {len(METHODS)}
    assert latex.count("{") == latex.count("}")


HOSTILE = r"a|b & 50% of_x \ {<u>} $*^~#[1](2)"


def test_names_are_never_markup() -> None:
    entry = Entry(HOSTILE, "1|2", value=HOSTILE)
    table = Table(f"{HOSTILE}\nsecond line", (HOSTILE,), (TableRow(HOSTILE, (entry,)),), corner=HOSTILE, note=HOSTILE)
    markdown = table.to_markdown()
    for line in (line for line in markdown.splitlines() if line.startswith("|")):
        assert len(re.findall(r"(?<!\\)\|", line)) == 3  # bars that are not escaped
    assert not re.search(r"(?<!\\)[<\[]", markdown)
    latex = table.to_latex()
    (comment, *_, note) = latex.splitlines()
    assert (comment[0], note[0]) == ("%", "%")
    assert "second line" in comment
    for line in latex.splitlines()[3:-1]:
        bare = re.sub(r"\\text\w+\{\}|\\[&%$#_{}]|\\\\$|\$\\pm\$|\\(?:mid|top|bottom)rule|\\end\{tabular\}", "", line)
        assert not set(bare) & set("\\%$#_{}~^<>")
        assert bare.count("&") in (0, 1)
    (record,) = csv.DictReader(StringIO(table.to_csv()))
    assert (record["row"], record["column"], record["value"]) == (HOSTILE, HOSTILE, HOSTILE)
    console = Console(file=StringIO(), width=400)
    console.print(*table.to_terminal(400))
    assert HOSTILE in console.file.getvalue()  # type: ignore[attr-defined]


def test_csv_has_all_digits() -> None:
    results = made_up()
    rows = list(csv.DictReader(StringIO(table_of(results, "simple").to_csv())))
    assert len(rows) == len(METHODS) * (len(PROBLEMS) + 1)
    cells = summarize(results, "simple")
    for row in rows[: len(METHODS) * len(PROBLEMS)]:
        cell = cells[row["row"], row["column"]]
        assert (float(row["value"]), float(row["spread"]), int(row["count"])) == (cell.mean, cell.std, cell.seeds)


def test_tests_of_significance_are_a_table_like_any_other() -> None:
    found = significance(made_up(seeds=10), "final", "edrbo")
    assert found is not None
    rows = rows_of(found.table())
    assert list(rows) == ["erbo", "stableopt", "ucb"]
    by_name = {one.other: one for one in found.pooled}
    for name, (pairs, ratio, p, of_problems, counts) in rows.items():
        one = by_name[name]
        assert (pairs.value, ratio.value, p.value, of_problems.value) == (30, one.ratio, one.holm, one.p_of_problems)
        assert counts.value == "/".join(map(str, found.counts(name)))
    alone = significance(only_problems(made_up(seeds=10), ["ackley"]), "final", "edrbo")
    assert alone is not None
    assert {entries[3] for entries in rows_of(alone.table()).values()} == {Entry()}


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
        assert len(table_of(results).to_terminal(width)) > 1


def test_all_statistics_and_published_runs_are_shown() -> None:
    published = made_up(suffix=" (published)")
    text = render(made_up(), published, style="markdown")
    for title in STATISTICS.values():
        assert f"**{title}**" in text
    assert "final cumulative regret, published runs" in text
    assert text.count("edrbo (published)") >= 1
    for title in STATISTICS.values():
        assert f"**{title}: paired Wilcoxon tests**" in text
    assert text.count("speaks of these problems alone") == 1
    assert "paired" in render(made_up(), style="latex", statistic="final")
    lines = render(made_up(), style="csv").splitlines()
    assert len(set(map(len, csv.reader(lines)))) == 1
    assert sum(line == ",".join(CSV_COLUMNS) for line in lines) == 1


def test_missing_cells_are_empty() -> None:
    results = made_up()
    less = replace(results, runs=tuple(r for r in results.runs if (r.problem, r.method) != ("ackley", "ucb")))
    table = table_of(less)
    rows = rows_of(table)
    assert rows["ackley"][table.columns.index("ucb")] == Entry()
    assert table.to_latex().count("&  &") + table.to_latex().count(r"&  \\") == 1
    best = rows[RANK_ROW][0]
    assert (best.value, best.spread, best.count) == (pytest.approx(1.0), pytest.approx(0.0), 2)


def test_notes_say_what_is_missing() -> None:
    results = made_up()
    assert notes(results) == []
    headers = ({"settings": 1, "versions": 1, "data": None}, {"settings": 2, "versions": 2, "data": "regenerated"})
    failed = FailedRun("p", "m", 1, Failure("a", "b"))
    found = notes(replace(results, failures=(failed,), unfinished=2, headers=headers))
    assert [re.split(r"[ :]", note)[0] for note in found] == ["1", "2", "runs", "runs", "data"]


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
    arguments = ["table", str(file), "--format", "csv", "--statistic", "after", "--relative", "edrbo"]
    rows = list(csv.DictReader(StringIO(CliRunner().invoke(app, arguments, catch_exceptions=False).output)))
    assert {row["row"] for row in rows} == set(METHODS) - {"edrbo"}
    assert {row["column"] for row in rows} == {*PROBLEMS, "geometric mean (95 %)", "seeds"}
    copy = tmp_path / "copy.csv.gz"
    CliRunner().invoke(app, ["export", str(file), "--out", str(copy)], catch_exceptions=False)
    assert copy.exists()
