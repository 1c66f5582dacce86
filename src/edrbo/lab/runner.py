"""Evaluate suggestions by running a command for each.

The command is a list of arguments; ``{name}`` in one is replaced by the value of a design variable, and no shell ever
sees it. The design also comes as JSON on standard input. The last line of standard output that is JSON gives the
answer: ``{"value": 1.7, "context": {"humidity": 0.4}}``, if wanted with ``"noise_variance"``, ``"control"`` and
``"cost"``. Of several outcomes the value is an object of names and numbers.

One run of a command: what it said last, in bounded memory, and done when the command itself has ended.

Children that it leaves behind may hold its output open for ever, so the end of the output is not waited for: whatever
a command wrote lies in the pipe when it has ended, and is read until nothing is left there.
"""

from __future__ import annotations

import json
import math
import os
import re
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import IO, Any, NoReturn

from edrbo.errors import InvalidContextError, InvalidValueError, StudyError, UnknownNameError, UnknownSuggestionError
from edrbo.lab.study import Study
from edrbo.records.run import Suggestion
from edrbo.records.validation import read_number
from edrbo.space import Space
from edrbo.space.point_tables import close_match

OUTPUT, ERRORS = 1_000_000, 20_000  # bytes kept of what a command says: the last ones
CHUNK = 65_536
LOOK = 0.02  # seconds between looks whether it has ended, while it says nothing
LONGEST_WORDS = 500


@dataclass(frozen=True)
class Outcome:
    """How a command ended; ``code`` is None if its time was over."""

    code: int | None
    output: str
    errors: str


