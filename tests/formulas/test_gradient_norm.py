"""EI_s-bar and EI_s: high precision, Monte Carlo, noncentral chi-square, invariance, and the paper's misprint."""

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from eign.formulas import (
    expected_positive_part,
    gradient_increase,
    gradient_increase_full,
    orthant_gradient_increase,
    orthant_gradient_increase_full,
)
from example_counts import examples

from .posteriors import Posterior, posteriors, seeds, tensor
from .reference import cf_positive_part, mp_increase_1d, mp_orthant_increase, ncx2_increase, polar_increase_2d, sampled

DRAWS = 400_000
# With a standard error in the estimate, 5 of them are exceeded once in two million fair comparisons.
ERRORS = 5


def orthant(p: Posterior) -> float:
    return float(orthant_gradient_increase(tensor(p.grad_mean), tensor(p.grad_sigma), tensor(p.best_grad)))


def exact(p: Posterior) -> float:
    return float(gradient_increase(tensor(p.grad_mean), tensor(p.grad_sigma), tensor(p.best_grad)))


class TestOrthant:
    @given(posteriors(dims=st.integers(1, 100)))
    def test_against_the_printed_formula_in_high_precision(self, p):
        precise = mp_orthant_increase(p.grad_mean, p.grad_sigma, p.best_grad)
        # the bracket is a sum of both signs, so its error is measured against its terms
        size = float(np.sum(p.grad_mean**2 + p.best_grad**2 + p.grad_sigma**2))
        assert orthant(p) == pytest.approx(float(precise), rel=1e-9, abs=1e-13 * size)

    @given(st.floats(-1e3, 1e3), st.floats(-12, 2), st.integers(1, 100), st.floats(-2, 2))
    def test_extreme_whitened_incumbents(self, z, log_sigma, d, best):
        """z from -1e3 to 1e3, sigma down to 1e-12, d up to 100: right, with a finite gradient."""
        sigma = torch.full((d,), 10.0**log_sigma, dtype=torch.float64, requires_grad=True)
        best_grad = torch.full((d,), best, dtype=torch.float64)
        mean = (best_grad - z * sigma).detach().requires_grad_()
        value = orthant_gradient_increase(mean, sigma, best_grad)
        precise = mp_orthant_increase(mean.tolist(), sigma.tolist(), best_grad.tolist())
        size = d * (mean[0].item() ** 2 + best**2 + sigma[0].item() ** 2)
        assert value.item() == pytest.approx(float(precise), rel=1e-8, abs=1e-13 * size)
        for gradient in torch.autograd.grad(value, (mean, sigma)):
            assert gradient.isfinite().all()

    @given(posteriors(dims=st.integers(1, 5), correlated=True), seeds)
    @examples(25)
    def test_full_against_monte_carlo(self, p, seed):
        chol = np.linalg.cholesky(p.grad_cov)
        z = np.linalg.solve(chol, p.best_grad - p.grad_mean)

        def integrand(white):
            norm = np.sum((p.grad_mean + white @ chol.T) ** 2, -1) - p.best_grad @ p.best_grad
            return np.where((white >= z).all(-1), norm, 0.0)

        estimate, error = sampled(integrand, DRAWS, p.d, seed)
        value = orthant_gradient_increase_full(tensor(p.grad_mean), tensor(chol), tensor(p.best_grad))
        # a region that no draw hits has an estimated error of zero; it is then smaller than one draw in all
        unseen = 20 / DRAWS * float(np.trace(p.grad_cov) + p.grad_mean @ p.grad_mean + p.best_grad @ p.best_grad)
        assert abs(float(value) - estimate) <= ERRORS * error + (unseen if error == 0 else 0)

    @given(posteriors())
    def test_full_equals_diagonal_for_a_diagonal_factor(self, p):
        full = orthant_gradient_increase_full(tensor(p.grad_mean), tensor(np.diag(p.grad_sigma)), tensor(p.best_grad))
        size = float(np.sum(p.grad_mean**2 + p.best_grad**2 + p.grad_sigma**2))
        assert float(full) == pytest.approx(orthant(p), rel=1e-9, abs=1e-13 * size)

    def test_the_printed_trace_is_wrong_for_correlated_gradients(self):
        """`eq: three_terms_simplified_2` has Sigma where whitening gives L'L; Monte Carlo decides."""
        chol = np.array([[1.0, 0.0, 0.0], [0.9, 0.5, 0.0], [-0.7, 0.6, 0.4]])
        mean, best = np.array([0.4, -0.3, 0.2]), np.array([0.3, 0.5, 0.1])
        z = np.linalg.solve(chol, best - mean)
        probability = np.array([0.5 * float(torch.erfc(tensor(zi / np.sqrt(2)))) for zi in z])
        w = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) / probability
        second_moment = np.outer(w, w) + np.diag(1 + (z - w) * w)

        def closed_form(matrix):
            linear = mean @ mean - best @ best + 2 * mean @ chol @ w
            return probability.prod() * (linear + np.trace(matrix @ second_moment))

        def integrand(white):
            return np.where((white >= z).all(-1), np.sum((mean + white @ chol.T) ** 2, -1) - best @ best, 0.0)

        estimate, error = sampled(integrand, 2_000_000, 3, seed=1)
        value = float(orthant_gradient_increase_full(tensor(mean), tensor(chol), tensor(best)))
        assert value == pytest.approx(closed_form(chol.T @ chol), rel=1e-12)
        assert abs(value - estimate) <= ERRORS * error
        assert abs(closed_form(chol @ chol.T) - estimate) > 50 * error

    def test_not_invariant_under_mirroring(self):
        """x_1 -> 1 - x_1 flips the sign of one partial derivative, in the posterior and at the incumbent."""
        mean, sigma = tensor([1.2, -0.4, 0.6]), tensor([0.5, 0.3, 0.4])
        best = tensor([0.1, 0.2, 1.1])
        mirror = tensor([-1.0, 1.0, 1.0])
        plain = orthant_gradient_increase(mean, sigma, best)
        mirrored = orthant_gradient_increase(mirror * mean, sigma, mirror * best)
        assert plain > 30 * mirrored > 0

    def test_full_form_depends_on_the_order_of_the_coordinates(self):
        cov, order = np.array([[1.0, 0.8], [0.8, 2.0]]), [1, 0]
        mean, best = np.array([0.5, -1.0]), np.array([0.2, 0.6])
        plain = orthant_gradient_increase_full(tensor(mean), tensor(np.linalg.cholesky(cov)), tensor(best))
        swapped = orthant_gradient_increase_full(
            tensor(mean[order]), tensor(np.linalg.cholesky(cov[np.ix_(order, order)])), tensor(best[order])
        )
        assert abs(float(plain - swapped)) > 0.05 * abs(float(plain))

    def test_known_partial_derivatives_take_their_limits(self):
        """sigma = 0: the coordinate is above its threshold or not, and adds m^2 - g^2."""
        mean, best = tensor([2.0, 0.5]), tensor([1.0, 0.0])
        inputs = [mean.clone().requires_grad_(), tensor([0.0, 0.0]).requires_grad_()]
        value = orthant_gradient_increase(*inputs, best)
        assert float(value.detach()) == pytest.approx(3.25, rel=1e-12)
        assert all(part.isfinite().all() for part in torch.autograd.grad(value, inputs))
        assert orthant_gradient_increase(-mean, tensor([0.0, 0.0]), best) == 0

    def test_can_be_negative(self):
        """In the orthant z >= z+ the norm may well be smaller than at the incumbent."""
        assert orthant_gradient_increase(tensor([-0.5]), tensor([0.1]), tensor([-1.0])) < -0.5

    def test_gradient(self):
        generator = torch.Generator().manual_seed(0)
        mean, sigma, best = torch.randn(3, 4, 3, generator=generator, dtype=torch.float64)
        sigma = sigma.abs() + 0.1
        inputs = [x.clone().requires_grad_() for x in (mean, sigma, best)]
        assert torch.autograd.gradcheck(orthant_gradient_increase, inputs)
        factor = torch.tril(torch.randn(4, 3, 3, generator=generator, dtype=torch.float64))
        factor = (factor + 2 * torch.eye(3)).requires_grad_()
        assert torch.autograd.gradcheck(orthant_gradient_increase_full, (inputs[0], factor, inputs[2]))


