"""optimagic's multistart, TikTak: local searches from mixtures of the next sample point and the best so far."""

import numpy as np

from eign_lab.rivals.counted import CountedProblem, FlatAfterwards


def search_by_tiktak(problem: CountedProblem) -> None:
    """TikTak over as many Sobol points as the other programs' designs have, each a start, with SciPy's L-BFGS-B.

    optimagic's default of 100 points a coordinate is more than the budget. When it has found one optimum twice, it
    ends and begins anew with other points.
    """
    import optimagic

    rng, descent = np.random.default_rng([problem.seed, 7]), FlatAfterwards(problem)
    bounds = optimagic.Bounds(lower=np.zeros(problem.dim), upper=np.ones(problem.dim))
    starts = 3 * problem.dim
    while descent.ended is None:
        seed = int(rng.integers(2**31))
        optimagic.minimize(
            fun=lambda u: descent(u)[0],
            fun_and_jac=descent,
            params=rng.random(problem.dim),
            algorithm="scipy_lbfgsb",
            bounds=bounds,
            multistart=optimagic.MultistartOptions(
                n_samples=starts, stopping_maxopt=starts, sampling_method="sobol", seed=seed
            ),
            collect_history=False,
        )
    raise descent.ended
