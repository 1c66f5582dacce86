"""The lab page, served by `edrbo serve` and fetched over the network of this machine."""

from __future__ import annotations

import subprocess
from urllib.request import urlopen

from common import COMMAND, a_study

file = a_study()
server = subprocess.Popen(
    [COMMAND, "serve", str(file), "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
)
try:
    assert server.stdout is not None
    said: list[str] = []
    for line in server.stdout:
        said.append(line)
        if line.startswith("http://"):  # the socket listens before the address is printed
            break
    else:
        raise SystemExit(f"edrbo serve ended: {''.join(said)}")
    with urlopen(said[-1].strip(), timeout=120) as answer:
        page = answer.read().decode()
    assert answer.status == 200
    assert "coating" in page, page[:500]
finally:
    server.terminate()
    server.communicate()
