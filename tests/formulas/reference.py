"""Slow forms of the paper's quantities, written independently of the package, to compare with.

Each takes plain numbers and arrays. Monte Carlo returns its standard error with the estimate.
"""

import mpmath as mp
import numpy as np
from scipy import stats
from scipy.special import ndtr

mp.mp.dps = 40


def mp_tail_moments(z: float) -> tuple[mp.mpf, mp.mpf]:
    """Mean excess and variance of a standard normal beyond z, with as many digits as the cancellation eats."""
    with mp.workdps(60):
        z = mp.mpf(z)
        mills = mp.npdf(z) / (mp.erfc(z / mp.sqrt(2)) / 2)
        excess = mills - z
        return excess, 1 - mills * excess


def mp_orthant_increase(mean, sigma, best) -> mp.mpf:
    """EI_s-bar for diagonal covariance as the paper prints it, in 60 digits."""
    with mp.workdps(60):
        probability, bracket = mp.mpf(1), mp.mpf(0)
        for m, s, g in zip(mean, sigma, best, strict=True):
            m, s, g = mp.mpf(float(m)), mp.mpf(float(s)), mp.mpf(float(g))
            z = (g - m) / s
            tail = mp.erfc(z / mp.sqrt(2)) / 2
            w = mp.npdf(z) / tail
            probability *= tail
            bracket += m**2 - g**2 + 2 * m * s * w + s**2 * (1 + z * w)
        return probability * bracket


def mp_increase_1d(m: float, s: float, g: float) -> mp.mpf:
    """EI_s in one dimension: the integrand's antiderivative on both sides of the gap."""
    with mp.workdps(60):
        m, s, r = mp.mpf(m), mp.mpf(s), abs(mp.mpf(g))

        def beyond(m):
            z = (r - m) / s
            tail = mp.erfc(z / mp.sqrt(2)) / 2
            return (m**2 - r**2 + s**2) * tail + (2 * m * s + s**2 * z) * mp.npdf(z)

        return beyond(m) + beyond(-m)


def ncx2_increase(mean, sigma: float, threshold: float) -> float:
    """E[max(|G|^2 - t, 0)] for G ~ N(mean, sigma^2 I) by SciPy's noncentral chi-square distribution."""
    d, nc, t = len(mean), float(np.sum(np.square(mean))) / sigma**2, threshold / sigma**2
    above = [stats.ncx2.sf(t, d + k, nc) for k in (0, 2, 4)]
    return sigma**2 * (d * above[1] + nc * above[2] - t * above[0])


def polar_increase_2d(mean, covariance, threshold: float) -> float:
    """E[max(|G|^2 - t, 0)] in two dimensions, in polar coordinates, where the integrand is smooth."""
    mean, precision = np.asarray(mean), np.linalg.inv(covariance)
    density = 1 / (2 * np.pi * np.sqrt(np.linalg.det(covariance)))
    inner, spread = np.sqrt(threshold), np.sqrt(np.linalg.eigvalsh(covariance))
    outer = max(inner, np.linalg.norm(mean)) + 10 * spread.max()
    angle = np.linspace(0, 2 * np.pi, 800, endpoint=False)
    nodes, weights = np.polynomial.legendre.leggauss(20)
    edges = np.linspace(inner, outer, 60)
    middle, half = (edges[1:] + edges[:-1]) / 2, (edges[1:] - edges[:-1]) / 2
    radius, w = (middle[:, None] + half[:, None] * nodes).ravel(), (half[:, None] * weights).ravel()
    point = radius[:, None, None] * np.stack([np.cos(angle), np.sin(angle)], -1) - mean
    mass = density * np.exp(-0.5 * np.einsum("rai,ij,raj->ra", point, precision, point)).mean(-1) * 2 * np.pi
    return float(np.sum(w * radius * (radius**2 - threshold) * mass))


