"""EI_g, its lower bound and EI-GN: quadrature, Monte Carlo, the paper's inequalities, invariance, derivatives."""

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from eign.formulas import (
    auxiliary_improvement,
    auxiliary_improvement_bound,
    auxiliary_improvement_full,
    auxiliary_objective,
    ei_gn,
    expected_improvement,
    orthant_gradient_increase,
    stationarity_event,
)
from example_counts import examples

from .posteriors import Posterior, posteriors, seeds, tensor
from .reference import cf_positive_part, nested_improvement, sampled

DRAWS = 400_000
ERRORS = 5  # standard errors; exceeded once in two million fair comparisons


def independent(p: Posterior, alpha: float | None = None, best_g: float | None = None) -> float:
    return float(
        auxiliary_improvement(
            tensor(p.mean),
            tensor(p.sigma),
            tensor(p.grad_mean),
            tensor(p.grad_sigma),
            p.best_g if best_g is None else best_g,
            p.alpha if alpha is None else alpha,
        )
    )


def joint(p: Posterior) -> float:
    return float(
        auxiliary_improvement_full(
            tensor(p.mean),
            tensor(p.sigma),
            tensor(p.grad_mean),
            tensor(p.grad_cov),
            p.best_g,
            p.alpha,
            cross_cov=tensor(p.cross),
        )
    )


def deviation_of_g(p: Posterior) -> float:
    """Standard deviation of g = f - alpha |G|^2."""
    m, cov, a = p.grad_mean, p.grad_cov, p.alpha
    return float(np.sqrt(p.sigma**2 - 4 * a * p.cross @ m + 4 * a**2 * m @ cov @ m + 2 * a**2 * np.trace(cov @ cov)))


