"""One run of a command: what it said last, in bounded memory, and done when the command itself has ended.

Children that it leaves behind may hold its output open for ever, so the end of the output is not waited for: whatever
a command wrote lies in the pipe when it has ended, and is read until nothing is left there.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO

from edrbo.errors import StudyError

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
