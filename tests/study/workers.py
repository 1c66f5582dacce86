"""Processes that use one study at once, or die while they do. Run as a script, so that it can fork before any thread.

It imports everything once, then reads commands, a line of JSON each, and runs each in a process of its own:

["many", WHERE, PROCESSES, EVALUATIONS, SAID]     each process asks and tells; SAID is what each was handed
["asks", WHERE, PROCESSES, SUGGESTIONS, SAID]     each process asks and tells nothing, so that all are pending
["make", WHERE, PROCESSES, EVALUATIONS, SAID]     as many, and all of them make the study
["fork", WHERE, PROCESSES, EVALUATIONS, SAID]     as many with one Study object, opened before they were forked
["live", WHERE, PROCESSES, STEPS, SAID]           each process records events of every kind, at random
["race", WHERE, RACES, KIND, SAID]                two or three processes do at once what only one of them can
["kill", WHERE, TIMES, SEED, SAID]                kill -9 a process that records events of every kind, at random moments
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from pathlib import Path

import numpy as np

from edrbo.errors import EdrboError
from edrbo.lab import Study
from edrbo.optimizer.optimizer import Optimizer
from edrbo.records.events import Event
from edrbo.space import Space

LINE = Space(design={"speed": (1.0, 9.0)}, context={"humidity": (0.0, 1.0)})
WIDER = Space(design={"speed": (1.0, 20.0)}, context={"humidity": (0.0, 1.0)}).to_dict()


def evaluate(study: Study, count: int, say) -> None:
    """Ask and tell; ``say`` is called after each call has returned."""
    for _ in range(count):
        suggestion = study.ask()
        say(["asked", suggestion.id, suggestion.design])
        context, value = suggestion.id / 1000, float(suggestion.id)
        study.tell(suggestion, [context], value)
        say(["reported", suggestion.id, context, value])


def only_ask(study: Study, count: int, say) -> None:
    for _ in range(count):
        suggestion = study.ask()
        say(["asked", suggestion.id, suggestion.design])


def live(study: Study, count: int, say) -> None:
    """Events of every kind, each said by its place, kind and time once it was acknowledged."""
    rng = np.random.default_rng([os.getpid(), time.monotonic_ns()])
    study.by = f"worker {os.getpid()}"

    def table(state) -> list[Event]:
        rows = Optimizer.of(state)  # as an import makes events: for the state of the moment
        for k in range(3):
            rows.tell({"speed": 2.0 + k}, [0.1 * k], float(k))
        return list(rows.state.history[len(state.history) :])

    def step(kind: int) -> None:
        runs = study.state.runs
        reported = [key for key, run in runs.items() if run.status == "reported"]
        late = [key for key in reported if runs[key].late]
        pending = [key for key, run in runs.items() if run.status == "pending"]
        dropped = [key for key in reported if runs[key].dropped]
        if kind <= 1 or not (reported or pending):
            if not pending or rng.random() < 0.7:
                study.ask()
            else:
                study.cancel(int(rng.choice(pending)), why="enough")
        elif pending and (kind <= 3 or not reported):
            study.tell(int(rng.choice(pending)), [0.5], float(rng.normal()))
        elif kind == 4:
            study.tell({"speed": 3.0}, None if rng.random() < 0.5 else [0.25], 1.0)
        elif kind == 5 and late:
            study.tell_context(int(rng.choice(late)), [0.75])
        elif kind == 6:
            study.correct(int(rng.choice(reported)), value=float(rng.normal()), why="a slip")
        elif kind == 7:
            study.restore(int(rng.choice(dropped))) if dropped else study.drop(
                int(rng.choice(reported)), why="implausible"
            )
        elif kind == 8:
            study.note(int(rng.choice(reported)), "words")
        elif kind == 9:
            study.observe_context([[0.3], [0.6]])
        elif kind == 10:
            study.undo()
        elif kind == 11 and pending:
            study.tell(int(rng.choice(pending)), failed=True, why="it broke")
        elif kind == 12:
            study.amend({"title": f"study of {rng.integers(100)}"})
        else:
            study.record_all(table)

    for _ in range(count):
        before = len(study.state_now.history)
        try:
            step(int(rng.integers(14)))
        except EdrboError:  # another process was quicker
            say(["refused"])
            continue
        mine = [event for event in study.state_now.history[before:] if event.by == study.by]
        say(["stored", *([int(event.ref), event.kind, event.at] for event in mine)])


def child(where: str | Study, count: int, descriptor: int, space: Space | None = None, act=evaluate) -> int:
    """Fork a process that evaluates and writes what it has done to ``descriptor``."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        if isinstance(where, Study):
            study = where
        else:
            study = Study.open(where) if space is None else Study.open(where, space, method="ucb", initial=1000)
        act(study, count, lambda words: os.write(descriptor, (json.dumps(words) + "\n").encode()))
        code = 0
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        os._exit(code)


def many(where: str, processes: int, evaluations: int, path: str, space: Space | None = None, act=evaluate) -> None:
    descriptor = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    pids = [child(where, evaluations, descriptor, space, act) for _ in range(processes)]
    codes = [os.waitpid(pid, 0)[1] for pid in pids]
    assert codes == [0] * processes, codes