class TestAuxiliaryImprovement:
    @given(posteriors(dims=st.integers(1, 2), correlated=True))
    def test_against_nested_quadrature(self, p):
        """Conditional on G, f - alpha |G|^2 is Gaussian: average its EI over G on a fine grid."""
        residual = p.sigma**2 - p.cross @ np.linalg.solve(p.grad_cov, p.cross)
        bend = p.alpha * np.abs(np.linalg.eigvalsh(p.grad_cov)).max()
        assume(residual > (0.02 * max(p.sigma, bend)) ** 2)  # the grid needs a kink smoothed over a few of its cells
        reference = nested_improvement(p.mean, p.sigma, p.grad_mean, p.grad_cov, p.cross, p.best_g, p.alpha)
        assert joint(p) == pytest.approx(reference, rel=1e-4, abs=1e-8 * deviation_of_g(p))

    @given(posteriors(dims=st.integers(1, 30)))
    def test_against_the_characteristic_function_on_the_real_axis(self, p):
        m, variance, a = p.grad_mean, p.grad_sigma**2, p.alpha
        offset, linear = p.mean - a * m @ m - p.best_g, p.sigma**2 + 4 * a**2 * np.sum(m**2 * variance)
        scale = deviation_of_g(p)
        assume(abs(offset - a * variance.sum()) < 40 * scale)  # the real-axis rule must resolve the oscillation
        reference, cut_off = cf_positive_part(offset, linear, -a, variance, -2 * a * variance * m)
        assert independent(p) == pytest.approx(reference, abs=1e-8 * scale + cut_off)

    @given(posteriors(correlated=True), seeds)
    @examples(30)
    def test_against_monte_carlo(self, p, seed):
        chol = np.linalg.cholesky(p.joint_cov)

        def improvement(white):
            sample = p.joint_mean + white @ chol.T
            return np.maximum(sample[:, 0] - p.alpha * np.sum(sample[:, 1:] ** 2, -1) - p.best_g, 0.0)

        estimate, error = sampled(improvement, DRAWS, p.d + 1, seed)
        assert abs(joint(p) - estimate) <= ERRORS * error + (20 / DRAWS * p.sigma if error == 0 else 0)

    @given(posteriors(dims=st.integers(1, 100)))
    def test_no_stationarity_weight_gives_expected_improvement_exactly(self, p):
        plain = expected_improvement(tensor(p.mean), tensor(p.sigma), p.best)
        assert independent(p, alpha=0.0, best_g=p.best) == float(plain)

    @given(posteriors(dims=st.integers(1, 100)))
    def test_a_tiny_weight_changes_little(self, p):
        """The contour itself meets EI in the Gaussian limit."""
        plain = float(expected_improvement(tensor(p.mean), tensor(p.sigma), p.best))
        tiny = 1e-12 * p.alpha
        assert independent(p, alpha=tiny, best_g=p.best) == pytest.approx(plain, abs=1e-8 * p.sigma)

    @given(posteriors(dims=st.integers(1, 20)))
    def test_full_equals_independent_for_a_diagonal_covariance(self, p):
        assert joint(p) == pytest.approx(independent(p), abs=1e-8 * deviation_of_g(p))

    @given(posteriors(dims=st.integers(2, 12), correlated=True), seeds)
    def test_invariant_under_rotation_mirroring_and_permutation(self, p, seed):
        rng = np.random.default_rng(seed)
        turn = np.linalg.qr(rng.standard_normal((p.d, p.d)))[0]
        for move in (turn, np.diag(rng.choice([-1.0, 1.0], p.d)), np.eye(p.d)[rng.permutation(p.d)]):
            moved = Posterior(
                p.mean,
                p.sigma,
                move @ p.grad_mean,
                move @ p.grad_cov @ move.T,
                move @ p.cross,
                p.best,
                move @ p.best_grad,
                p.alpha,
            )
            assert joint(moved) == pytest.approx(joint(p), abs=1e-8 * deviation_of_g(p))

    def test_the_covariance_of_f_and_its_gradient_matters(self):
        mean, sigma, grad_mean = tensor(0.0), tensor(1.0), tensor([1.0, 0.5])
        cov, cross = tensor(np.eye(2)), tensor([0.8, 0.3])
        without = auxiliary_improvement_full(mean, sigma, grad_mean, cov, 0.0, 0.5)
        with_it = auxiliary_improvement_full(mean, sigma, grad_mean, cov, 0.0, 0.5, cross_cov=cross)
        assert with_it < 0.8 * without  # f and |grad f|^2 rise together and cancel

    def test_gradients_by_finite_differences(self):
        generator = torch.Generator().manual_seed(0)
        d, n = 3, 5
        mean, sigma = torch.randn(2, n, generator=generator, dtype=torch.float64)
        grad_mean, grad_sigma = torch.randn(2, n, d, generator=generator, dtype=torch.float64)
        best_g = torch.tensor(-0.5, dtype=torch.float64)
        alpha = torch.tensor([0.1, 0.3, 0.6, 1.0, 2.0], dtype=torch.float64)
        values = (mean, sigma.abs() + 0.2, grad_mean, grad_sigma.abs() + 0.1, best_g, alpha)
        assert torch.autograd.gradcheck(auxiliary_improvement, [x.clone().requires_grad_() for x in values])

    def test_full_gradients_by_finite_differences_also_at_repeated_eigenvalues(self):
        generator = torch.Generator().manual_seed(1)
        d, n = 3, 4
        mean = torch.randn(n, generator=generator, dtype=torch.float64)
        grad_mean, cross = torch.randn(2, n, d, generator=generator, dtype=torch.float64)
        factor = torch.randn(n, d, d, generator=generator, dtype=torch.float64)
        cov = factor @ factor.mT + 0.1 * torch.eye(d)
        cov[1] = torch.eye(d)
        # a covariance with f that leaves the joint matrix positive definite
        cross = 0.5 * (torch.linalg.cholesky(cov) @ (cross / cross.norm(dim=-1, keepdim=True)).unsqueeze(-1)).squeeze(
            -1
        )

        def symmetric(mean, sigma, grad_mean, matrix, best_g, alpha, cross):
            cov = (matrix + matrix.mT) / 2
            return auxiliary_improvement_full(mean, sigma, grad_mean, cov, best_g, alpha, cross_cov=cross)

        values = (mean, torch.ones(n), grad_mean, cov, torch.tensor(-1.0), torch.tensor(0.4), cross)
        assert torch.autograd.gradcheck(symmetric, [x.double().clone().requires_grad_() for x in values])

    def test_gradients_against_autograd_of_a_slow_form(self):
        """Gauss-Legendre over G in torch, differentiated by autograd, in two dimensions."""
        points, weights = np.polynomial.legendre.leggauss(160)
        z, w = tensor(9 * points), tensor(9 * weights * np.exp(-((9 * points) ** 2) / 2) / np.sqrt(2 * np.pi))
        white = torch.cartesian_prod(z, z)
        weight = torch.cartesian_prod(w, w).prod(-1)

        def slow(mean, sigma, grad_mean, grad_sigma, best_g, alpha):
            grad = grad_mean + grad_sigma * white
            return weight @ expected_improvement(mean - alpha * grad.square().sum(-1), sigma, best_g)

        values = [
            torch.tensor(v, dtype=torch.float64, requires_grad=True)
            for v in (0.2, 0.7, [0.5, -0.4], [0.6, 0.3], 0.1, 0.6)
        ]
        expected = torch.autograd.grad(slow(*values), values)
        obtained = torch.autograd.grad(auxiliary_improvement(*values), values)
        for ours, theirs in zip(obtained, expected, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-7, atol=1e-9)

    @pytest.mark.parametrize("d", [1, 4, 100])
    @pytest.mark.parametrize("sigma", [1e-12, 1e-4, 1.0])
    @pytest.mark.parametrize("grad_sigma", [1e-12, 1e-4, 1.0, 1e3])
    @pytest.mark.parametrize("best_g", [-10.0, 0.0, 10.0])
    def test_finite_with_a_finite_gradient(self, d, sigma, grad_sigma, best_g):
        inputs = [
            torch.tensor(0.3, dtype=torch.float64, requires_grad=True),
            torch.tensor(sigma, dtype=torch.float64, requires_grad=True),
            torch.full((d,), 0.2, dtype=torch.float64, requires_grad=True),
            torch.full((d,), grad_sigma, dtype=torch.float64, requires_grad=True),
        ]
        value = auxiliary_improvement(*inputs, best_g, 0.6)
        assert value >= 0
        for gradient in torch.autograd.grad(value, inputs):
            assert gradient.isfinite().all()

    @pytest.mark.parametrize("ratio", [1e8, 1e12, 1e16, 1e20])
    def test_nearly_singular_joint_covariance(self, ratio):
        """One direction of the gradient almost known and f almost determined by it: the limit of a known direction."""
        covariance = np.diag([1.0, 0.5, 1.0 / ratio])
        cross = 0.999 * np.sqrt(np.array([0.2, 0.1, 0.7]) * np.diag(covariance))
        mean, alpha = np.array([0.4, -0.8, 0.3]), 0.6
        value = auxiliary_improvement_full(
            tensor(0.1), tensor(1.0), tensor(mean), tensor(covariance), -0.5, alpha, cross_cov=tensor(cross)
        )
        # in the limit the third component is its mean, and its share of f's variance is independent noise
        known = auxiliary_improvement_full(
            tensor(0.1 - alpha * mean[2] ** 2),
            tensor(1.0),
            tensor(mean[:2]),
            tensor(covariance[:2, :2]),
            -0.5,
            alpha,
            cross_cov=tensor(cross[:2]),
        )
        assert float(value) == pytest.approx(float(known), abs=3 / np.sqrt(ratio) + 1e-8)

    def test_derivative_with_respect_to_alpha_at_zero(self):
        """-Phi(u) E|G|^2."""
        alpha = torch.tensor(0.0, dtype=torch.float64, requires_grad=True)
        mean, sigma = tensor(0.2), tensor(0.7)
        grad_mean, grad_sigma = tensor([0.5, -0.3]), tensor([0.2, 0.4])
        for value in (
            auxiliary_improvement(mean, sigma, grad_mean, grad_sigma, 0.4, alpha),
            auxiliary_improvement_full(mean, sigma, grad_mean, torch.diag(grad_sigma**2), 0.4, alpha),
        ):
            (slope,) = torch.autograd.grad(value, alpha)
            second_moment = float((grad_mean**2 + grad_sigma**2).sum())
            assert float(slope) == pytest.approx(-stats.norm.cdf(-0.2 / 0.7) * second_moment, rel=1e-8)

    def test_without_weight_the_gradient_need_not_be_known(self):
        mean = torch.tensor([0.2, 0.3], dtype=torch.float64, requires_grad=True)
        nothing = torch.full((2, 3), float("nan"), dtype=torch.float64)
        value = auxiliary_improvement(mean, tensor(0.7), nothing, nothing, 0.4, 0.0)
        assert torch.equal(value, expected_improvement(mean, tensor(0.7), 0.4))
        assert torch.autograd.grad(value.sum(), mean)[0].isfinite().all()

    def test_an_unreachable_incumbent(self):
        arguments = (tensor(0.0), tensor(1.0), tensor([0.1, 0.2]), tensor([1.0, 1.0]))
        assert auxiliary_improvement(*arguments, float("inf"), 0.6) == 0
        assert auxiliary_improvement(*arguments, -float("inf"), 0.6) == float("inf")

    def test_gradient_where_the_mean_is_at_the_incumbent(self):
        """E[g] = g+ exactly."""
        values = (0.5, 0.7, [0.0, 0.0], [0.5, 0.5], 0.25, 0.5)
        inputs = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in values]
        assert torch.autograd.gradcheck(auxiliary_improvement, inputs)

    def test_a_point_that_is_known_exactly(self):
        zero = tensor([0.0, 0.0])
        value = auxiliary_improvement(
            tensor([2.0, 0.0]), zero, tensor([[1.0], [1.0]]), tensor([[0.0], [0.0]]), 0.5, 1.0
        )
        assert value.tolist() == [0.5, 0.0]


