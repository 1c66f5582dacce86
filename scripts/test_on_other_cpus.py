"""The numeric tests as other CPUs would run them: ``python scripts/test_on_other_cpus.py``, or ``make test-cpus``.

Results differ in the last bits between CPUs, because libraries choose their loops by what the CPU can do, and between
numbers of threads, because sums are taken in another order. Environment variables make the libraries choose otherwise.
Torch brings MKL, NumPy and SciPy bring OpenBLAS, so each setting runs the tests that its library reaches:

    pytest.mark.torch_numeric     arithmetic of torch
    pytest.mark.numpy_numeric     arithmetic of NumPy and SciPy

A setting that this machine cannot run, or that changes nothing here, is left out with a word why. All others run even
if one fails; the last line adds up their results in pytest's words.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
THREADS = (1, 2)
BOTH = "torch_numeric or numpy_numeric"
# Threads that wait by spinning take the cores from each other: ten times the time, and the same numbers.
PATIENCE = {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "0", "OPENBLAS_THREAD_TIMEOUT": "4"}
COUNT = re.compile(r"(\d+) (passed|failed|errors?|skipped|deselected|xfailed|xpassed|warnings?)")


@dataclass(frozen=True)
class Setting:
    """``variables`` of the environment, the marker of the ``tests`` they concern, the CPU ``flags`` they need."""

    name: str
    tests: str
    variables: dict[str, str] = field(default_factory=dict)
    flags: frozenset[str] = frozenset()
    threads: tuple[int, ...] = THREADS

    def environment(self, threads: int) -> dict[str, str]:
        names = (
            "OMP_NUM_THREADS",
            "OPENBLAS_NUM_THREADS",
            "MKL_NUM_THREADS",
            "EDRBO_THREADS",
        )  # the last: the engine's
        counts = dict.fromkeys(names, str(threads))
        return {**os.environ, **counts, **PATIENCE, **self.variables}


AVX2 = frozenset({"avx2", "fma"})
SETTINGS = (
    Setting("torch without AVX", "torch_numeric", {"ATEN_CPU_CAPABILITY": "default"}),
    Setting("OpenBLAS of Haswell", "numpy_numeric", {"OPENBLAS_CORETYPE": "Haswell"}, AVX2),
    Setting("OpenBLAS of Zen", "numpy_numeric", {"OPENBLAS_CORETYPE": "Zen"}, AVX2),
    Setting(
        "an old CPU",
        BOTH,
        {"ATEN_CPU_CAPABILITY": "default", "OPENBLAS_CORETYPE": "Prescott", "MKL_CBWR": "COMPATIBLE"},
        frozenset({"pni"}),  # SSE3, under the name Linux has for it
        threads=(1,),
    ),
)


def cpu_flags() -> frozenset[str]:
    """What this CPU can do, as Linux tells; nothing elsewhere."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return frozenset()
    return frozenset(next((line.partition(":")[2].split() for line in lines if line.startswith("flags")), ()))


def kernels(environment: dict[str, str]) -> tuple[str, str]:
    """The loops torch and NumPy's OpenBLAS choose in ``environment``: different settings may choose the same."""
    code = "import numpy, torch; print(torch.backends.cpu.get_cpu_capability())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**environment, "OPENBLAS_VERBOSE": "2"},
        capture_output=True,
        text=True,
        check=True,
    )
    cores = re.findall(r"Core: (\w+)", done.stderr + done.stdout)
    return done.stdout.strip().splitlines()[-1], cores[0] if cores else "unknown"


def why_not(setting: Setting, threads: int, flags: frozenset[str], tried: dict[tuple[object, ...], str]) -> str:
    """Why a setting need not run here, or nothing; what runs is noted in ``tried``."""
    if not setting.flags <= flags:
        return f"this CPU has no {', '.join(sorted(setting.flags - flags))}"
    chosen = (threads, setting.tests, setting.variables.get("MKL_CBWR"), *kernels(setting.environment(threads)))
    if chosen in tried:
        return f"the libraries choose {chosen[-2]} and {chosen[-1]}, as in: {tried[chosen]}"
    tried[chosen] = setting.name
    return ""


def run(setting: Setting, threads: int) -> tuple[int, Counter[str]]:
    """pytest's exit code and counts."""
    words = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-m", setting.tests, "tests"]
    done = subprocess.run(
        words, cwd=ROOT, env=setting.environment(threads), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    closing = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else "no output"
    print(done.stdout.strip() if done.returncode else closing, flush=True)
    return done.returncode, Counter({word: int(number) for number, word in COUNT.findall(closing)})


def main() -> int:
    started, flags, total, failed = time.monotonic(), cpu_flags(), Counter[str](), list[str]()
    # What `make test` runs with; it would be tried twice.
    usual = Setting("make test", BOTH)
    tried: dict[tuple[object, ...], str] = {}
    for tests in ("torch_numeric", "numpy_numeric", BOTH):
        why_not(Setting(usual.name, tests), 1, flags, tried)
    for setting in SETTINGS:
        for threads in setting.threads:
            name = f"{setting.name}, {threads} thread{'s' if threads > 1 else ''}"
            reason = why_not(setting, threads, flags, tried)
            print(f"{name}: {'left out, ' + reason if reason else 'running'}", flush=True)
            if reason:
                continue
            code, counts = run(setting, threads)
            total += counts
            failed += [name] if code else []
    if failed:
        print(f"failed: {'; '.join(failed)}")
    words = ", ".join(f"{number} {word}" for word, number in total.items() if word != "deselected")
    print(f"{words or 'no tests ran'} in {time.monotonic() - started:.2f}s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
