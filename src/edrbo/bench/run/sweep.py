"""A sweep: which replicates are wanted, which of them are done, and the one lock that keeps two sweeps apart."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from edrbo.bench import problems as registry
from edrbo.bench.problems.oracle.goals import need_goal
from edrbo.bench.run.journal import is_finished, journal_paths
from edrbo.bench.run.plugin import PAPER_METHODS, Plugin, get_problem, method_names, problem_names
from edrbo.bench.run.replicate import Replicate, ReplicateSettings
from edrbo.errors import EdrboError, InvalidValueError, UnknownNameError
from edrbo.records.goals import parse_goal


@dataclass(frozen=True)
class Plan:
    """The replicates still to run, in order, and how many were finished before."""

    todo: tuple[Replicate, ...]
    finished: int


def all_replicates(
    problems: str, methods: str, seeds: str, settings: ReplicateSettings, plugin: Plugin | None = None
) -> list[Replicate]:
    """Every combination, seed by seed, so that a sweep stopped early is a smaller sweep and not half a table.

    ``all`` means the nine problems and the nine methods of the paper, and what a plugin adds; ``further`` the problems
    that are not the paper's, ``high`` those of many designs, ``classic`` those of the literature of robust design,
    ``bbob`` the family, of which ``bbob-choose`` and ``bbob-confirm`` are the halves, and ``bbob-noisy`` its noisy one.
    """
    own = {kind: list(plugin.table(kind)) if plugin else [] for kind in ("METHODS", "PROBLEMS")}
    chosen = _choose("method", methods, method_names(plugin), {"all": [*PAPER_METHODS, *own["METHODS"]]})
    groups = {
        "all": [*registry.names(), *own["PROBLEMS"]],
        "further": registry.further_names(),
        "high": registry.high_names(),
        "classic": registry.classic_names(),
        "bbob": registry.bbob_names(),
        "bbob-choose": registry.bbob_names("choose"),
        "bbob-confirm": registry.bbob_names("confirm"),
        "bbob-noisy": registry.bbob_names(noisy=True),
    }
    found = _choose("problem", problems, problem_names(plugin), groups)
    for name in found:
        for goal in settings.goals:  # missing data and oracles are found out before anything runs
            need_goal(get_problem(name, plugin), parse_goal(goal))
    return [
        Replicate(problem, method, seed, settings, plugin)
        for seed in read_seeds(seeds)
        for problem in found
        for method in chosen
    ]


def _choose(kind: str, text: str, known: Sequence[str], groups: Mapping[str, Sequence[str]]) -> list[str]:
    """The names in ``text``, each once; a name of a group stands for all its members."""
    names: list[str] = []
    family = [name for name in known if name.startswith("bbob-")]
    choice = ", ".join([*groups, *(name for name in known if name not in family), *family[:1]])
    for name in filter(None, (part.strip() for part in text.split(","))):
        if name not in groups and name not in known:
            raise UnknownNameError(f"no {kind} is called {name!r}", f"one of {choice}")
        names += groups.get(name, [name])
    if not names:
        raise InvalidValueError(f"no {kind} is named", f"one of {choice}")
    return list(dict.fromkeys(names))


def read_seeds(text: str) -> list[int]:
    """``100:110`` (the end excluded), ``7``, or several of these with commas between."""
    seeds: list[int] = []
    try:
        for part in text.split(","):
            first, colon, last = part.partition(":")
            seeds += range(int(first), int(last)) if colon else [int(first)]
    except ValueError:
        raise InvalidValueError(f"seeds are {text!r}", "write 100:110, or 1,2,3") from None
    if not seeds or min(seeds) < 0:
        raise InvalidValueError(f"{text!r} holds no seed, or a negative one", "write 100:110, or 1,2,3")
    return list(dict.fromkeys(seeds))


def read_looks(text: str) -> tuple[int, ...]:
    """``50,100``; nothing is no look."""
    try:
        return tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise InvalidValueError(f"looks are {text!r}", "write numbers of evaluations: 50,100") from None


def read_noise(text: str) -> tuple[float, float]:
    """A standard deviation, ``0.3``, and one as a share of the range, ``5%``: one of them is zero."""
    number, percent, rest = text.strip().partition("%")
    try:
        if rest:
            raise ValueError
        return (0.0, float(number) / 100.0) if percent else (float(number), 0.0)
    except ValueError:
        raise InvalidValueError(f"noise is {text!r}", "write a standard deviation, 0.3, or 5%") from None


def make_plan(replicates: Sequence[Replicate], directory: Path, resume: bool) -> Plan:
    """What is left to do in ``directory``, which holds journals already only if ``resume`` allows it."""
    if not resume and journal_paths(directory):
        raise EdrboError(f"{directory} holds results already", "go on with --resume, or give another --out")
    todo = tuple(replicate for replicate in replicates if not is_finished(replicate, directory))
    return Plan(todo, len(replicates) - len(todo))


@contextmanager
def sole_writer(directory: Path) -> Iterator[None]:
    """Hold the lock of a directory. It goes away with the process, however that ends."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / ".lock").open("w") as lock:
        if sys.platform != "win32":
            import fcntl

            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise EdrboError(f"another run is writing to {directory}", "wait for it, or stop it") from None
        yield
