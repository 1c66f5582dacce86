"""The attack on .xlsx files: bombs are refused at once and in little memory, damaged files by one error of ours."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile

import numpy as np
import pytest
from mutations import spoil_bytes
from spreadsheets import bombs, sound
from test_fuzz import tally

from edrbo.errors import StudyError
from edrbo.lab.tables.spreadsheet import read_xlsx

MOST_SECONDS = 1.0  # of CPU
MOST_MEMORY = 200  # MB of the whole process
READ = r"""
import json, re, sys, time
from pathlib import Path
import openpyxl
from edrbo.errors import EdrboError
from edrbo.lab.tables.sheet import read_sheet
for path in sys.argv[1:]:
    begun = time.process_time()
    try:
        said = len(read_sheet(Path(path)).rows)
    except EdrboError as problem:
        said = str(problem)
    memory = int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) / 1024
    print(json.dumps([said, time.process_time() - begun, memory]), flush=True)
"""


def test_bombs(tmp_path: Path) -> None:
    if not Path("/proc/self/status").exists():
        pytest.skip("only Linux says how much memory a process has needed")
    paths = []
    for name, data in bombs().items():
        paths.append(tmp_path / f"{name}.xlsx")
        paths[-1].write_bytes(data)
    words = [sys.executable, "-c", READ, *map(str, paths)]
    reported = subprocess.run(words, check=True, capture_output=True, text=True, timeout=120).stdout.splitlines()
    for path, line in zip(paths, reported, strict=True):
        said, seconds, memory = json.loads(line)
        size = path.stat().st_size / 1000
        print(f"{path.stem}, {size:.0f} kB: {seconds:.2f} s, at most {memory:.0f} MB so far; {said}")
        assert isinstance(said, str), path.stem
        assert path.name in said
        assert seconds < MOST_SECONDS
        assert memory < MOST_MEMORY


def test_damaged_spreadsheets(tmp_path: Path) -> None:
    """Spoiled archives, and sound archives of spoiled parts: an error that names the file, or a table."""
    rng, counts = np.random.default_rng(11), Counter[str]()
    whole, path = sound(), tmp_path / "table.xlsx"
    with ZipFile(io.BytesIO(whole)) as archive:
        parts = {info.filename: archive.read(info) for info in archive.infolist()}
    for index in range(1500):
        if index % 3 == 0:
            path.write_bytes(spoil_bytes(whole, rng))
        else:
            chosen = list(parts)[rng.integers(len(parts))]
            with ZipFile(path, "w", ZIP_DEFLATED) as target:
                for name, data in parts.items():
                    if name != chosen or rng.random() > 0.2:
                        target.writestr(name, spoil_bytes(data, rng) if name == chosen else data)
        begun = time.process_time()
        try:
            found = read_xlsx(path)
        except StudyError as problem:
            said = problem.hint and str(path) in str(problem)
            counts["refused" if said else "REFUSED WITHOUT SAYING WHAT"] += 1
        else:
            assert all(isinstance(cell, str) for line in found for cell in line)
            counts["read"] += 1
        assert time.process_time() - begun < MOST_SECONDS
    tally("damaged .xlsx", counts)
    assert set(counts) == {"refused", "read"}
    assert min(counts.values()) > 100


def test_a_locked_archive_and_what_is_no_archive(tmp_path: Path) -> None:
    path = tmp_path / "table.xlsx"
    locked = bytearray(sound())
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):  # the flag that says so, in both headers
        at = locked.find(mark)
        while at >= 0:
            locked[at + place] |= 1
            at = locked.find(mark, at + 4)
    for data in (bytes(locked), b"", b"PK\x05\x06" + bytes(18), b"speed,value\n1,2\n"):
        path.write_bytes(data)
        with pytest.raises(StudyError):
            read_xlsx(path)
    with pytest.raises((BadZipFile, StudyError)):
        read_xlsx(tmp_path)
