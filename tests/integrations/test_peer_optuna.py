"""The conformance tests that Optuna ships for samplers.

Not applied, with the reason:

* Of `RelativeSamplerTestCase`, the cases with integer, stepped or categorical parameters. They hand `sample_relative` a
  search space that ours never infers: those parameters go to the independent sampler.
* `MultiObjectiveSamplerTestCase`: eign optimizes one objective; `SingleOnlySamplerTestCase` is applied instead.
"""

import pytest
from optuna.distributions import FloatDistribution
from optuna.testing.pytest_samplers import (
    BasicSamplerTestCase,
    RelativeSamplerTestCase,
    SingleOnlySamplerTestCase,
)

from eign.integrations.optuna import GradientSampler

pytestmark = pytest.mark.filterwarnings("ignore:GradientSampler proposes float parameters:UserWarning")
FLOATS = [FloatDistribution(-1.0, 1.0), FloatDistribution(1e-7, 1.0, log=True)]


class OfOurs:
    @pytest.fixture
    def sampler(self):
        return lambda: GradientSampler(seed=0, options={"n_init": 2})


class TestBasic(OfOurs, BasicSamplerTestCase):
    pass


class TestSingleObjective(OfOurs, SingleOnlySamplerTestCase):
    pass


class TestRelative(OfOurs, RelativeSamplerTestCase):
    test_sample_relative_categorical = None
    test_sample_relative_mixed = None

    @pytest.mark.parametrize("x_distribution", FLOATS)
    @pytest.mark.parametrize("y_distribution", FLOATS)
    def test_sample_relative_numerical(self, sampler, x_distribution, y_distribution):
        super().test_sample_relative_numerical(sampler, x_distribution, y_distribution)
