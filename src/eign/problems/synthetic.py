r"""Test functions of global optimization with gradients by hand: `n x d -> n, n x d`.

All are to be maximised: what the literature minimises is negated. Where a textbook form loses digits at its optimum
by cancellation, an equal form that does not is used: :math:`1 - \cos t = 2 \sin^2(t/2)` and `expm1`. Where a function
has a kink, the gradient is a finite element of Clarke's generalised gradient.
"""

import math

import numpy as np

from eign.arrays import Array

_SHEKEL_COLUMNS = [[4, 4], [1, 1], [8, 8], [6, 6], [3, 7], [2, 9], [5, 3], [8, 1], [6, 2], [7, 3.6]]
SHEKEL_CENTRES = np.tile(np.array(_SHEKEL_COLUMNS), 2)
SHEKEL_WIDTHS = np.array([1, 2, 2, 4, 4, 6, 3, 7, 5, 5]) / 10

HARTMANN_HEIGHTS = np.array([1.0, 1.2, 3.0, 3.2])
HARTMANN_RATES = {
    3: np.array([[3, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]]),
    6: np.array([
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]),
}  # fmt: skip
HARTMANN_CENTRES = {
    3: np.array([[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]]) / 1e4,
    6: np.array([
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]) / 1e4,
}  # fmt: skip


def ackley(X: Array) -> tuple[Array, Array]:
    r"""Ackley: a sharp cone with a lattice of bumps.

    The kink is at the maximum; the gradient returned there is 0.

    .. math:: 20\,(e^{-r/5} - 1) + e\,\bigl(e^{-2 \sum_i \sin^2(\pi x_i)/d} - 1\bigr), \qquad r^2 = \sum_i x_i^2 / d
    """
    d = X.shape[1]
    r = np.sqrt((X**2).mean(axis=1))
    ripple = -2 * (np.sin(math.pi * X) ** 2).mean(axis=1)
    values = 20 * np.expm1(-r / 5) + math.e * np.expm1(ripple)
    slope = (4 * np.exp(-r / 5) / d)[:, None] * _unit_or_zero(X, r)
    return values, -slope - (2 * math.pi / d) * np.sin(2 * math.pi * X) * np.exp(1 + ripple)[:, None]


def branin(X: Array) -> tuple[Array, Array]:
    r"""Branin: three equal maxima along a curve.

    .. math:: -\Bigl(x_2 - \frac{5.1}{4\pi^2} x_1^2 + \frac{5}{\pi} x_1 - 6\Bigr)^2
              - 10\Bigl(1 - \frac{1}{8\pi}\Bigr) \cos x_1 - 10
    """
    b, c, wave = 5.1 / (4 * math.pi**2), 5 / math.pi, 10 * (1 - 1 / (8 * math.pi))
    x1, x2 = X.T
    t = x2 - b * x1**2 + c * x1 - 6
    first = -2 * t * (c - 2 * b * x1) + wave * np.sin(x1)
    return -(t**2) - wave * np.cos(x1) - 10, np.stack([first, -2 * t], axis=1)


def branin_forrester(X: Array) -> tuple[Array, Array]:
    r"""Branin with a slope, after Forrester: of the three maxima one is the highest.

    .. math:: \text{Branin}(x) - 5 x_1
    """
    values, gradients = branin(X)
    return values - 5 * X[:, 0], gradients - [5.0, 0.0]


def cosine(X: Array) -> tuple[Array, Array]:
    r"""Cosine mixture: a bowl with a lattice of bumps.

    .. math:: \sum_i \bigl(0.1 \cos(5 \pi x_i) - x_i^2\bigr)
    """
    values = (0.1 * np.cos(5 * math.pi * X) - X**2).sum(axis=1)
    return values, -0.5 * math.pi * np.sin(5 * math.pi * X) - 2 * X


