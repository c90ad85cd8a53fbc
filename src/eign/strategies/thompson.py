"""Thompson sampling: the maximum of one function drawn from the posterior."""

from typing import Final

import numpy as np
import torch

from eign.arrays import Array
from eign.models import IndependentGradientGP
from eign.numerics.cholesky_torch import cholesky
from eign.search.candidates import global_candidates, local_candidates
from eign.space import SAME_POINT, nearest

# More than rounding errors of thousands of rows, see `large_cholesky.nugget`; in a sample it is not seen.
_JITTER: Final = 1e-9


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
    # Candidates near each other make the covariance singular in float64: the plain factorisation is not even tried.
    factor, _ = cholesky(covariance, scale=covariance.diagonal().amax(), first=_JITTER)
    sample = (mean + factor @ torch.from_numpy(rng.standard_normal(len(points)))).numpy()
    for index in np.argsort(-sample, kind="stable"):
        if nearest(observations.x, points[index])[1] > SAME_POINT:
            return np.array(points[index])
    return rng.random(observations.dim)