class Command:
    """A command that was started with ``arguments`` and is given ``text`` on its standard input."""

    def __init__(self, arguments: Sequence[str], text: str) -> None:
        try:
            self._child = subprocess.Popen(
                arguments,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,  # so that its own children end with it
            )
        except (OSError, ValueError) as problem:
            reason = problem.strerror if isinstance(problem, OSError) else "an argument holds a NUL character"
            raise StudyError(f"cannot start {arguments[0]!r}: {reason}", "check the command") from None
        self._rest = text.encode()
        self._tails: dict[IO[bytes], tuple[bytearray, int]] = {}

    def wait(self, timeout: float | None) -> Outcome:
        """Until it has ended, or ``timeout`` seconds are over."""
        output, errors = bytearray(), bytearray()
        child, ended = self._child, None
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        self._tails = {child.stdout: (output, OUTPUT), child.stderr: (errors, ERRORS)}
        until = None if timeout is None else time.monotonic() + timeout
        with selectors.DefaultSelector() as selector:
            for stream in (child.stdin, child.stdout, child.stderr):
                os.set_blocking(stream.fileno(), False)
                selector.register(stream, selectors.EVENT_WRITE if stream is child.stdin else selectors.EVENT_READ)
            while True:
                ended = child.poll()  # before reading: what it wrote is then in the pipe
                ready = selector.select(0 if ended is not None else LOOK)
                moved = [self._serve(selector, key.fileobj) for key, _ in ready]
                if ended is not None and not any(moved):
                    break
                if until is not None and ended is None and time.monotonic() > until:
                    break
                if ended is None and not ready and not selector.get_map():
                    time.sleep(LOOK)  # it has closed everything and goes on
        return Outcome(ended, output.decode(errors="replace"), errors.decode(errors="replace"))

    def _serve(self, selector: selectors.BaseSelector, stream: object) -> bool:
        """Move what can be moved; whether something was said."""
        if stream is self._child.stdin:
            self._feed(selector)
            return False
        assert stream in self._tails
        tail, size = self._tails[stream]
        try:
            said = os.read(stream.fileno(), CHUNK)
        except BlockingIOError:
            return False
        if not said:
            selector.unregister(stream)
            return False
        tail += said
        if len(tail) > 2 * size:
            del tail[:-size]
        return True

    def _feed(self, selector: selectors.BaseSelector) -> None:
        stream = self._child.stdin
        assert stream is not None
        try:
            self._rest = self._rest[os.write(stream.fileno(), self._rest) :]
        except BlockingIOError:
            return
        except OSError:  # it does not read, or has ended
            self._rest = b""
        if not self._rest:
            selector.unregister(stream)
            os.set_blocking(stream.fileno(), True)
            stream.close()

    def end(self) -> None:
        """End it and everything it started."""
        try:
            os.killpg(self._child.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            return

    def close(self) -> None:
        for stream in (self._child.stdin, self._child.stdout, self._child.stderr):
            if stream is not None:
                stream.close()
        self._child.wait()


def plain_text(text: str) -> str:
    """One line that a terminal shows and does not obey, of bounded length."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text[-LONGEST_WORDS:])
    return shown[-LONGEST_WORDS:]


PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
SIGNAL_LOOK = 0.5  # seconds between two looks whether a signal came
GIVE_UP = 3  # if as many evaluations fail before the first success, the command is at fault, not the designs


@dataclass(frozen=True)
class Evaluated:
    """What came of one evaluation; ``problem`` says why there is no value."""

    suggestion: Suggestion
    context: dict[str, float] | None = None
    value: float | dict[str, float] | None = None
    noise_variance: float | dict[str, float] | None = None
    cost: float | None = None
    problem: str | None = None
    control: float | dict[str, float] | None = None


def fill(command: Sequence[str], design: dict[str, Any]) -> list[str]:
    """The arguments with the values of ``design`` inserted, each inside its own argument."""
    return [PLACEHOLDER.sub(lambda found: _insert(found, design), argument) for argument in command]


def _insert(found: re.Match[str], design: dict[str, Any]) -> str:
    name = found[1]
    if name not in design:
        if not name.isidentifier():  # JSON or a program's own braces
            return found[0]
        raise StudyError(
            f"the command names {{{name}}}, which is no design variable",
            close_match(name, design, f"the design variables are {list(design)}"),
        )
    value = design[name]
    return str(value).lower() if isinstance(value, bool) else str(value)


class Runner:
    """Runs ``command`` for suggestions of ``study``, ``workers`` at a time; tells every outcome."""

    def __init__(
        self,
        study: Study,
        command: Sequence[str],
        *,
        workers: int = 1,
        timeout: float | None = None,
        report: Callable[[Evaluated], None] = lambda answer: None,
    ) -> None:
        if not command:
            raise StudyError("no command was given", "write it after --, as in -- ./simulate {speed}")
        if timeout is not None and not (math.isfinite(timeout) and timeout > 0):
            raise InvalidValueError(f"the time for an evaluation is {timeout!r}", "give seconds above zero, or none")
        fill(command, dict.fromkeys(study.space.design_names, ""))  # names a wrong placeholder before anything runs
        self._study, self._command, self._workers, self._timeout = study, list(command), workers, timeout
        self._report = report
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._children: set[Command] = set()
        self.succeeded = self.failed = 0
        self.interrupted = False

    def run(self, evaluations: int, waiting: Sequence[Suggestion] = ()) -> None:
        """Evaluate ``waiting`` suggestions and then new ones, ``evaluations`` in all.

        After Ctrl-C running commands are ended, and their suggestions stay pending.
        """
        todo: list[Suggestion | None] = [*waiting[:evaluations]]
        todo += [None] * (evaluations - len(todo))
        todo.reverse()
        with ThreadPoolExecutor(self._workers) as pool:
            try:
                futures = [pool.submit(self._work, todo) for _ in range(self._workers)]
                # an exception of a signal may come where Python drops it, say while something is imported or collected
                while wait(futures, SIGNAL_LOOK, return_when=FIRST_EXCEPTION).not_done:
                    if self.interrupted:
                        raise KeyboardInterrupt
                    if any(future.done() and future.exception() is not None for future in futures):
                        break
            finally:
                self._stop()
        for future in futures:
            future.result()

    def interrupt(self) -> NoReturn:
        """For the handler of a signal: end what runs."""
        self.interrupted = True
        raise KeyboardInterrupt

    def _stop(self) -> None:
        self._stopped.set()
        with self._lock:
            for child in self._children:
                child.end()

    def _work(self, todo: list[Suggestion | None]) -> None:
        while not self._stopped.is_set():
            with self._lock:
                if not todo:
                    return
                suggestion = todo.pop()
            answer = self._evaluate(suggestion or self._study.ask())
            if self._stopped.is_set():
                return
            self._take(answer)

    def _take(self, answer: Evaluated) -> None:
        try:
            if answer.problem is None:
                self._study.tell(
                    answer.suggestion,
                    answer.context,
                    answer.value,
                    noise_variance=answer.noise_variance,
                    control=answer.control,
                    cost=answer.cost,
                )
            else:
                self._study.tell(answer.suggestion, failed=True, why=answer.problem)
        except (InvalidContextError, InvalidValueError, UnknownNameError) as problem:
            answer = Evaluated(answer.suggestion, problem=plain_text(problem.message))
            self._study.tell(answer.suggestion, failed=True, why=answer.problem)
        except UnknownSuggestionError as problem:  # it was pending, and somebody else reported it
            answer = Evaluated(answer.suggestion, problem=problem.message)
        with self._lock:
            self.succeeded += answer.problem is None
            self.failed += answer.problem is not None
            self._report(answer)
            if not self.succeeded and self.failed >= max(GIVE_UP, self._workers):
                raise StudyError(
                    f"the first {self.failed} evaluations failed; the last: {answer.problem}",
                    "try the command by hand; it must print JSON with a value and a context",
                )

    def _evaluate(self, suggestion: Suggestion) -> Evaluated:
        child = Command(fill(self._command, suggestion.design), json.dumps(suggestion.design))
        with self._lock:
            self._children.add(child)
            if self._stopped.is_set():  # between the start of the command and here: nobody else would end it
                child.end()
        try:
            done = child.wait(self._timeout)
        finally:
            with self._lock:
                child.end()
                self._children.discard(child)
            child.close()
        if done.code is None:
            return Evaluated(suggestion, problem=f"it took longer than {self._timeout:g} s")
        if done.code:
            return Evaluated(suggestion, problem=_describe_exit(done.code, done.errors))
        return read_answer(suggestion, done.output, self._study.space)


def _describe_exit(code: int, errors: str) -> str:
    how = f"it was ended by signal {-code}" if code < 0 else f"it ended with code {code}"
    lines = errors.strip().splitlines()
    return f"{how}: {plain_text(lines[-1])}" if lines else how


def read_answer(suggestion: Suggestion, output: str, space: Space) -> Evaluated:
    """The answer a command printed: the last line that is a JSON object, or all of it."""
    record = next(filter(None, map(_json, [*reversed(output.strip().splitlines()), output])), None)
    if record is None:
        return Evaluated(suggestion, problem="it printed no JSON object")
    if "value" not in record:
        return Evaluated(suggestion, problem='its JSON has no "value"')
    value, noise_variance = _read_numbers(record["value"]), record.get("noise_variance")
    if value is None:
        return Evaluated(suggestion, problem=f"its value is {plain_text(str(record['value']))}")
    if noise_variance is not None and (noise_variance := _read_numbers(noise_variance)) is None:
        return Evaluated(suggestion, problem="its noise is not a number")
    if (cost := record.get("cost")) is not None and not 0 <= (cost := read_number(cost)) < math.inf:
        return Evaluated(suggestion, problem="its cost is not a number of zero or more")
    control = record.get("control")
    if control is not None and (control := _read_numbers(control)) is None:
        return Evaluated(suggestion, problem="its control is not a number")
    context = record.get("context")
    if context is None and all(name in record for name in space.context_names):
        context = {name: record[name] for name in space.context_names}
    if isinstance(context, list) and len(context) == space.d_c:  # in the order of naming
        context = dict(zip(space.context_names, context, strict=True))
    if context is not None and not isinstance(context, dict):
        return Evaluated(suggestion, problem="its context is not an object of names and numbers")
    return Evaluated(suggestion, context or None, value, noise_variance, cost, control=control)


def _read_numbers(given: Any) -> float | dict[str, float] | None:
    """A finite number, or some by name; None for anything else. What was not measured may be null."""
    if isinstance(given, dict):
        found = {name: read_number(part) for name, part in given.items() if part is not None}
        return found if all(map(math.isfinite, found.values())) else None
    number = read_number(given)
    return number if math.isfinite(number) else None


def _json(text: str) -> dict[str, Any] | None:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None