def cosine_waves(X: Array) -> tuple[Array, Array]:
    r"""Cosine waves on a bowl that is off centre; "Cosines" in the literature on multi-step methods.

    With u = 1.6 x - 0.5,

    .. math:: 1 - \sum_i \bigl(u_i^2 - 0.3 \cos(3 \pi u_i)\bigr)
    """
    u = 1.6 * X - 0.5
    values = 1 - (u**2 - 0.3 * np.cos(3 * math.pi * u)).sum(axis=1)
    return values, -1.6 * (2 * u + 0.9 * math.pi * np.sin(3 * math.pi * u))


def dixon_price(X: Array) -> tuple[Array, Array]:
    r"""Dixon-Price: a curved valley in which each coordinate fixes the next.

    .. math:: -(x_1 - 1)^2 - \sum_{i=2}^d i\,(2 x_i^2 - x_{i-1})^2
    """
    i = np.arange(2, X.shape[1] + 1)
    t = 2 * X[:, 1:] ** 2 - X[:, :-1]
    gradients = np.zeros_like(X)
    gradients[:, 0] = -2 * (X[:, 0] - 1)
    gradients[:, :-1] += 2 * i * t
    gradients[:, 1:] -= 8 * i * t * X[:, 1:]
    return -((X[:, 0] - 1) ** 2) - (i * t**2).sum(axis=1), gradients


def goldstein_price(X: Array) -> tuple[Array, Array]:
    r"""Goldstein-Price: values over six decades around a flat cross of valleys.

    With s = x1 + x2 and t = 2 x1 - 3 x2 the textbook form is a product of two polynomials of one variable each,

    .. math:: -\bigl(1 + (s + 1)^2 (3 s^2 - 14 s + 19)\bigr) \bigl(30 + t^2 (3 t^2 - 16 t + 18)\bigr)
    """
    x1, x2 = X.T
    s, t = x1 + x2, 2 * x1 - 3 * x2
    first, second = 1 + (s + 1) ** 2 * (3 * s**2 - 14 * s + 19), 30 + t**2 * (3 * t**2 - 16 * t + 18)
    along_s = 12 * (s + 1) * (s - 1) * (s - 2) * second
    along_t = 12 * t * (t - 1) * (t - 3) * first
    return -first * second, -np.stack([along_s + 2 * along_t, along_s - 3 * along_t], axis=1)


def griewank(X: Array) -> tuple[Array, Array]:
    r"""Griewank: a wide bowl under a product of waves.

    .. math:: \prod_i \cos(x_i / \sqrt i) - 1 - \sum_i x_i^2 / 4000
    """
    roots = np.sqrt(np.arange(1, X.shape[1] + 1))
    cosines = np.cos(X / roots)
    values = cosines.prod(axis=1) - 1 - (X**2).sum(axis=1) / 4000
    return values, -_products_without_one(cosines) * np.sin(X / roots) / roots - X / 2000


def g_sobol(X: Array) -> tuple[Array, Array]:
    r"""Sobol's g: a product of wedges, with kinks where a coordinate is 0.5.

    .. math:: -\prod_i \tfrac12 \bigl(|4 x_i - 2| + 1\bigr)
    """
    wedges = (np.abs(4 * X - 2) + 1) / 2
    return -wedges.prod(axis=1), -2 * np.sign(4 * X - 2) * _products_without_one(wedges)


def hartmann(X: Array) -> tuple[Array, Array]:
    r"""Hartmann: four Gaussian bumps.

    .. math:: \sum_{i=1}^4 \alpha_i \exp\Bigl(-\sum_j A_{ij} (x_j - P_{ij})^2\Bigr)
    """
    d = X.shape[1]
    steps = X[:, None, :] - HARTMANN_CENTRES[d]
    pulls = HARTMANN_RATES[d] * steps
    bumps = HARTMANN_HEIGHTS * np.exp(-(pulls * steps).sum(axis=2))
    return bumps.sum(axis=1), -2 * (bumps[:, :, None] * pulls).sum(axis=1)


