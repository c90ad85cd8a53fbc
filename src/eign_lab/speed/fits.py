"""How fast the surrogates are: beside plain BoTorch, and beside the arithmetic limit.

Everything runs in one process on the same data. A step is "one more point, then refit all d + 1 processes to
convergence". BoTorch runs in its fastest configuration, found by trying them all: a list of models or one batched
model, one or two threads; once cold, as users run it, and once from the previous hyperparameters.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import Final, Literal, NamedTuple, TypeVar

import numpy as np
import torch
from botorch.test_functions.synthetic import Ackley, Cosine8, Hartmann, SyntheticTestFunction
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]
from torch import Tensor

from eign.arrays import Array
from eign.models.independent.fitting import FIRST_JITTER
from eign.models.independent.map_objective import FitProblem, negative_log_posterior
from eign.models.independent.model import IndependentGradientGP
from eign.models.kernels import matern52
from eign_lab.speed import botorch_fits

Start = Literal["cold", "warm"]
Form = TypeVar("Form", bound=str)

REST: Final = 0.3
"""Seconds before the first of our steps: the threads of a parallel region of BoTorch go on spinning for 0.2 s."""

FIT_SIZES: Final = ((6, 50), (8, 100), (14, 200), (14, 500))
ALLOWED_GAP: Final = 1e-4
"""How much worse, per datum, our MAP objective may be than BoTorch's."""


class Samples(NamedTuple):
    """Points of the unit cube `n x d`, values `n x 1` and gradients `n x d`."""

    x: Tensor
    y: Tensor
    grad: Tensor

    def first(self, n: int) -> "Samples":
        """The first n."""
        return Samples(*(part[:n] for part in self))

    def only(self, i: int) -> "Samples":
        """The one with index i."""
        return Samples(*(part[i : i + 1] for part in self))

    def standardized(self) -> Tensor:
        """Value and partial derivatives, each by its own mean and deviation, `n x (d + 1)`."""
        together = torch.cat([self.y, self.grad], dim=1)
        return (together - together.mean(dim=0)) / together.std(dim=0)


@dataclass(frozen=True)
class PeerTiming:
    """Seconds a step of one BoTorch configuration."""

    form: botorch_fits.Form
    threads: int
    start: Start
    seconds: float


@dataclass(frozen=True)
class FitSpeed:
    """One row of the comparison; seconds are medians over the steps.

    Attributes:
        dim: Dimensions.
        n: Points before the first step.
        seconds: Ours.
        threads: The number of threads, one or two, with which ours is faster.
        first_seconds: Our first fit, with several starts.
        evaluations: Of one process's MAP objective, mean over the steps, all processes together.
        limits: Ours over the seconds that the factorisations and inverses of these evaluations take at the rate of
            `dgemm`: on one thread, and both on two.
        cold: BoTorch as users run it.
        warm: BoTorch from the previous hyperparameters.
        gap: Ours minus BoTorch's MAP objective per datum, the worst of all processes, steps and starts.
        posterior_seconds: 20 points, all moments and their derivatives, ours.
        peer_posterior_seconds: The same by BoTorch and autograd, the faster form.
    """

    dim: int
    n: int
    seconds: float
    threads: int
    first_seconds: float
    evaluations: float
    limits: tuple[float, float]
    cold: PeerTiming
    warm: PeerTiming
    gap: float
    posterior_seconds: float
    peer_posterior_seconds: float


@dataclass
class _Ours:
    """Our model as it grows, with seconds and evaluations of each step."""

    model: IndependentGradientGP
    threads: int
    first_seconds: float
    seconds: list[float] = field(default_factory=list)
    evaluations: list[int] = field(default_factory=list)


@dataclass
class _Peer:
    """BoTorch's model as it grows, with the seconds of each step."""

    start: Start
    form: botorch_fits.Form
    threads: int
    model: botorch_fits.PeerModel
    seconds: list[float] = field(default_factory=list)


