"""What a model prints as."""

import pytest
import torch

from eign.acquisition import UCB
from eign.models import IndependentGradientGP, JointGradientGP, SpannedGradientGP, fit
from joint_cases import observe, random_points

KINDS = pytest.mark.parametrize("kind", [IndependentGradientGP, JointGradientGP, SpannedGradientGP])


@KINDS
def test_a_model_says_what_it_is(kind):
    X, Y, G = observe(8, 2)
    G[3:] = torch.nan
    model = kind(X, Y, G)
    said = f"{kind.__name__}(n=8, dim=2, gradients=3, kernel='matern52', "
    assert repr(model) == said + "fitted=False)"
    assert repr(fit(model)) == said + "fitted=True)"
    assert repr(model.append(X[:1] / 2, Y[:1], G[:1])).startswith(f"{kind.__name__}(n=9, dim=2, gradients=4,")
    assert ", noise='learn', fitted=False)" in repr(kind(X, Y, G, noise="learn"))
    assert "gradients=0, kernel='rbf', fitted=False)" in repr(kind(X, Y, kernel="rbf"))


@KINDS
def test_what_holds_a_model_shows_it(kind):
    model = kind(*observe(8, 2))
    assert repr(model) in repr(UCB(model))
    conditioned = model.condition_on_observations(random_points(3, 2), torch.zeros(5, 3, 1).double())
    assert repr(conditioned) == f"ConditionedGP(n=3, batch_shape=(5,), model={model!r})"
