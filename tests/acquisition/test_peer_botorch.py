"""EI, LogEI and UCB are BoTorch's, on our surrogates, in the same units."""

import pytest
import torch
from botorch.acquisition import ExpectedImprovement, LogExpectedImprovement, UpperConfidenceBound

from acquisition_cases import MODELS, surrogate
from eign.acquisition import EI, UCB, LogEI, incumbent
from joint_cases import random_points


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore:ExpectedImprovement has known numerical issues")
def test_same_values_as_botorch(name):
    model, X = surrogate(name, shift=7.0, scale=3.0), random_points(40, 1, 3)
    best = torch.tensor(incumbent(model).best_f, dtype=torch.float64)  # BoTorch takes a number as float32
    for ours, theirs in (
        (EI(model, best), ExpectedImprovement(model, best)),
        (LogEI(model, best), LogExpectedImprovement(model, best)),
        (UCB(model), UpperConfidenceBound(model, beta=4.0)),
    ):
        expected = theirs(X)
        torch.testing.assert_close(ours(X), expected, rtol=1e-7, atol=1e-9 * float(expected.detach().abs().max()))