class TestInequalities:
    @given(posteriors())
    def test_the_lower_bound_never_exceeds_it(self, p):
        """`eq: EI-GN lower bound`, with one common incumbent."""
        bound = auxiliary_improvement_bound(
            tensor(p.mean),
            tensor(p.sigma),
            tensor(p.grad_mean),
            tensor(p.grad_sigma),
            p.best,
            tensor(p.best_grad),
            p.alpha,
        )
        assert float(bound) <= independent(p) + 1e-8 * deviation_of_g(p)

    @given(
        st.integers(1, 10), seeds, st.floats(0.05, 1.0), st.floats(0.05, 0.95), st.floats(0.05, 0.95), st.floats(-1, 1)
    )
    def test_the_event_of_the_paper_bounds_it_from_below(self, d, seed, sigma, share, c, gap):
        """EI_g >= alpha (1 - c) delta P(event), exactly computable for equal variances of the gradient."""
        rng = np.random.default_rng(seed)
        grad_mean, best_grad, alpha = rng.standard_normal(d), 2 * rng.standard_normal(d), 0.6
        threshold = float(best_grad @ best_grad)
        delta = share * threshold
        best = gap * sigma
        p = Posterior(0.0, sigma, grad_mean, np.eye(d), np.zeros(d), best, best_grad, alpha)
        calmer = stats.ncx2.cdf(threshold - delta, d, float(grad_mean @ grad_mean))
        high_enough = stats.norm.sf((best - alpha * c * delta) / sigma)
        assert independent(p) >= alpha * (1 - c) * delta * calmer * high_enough - 1e-8 * deviation_of_g(p)

    @given(posteriors(dims=st.integers(1, 5)), seeds, st.floats(0.05, 0.95), st.floats(0.05, 0.95))
    def test_g_improves_on_the_event(self, p, seed, share, c):
        """`eq:g_decomposition`: on the event g rises by at least alpha (1 - c) delta."""
        rng = np.random.default_rng(seed)
        delta = share * float(p.best_grad @ p.best_grad)
        y = tensor(p.best + 3 * p.alpha * delta * rng.standard_normal(2000))
        grad = tensor(p.best_grad * rng.uniform(-1.5, 1.5, (2000, p.d)))
        event = stationarity_event(y, grad, p.best, tensor(p.best_grad), p.alpha, delta=delta, c=c)
        gain = auxiliary_objective(y, grad, p.alpha) - p.best_g
        assert event.any()
        assert not event.all()
        size = abs(p.best) + p.alpha * float(p.best_grad @ p.best_grad)
        assert (gain[event] >= p.alpha * (1 - c) * delta - 1e-12 * size).all()


