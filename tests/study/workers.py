"""Processes that use one study at once, or die while they do. Run as a script, so that it can fork before any thread.

It imports everything once, then reads commands, a line of JSON each, and runs each in a process of its own:

["many", WHERE, PROCESSES, EVALUATIONS, SAID]     each process asks and tells; SAID is what each was handed
["asks", WHERE, PROCESSES, SUGGESTIONS, SAID]     each process asks and tells nothing, so that all are pending
["make", WHERE, PROCESSES, EVALUATIONS, SAID]     the same, and all of them make the study
["fork", WHERE, PROCESSES, EVALUATIONS, SAID]     the same with one Study object, opened before they were forked
["race", WHERE, RACES, PROCESSES, SAID]           all tell one suggestion at once, each with a context of its own
["kill", WHERE, TIMES, SEED, SAID]                kill -9 an asking and telling process at random moments
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
from edrbo.space import Space
from edrbo.study import Study


def evaluate(study: Study, count: int, say) -> None:
    """Ask and tell; ``say`` is told after each call has returned."""
    for _ in range(count):
        suggestion = study.ask()
        say(["asked", suggestion.id, suggestion.design])
        context, value = suggestion.id / 1000, float(suggestion.id)
        study.tell(suggestion, [context], value)
        say(["told", suggestion.id, context, value])


def only_ask(study: Study, count: int, say) -> None:
    for _ in range(count):
        suggestion = study.ask()
        say(["asked", suggestion.id, suggestion.design])


LINE = Space(design={"speed": (1.0, 9.0)}, context={"humidity": (0.0, 1.0)})


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


def asks(where: str, processes: int, suggestions: int, path: str) -> None:
    many(where, processes, suggestions, path, act=only_ask)


def make(where: str, processes: int, evaluations: int, path: str) -> None:
    many(where, processes, evaluations, path, LINE)


def fork(where: str, processes: int, evaluations: int, path: str) -> None:
    descriptor = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    study = Study.open(where)
    study.tell(study.ask(), [0.0], 0.0)  # its connections and locks were used
    pids = [child(study, evaluations, descriptor) for _ in range(processes)]
    assert [os.waitpid(pid, 0)[1] for pid in pids] == [0] * processes
    evaluate(study, 1, lambda words: None)  # and the parent goes on


def race(where: str, races: int, processes: int, path: str) -> None:
    descriptor = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    answering, answers = os.pipe()
    starts = []
    for index in range(processes):
        reading, writing = os.pipe()
        if not os.fork():
            os.close(writing)
            for other in starts:
                os.close(other)
            tell_when_told(where, (index + 1) / 10, reading, answers, descriptor)
        os.close(reading)
        starts.append(writing)
    study = Study.open(where)
    for _ in range(races):
        number = study.ask().id
        for start in starts:
            os.write(start, number.to_bytes(4, "big"))
        for _ in starts:
            os.read(answering, 1)
    for start in starts:
        os.close(start)
    assert all(os.wait()[1] == 0 for _ in starts)


def tell_when_told(where: str, context: float, reading: int, answers: int, descriptor: int) -> None:
    code = 1
    try:
        study = Study.open(where)
        while number := os.read(reading, 4):
            key = int.from_bytes(number, "big")
            try:
                study.tell(key, [context], 1.0)  # all with the same value
                words = ["told", key, context]
            except EdrboError:
                words = ["refused", key, context]
            os.write(descriptor, (json.dumps(words) + "\n").encode())
            os.write(answers, b".")
        code = 0
    finally:
        os._exit(code)


def kill(where: str, times: int, seed: int, path: str) -> None:
    """Each process dies a random moment after a random number of calls, whatever the speed of the machine."""
    rng = np.random.default_rng(seed)
    with open(path, "w") as said:
        for _ in range(times):
            reading, writing = os.pipe()
            pid = child(where, 10**6, writing)
            os.close(writing)
            with open(reading) as lines:
                for _ in range(rng.integers(0, 4)):
                    said.write(lines.readline())
                time.sleep(rng.uniform(0.0, 0.03))  # the moment of death, not a wait for something to happen
                os.kill(pid, signal.SIGKILL)
                said.write(lines.read())
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL


def warm_up() -> None:
    """Import everything once, databases too, so that the children spend their time on the study."""
    import psycopg2  # noqa: F401
    from optuna.storages import RDBStorage
    from sqlalchemy.dialects import postgresql  # noqa: F401

    with tempfile.TemporaryDirectory() as folder:
        study = Study.open(Path(folder) / "study.db", LINE, method="ucb", initial=2)
        evaluate(study, 3, lambda words: None)  # the third by a model
        RDBStorage(f"sqlite:///{folder}/database.db").remove_session()


def carry_out(command: str, where: str, first: int, second: int, path: str) -> int:
    """The exit code of a process that does it; whatever it leaves running is ended."""
    pid = os.fork()
    if not pid:
        os.setpgid(0, 0)
        signal.alarm(300)
        code = 1
        try:
            known = {"many": many, "asks": asks, "make": make, "fork": fork, "race": race, "kill": kill}
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