def cf_positive_part(offset, linear_variance, weight, variance, cross) -> tuple[float, float]:
    """E[max(V, 0)] = (E V + E|V|) / 2 with E|V| = (2/pi) int_0^inf (1 - Re phi(u)) / u^2 du on the real axis.

    Composite Gauss-Legendre in log u, and a bound on what is cut off where |phi| has not died out at the last node.
    """
    variance, cross = np.asarray(variance), np.asarray(cross)
    scale = np.sqrt(linear_variance + 2 * weight**2 * np.sum(variance**2))
    edges = np.concatenate([np.linspace(-12, 0, 200)[:-1], np.log(np.linspace(1.0, 4000.0, 12000))])
    mean = offset + weight * variance.sum()
    # Near zero 1 - Re phi is u^2 E[V^2] / 2, and would be lost in rounding.
    inner = np.exp(edges[0]) / scale * (scale**2 + mean**2) / 2
    for begin in range(0, len(edges) - 1, 300):
        part = edges[begin : begin + 301]
        log_u, w = _legendre_in(part)
        u = np.exp(log_u) / scale
        log_phi = 1j * u * offset - 0.5 * u**2 * linear_variance
        for lam, b in zip(variance, cross, strict=True):
            a = 1 - 2j * u * weight * lam
            log_phi = log_phi - 0.5 * np.log(a) - 1j * weight * u**3 * b**2 / a
        inner += np.sum(w * (1 - np.exp(log_phi).real) / u)
        left = np.exp(log_phi[-1].real)
        if left < 1e-17:  # |phi| falls with u
            break
    outside = np.exp(-part[-1]) * scale  # int of 1/u^2 beyond the last node, where phi has died out
    return 0.5 * (mean + 2 / np.pi * (inner + outside)), float(left * outside / np.pi)


def _legendre_in(edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of the Gauss-Legendre rule with 20 nodes between each two edges."""
    nodes, weights = np.polynomial.legendre.leggauss(20)
    middle, half = (edges[1:] + edges[:-1]) / 2, (edges[1:] - edges[:-1]) / 2
    return (middle[:, None] + half[:, None] * nodes).ravel(), (half[:, None] * weights).ravel()


def improvement(mean, sigma, best):
    """Expected improvement by the textbook formula."""
    u = (mean - best) / sigma
    return (mean - best) * ndtr(u) + sigma * np.exp(-(u**2) / 2) / np.sqrt(2 * np.pi)


def nested_improvement(mean, sigma, grad_mean, grad_cov, cross, best_g, alpha, *, nodes: int = 400) -> float:
    """EI_g in one or two dimensions: EI of f given G, averaged over a fine grid of G."""
    grad_mean, cross = np.atleast_1d(grad_mean), np.atleast_1d(cross)
    chol = np.linalg.cholesky(np.atleast_2d(grad_cov))
    points, weights = np.polynomial.legendre.leggauss(nodes)
    z, w = 9.5 * points, 9.5 * weights * np.exp(-((9.5 * points) ** 2) / 2) / np.sqrt(2 * np.pi)
    if len(grad_mean) == 1:
        whites, weight = z[:, None], w
    else:
        whites = np.stack(np.meshgrid(z, z, indexing="ij"), -1).reshape(-1, 2)
        weight = np.outer(w, w).ravel()
    loading = np.linalg.solve(chol, cross)
    grad = grad_mean + whites @ chol.T
    rest = np.sqrt(sigma**2 - loading @ loading)
    level = mean + whites @ loading - alpha * np.sum(grad**2, -1)
    return float(weight @ improvement(level, rest, best_g))


def sampled(value, n: int, d: int, seed: int) -> tuple[float, float]:
    """Mean and standard error of `value(z)` over n standard normal draws of dimension d."""
    draws = value(np.random.default_rng(seed).standard_normal((n, d)))
    return float(draws.mean()), float(draws.std() / np.sqrt(n))
