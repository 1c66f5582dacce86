"""Build the wheel and the sdist, and see that a stranger can use them, with every extra and with none.

    python scripts/check_wheel.py [--extras none,study,web]

Each extra gets an empty environment of its own, with the versions of constraints.txt, and a smoke test that uses what
it brings.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
CORE = """
import edrbo
space = edrbo.Space({"x": (0, 1)}, {"c": (0, 1)})
optimizer = edrbo.Optimizer(space, seed=0, initial=2)
for i in range(4):
    suggestion = optimizer.ask()
    optimizer.tell(suggestion, {"c": i / 4}, -((suggestion["x"] - 0.5) ** 2))
print(edrbo.__version__, optimizer.recommend().design)
"""
STUDY = """
study = edrbo.Study.open("smoke.db", space, seed=0)
study.tell(study.ask(), {"c": 0.5}, 1.0)
assert len(edrbo.Study.open("smoke.db")) == 1
"""
# What an extra brings is used; without it the door says what to install.
SMOKE = {
    "none": CORE
    + """
from edrbo.errors import MissingExtraError
try:
    edrbo.Study.open("smoke.db", space)
except MissingExtraError as problem:
    assert "edrbo[study]" in str(problem.hint), problem.hint
else:
    raise SystemExit("a study was opened without its extra")
""",
    "study": CORE + STUDY + "from edrbo.optuna import EDRBOSampler; EDRBOSampler(context={'c': (0, 1)})\n",
    "xlsx": CORE + STUDY + "import openpyxl\n",
    "postgresql": CORE + STUDY + "import psycopg2\n",
    "botorch": CORE + "edrbo.Ensemble, edrbo.RobustAcquisition\n",
    "bench": CORE + "from edrbo.bench import problems; assert len(problems.names()) == 9\n",
    "dask": CORE + "import distributed\n",
    "web": CORE + STUDY + "import edrbo.web.server\n",
}


def build(folder: Path) -> tuple[Path, Path]:
    """The wheel and the sdist."""
    subprocess.run(
        [sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)], check=True, stdout=subprocess.DEVNULL
    )
    return next(folder.glob("*.whl")), next(folder.glob("*.tar.gz"))


def check_contents(wheel: Path, sdist: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        size = sum(info.file_size for info in archive.infolist())
    foreign = [name for name in names if not name.startswith(("edrbo/", "edrbo-"))]
    if foreign or "edrbo/py.typed" not in names:
        raise SystemExit(f"the wheel holds what it should not, or lacks py.typed: {foreign[:5]}")
    with tarfile.open(sdist) as archive:
        inside = archive.getnames()
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB, {len(names)} files, {size / 1e6:.2f} MB unpacked")
    print(f"{sdist.name}: {sdist.stat().st_size / 1e6:.2f} MB, {len(inside)} files")


def smoke(wheel: Path, extra: str, folder: Path) -> None:
    """Install the wheel with ``extra`` into an empty environment and use it there."""
    begun = time.monotonic()
    home = folder / f"env-{extra}"
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
    python = str(home / "bin" / "python")
    pip = [python, "-m", "pip", "install", "--quiet", "-c", str(ROOT / "constraints.txt")]
    subprocess.run([*pip, "torch==2.13.0"], check=True)
    subprocess.run([*pip, str(wheel) + ("" if extra == "none" else f"[{extra}]")], check=True)
    work = folder / f"work-{extra}"
    work.mkdir()
    subprocess.run([python, "-W", "error::ImportWarning", "-c", SMOKE[extra]], check=True, cwd=work)
    subprocess.run([str(home / "bin" / "edrbo"), "--version"], check=True, cwd=work, stdout=subprocess.DEVNULL)
    typed = work / "typed.py"
    typed.write_text("import edrbo\nx: int = edrbo.Optimizer(edrbo.Space({'x': (0, 1)})).recommend().observations\n")
    found = subprocess.run(
        [sys.executable, "-m", "mypy", "--python-executable", python, str(typed)], check=False, cwd=work
    )
    if found.returncode:
        raise SystemExit("mypy does not see the types from outside")
    print(f"{extra}: fine, after {time.monotonic() - begun:.0f} s")
    shutil.rmtree(home)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--extras", default=",".join(SMOKE))
    given = parser.parse_args()
    given.out.mkdir(exist_ok=True)
    for old in [*given.out.glob("*.whl"), *given.out.glob("*.tar.gz")]:
        old.unlink()
    wheel, sdist = build(given.out)
    check_contents(wheel, sdist)
    with tempfile.TemporaryDirectory() as folder:
        for extra in given.extras.split(","):
            smoke(wheel, extra, Path(folder))


if __name__ == "__main__":
    main()
