"""EDRBOSampler passes Optuna's own tests of samplers, which the first versions of Optuna 4 do not bring."""

from __future__ import annotations

from collections.abc import Callable

import optuna
import pytest
from optuna.samplers import BaseSampler

from edrbo.integrations.optuna import EDRBOSampler

cases = pytest.importorskip("optuna.testing.pytest_samplers")
optuna.logging.set_verbosity(optuna.logging.WARNING)


class TestConformance(cases.BasicSamplerTestCase, cases.RelativeSamplerTestCase, cases.SingleOnlySamplerTestCase):  # type: ignore[misc,name-defined]
    @pytest.fixture
    def sampler(self) -> Callable[[], BaseSampler]:
        return lambda: EDRBOSampler(method="erbo", seed=0, initial=2)