def holder_table(X: Array) -> tuple[Array, Array]:
    r"""Holder table: four equal maxima near the corners.

    Kinks lie where the sine or the cosine is zero, and on the circle r = pi.

    .. math:: \bigl|\sin x_1 \cos x_2\bigr|\, e^{|t|}, \qquad t = 1 - r/\pi, \quad r = \|x\|
    """
    x1, x2 = X.T
    r = np.hypot(x1, x2)
    t = 1 - r / math.pi
    wave, growth = np.sin(x1) * np.cos(x2), np.exp(np.abs(t))
    values = np.abs(wave) * growth
    wave_gradients = np.stack([np.cos(x1) * np.cos(x2), -np.sin(x1) * np.sin(x2)], axis=1)
    radial = -(values * np.sign(t) / math.pi)[:, None] * _unit_or_zero(X, r)
    return values, (np.sign(wave) * growth)[:, None] * wave_gradients + radial


def levy(X: Array) -> tuple[Array, Array]:
    r"""Levy: a bowl with waves along it.

    With v = (x - 1) / 4,

    .. math:: -\sin^2(\pi v_1) - \sum_{i<d} v_i^2 \bigl(1 + 10 \sin^2(\pi v_i + 1)\bigr)
              - v_d^2 \bigl(1 + \sin^2(2 \pi v_d)\bigr)
    """
    v = (X - 1) / 4
    first, inner, last = v[:, 0], v[:, :-1], v[:, -1]
    inner_wave = 1 + 10 * np.sin(math.pi * inner + 1) ** 2
    last_wave = 1 + np.sin(2 * math.pi * last) ** 2
    values = -(np.sin(math.pi * first) ** 2) - (inner**2 * inner_wave).sum(axis=1) - last**2 * last_wave
    slopes = np.empty_like(v)
    slopes[:, :-1] = 2 * inner * inner_wave + 10 * math.pi * inner**2 * np.sin(2 * (math.pi * inner + 1))
    slopes[:, -1] = 2 * last * last_wave + 2 * math.pi * last**2 * np.sin(4 * math.pi * last)
    slopes[:, 0] += math.pi * np.sin(2 * math.pi * first)
    return values, -slopes / 4


def michalewicz(X: Array) -> tuple[Array, Array]:
    r"""Michalewicz with m = 10: steep ridges on flat ground.

    .. math:: \sum_i \sin(x_i) \sin^{20}(i x_i^2 / \pi)
    """
    i = np.arange(1, X.shape[1] + 1)
    angles = i * X**2 / math.pi
    sines = np.sin(angles)
    ridge_slopes = 20 * sines**19 * np.cos(angles) * (2 * i * X / math.pi)
    return (np.sin(X) * sines**20).sum(axis=1), np.cos(X) * sines**20 + np.sin(X) * ridge_slopes


def mixture(X: Array) -> tuple[Array, Array]:
    r"""Mixture: a broad hill beside a narrow, higher peak, the paper's first figure.

    .. math:: 0.85\, e^{-\frac12 \left(\frac{x - 0.25}{0.06}\right)^2}
              + e^{-\frac12 \left(\frac{x - 0.85}{0.01}\right)^2} - 0.05\,x
    """
    u, v = (X[:, 0] - 0.25) / 0.06, (X[:, 0] - 0.85) / 0.01
    hill, peak = 0.85 * np.exp(-0.5 * u**2), np.exp(-0.5 * v**2)
    return hill + peak - 0.05 * X[:, 0], (-u * hill / 0.06 - v * peak / 0.01 - 0.05)[:, None]


def powell(X: Array) -> tuple[Array, Array]:
    r"""Powell: flat around its maximum, where the Hessian is singular.

    Over groups (a, b, c, e) of four coordinates,

    .. math:: -\sum \bigl[(a + 10 b)^2 + 5 (c - e)^2 + (b - 2 c)^4 + 10 (a - e)^4\bigr]
    """
    a, b, c, e = (X[:, k::4] for k in range(4))
    p, q, s, t = a + 10 * b, c - e, b - 2 * c, a - e
    gradients = np.empty_like(X)
    gradients[:, 0::4] = -2 * p - 40 * t**3
    gradients[:, 1::4] = -20 * p - 4 * s**3
    gradients[:, 2::4] = -10 * q + 8 * s**3
    gradients[:, 3::4] = 10 * q + 40 * t**3
    return -(p**2 + 5 * q**2 + s**4 + 10 * t**4).sum(axis=1), gradients


