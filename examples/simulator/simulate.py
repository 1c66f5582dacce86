"""A small simulator of a coating line: prints the outcome, and the humidity of the day, as JSON."""

import hashlib
import json
import sys

speed, dose = float(sys.argv[1]), float(sys.argv[2])
# The weather: different for every run, the same when the run is repeated.
digest = hashlib.sha256(" ".join(sys.argv[1:]).encode()).digest()
humidity = 0.2 + 0.6 * digest[0] / 255
thickness = speed * dose * (1 + 0.5 * humidity)
print("coating...")
print(json.dumps({"value": (thickness - 10) ** 2 + 0.1 * dose, "context": {"humidity": humidity}}))
