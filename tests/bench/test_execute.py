"""Real worker processes: failures and deaths cost one replicate, kill -9 and Ctrl-C cost nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from edrbo.bench.problems import further_names, names
from edrbo.bench.run.execute import (
    SweepEvent,
    all_replicates,
    carry_out,
    make_plan,
    read_seeds,
    record_failure,
    run_on_processes,
    sole_writer,
)
from edrbo.bench.run.journal import Failure, Journal, Record, journal_path, make_header, read_journal
from edrbo.bench.run.plugin import PAPER_METHODS, Plugin
from edrbo.bench.run.progress import Progress
from edrbo.bench.run.replicate import Evaluation, Replicate, ReplicateSettings, run_replicate
from edrbo.errors import EdrboError, InvalidValueError, UnknownNameError
from edrbo.lab.cli.bench import app

SETTINGS = ReplicateSettings(evaluations=6)
PLUGIN = """
import os
from edrbo.bench.learners.adapters import RandomSearch
from edrbo.bench.learners.learner import Learner

class Broken(Learner):
    def __init__(self, setup):
        self.inner, self.count = RandomSearch(setup), 0
    def suggest(self):
        self.count += 1
        if self.count == 3:
            self.fail()
        return self.inner.suggest()
    def observe(self, x, c, y):
        self.inner.observe(x, c, y)
    def recommend(self):
        return self.inner.recommend()
    def fail(self):
        raise RuntimeError("as planned")

class Dying(Broken):
    def fail(self):
        os._exit(9)