def rastrigin(X: Array) -> tuple[Array, Array]:
    r"""Rastrigin: a bowl with deep waves.

    .. math:: -\sum_i \bigl(x_i^2 + 20 \sin^2(\pi x_i)\bigr)
    """
    values = -(X**2 + 20 * np.sin(math.pi * X) ** 2).sum(axis=1)
    return values, -2 * X - 20 * math.pi * np.sin(2 * math.pi * X)


def rosenbrock(X: Array) -> tuple[Array, Array]:
    r"""Rosenbrock: a long curved ridge.

    .. math:: -\sum_{i<d} \bigl[100 (x_{i+1} - x_i^2)^2 + (x_i - 1)^2\bigr]
    """
    x, t = X[:, :-1], X[:, 1:] - X[:, :-1] ** 2
    gradients = np.zeros_like(X)
    gradients[:, :-1] = 400 * x * t - 2 * (x - 1)
    gradients[:, 1:] -= 200 * t
    return -(100 * t**2 + (x - 1) ** 2).sum(axis=1), gradients


def shekel(X: Array) -> tuple[Array, Array]:
    r"""Shekel with m = 10: ten sharp peaks on flat ground.

    .. math:: \sum_{i=1}^{10} \bigl(\|x - a_i\|^2 + c_i\bigr)^{-1}
    """
    steps = X[:, None, :] - SHEKEL_CENTRES
    peaks = 1 / ((steps**2).sum(axis=2) + SHEKEL_WIDTHS)
    return peaks.sum(axis=1), -2 * (peaks[:, :, None] ** 2 * steps).sum(axis=1)


def six_hump_camel(X: Array) -> tuple[Array, Array]:
    r"""Six-hump camel: six maxima, two of them the highest.

    .. math:: -\bigl(4 - 2.1 x_1^2 + x_1^4/3\bigr) x_1^2 - x_1 x_2 + \bigl(4 - 4 x_2^2\bigr) x_2^2
    """
    x1, x2 = X.T
    values = -(4 - 2.1 * x1**2 + x1**4 / 3) * x1**2 - x1 * x2 + (4 - 4 * x2**2) * x2**2
    return values, np.stack([-8 * x1 + 8.4 * x1**3 - 2 * x1**5 - x2, -x1 + 8 * x2 - 16 * x2**3], axis=1)


def styblinski_tang(X: Array) -> tuple[Array, Array]:
    r"""Styblinski-Tang: two hills a coordinate, one of them higher.

    .. math:: -\tfrac12 \sum_i \bigl(x_i^4 - 16 x_i^2 + 5 x_i\bigr)
    """
    return -0.5 * (X**4 - 16 * X**2 + 5 * X).sum(axis=1), -2 * X**3 + 16 * X - 2.5


def wang_freitas(X: Array) -> tuple[Array, Array]:
    r"""Wang-Freitas: a wide hill, and far from it a needle of twice the height.

    .. math:: 2\, e^{-\frac12 \left(\frac{x - 0.1}{0.1}\right)^2} + 4\, e^{-\frac12 \left(\frac{x - 0.9}{0.01}\right)^2}
    """
    u, v = (X[:, 0] - 0.1) / 0.1, (X[:, 0] - 0.9) / 0.01
    hill, needle = 2 * np.exp(-0.5 * u**2), 4 * np.exp(-0.5 * v**2)
    return hill + needle, (-u * hill / 0.1 - v * needle / 0.01)[:, None]


def _products_without_one(factors: Array) -> Array:
    """Of the factors `n x d` the product without each, from the left and the right: a factor may be zero."""
    left, right = np.ones_like(factors), np.ones_like(factors)
    left[:, 1:] = factors[:, :-1].cumprod(axis=1)
    right[:, :-1] = factors[:, :0:-1].cumprod(axis=1)[:, ::-1]
    return left * right


def _unit_or_zero(X: Array, r: Array) -> Array:
    """The rows X / r, and 0 where r = 0: the middle of all directions a kink may have."""
    return X / np.where(r > 0, r, 1.0)[:, None]
