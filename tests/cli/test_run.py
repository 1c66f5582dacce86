"""`edrbo run`: commands that work, crash, hang, lie and are interrupted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from edrbo.errors import InvalidValueError, StudyError
from edrbo.lab import Study
from edrbo.lab.runner import Runner, fill, read_answer
from edrbo.optimizer.optimizer import Suggestion
from edrbo.space import Space

SIMULATE = """
import json, sys
speed = float(sys.argv[1])
assert json.load(sys.stdin)["speed"] == speed
print("some words first")
print(json.dumps({"value": -(speed - 4) ** 2, "context": {"humidity": 0.5}}))
"""


@pytest.fixture
def space() -> Space:
    return Space({"speed": (1.0, 9.0)}, {"humidity": (0.0, 1.0)})


@pytest.fixture
def study(tmp_path: Path, space: Space) -> Study:
    return Study.open(tmp_path / "study.db", space, method="ucb", initial=100)


def python(text: str, *words: str) -> list[str]:
    return [sys.executable, "-c", text, *words]


def test_a_simulator(study: Study) -> None:
    answers = []
    Runner(study, python(SIMULATE, "{speed}"), workers=2, report=answers.append).run(5)
    assert len(study) == 5
    assert len(answers) == 5
    speeds = 1 + 8 * study.observations.x[:, 0]
    assert study.observations.y == pytest.approx(-((speeds - 4) ** 2))
    assert study.observations.c.tolist() == [[0.5]] * 5
    assert not study.pending


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("raise SystemExit(3)", "it ended with code 3"),
        ("raise ValueError('too hot')", "it ended with code 1: ValueError: too hot"),
        ("import os; os.kill(os.getpid(), 9)", "it was ended by signal 9"),
        ("import time; time.sleep(60)", "it took longer than 0.5 s"),
        ("print('no idea')", "it printed no JSON object"),
        ("print([1, 2])", "it printed no JSON object"),
        ("print('{\"context\": {}}')", 'its JSON has no "value"'),
        ('print(\'{"value": "high"}\')', "its value is high"),
        ("print('{\"value\": NaN}')", "its value is nan"),
        ("print('{\"value\": -Infinity}')", "its value is -inf"),
        ('print(\'{"value": 1, "context": {"humidity": NaN}}\')', "humidity"),
        ('print(\'{"value": 1, "context": {"wind": 1}}\')', "'wind' is not a context variable"),
        ('print(\'{"value": 1, "context": 0.5, "noise_variance": -1}\')', "its context is not an object"),
    ],
)
def test_failed_evaluations(study: Study, text: str, problem: str) -> None:
    answers: list[Any] = []
    Runner(study, python(text), timeout=0.5 if "sleep" in text else 60.0, report=answers.append).run(1)
    assert problem in answers[0].problem
    assert len(study.state.failed) == 1
    assert len(study) == 0


def test_a_command_that_always_fails_is_given_up(study: Study) -> None:
    with pytest.raises(StudyError, match="3"):
        Runner(study, python("raise SystemExit(1)")).run(50)
    assert len(study.state.failed) == 3


def test_a_hung_command_and_its_children_end(study: Study, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    text = (
        "import os, subprocess, sys, time\n"
        f"child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(pids)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        "time.sleep(600)"
    )
    Runner(study, python(text), timeout=2.0).run(1)
    for pid in map(int, pids.read_text().split()):
        assert is_gone_soon(pid)


def test_values_are_single_arguments(tmp_path: Path) -> None:
    """Whatever a value holds, no shell reads it and it stays one argument."""
    nasty = ["$(touch hacked); `touch hacked` && rm -rf 'x' \"y\" | z", "-rf *", "{speed}"]
    space = Space({"text": nasty, "speed": (1.0, 9.0)}, {})
    study = Study.open(tmp_path / "study.db", space)
    text = "import json, sys; print(json.dumps({'value': 1, 'words': sys.argv[1:]}))"
    seen = tmp_path / "seen"
    text += f"; open({str(seen)!r}, 'a').write(json.dumps(sys.argv[1:]) + chr(10))"
    Runner(study, python(text, "a", "{text}", "--text={text};{speed}", '{"a": 1}')).run(6)
    designs = study.space.decode_designs(study.observations.x)
    for line, design in zip(seen.read_text().splitlines(), designs, strict=True):
        expected = ["a", design["text"], f"--text={design['text']};{design['speed']}", '{"a": 1}']
        assert json.loads(line) == expected
    study.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["seen", "study.db"]


def test_fill() -> None:
    design = {"x": 0.1, "n": 3, "flag": True, "kind": "{x}"}
    assert fill(["{x}", "{n}:{flag}", "{kind}", "{}", "{ x }"], design) == ["0.1", "3:true", "{x}", "{}", "{ x }"]
    with pytest.raises(StudyError):
        fill(["{y}"], design)


def test_contexts_beside_the_value_and_several_lines(space: Space) -> None:
    suggestion = Suggestion(0, {"speed": 2.0})
    flat = read_answer(suggestion, '{"value": 2, "humidity": 0.25, "noise_variance": 0.5}\n', space)
    assert (flat.context, flat.value, flat.noise_variance) == ({"humidity": 0.25}, 2.0, 0.5)
    pretty = read_answer(suggestion, json.dumps({"value": 3}, indent=2), space)
    assert (pretty.context, pretty.value, pretty.problem) == (None, 3.0, None)


def test_pending_suggestions_first(study: Study) -> None:
    left = study.ask()
    Runner(study, python(SIMULATE, "{speed}")).run(2, [left])
    assert list(study.state.reported) == [0, 1]


def test_reported_by_somebody_else_meanwhile(study: Study) -> None:
    left = study.ask()
    study.tell(left, [0.25], 1.0)
    answers: list[Any] = []
    runner = Runner(study, python(SIMULATE, "{speed}"), report=answers.append)
    runner.run(1, [left])
    assert "reported already" in answers[0].problem
    assert study.observations.y.tolist() == [1.0]


def test_by_command_line(edrbo: Callable[..., Any], folder: Path) -> None:
    (folder / "simulate.py").write_text(SIMULATE)
    assert edrbo("new", "s.toml", "-d", "speed=1:9", "-c", "humidity=0:1", "--method", "ucb").code == 0
    ended = edrbo("run", "s.toml", "-n", 3, "-w", 2, "--json", "--", sys.executable, "simulate.py", "{speed}")
    assert ended.code == 0
    lines = [json.loads(line) for line in ended.out.splitlines()]
    assert sorted(line["id"] for line in lines) == [0, 1, 2]
    assert all(line["context"] == {"humidity": 0.5} for line in lines)
    ended = edrbo("run", "s.toml", "-n", 1, "--", sys.executable, "simulate.py", "{speed}")
    assert "1 evaluated, 0 failed" in ended.out
    assert edrbo("run", "s.toml", "-n", 1, "--", sys.executable, "-c", "exit(1)").code == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted(study: Study, tmp_path: Path, number: signal.Signals) -> None:
    """Ctrl-C and kill: commands end, what was reported stays, suggestions under way stay pending."""
    begun = tmp_path / "begun"
    os.mkfifo(begun)
    text = f"import os, time; open({str(begun)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    words = ["run", str(tmp_path / "study.db"), "-n", "5", "--", *python(text)]
    program = "import sys; from edrbo.lab.cli import main; sys.argv[0] = 'edrbo'; main()"
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    edrbo = subprocess.Popen(
        [sys.executable, "-c", program, *words], stderr=subprocess.PIPE, text=True, env=environment
    )
    guard = threading.Timer(60, edrbo.kill)
    guard.start()
    pid = int(begun.read_text())  # blocks until the command runs
    edrbo.send_signal(number)
    _, errors = edrbo.communicate()
    guard.cancel()
    assert edrbo.returncode == 130
    assert "stay" in errors
    assert "Traceback" not in errors
    deadline = time.monotonic() + 10
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        os.sched_yield()
    assert not Path(f"/proc/{pid}").exists()
    assert len(study.pending) == 1
    assert not study.state.failed


def test_stopped_while_a_command_starts(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C after the command has begun and before it is on the list of those to end."""
    runner = Runner(study, python("import time; time.sleep(5)"))
    begun: list[subprocess.Popen[str]] = []
    start = subprocess.Popen

    def interrupted(*words: Any, **settings: Any) -> subprocess.Popen[str]:
        begun.append(start(*words, **settings))
        runner._stop()
        return begun[-1]

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    runner.run(3)
    assert [child.returncode for child in begun] == [-signal.SIGKILL]
    assert runner.succeeded == runner.failed == 0
    assert len(study.pending) == 1