def measure_fit(
    dim: int,
    n: int,
    *,
    steps: int = 10,
    peer_steps: int | None = None,
    show: Callable[[str], object] = lambda _: None,
) -> FitSpeed:
    """Our steps and then BoTorch's at one size, each without a pause, as in a loop that does nothing else.

    Args:
        dim: 6 (Hartmann), 8 (Cosine), or another (Ackley).
        n: Points before the first step.
        steps: How many points are added, one at a time.
        peer_steps: How many of these steps BoTorch takes; it needs minutes for each at 14 x 500.
        show: Is told what is being done.
    """
    data = samples(dim, n + steps)
    runs = [_our_start(data.first(n), threads) for threads in (1, 2)]
    peers = _fastest_peers(data, n, show)
    time.sleep(REST)
    thetas = [[_our_step(run, data.only(i)) for i in range(n, n + steps)] for run in runs]
    gap = -np.inf
    for i in range(min(peer_steps or steps, steps)):
        show(f"step {i + 1} of {steps}")
        for peer in peers:
            seen = data.first(n + i + 1)
            _peer_step(peer, seen)
            gap = max(gap, *(_gap(seen, ours[i], peer.model.theta()) for ours in thetas))
    run = min(runs, key=lambda run: median(run.seconds))
    cold, warm = (PeerTiming(peer.form, peer.threads, peer.start, median(peer.seconds)) for peer in peers)
    evaluations = sum(run.evaluations) / steps
    ours, theirs = _posterior_seconds(run.model, data)
    return FitSpeed(
        dim=dim,
        n=n,
        seconds=median(run.seconds),
        threads=run.threads,
        first_seconds=run.first_seconds,
        evaluations=evaluations,
        limits=(_over_limit(runs[0], n + steps / 2), _over_limit(runs[1], n + steps / 2)),
        cold=cold,
        warm=warm,
        gap=gap,
        posterior_seconds=ours,
        peer_posterior_seconds=theirs,
    )


def samples(dim: int, n: int) -> Samples:
    """A test function and its gradient at scrambled Sobol points, maximised."""
    function: SyntheticTestFunction
    if dim == 6:
        function = Hartmann(6, negate=True)
    elif dim == 8:
        function = Cosine8()
    else:
        function = Ackley(dim, negate=True, bounds=[(-5.0, 5.0)] * dim)
    x = torch.quasirandom.SobolEngine(dim, scramble=True, seed=0).draw(n, dtype=torch.float64).requires_grad_()
    bounds: Tensor = function.get_buffer("bounds").to(torch.float64)
    y = function(bounds[0] + (bounds[1] - bounds[0]) * x)
    (grad,) = torch.autograd.grad(y.sum(), x)
    return Samples(x.detach(), y.detach().unsqueeze(-1), grad)


def dgemm_rate(threads: int) -> float:
    """Floating point operations a second of a product of 1000 x 1000 matrices, best of ten."""
    matrix = np.random.default_rng(0).random((1000, 1000))
    with limited_threads(threads):
        return 2e9 / min(_seconds(lambda: matrix @ matrix) for _ in range(10))


def _over_limit(run: _Ours, size: float) -> float:
    operations = sum(run.evaluations) / len(run.evaluations) * size**3
    return median(run.seconds) * dgemm_rate(run.threads) / operations


def _our_start(data: Samples, threads: int) -> _Ours:
    with limited_threads(threads):
        model = IndependentGradientGP(*data)
        return _Ours(model, threads, _seconds(model.fit_hyperparameters))


def _our_step(run: _Ours, new: Samples) -> Array:
    """One more point and a refit; the hyperparameters."""
    with limited_threads(run.threads):
        started = time.perf_counter()
        run.model = run.model.append(*new)
        result = run.model.fit_hyperparameters()
        run.seconds.append(time.perf_counter() - started)
    run.evaluations.append(result.evaluations)
    return result.theta