class TestEIGN:
    @given(posteriors())
    def test_is_improvement_minus_weighted_orthant_increase(self, p):
        moments = (tensor(p.grad_mean), tensor(p.grad_sigma))
        value = ei_gn(tensor(p.mean), tensor(p.sigma), *moments, p.best, tensor(p.best_grad), p.alpha)
        parts = expected_improvement(tensor(p.mean), tensor(p.sigma), p.best)
        parts = parts - p.alpha * orthant_gradient_increase(*moments, tensor(p.best_grad))
        assert float(value) == float(parts)

    @given(posteriors())
    def test_no_stationarity_weight_gives_expected_improvement_exactly(self, p):
        moments = (tensor(p.grad_mean), tensor(p.grad_sigma))
        value = ei_gn(tensor(p.mean), tensor(p.sigma), *moments, p.best, tensor(p.best_grad), 0.0)
        assert float(value) == float(expected_improvement(tensor(p.mean), tensor(p.sigma), p.best))

    def test_orthant_term_makes_it_change_under_mirroring(self):
        mean, sigma, best = tensor([1.2, -0.4, 0.6]), tensor([0.5, 0.3, 0.4]), tensor([0.1, 0.2, 1.1])
        mirror = tensor([-1.0, 1.0, 1.0])
        plain = ei_gn(tensor(-3.0), tensor(0.5), mean, sigma, 0.0, best, 0.6)
        mirrored = ei_gn(tensor(-3.0), tensor(0.5), mirror * mean, sigma, 0.0, mirror * best, 0.6)
        assert plain < 30 * mirrored < 0