# -------------------------------------------------------------------- commands that attack

HOSTILE = {
    "400 digits": ("print('{\"value\": ' + '9' * 400 + '}')", "its value is"),
    "5000 digits": ("print('{\"value\": ' + '9' * 5000 + '}')", "it printed no JSON object"),
    "brackets": ("print('[' * 200_000)", "it printed no JSON object"),
    "braces": ("print('{\"value\":' * 200_000)", "it printed no JSON object"),
    "text": ('print(\'{"value": "0.5"}\')', "its value is 0.5"),
    "truth": ("print('{\"value\": true}')", "its value is True"),
    "noise of text": ('print(\'{"value": 1, "noise_variance": "a"}\')', "its noise is not a number"),
    "negative noise": ('print(\'{"value": 1, "noise_variance": -1}\')', "noise variance"),
    "context of text": ('print(\'{"value": 1, "context": "wet"}\')', "its context is not an object"),
    "two contexts": ('print(\'{"value": 1, "context": [1, 2]}\')', "its context is not an object"),
    "nested context": ('print(\'{"value": 1, "context": {"humidity": {"a": [1]}}}\')', "humidity"),
    "escape codes": ("import sys; sys.exit('\\x1b[31mred\\x07')", "it ended with code 1: \\x1b[31mred\\x07"),
    "NUL": ("import sys; sys.stderr.write('a\\x00b'); sys.exit(3)", "it ended with code 3: a\\x00b"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_answers_are_failed_evaluations(study: Study, name: str) -> None:
    text, problem = HOSTILE[name]
    answers: list[Any] = []
    Runner(study, python(text), report=answers.append).run(1)
    assert problem in answers[0].problem
    assert answers[0].problem.isprintable()
    (run,) = Study.open(study.where).state.runs.values()
    assert run.status == "failed"
    assert run.why == answers[0].problem


def test_a_context_in_the_order_of_naming(study: Study) -> None:
    Runner(study, python('print(\'{"value": 1, "context": [0.25]}\')')).run(1)
    assert study.observations.c.tolist() == [[0.25]]


def test_a_flood_of_output_takes_little_memory(tmp_path: Path, space: Space) -> None:
    """150 MB, in a process of its own whose memory is limited to what is resident before, and a little."""
    flood = "import sys\nfor _ in range(150): sys.stdout.write('x' * 10**6)\nprint(); print('{\"value\": 2}')"
    text = f"""
import resource, sys
from contextlib import suppress
from pathlib import Path
from edrbo.space import Space
from edrbo.lab import Study
from edrbo.lab.runner import Runner
study = Study.open({str(tmp_path / "study.db")!r}, Space({{"speed": (1.0, 9.0)}}), initial=100)
import edrbo.optimizer.optimizer
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
Runner(study, [sys.executable, "-c", {flood!r}]).run(1)
assert study.observations.y.tolist() == [2.0], study.runs
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", text], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 50_000  # KB


@pytest.mark.parametrize("own_session", [False, True])
def test_done_when_the_command_has_ended(study: Study, tmp_path: Path, own_session: bool) -> None:
    """A child in the background holds the output open; one in a session of its own cannot even be ended with it."""
    text = f"""
import subprocess, sys
from contextlib import suppress
from pathlib import Path
sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
child = subprocess.Popen(sleeper, start_new_session={own_session})
Path({str(tmp_path / "pid")!r}).write_text(str(child.pid))
print('{{"value": 1}}')
"""
    Runner(study, python(text)).run(1)
    assert study.observations.y.tolist() == [1.0]
    pid = int((tmp_path / "pid").read_text())
    if own_session:
        os.kill(pid, signal.SIGKILL)  # it lives: nobody has waited for it
    else:
        assert is_gone_soon(pid)


@pytest.mark.parametrize("timeout", [float("inf"), float("nan"), 0.0, -1.0])
def test_times_that_are_none(study: Study, timeout: float) -> None:
    with pytest.raises(InvalidValueError):
        Runner(study, ["true"], timeout=timeout)


def is_gone_soon(pid: int) -> bool:
    """Of a process that was killed; when it is gone is up to the machine."""
    state, deadline = Path(f"/proc/{pid}/stat"), time.monotonic() + 30
    while _runs(state) and time.monotonic() < deadline:
        os.sched_yield()
    return not _runs(state)


def _runs(state: Path) -> bool:
    """Whether the process with this /proc file still runs; a zombie does not."""
    try:
        return state.read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_an_interrupt_that_python_drops_is_seen(study: Study, tmp_path: Path) -> None:
    """An exception of a signal may come while something is imported or collected, where nobody gets it."""
    runner, begun = Runner(study, python(f"import time; open({str(tmp_path / 'begun')!r}, 'w'); time.sleep(20)")), []

    def dropped() -> None:
        while not (tmp_path / "begun").exists():
            os.sched_yield()
        begun.append(True)
        with suppress(KeyboardInterrupt):
            runner.interrupt()

    signaler = threading.Thread(target=dropped)
    signaler.start()
    with pytest.raises(KeyboardInterrupt):
        runner.run(1)
    signaler.join()
    assert begun
    assert len(study.pending) == 1
