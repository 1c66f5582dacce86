"""The journal of a replicate: a file of JSON lines that only grows, so that nothing finished is ever lost.

    {"kind": "header", …}       what is run (with the hash of its settings), by which versions, on which machine
    {"kind": "evaluation", …}   one line per finished evaluation, in order
    {"kind": "result", …}       the recommendation and its regrets: the replicate is done
    {"kind": "failure", …}      or the traceback of what stopped it

Every line is on disk before the next evaluation begins. A process that dies, or a full disk, can tear the last line
only; reading stops at the first line that is not whole and not next in order, and going on cuts the file there.

Where a result comes from: versions, the code that computed it, the machine.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import platform
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import edrbo
from edrbo.bench.run.replicate import Evaluation, Look, Replicate, ReplicateResult

PACKAGES = ("numpy", "scipy", "torch", "gpytorch", "botorch", "optuna")


@cache
def versions() -> dict[str, str]:
    """Everything whose change may change the last bits of a result.

    ``code`` is a digest of the modules that compute a replicate: while edrbo is being worked on, its version says too
    little.
    """
    found = {"edrbo": edrbo.__version__, "code": _code_digest(), "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def _code_digest() -> str:
    digest = hashlib.sha256()
    for name, path in sorted(reachable_modules("edrbo.bench.run.replicate").items()):
        digest.update(name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def reachable_modules(start: str) -> dict[str, Path]:
    """The modules of edrbo that ``start`` imports, directly or not, at its top or inside functions, and itself."""
    root = Path(edrbo.__file__).parents[1]
    found: dict[str, Path] = {}
    waiting = [start]
    while waiting:
        name = waiting.pop()
        base = root.joinpath(*name.split("."))
        path = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
        if name in found or not path.exists():
            continue
        found[name] = path
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                waiting += [alias.name for alias in node.names if alias.name.split(".")[0] == "edrbo"]
            elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "edrbo":
                # `from package import name` may name a module of the package or a value in it.
                waiting += [str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)]
    return found


@cache
def machine() -> dict[str, Any]:
    return {
        "host": platform.node(),
        "system": platform.platform(terse=True),
        "processor": _processor(),
        "cores": os.cpu_count(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


@dataclass(frozen=True)
class Failure:
    error: str
    traceback: str


@dataclass
class Record:
    """What a journal says. ``size`` is the number of bytes up to the end of the last whole evaluation."""

    header: dict[str, Any]
    evaluations: list[Evaluation] = field(default_factory=list)
    result: ReplicateResult | None = None
    failure: Failure | None = None
    size: int = 0


def journal_path(directory: Path, replicate: Replicate) -> Path:
    return directory / "replicates" / replicate.problem / replicate.method / f"{replicate.seed}.jsonl"


def journal_paths(directory: Path) -> list[Path]:
    return sorted((directory / "replicates").glob("*/*/*.jsonl"))


def read_journal(path: Path) -> Record | None:
    """The record of a journal, or None if there is no file or not even a whole header."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    record: Record | None = None
    for line, end in _whole_lines(content):
        if record is None:
            if line.get("kind") != "header":
                return None
            record = Record(line, size=end)
        elif not _take(record, line, end):
            break
    return record


def _whole_lines(content: bytes) -> Iterator[tuple[dict[str, Any], int]]:
    """Lines that are whole JSON objects, each with the position of its end; stops at the first that is not."""
    start = 0
    while (end := content.find(b"\n", start) + 1) > 0:
        try:
            line = json.loads(content[start:end])
        except ValueError:
            return
        if not isinstance(line, dict):
            return
        yield line, end
        start = end


def _take(record: Record, line: dict[str, Any], end: int) -> bool:
    """Add one line to the record; False if it does not belong there."""
    kind = line.pop("kind", None)
    try:
        if kind == "evaluation" and line["t"] == len(record.evaluations):
            record.evaluations.append(Evaluation(**{**line, "x": tuple(line["x"]), "c": tuple(line["c"])}))
            record.size = end
            return True
        if kind == "result":
            looks = tuple(Look(**_with_design(look)) for look in line.pop("looks", ()))
            record.result = ReplicateResult(**_with_design(line), looks=looks)
        elif kind == "failure":
            record.failure = Failure(**line)
    except (KeyError, TypeError):
        return False
    return False  # nothing comes after a result or a failure


def _with_design(line: Mapping[str, Any]) -> dict[str, Any]:
    return {**line, "recommendation": tuple(line["recommendation"])}


def make_header(replicate: Replicate) -> dict[str, Any]:
    return {
        **replicate.record(),
        "data": replicate.data(),
        "hash": replicate.settings_hash(),
        "versions": versions(),
        "machine": machine(),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def is_finished(replicate: Replicate, directory: Path) -> bool:
    """Whether the journal holds a result of exactly this replicate; another settings hash is another replicate."""
    record = read_journal(journal_path(directory, replicate))
    return record is not None and record.result is not None and record.header["hash"] == replicate.settings_hash()


class Journal:
    """The journal of a replicate, open for writing. ``past`` are the evaluations it already held."""

    def __init__(self, directory: Path, replicate: Replicate, header: dict[str, Any] | None = None) -> None:
        """``header`` comes from the machine that computed, when it is not this one."""
        path = journal_path(directory, replicate)
        path.parent.mkdir(parents=True, exist_ok=True)
        header, old = header or make_header(replicate), read_journal(path)
        self.past: list[Evaluation] = []
        if old is not None and continues(old.header, header):
            self.past = old.evaluations
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND)
            os.ftruncate(self._file, old.size)
        else:
            if path.exists():
                _put_aside(path, directory)
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o644)
            try:
                self._append("header", header)
                _sync_directory(path.parent)
            except OSError:
                os.close(self._file)
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._file)

    def add(self, entry: Evaluation | ReplicateResult | Failure) -> None:
        kind = {Evaluation: "evaluation", ReplicateResult: "result", Failure: "failure"}[type(entry)]
        self._append(kind, asdict(entry))

    def _append(self, kind: str, values: Mapping[str, Any]) -> None:
        """Write straight to the file: nothing stays behind in a buffer when the disk is full."""
        line = json.dumps({"kind": kind, **values}, allow_nan=False, ensure_ascii=False).encode() + b"\n"
        while line:
            line = line[os.write(self._file, line) :]
        os.fsync(self._file)


def continues(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Half a replicate goes on only under the very code that began it; otherwise it begins again."""
    return all(old.get(key) == new[key] for key in ("hash", "versions"))


def _put_aside(path: Path, directory: Path) -> None:
    """Journals of other settings or versions are kept, out of the way of tables and plots."""
    name = "--".join([*path.parent.relative_to(directory / "replicates").parts, path.stem])
    aside = directory / "superseded"
    aside.mkdir(exist_ok=True)
    number = len(list(aside.glob(f"{name}--*.jsonl"))) + 1
    path.rename(aside / f"{name}--{number}.jsonl")


def _sync_directory(directory: Path) -> None:
    """Make the new file's name durable, where directories can be opened (not on Windows)."""
    if os.name == "posix":
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
