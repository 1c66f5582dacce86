"""What a wheel is made of and leans on, as CycloneDX JSON: scripts/check_wheel.py writes it beside the wheel.

    python scripts/bill_of_materials.py dist/edrbo-0.3.0-py3-none-any.whl

The components are what others wrote and the wheel holds (THIRD-PARTY.md), and every package that `edrbo[all]` installs,
in the versions that the tests ran with, which are those of this environment, with the hashes of requirements.lock.
Nothing in it hangs on when it was written: the same wheel and lock give the same bill.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import uuid
import zipfile
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements.lock"
ROOM = uuid.UUID("5f2b7f0e-3c3e-5d0b-9a53-64a1f8f5d3a1")  # of the serial numbers
VENDORED = (  # path in the wheel, name, license, where it comes from
    ("edrbo/lab/web/static/htmx.min.js", "htmx.org", "0BSD", "pkg:npm/htmx.org@{}", re.compile(r'version:"([0-9.]+)"')),
)


def bill(wheel: Path) -> dict[str, Any]:
    data = wheel.read_bytes()
    name, version = wheel.name.split("-")[:2]
    me = f"pkg:pypi/{name}@{version}"
    found, leans = installed(wheel)
    components = [*vendored(wheel), *(component(one) for one in found)]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(ROOM, hashlib.sha256(data + LOCK.read_bytes()).hexdigest())}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": me,
                "name": name,
                "version": version,
                "purl": me,
                "licenses": [{"license": {"id": "MIT"}}],
                "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(data).hexdigest()}],
            }
        },
        "components": components,
        "dependencies": [{"ref": me, "dependsOn": leans[""]}]
        + [{"ref": purl(one), "dependsOn": leans[canonicalize_name(one.name)]} for one in found],
    }


def vendored(wheel: Path) -> list[dict[str, Any]]:
    """What others wrote and the wheel holds."""
    parts = []
    with zipfile.ZipFile(wheel) as archive:
        for path, name, license_id, where, pattern in VENDORED:
            data = archive.read(path)
            version = pattern.search(data.decode())
            if version is None:
                raise SystemExit(f"{path} does not say its version")
            parts.append(
                {
                    "type": "library",
                    "bom-ref": where.format(version[1]),
                    "name": name,
                    "version": version[1],
                    "purl": where.format(version[1]),
                    "licenses": [{"license": {"id": license_id}}],
                    "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(data).hexdigest()}],
                    "properties": [{"name": "path", "value": path}],
                }
            )
    return parts


def installed(wheel: Path) -> tuple[list[Distribution], dict[str, list[str]]]:
    """The packages that `edrbo[all]` brings, by name, and what each leans on; "" is edrbo itself."""
    with zipfile.ZipFile(wheel) as archive:
        about = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        lines = archive.read(about).decode().split("\n\n", 1)[0].splitlines()
    own = [Requirement(line.removeprefix("Requires-Dist: ")) for line in lines if line.startswith("Requires-Dist: ")]
    found: dict[str, Distribution] = {}
    leans: dict[str, list[str]] = {}
    todo: list[tuple[str, list[Requirement], frozenset[str]]] = [("", own, frozenset(_extras(own, "all")))]
    seen: set[tuple[str, frozenset[str]]] = set()
    while todo:
        who, needs, extras = todo.pop()
        for need in needs:
            if need.name == "edrbo" or not _wanted(need, extras):
                continue
            key = canonicalize_name(need.name)
            try:
                one = found.setdefault(key, distribution(need.name))
            except PackageNotFoundError:
                raise SystemExit(f"{need.name} is not installed: run this where edrbo[all] is") from None
            leans.setdefault(who, []).append(purl(one))
            if (key, frozenset(need.extras)) not in seen:
                seen.add((key, frozenset(need.extras)))
                todo.append((key, [Requirement(line) for line in one.requires or ()], frozenset(need.extras)))
    ordered = sorted(found.values(), key=lambda one: canonicalize_name(one.name))
    return ordered, {key: sorted(set(leans.get(key, ()))) for key in ["", *found]}


def _extras(needs: list[Requirement], extra: str) -> set[str]:
    """An extra of ours and those that it includes."""
    found = {extra}
    for need in needs:
        if need.name == "edrbo" and need.marker is not None and need.marker.evaluate({"extra": extra}):
            for more in need.extras:
                found |= _extras(needs, more)
    return found


def _wanted(need: Requirement, extras: frozenset[str]) -> bool:
    return need.marker is None or any(need.marker.evaluate({"extra": extra}) for extra in (extras or {""}))


def component(one: Distribution) -> dict[str, Any]:
    found: dict[str, Any] = {
        "type": "library",
        "bom-ref": purl(one),
        "name": one.name,
        "version": one.version,
        "purl": purl(one),
    }
    if words := license_of(one):
        found["licenses"] = [{"license": {"name": words}}]
    if hashes := hashes_of(one):
        found["hashes"] = [{"alg": "SHA-256", "content": one} for one in hashes]
    return found


def purl(one: Distribution) -> str:
    return f"pkg:pypi/{canonicalize_name(one.name)}@{one.version}"


def license_of(one: Distribution) -> str:
    """As the package says it: an expression, else the classifiers, else the first line of its own words or its file."""
    about = one.metadata
    named = [line.rpartition(" :: ")[2] for line in about.get_all("Classifier") or () if line.startswith("License ::")]
    words = about.get("License-Expression") or ", ".join(named) or (about.get("License") or "").strip()
    if not words:
        kept = [file for file in one.files or () if file.name in (about.get_all("License-File") or ())]
        words = kept[0].read_text().strip() if kept else ""
    return words.splitlines()[0][:200] if words else ""


def hashes_of(one: Distribution) -> list[str]:
    """Those of all its files in the lock: which of them was installed, hangs on the machine."""
    key = canonicalize_name(one.name)
    for block in re.split(r"\n(?=\S)", LOCK.read_text(encoding="utf-8")):
        head = re.match(r"([A-Za-z0-9_.-]+)==(\S+)", block)
        if head is not None and canonicalize_name(head[1]) == key and head[2] == one.version:
            return re.findall(r"sha256:([0-9a-f]{64})", block)
    return []


def write(wheel: Path) -> Path:
    """The bill beside the wheel."""
    out = wheel.with_name("-".join(wheel.name.split("-")[:2]) + ".cdx.json")
    out.write_text(json.dumps(bill(wheel), indent=1) + "\n", encoding="utf-8")
    return out


if __name__ == "__main__":
    print(write(Path(sys.argv[1])))
