"""Thompson sampling: the maximum of one function drawn from the posterior."""

from typing import Final

import numpy as np
import torch

from eign.arrays import Array
from eign.models import IndependentGradientGP
from eign.search.candidates import global_candidates, local_candidates
from eign.space import SAME_POINT, nearest

# Candidates near each other make the covariance singular in float64. Relative to the largest posterior variance; where
# that is nearly nothing, the rounding errors of the prior's are larger, and it is relative to that, which is about 1.
_JITTER: Final = 1e-8


def sampled_maximizer(model: IndependentGradientGP, *, candidates: int, seed: int) -> Array:
    """The best of the candidates under one joint sample of f, `d`; candidates that were observed are left out.

    They are scrambled Sobol points and an eighth as many around the best point observed.
    """
    observations, rng = model.observations, np.random.default_rng(seed)
    best = observations.x[np.argmax(np.where(observations.has_y, observations.y, -np.inf))]
    around = local_candidates(best[None], max(1, candidates // 8), rng)
    points = np.concatenate([global_candidates(candidates, observations.dim, rng), around])
    with torch.no_grad():
        mean, covariance = model.standardized_normal(torch.from_numpy(points))
    level, identity = float(covariance.diagonal().max()) * _JITTER, torch.eye(len(points), dtype=torch.float64)
    factor, failed = torch.linalg.cholesky_ex(covariance + level * identity)
    if failed:
        factor = torch.linalg.cholesky(covariance + _JITTER * identity)
    sample = (mean + factor @ torch.from_numpy(rng.standard_normal(len(points)))).numpy()
    for index in np.argsort(-sample, kind="stable"):
        if nearest(observations.x, points[index])[1] > SAME_POINT:
            return np.array(points[index])
    return rng.random(observations.dim)