class TestExact:
    @given(posteriors(dims=st.just(1)))
    def test_one_dimension_against_high_precision(self, p):
        precise = mp_increase_1d(p.grad_mean[0], p.grad_sigma[0], p.best_grad[0])
        assert exact(p) == pytest.approx(float(precise), rel=1e-10, abs=1e-300)

    @given(posteriors(dims=st.just(1)))
    @examples(300)
    def test_the_contour_at_its_hardest_one_dimension(self, p):
        """The density is singular there; the closed form is used instead, but the contour holds the bar too."""
        m, s, g = p.grad_mean, p.grad_sigma, p.best_grad
        value = expected_positive_part(
            tensor((m @ m) - (g @ g)), tensor(4 * m[0] ** 2 * s[0] ** 2), 1.0, tensor(s**2), tensor(2 * s**2 * m)
        )
        scale = np.sqrt(2 * s[0] ** 4 + 4 * m[0] ** 2 * s[0] ** 2)
        precise = mp_increase_1d(m[0], s[0], g[0])
        # the offset m^2 - g^2 is rounded, which moves the value by as much
        assert float(value) == pytest.approx(float(precise), abs=1e-8 * scale + 1e-15 * float(g @ g + m @ m))

    @given(st.integers(1, 100), seeds, st.floats(-2, 2), st.floats(-1, 1))
    @examples(200)
    def test_equal_variances_against_the_noncentral_chi_square(self, d, seed, log_noncentrality, shift):
        rng = np.random.default_rng(seed)
        mean = 10**log_noncentrality * rng.standard_normal(d)
        second = float(mean @ mean) + d
        deviation = np.sqrt(2 * d + 4 * float(mean @ mean))
        threshold = max(second + 4 * shift * deviation, 0.01 * second)
        best = np.sqrt(threshold / d) * np.ones(d)
        value = gradient_increase(tensor(mean), tensor(np.ones(d)), tensor(best))
        # SciPy's survival function itself is good to about 1e-11
        assert float(value) == pytest.approx(ncx2_increase(mean, 1.0, threshold), abs=1e-8 * deviation)

    @given(posteriors(dims=st.just(2), correlated=True))
    def test_two_dimensions_against_quadrature(self, p):
        ends = np.sqrt(np.linalg.eigvalsh(p.grad_cov))
        assume(ends[0] > 0.03 * ends[1])  # the grid must resolve the narrow direction
        assume(np.linalg.norm(p.grad_mean) < 10 * ends[1])
        value = gradient_increase_full(tensor(p.grad_mean), tensor(p.grad_cov), tensor(p.best_grad))
        reference = polar_increase_2d(p.grad_mean, p.grad_cov, float(p.best_grad @ p.best_grad))
        scale = np.sqrt(2 * np.trace(p.grad_cov @ p.grad_cov) + 4 * p.grad_mean @ p.grad_cov @ p.grad_mean)
        assert float(value) == pytest.approx(reference, rel=1e-4, abs=1e-8 * scale)

    @given(posteriors(dims=st.integers(3, 30)))
    def test_against_the_characteristic_function_on_the_real_axis(self, p):
        m, s, g = p.grad_mean, p.grad_sigma, p.best_grad
        offset, linear = m @ m - g @ g, 4 * np.sum(m**2 * s**2)
        scale = np.sqrt(linear + 2 * np.sum(s**4))
        assume(abs(offset + s @ s) < 40 * scale)  # the real-axis rule must resolve the oscillation
        reference, cut_off = cf_positive_part(offset, linear, 1.0, s**2, 2 * s**2 * m)
        assert exact(p) == pytest.approx(reference, abs=1e-8 * scale + cut_off)

    @given(posteriors(dims=st.integers(2, 12), correlated=True), seeds)
    @examples(30)
    def test_full_against_monte_carlo(self, p, seed):
        chol = np.linalg.cholesky(p.grad_cov)

        def integrand(white):
            norm = np.sum((p.grad_mean + white @ chol.T) ** 2, -1)
            return np.maximum(norm - p.best_grad @ p.best_grad, 0.0)

        estimate, error = sampled(integrand, DRAWS, p.d, seed)
        value = gradient_increase_full(tensor(p.grad_mean), tensor(p.grad_cov), tensor(p.best_grad))
        size = float(np.trace(p.grad_cov) + p.grad_mean @ p.grad_mean + p.best_grad @ p.best_grad)
        assert abs(float(value) - estimate) <= ERRORS * error + (20 / DRAWS * size if error == 0 else 0)

    @given(posteriors(dims=st.integers(2, 12)), seeds)
    def test_invariant_under_mirroring_and_permutation(self, p, seed):
        rng = np.random.default_rng(seed)
        order, signs = rng.permutation(p.d), rng.choice([-1.0, 1.0], p.d)
        moved = gradient_increase(
            tensor((signs * p.grad_mean)[order]), tensor(p.grad_sigma[order]), tensor((signs * p.best_grad)[order])
        )
        assert float(moved) == pytest.approx(exact(p), rel=1e-9, abs=1e-300)

    @given(posteriors(dims=st.integers(2, 8), correlated=True), seeds)
    def test_full_is_invariant_under_rotation(self, p, seed):
        turn = np.linalg.qr(np.random.default_rng(seed).standard_normal((p.d, p.d)))[0]
        plain = gradient_increase_full(tensor(p.grad_mean), tensor(p.grad_cov), tensor(p.best_grad))
        turned = gradient_increase_full(
            tensor(turn @ p.grad_mean), tensor(turn @ p.grad_cov @ turn.T), tensor(turn @ p.best_grad)
        )
        scale = np.sqrt(2 * np.trace(p.grad_cov @ p.grad_cov) + 4 * p.grad_mean @ p.grad_cov @ p.grad_mean)
        size = float(p.grad_mean @ p.grad_mean + p.best_grad @ p.best_grad)
        assert float(turned) == pytest.approx(float(plain), abs=1e-8 * scale + 1e-14 * size)

    @given(posteriors(dims=st.integers(1, 40)))
    def test_never_below_the_increase_of_the_mean(self, p):
        """Jensen: E[max(V, 0)] >= max(E[V], 0)."""
        mean_increase = float(p.grad_mean @ p.grad_mean + p.grad_sigma @ p.grad_sigma - p.best_grad @ p.best_grad)
        assert exact(p) >= max(mean_increase, 0.0) * (1 - 1e-12)

    @given(posteriors(dims=st.integers(2, 8)), seeds)
    def test_some_partial_derivatives_known_exactly(self, p, seed):
        """sigma_i = 0 is the limit of small sigma_i, with finite derivatives."""
        known = np.random.default_rng(seed).random(p.d) < 0.5
        inputs = [tensor(x).requires_grad_() for x in (p.grad_mean, np.where(known, 0.0, p.grad_sigma), p.best_grad)]
        value = gradient_increase(*inputs)
        tiny = np.where(known, 1e-11 * p.grad_sigma, p.grad_sigma)
        near = float(gradient_increase(tensor(p.grad_mean), tensor(tiny), tensor(p.best_grad)))
        size = float(np.sum(p.grad_mean**2 + p.best_grad**2 + p.grad_sigma**2))
        assert value.item() == pytest.approx(near, abs=1e-9 * size)
        assert all(part.isfinite().all() for part in torch.autograd.grad(value, inputs))

    @pytest.mark.parametrize("rank", [0, 1, 2])
    def test_singular_covariances(self, rank):
        factor = np.random.default_rng(rank).standard_normal((4, 3, rank))
        cov = tensor(factor @ factor.swapaxes(-1, -2))
        mean, best = tensor(np.ones((4, 3))), tensor([0.5, 1.0, 1.5])
        value = gradient_increase_full(mean, cov, best)
        near = gradient_increase_full(mean, cov + 1e-11 * torch.eye(3), best)
        torch.testing.assert_close(value, near, rtol=1e-8, atol=1e-8)

    @pytest.mark.parametrize("d", [2, 3])
    def test_gradient_where_the_mean_is_at_the_threshold(self, d):
        """E|G|^2 = |g+|^2 exactly: both sides of the formula meet, and must not be mixed."""
        inputs = [torch.zeros(d, dtype=torch.float64), *torch.ones(2, d, dtype=torch.float64)]
        inputs = [x.requires_grad_() for x in inputs]
        assert torch.autograd.gradcheck(gradient_increase, inputs)
        covariance = torch.eye(d, dtype=torch.float64).requires_grad_()
        assert torch.autograd.gradcheck(gradient_increase_full, (inputs[0], covariance, inputs[2]))

    @given(posteriors(dims=st.integers(2, 6)), st.floats(2, 12))
    def test_gradient_in_the_tails(self, p, distance):
        """Derivatives by central differences where the threshold is many deviations above the mean."""
        m, s = p.grad_mean, p.grad_sigma
        threshold = np.sum(m**2 + s**2) + distance * np.sqrt(2 * np.sum(s**4) + 4 * np.sum(m**2 * s**2))
        best = np.sqrt(threshold / p.d) * np.ones(p.d)
        mean = tensor(m).requires_grad_()
        value = gradient_increase(mean, tensor(s), tensor(best))
        (slope,) = torch.autograd.grad(value, mean)
        h = 1e-5 * s[0]
        step = tensor(h * np.eye(p.d)[0])
        ahead, behind = (gradient_increase(tensor(m) + sign * step, tensor(s), tensor(best)) for sign in (1, -1))
        assert float(slope[0]) == pytest.approx(
            float(ahead - behind) / (2 * h), rel=1e-4, abs=1e-6 * value.item() / s[0]
        )

    @pytest.mark.parametrize("scale", [1e-150, 1e-80, 1e80, 1e100, 1e150])
    def test_scales_with_the_square_of_the_gradient(self, scale):
        mean, sigma, best = tensor([[0.3, -1.0, 2.0], [1.0, 0.5, 0.1], [1.0, 1.0, -1.0]])
        for form, spread in ((gradient_increase, sigma), (gradient_increase_full, torch.diag(sigma**2))):
            power = 1 if form is gradient_increase else 2
            value = form(scale * mean, scale**power * spread, scale * best) / scale / scale
            assert float(value) == pytest.approx(float(form(mean, spread, best)), rel=1e-9)

    def test_the_last_dimension_broadcasts(self):
        one, two = tensor([0.7]), tensor([0.7, 0.7])
        sigma, best = tensor([1.0, 0.5]), tensor([0.3, 0.4])
        assert torch.equal(gradient_increase(one, sigma, best), gradient_increase(two, sigma, best))
        assert torch.equal(
            gradient_increase(two, tensor([1.0]), best), gradient_increase(two, tensor([1.0, 1.0]), best)
        )

    def test_second_derivatives_are_refused(self):
        mean = torch.ones(2, dtype=torch.float64)
        with pytest.raises(RuntimeError, match="first derivatives only"):
            torch.autograd.functional.hessian(lambda x: gradient_increase(x, mean, mean), mean)

    @given(st.floats(6, 30))
    def test_far_tails_keep_three_digits(self, deviations):
        """Below 1e-14 of the deviation nothing is refined."""
        m, s = 0.5, 1.0
        best = np.sqrt(m**2 + s**2 + deviations * np.sqrt(2 * s**4 + 4 * m**2 * s**2))
        value = expected_positive_part(
            tensor(m**2 - best**2), tensor(4 * m**2 * s**2), 1.0, tensor([s**2]), tensor([2 * s**2 * m])
        )
        assert float(value) == pytest.approx(float(mp_increase_1d(m, s, best)), rel=1e-3)

    def test_no_threshold_gives_the_mean(self):
        mean, sigma = tensor([0.3, -2.0, 1e-6]), tensor([1.0, 1e-12, 3.0])
        value = gradient_increase(mean, sigma, torch.zeros(3, dtype=torch.float64))
        assert float(value) == pytest.approx(float((mean**2 + sigma**2).sum()), rel=1e-14)

    @pytest.mark.parametrize("d", [1, 2, 5, 100])
    @pytest.mark.parametrize("sigma", [1e-12, 1e-6, 1.0])
    @pytest.mark.parametrize("gap", [-1e3, -1.0, 0.0, 1.0, 1e3])
    def test_finite_with_a_finite_gradient(self, d, sigma, gap):
        mean = torch.full((d,), 0.7, dtype=torch.float64, requires_grad=True)
        spread = torch.full((d,), sigma, dtype=torch.float64, requires_grad=True)
        best = torch.full((d,), 0.7 + gap * sigma, dtype=torch.float64, requires_grad=True)
        value = gradient_increase(mean, spread, best)
        assert value >= 0
        for gradient in torch.autograd.grad(value, (mean, spread, best)):
            assert gradient.isfinite().all()

    def test_gradient(self):
        generator = torch.Generator().manual_seed(1)
        for d in (1, 2, 4):
            mean, sigma, best = torch.randn(3, 5, d, generator=generator, dtype=torch.float64)
            inputs = [x.clone().requires_grad_() for x in (mean, sigma.abs() + 0.2, best)]
            assert torch.autograd.gradcheck(gradient_increase, inputs)

    @pytest.mark.parametrize("d", [2, 3])
    def test_full_gradient_also_at_repeated_eigenvalues(self, d):
        generator = torch.Generator().manual_seed(2)
        mean, best = torch.randn(2, 3, d, generator=generator, dtype=torch.float64)
        factor = torch.randn(3, d, d, generator=generator, dtype=torch.float64)
        covariance = factor @ factor.mT
        covariance[1] = torch.eye(d)

        def symmetric(mean, matrix, best):
            return gradient_increase_full(mean, (matrix + matrix.mT) / 2, best)

        inputs = [x.clone().requires_grad_() for x in (mean, covariance, best)]
        assert torch.autograd.gradcheck(symmetric, inputs)


def test_the_two_are_not_close():
    """EI_s-bar is a different function, not an estimate of EI_s."""
    rng = np.random.default_rng(0)
    mean, sigma, best = tensor(rng.standard_normal((3, 3)))
    sigma = sigma.abs()
    assert gradient_increase(mean, sigma, best) > 5 * orthant_gradient_increase(mean, sigma, best).abs()