def fork(where: str, processes: int, evaluations: int, path: str) -> None:
    descriptor = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    study = Study.open(where)
    study.tell(study.ask(), [0.0], 0.0)  # its connections and locks were used
    pids = [child(study, evaluations, descriptor) for _ in range(processes)]
    assert [os.waitpid(pid, 0)[1] for pid in pids] == [0] * processes
    evaluate(study, 1, lambda words: None)  # and the parent goes on


# -------------------------------------------------------------------- races


def stage(study: Study, kind: str) -> list[list]:
    """What each process is to do at once; only one of them can."""
    if kind == "own tell and undo of an amendment":
        study.amend({"space": WIDER})
        return [["own", 15.0], ["undo", study.state_now.history[-1].ref]]
    suggestion = study.ask()
    asked = study.state_now.history[-1].ref
    if kind == "tell and undo of the suggestion":
        return [["tell", suggestion.id, 0.25], ["undo", asked]]
    if kind == "three tells":
        return [["tell", suggestion.id, 0.25], ["tell", suggestion.id, 0.5], ["tell", suggestion.id, 0.75]]
    if kind == "tell, fail and cancel":
        return [["tell", suggestion.id, 0.25], ["fail", suggestion.id], ["cancel", suggestion.id]]
    study.tell(suggestion, None, 1.0)
    if kind == "two late contexts":
        return [["late", suggestion.id, 0.25], ["late", suggestion.id, 0.75]]
    assert kind == "tell and tell after an undone tell"
    study.undo()
    return [["tell", suggestion.id, 0.25], ["tell", suggestion.id, 0.75]]


def clear(study: Study, kind: str) -> None:
    """The study as the next race wants it."""
    if kind == "own tell and undo of an amendment" and study.state.amendments:
        study.undo()  # the tell of a design that only the wider space has …
        study.undo()  # … and the amendment


DO = {
    "tell": lambda study, key, context: study.tell(key, [context], context),
    "late": lambda study, key, context: study.tell_context(key, [context]),
    "undo": lambda study, ref: study.undo(ref),
    "own": lambda study, speed: study.tell({"speed": speed}, [0.5], 1.0),
    "fail": lambda study, key: study.tell(key, failed=True),
    "cancel": lambda study, key: study.cancel(key),
}


def race(where: str, races: int, kind: str, path: str) -> None:
    descriptor = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    answering, answers = os.pipe()
    starts: list[int] = []
    for _ in range(3 if kind in ("three tells", "tell, fail and cancel") else 2):
        reading, writing = os.pipe()
        if not os.fork():
            os.close(writing)
            for other in starts:
                os.close(other)
            act_when_reported(where, reading, answers, descriptor)
        os.close(reading)
        starts.append(writing)
    study = Study.open(where)
    for index in range(races):
        for start, words in zip(starts, stage(study, kind), strict=True):
            os.write(start, (json.dumps([index, *words]) + "\n").encode())
        for _ in starts:
            os.read(answering, 1)
        clear(study, kind)
    for start in starts:
        os.close(start)
    assert all(os.wait()[1] == 0 for _ in starts)


def act_when_reported(where: str, reading: int, answers: int, descriptor: int) -> None:
    code = 1
    try:
        study = Study.open(where)
        with open(reading) as lines:
            for line in lines:
                index, what, *parts = json.loads(line)
                try:
                    DO[what](study, *parts)
                    stored = study.state_now.history[-1]
                    words = [index, "stored", int(stored.ref), stored.kind, stored.at]
                except EdrboError as problem:
                    words = [index, "refused", type(problem).__name__]
                os.write(descriptor, (json.dumps(words) + "\n").encode())
                os.write(answers, b".")
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def kill(where: str, times: int, seed: int, path: str) -> None:
    """Each process dies a random moment after a random number of calls, whatever the speed of the machine."""
    rng = np.random.default_rng(seed)
    with open(path, "w") as said:
        for _ in range(times):
            reading, writing = os.pipe()
            pid = child(where, 10**6, writing, act=live)
            os.close(writing)
            with open(reading) as lines:
                for _ in range(rng.integers(0, 12)):
                    said.write(lines.readline())
                time.sleep(rng.uniform(0.0, 0.03))  # the moment of death, not a wait for something to happen
                os.kill(pid, signal.SIGKILL)
                said.write(lines.read())
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL


def warm_up() -> None:
    """Import everything once, databases too, so that the children spend their time on the study."""
    import psycopg2  # noqa: F401

    with tempfile.TemporaryDirectory() as folder:
        study = Study.open(Path(folder) / "study.db", LINE, method="ucb", initial=2)
        evaluate(study, 3, lambda words: None)  # the third by a model
        live(study, 30, lambda words: None)


def carry_out(command: str, where: str, first: int, second: int | str, path: str) -> int:
    """The exit code of a process that does it; whatever it leaves running is ended."""
    pid = os.fork()
    if not pid:
        os.setpgid(0, 0)
        signal.alarm(400)
        code = 1
        try:
            known = {
                "many": many,
                "asks": lambda *given: many(*given, act=only_ask),
                "make": lambda *given: many(*given, space=LINE),
                "live": lambda *given: many(*given, act=live),
                "fork": fork,
                "race": race,
                "kill": kill,
            }
            known[command](where, first, second, path)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    return code


if __name__ == "__main__":
    warm_up()
    for line in sys.stdin:
        print(carry_out(*json.loads(line)), flush=True)
