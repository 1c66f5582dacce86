"""Write docs/openapi.json, the API of ``edrbo serve`` as its clients' generators read it."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from edrbo.lab.web.app import make_routes
from edrbo.lab.web.registry import StudyRegistry

TARGET = Path(__file__).resolve().parents[1] / "docs" / "openapi.json"


def main() -> None:
    with TemporaryDirectory() as folder:
        described = make_routes(StudyRegistry(folder)).openapi()
    TARGET.write_text(json.dumps(described, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