METHODS = {"broken": Broken, "dying": Dying}
"""


def complete(directory: Path, replicate: Replicate) -> Record:
    record = read_journal(journal_path(directory, replicate))
    assert record is not None
    return record


def assert_uninterrupted(directory: Path, replicate: Replicate) -> None:
    """The journal holds exactly what a run in one go computes."""
    record = complete(directory, replicate)
    whole: list[Evaluation] = []
    result = run_replicate(replicate, [], whole.append)
    assert [replace(one, seconds=0.0) for one in record.evaluations] == [replace(one, seconds=0.0) for one in whole]
    assert record.result is not None
    assert replace(record.result, seconds=0.0) == replace(result, seconds=0.0)


def test_a_failed_replicate_and_a_dead_worker_do_not_stop_the_rest(tmp_path: Path) -> None:
    plugin = Plugin("mine.py", PLUGIN)
    methods = ["dying", "broken", "dying", "random"]
    replicates = [Replicate("newsvendor", m, seed, SETTINGS, plugin) for seed, m in enumerate(methods)]
    threads = os.environ.get("MKL_NUM_THREADS")
    events = list(run_on_processes(replicates, tmp_path, workers=2))
    assert os.environ.get("MKL_NUM_THREADS") == threads
    ends = {event.replicate: event for event in events if event.kind in ("finished", "failed")}
    assert [ends[one].kind for one in replicates] == ["failed", "failed", "failed", "finished"]
    assert_uninterrupted(tmp_path, replicates[3])
    steps = [event.t for event in events if event.kind == "evaluated" and event.replicate == replicates[3]]
    assert steps == [1, 2, 3, 4, 5, 6]
    broken, dying = complete(tmp_path, replicates[1]), complete(tmp_path, replicates[2])
    assert broken.failure is not None
    assert broken.failure.error == "RuntimeError: as planned"
    assert "in fail" in broken.failure.traceback
    assert dying.failure is not None
    assert dying.failure.error == "the worker process ended with exit code 9"
    assert len(broken.evaluations) == len(dying.evaluations) == 2


def test_the_row_of_a_dead_worker_follows_what_it_wrote(tmp_path: Path) -> None:
    """Also when it ran elsewhere, under other versions; but never in the journal of another replicate."""
    replicate = Replicate("newsvendor", "random", 0, SETTINGS)
    header = {**make_header(replicate), "versions": {"edrbo": "elsewhere"}}
    one = Evaluation(0, (0.5,), (0.5,), 1.0, 0.1, 0.0)
    with Journal(tmp_path, replicate, header) as journal:
        journal.add(one)
    record_failure(replicate, tmp_path, Failure("gone", "gone"))
    record = complete(tmp_path, replicate)
    assert (record.evaluations, record.failure) == ([one], Failure("gone", "gone"))
    other = replace(replicate, settings=ReplicateSettings(evaluations=7))
    record_failure(other, tmp_path, Failure("gone", "gone"))
    assert complete(tmp_path, other).evaluations == []


def test_an_unwritable_directory_is_a_failure_and_not_a_crash(tmp_path: Path) -> None:
    (tmp_path / "replicates").write_text("in the way")
    events: list[SweepEvent] = []
    carry_out(Replicate("newsvendor", "random", 0, SETTINGS), tmp_path, events.append)
    assert [event.kind for event in events] == ["failed"]


PROGRAM = """
from edrbo.lab.cli.bench import app
app()
"""


COMMAND = ["run", "--problems", "newsvendor", "--methods", "ucb,tpe", "--seeds", "5", "--evaluations", "16"]


def start(directory: Path, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *COMMAND, "--workers", "1", "--out", str(directory), *more],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def stop_at(process: subprocess.Popen[str], path: Path, lines: int, kind: signal.Signals) -> str:
    """Send a signal as soon as the journal has so many lines; return what was printed."""
    while process.poll() is None and (not path.exists() or path.read_bytes().count(b"\n") < lines):
        time.sleep(0.01)
    if kind == signal.SIGINT:
        os.killpg(process.pid, kind)  # as the terminal does
    else:
        process.send_signal(kind)
    return process.communicate(timeout=300)[0]


@pytest.mark.usefixtures("in_this_process")  # the third run, the first two are processes of their own
def test_kill_and_interrupt_leave_a_run_that_resumes_bit_for_bit(tmp_path: Path) -> None:
    replicates = [Replicate("newsvendor", m, 5, ReplicateSettings(16)) for m in ("ucb", "tpe")]
    path = journal_path(tmp_path, replicates[0])
    first = start(tmp_path)
    stop_at(first, path, 4, signal.SIGKILL)
    assert first.returncode == -signal.SIGKILL
    kept = len(complete(tmp_path, replicates[0]).evaluations)
    assert 3 <= kept < 16
    second = start(tmp_path, "--resume")
    output = stop_at(second, path, kept + 3, signal.SIGINT)
    assert second.returncode == 130, output
    assert "--resume" in output
    assert "Traceback" not in output
    assert kept < len(complete(tmp_path, replicates[0]).evaluations) < 16
    third = CliRunner().invoke(app, [*COMMAND, "--out", str(tmp_path), "--resume"], catch_exceptions=False)
    assert third.exit_code == 0, third.output
    assert "2 of 2 replicates done" in third.output
    for one in replicates:
        assert_uninterrupted(tmp_path, one)


def test_what_is_finished_is_not_run_again(tmp_path: Path) -> None:
    replicates = all_replicates("newsvendor", "random,tpe", "1:3", SETTINGS)
    assert make_plan(replicates, tmp_path, resume=False).finished == 0
    carry_out(replicates[2], tmp_path, lambda event: None)
    plan = make_plan(replicates, tmp_path, resume=True)
    assert (plan.finished, plan.todo) == (1, (*replicates[:2], replicates[3]))
    with pytest.raises(EdrboError):
        make_plan(replicates, tmp_path, resume=False)
    longer = all_replicates("newsvendor", "random,tpe", "1:3", ReplicateSettings(evaluations=7))
    assert make_plan(longer, tmp_path, resume=True).finished == 0


def test_sweeps_are_all_combinations_seed_by_seed() -> None:
    replicates = all_replicates("newsvendor,ackley", "all,random", "3,5:7", SETTINGS)
    assert len(replicates) == 2 * 10 * 3
    assert [one.seed for one in replicates[::20]] == [3, 5, 6]
    assert [one.method for one in replicates[:10]] == [*PAPER_METHODS, "random"]
    assert [one.problem for one in all_replicates("all", "ucb", "0", SETTINGS)] == names()
    both = [one.problem for one in all_replicates("all,further,ackley", "ucb", "0", SETTINGS)]
    assert both == [*names(), *further_names()]
    own = Plugin("mine.py", PLUGIN)
    assert "broken" in {one.method for one in all_replicates("newsvendor", "all", "0", SETTINGS, own)}


@pytest.mark.parametrize("seeds", ["", "x", "5:5", "1:x", "-1", "3,,4"])
def test_seeds_that_make_no_sense_are_refused(seeds: str) -> None:
    with pytest.raises(InvalidValueError):
        read_seeds(seeds)


@pytest.mark.parametrize(("problems", "methods"), [("nothing", "ucb"), ("ackley", "nothing")])
def test_unknown_names_are_refused(problems: str, methods: str) -> None:
    with pytest.raises(UnknownNameError, match="nothing"):
        all_replicates(problems, methods, "1", SETTINGS)


def test_two_runs_cannot_write_to_one_directory(tmp_path: Path) -> None:
    with sole_writer(tmp_path), pytest.raises(EdrboError), sole_writer(tmp_path):
        pass
    with sole_writer(tmp_path):
        pass


def test_run_refuses_to_write_over_results(tmp_path: Path) -> None:
    carry_out(Replicate("newsvendor", "random", 0, SETTINGS), tmp_path, lambda event: None)
    with pytest.raises(EdrboError):
        CliRunner().invoke(app, ["run", "--out", str(tmp_path), "--smoke"], catch_exceptions=False)


@pytest.mark.usefixtures("in_this_process")
def test_run_shows_failures_at_the_end_and_says_so_in_its_status(tmp_path: Path) -> None:
    plugin = tmp_path / "mine.py"
    plugin.write_text(PLUGIN)
    arguments = ["run", "--out", str(tmp_path / "out"), "--plugin", str(plugin), "--methods", "broken,random"]
    more = ["--problems", "newsvendor", "--seeds", "1", "--evaluations", "5", "--workers", "1"]
    result = CliRunner().invoke(app, [*arguments, *more], catch_exceptions=False)
    assert result.exit_code == 1
    assert "1 of 2 replicates done" in result.output
    assert "failed newsvendor / broken / 1: RuntimeError: as planned" in result.output
    assert "Traceback" in result.output


def test_progress_counts_and_estimates() -> None:
    todo = [Replicate("newsvendor", m, 0, ReplicateSettings(10)) for m in ("ucb", "tpe")]
    text = StringIO()
    with Progress(todo, 3, 2, Console(file=text, width=200)) as progress:
        assert progress.seconds_left() is None
        progress.update(SweepEvent("started", todo[0], t=4))
        progress.update(SweepEvent("evaluated", todo[0], t=5, seconds=2.0))
        # ucb: 5 evaluations left at 2 s; tpe: 10 left at the only speed known; two workers.
        assert progress.seconds_left() == pytest.approx((5 * 2.0 + 10 * 2.0) / 2)
        assert progress.line().startswith("3 of 5 replicates done, 3 of them before, 1 running, 0 failed")
        progress.update(SweepEvent("finished", todo[0], t=10))
        progress.update(SweepEvent("started", todo[1]))
        progress.update(SweepEvent("evaluated", todo[1], t=1, seconds=1.0))
        progress.update(SweepEvent("failed", todo[1], failure=Failure("x", "y")))
    assert text.getvalue().startswith("4 of 5 replicates done")
    assert "1 failed" in text.getvalue()


def test_progress_draws_on_a_terminal() -> None:
    todo = [Replicate("newsvendor", "ucb", 0, ReplicateSettings(10))]
    text = StringIO()
    console = Console(file=text, width=120, force_terminal=True)
    with Progress(todo, 0, 1, console) as progress:
        progress.update(SweepEvent("started", todo[0]))
        progress.update(SweepEvent("evaluated", todo[0], t=1, seconds=0.5))
        console.print(progress.render())
        shown = text.getvalue()
    assert "0 of 1 replicates done, 1 running" in shown
    assert "newsvendor 0 (1)" in shown
    assert "0.500" in text.getvalue()
