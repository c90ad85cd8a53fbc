"""Plain BoTorch as a rival: the design of the seed, then suggestions, with each of its settings."""

import numpy as np
import pytest
import torch

from eign import problems
from eign_lab.papers.ei_gn.experiments import EXPERIMENTS
from eign_lab.rivals import sobol_design
from eign_lab.rivals.botorch_loop import acquisition_and_point
from eign_lab.runs.experiment import RunSpec
from eign_lab.runs.run_log import Goal
from eign_lab.runs.tasks import continue_run

SMALL = {"restarts": 2, "raw_samples": 16}
SETTINGS = {str(method.options): method for method in EXPERIMENTS["settings"].methods if method.method == "botorch/ei"}
BRANIN = problems.get("branin-2")


def best_of_design(seed):
    return np.maximum.accumulate(BRANIN.evaluate(BRANIN.bounds.from_unit(sobol_design(2, seed)))[0])


@pytest.mark.parametrize("method", ["botorch/ei", "botorch/log-ei"])
def test_it_improves_on_the_design_that_all_methods_share(method):
    log = continue_run(RunSpec("branin-2", method, 0, SMALL), None, Goal(18))
    assert log.error is None
    design = best_of_design(0)
    np.testing.assert_allclose(log.trace.curve(6), design, rtol=1e-12)
    # Twelve suggestions are enough for a tenth of the regret; the median of twelve random points is half of it.
    assert BRANIN.optimum - log.trace.last < 0.1 * (BRANIN.optimum - design[-1])


def test_a_seed_gives_the_same_run_and_another_seed_another():
    first, again, other = (
        continue_run(RunSpec("branin-2", "botorch/ei", seed, SMALL), None, Goal(8)) for seed in (1, 1, 2)
    )
    assert first.trace == again.trace != other.trace


@pytest.mark.parametrize("method", SETTINGS.values(), ids=SETTINGS)
def test_every_setting_runs_from_the_same_design(method):
    log = continue_run(RunSpec("branin-2", method.method, 5, {**SMALL, **method.options}), None, Goal(7))
    assert log.error is None
    assert len(log) == 7
    np.testing.assert_allclose(log.trace.curve(6), best_of_design(5), rtol=1e-12)


def test_an_unknown_setting_is_named():
    log = continue_run(RunSpec("branin-2", "botorch/ei", 5, {"restart": 3}), None, Goal(7))
    assert "there is no option 'restart'" in log.error


def test_the_acquisition_and_its_maximiser_belong_together():
    rng = np.random.default_rng(0)
    points = rng.random((12, 2))
    values = -((points - 0.3) ** 2).sum(axis=1)
    target, found = acquisition_and_point(points, values, "log-ei", {"restarts": 4, "raw_samples": 64})
    others = torch.tensor(rng.random((256, 1, 2)))
    with torch.no_grad():
        assert target(torch.tensor(found)[None]) >= target(others).max()
    assert np.abs(found - 0.3).max() < 0.1