def _peer_step(peer: _Peer, seen: Samples) -> None:
    with limited_threads(peer.threads):
        started = time.perf_counter()
        previous = peer.model if peer.start == "warm" else None
        peer.model = botorch_fits.build(seen.x, seen.standardized(), peer.form, start=previous)
        botorch_fits.fit(peer.model)
        peer.seconds.append(time.perf_counter() - started)


def _fastest_peers(data: Samples, n: int, show: Callable[[str], object]) -> list[_Peer]:
    """Fitted to n points in every configuration, cold and then warm with one point more; the fastest of each kind."""
    before, after = data.first(n), data.first(n + 1)

    def try_out(form: botorch_fits.Form, threads: int) -> list[_Peer]:
        show(f"BoTorch as {form} with {threads} thread{'s' * (threads > 1)}")
        fitted = botorch_fits.build(before.x, before.standardized(), form)
        with limited_threads(threads):
            cold_seconds = _seconds(lambda: botorch_fits.fit(fitted))
        warm = _Peer("warm", form, threads, fitted)
        _peer_step(warm, after)
        warm.model = fitted
        return [_Peer("cold", form, threads, fitted, [cold_seconds]), warm]

    tried = [peer for form in botorch_fits.FORMS for peer in try_out(form, 1)]
    for form in promising({form: [p.seconds[0] for p in tried if p.form == form] for form in botorch_fits.FORMS}):
        tried += try_out(form, 2)
    chosen = [min((p for p in tried if p.start == start), key=lambda p: p.seconds[0]) for start in ("cold", "warm")]
    for peer in chosen:
        peer.seconds.clear()
    return chosen


def promising(seconds: Mapping[Form, Sequence[float]]) -> list[Form]:
    """Forms worth trying with two threads: two are at most twice as fast as one, so others cannot become the fastest.

    >>> promising({"list": [90.0, 14.0], "batched": [300.0, 40.0]})
    ['list']

    Args:
        seconds: With one thread, for each form from each kind of start.
    """
    fastest = [min(times) for times in zip(*seconds.values(), strict=True)]
    return [
        form
        for form, times in seconds.items()
        if any(time < 2.0 * best for time, best in zip(times, fastest, strict=True))
    ]


def _gap(seen: Samples, ours: Array, theirs: Array) -> float:
    """Largest excess of our MAP objective over theirs per datum, over the processes."""
    targets, n = seen.standardized().numpy().T, len(seen.x)
    excess = []
    for target, our_theta, their_theta in zip(targets, ours, theirs, strict=True):
        problem = FitProblem(seen.x.numpy(), np.ascontiguousarray(target), np.zeros(n))
        mine, peer = (
            negative_log_posterior(theta, problem, matern52, jitter=FIRST_JITTER).value
            for theta in (our_theta, their_theta)
        )
        excess.append(float(mine - peer) / n)
    return max(excess)


def _posterior_seconds(model: IndependentGradientGP, data: Samples) -> tuple[float, float]:
    """All moments with derivatives at 20 points: ours, and the faster of BoTorch's two forms."""
    points = torch.rand(20, data.x.shape[1], dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    ours, theirs = [], []
    for threads in (1, 2):
        with limited_threads(threads):
            ours.append(_best_seconds(lambda: model.moments_and_jacobians(points)))
            for form in botorch_fits.FORMS:
                peer = botorch_fits.build(data.x, data.standardized(), form)
                peer.model.eval()
                theirs.append(_best_seconds(lambda: botorch_fits.posterior_and_gradient(peer, points)))  # noqa: B023
    return min(ours), min(theirs)


def _best_seconds(action: Callable[[], object], repeats: int = 7) -> float:
    """Median of the repetitions after a first one that fills caches."""
    action()
    return median(_seconds(action) for _ in range(repeats))


def _seconds(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


@contextmanager
def limited_threads(count: int) -> Iterator[None]:
    """That many threads for PyTorch and for the BLAS of NumPy and SciPy."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        with ThreadpoolController().limit(limits=count):
            yield
    finally:
        torch.set_num_threads(before)
