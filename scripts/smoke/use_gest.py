"""The generator of gest-api, in the smallest loop there is."""

from __future__ import annotations

from gest_api.vocs import VOCS

from edrbo.integrations.gest import EDRBOGenerator

generator = EDRBOGenerator(VOCS(variables={"x": [0, 1], "c": "CONTEXTUAL"}, objectives={"f": "MAXIMIZE"}), initial=2)
for i in range(4):
    generator.ingest([{**point, "c": i / 4, "f": -((point["x"] - 0.5) ** 2)} for point in generator.suggest(1)])
assert 0 <= generator.optimizer.recommend().design["x"] <= 1
