"""How long a whole EI-GN suggestion takes beside plain BoTorch: one more point, refit all, search.

Data, restarts and raw samples are the same for all; the points that are added are a fixed sequence. BoTorch runs in its
fastest configuration, found by trying them all on the first step: one list of models or one batched model, one or two
threads; cold, as users run it, and from the previous hyperparameters. So that seconds are not bought with worse
suggestions, all are judged by one acquisition on one model: ours of that step.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Any, Final, Literal

import numpy as np
import torch
from botorch.optim.optimize import optimize_acqf
from rich.console import Console
from rich.table import Table
from torch import Tensor

from eign.acquisition import EIGN, incumbent
from eign.models import IndependentGradientGP, JointGradientGP, fit
from eign.search import default_effort, maximize
from eign.search.candidates import global_candidates
from eign.search.rescaling import rescaled
from eign_lab.speed import botorch_fits, botorch_suggestions
from eign_lab.speed.botorch_suggestions import Suggest
from eign_lab.speed.fits import REST, Samples, limited_threads, promising, samples
from eign_lab.speed.printed import show_status, transposed

Start = Literal["cold", "warm"]
ModelName = Literal["independent", "joint"]

STARTS: Final[tuple[Start, ...]] = ("cold", "warm")
SIZES: Final[dict[ModelName, tuple[tuple[int, int], ...]]] = {
    "independent": ((2, 10), (6, 50), (8, 100), (14, 200), (14, 500)),
    "joint": ((4, 50), (6, 60)),
}
BARS: Final[Mapping[Start, float]] = {"cold": 20.0, "warm": 10.0}
"""How many times faster than BoTorch a suggestion is to be."""

ALPHA: Final = 0.6
_MODELS: Final[dict[ModelName, Any]] = {"independent": IndependentGradientGP, "joint": JointGradientGP}
_PEERS: Final[dict[ModelName, dict[str, Suggest]]] = {
    "independent": {form: botorch_suggestions.independent(form) for form in botorch_fits.FORMS},
    "joint": {"derivative kernel": botorch_suggestions.joint},
}


@dataclass(frozen=True)
class PeerSpeed:
    """BoTorch from one kind of start: its fastest configuration, and seconds a suggestion."""

    form: str
    threads: int
    seconds: float


@dataclass(frozen=True)
class SuggestionSpeed:
    """One row of the table; seconds are medians over the steps.

    Attributes:
        model: "independent" is EI-GN, "joint" is dEI-GN.
        dim: Dimensions.
        n: Points before the first step.
        threads: The number of threads, one or two, with which ours is faster.
        fit_seconds: Ours, adding a point and refitting.
        search_seconds: Ours, maximising the acquisition.
        peers: BoTorch, cold and warm.
        not_lower: How often ours has the higher acquisition value, or the same to rounding, of how many comparisons.
        searched: The same against BoTorch's search, `optimize_acqf`, of our acquisition on our model.
        shortfall: The worst deficit of ours in all comparisons, relative to the value of the other.
    """

    model: ModelName
    dim: int
    n: int
    threads: int
    fit_seconds: float
    search_seconds: float
    peers: dict[Start, PeerSpeed]
    not_lower: tuple[int, int]
    searched: tuple[int, int]
    shortfall: float

    @property
    def seconds(self) -> float:
        """Of a whole suggestion of ours."""
        return self.fit_seconds + self.search_seconds

    def ratio(self, start: Start) -> float:
        """How many times as long BoTorch takes."""
        return self.peers[start].seconds / self.seconds


@dataclass
class _Ours:
    """Our model as it grows, and the seconds of each step."""

    model: Any
    threads: int
    fit_seconds: list[float] = field(default_factory=list)
    search_seconds: list[float] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        return median(map(sum, zip(self.fit_seconds, self.search_seconds, strict=True)))


@dataclass
class _Peer:
    """BoTorch in one configuration, with what it starts from next and its seconds."""

    start: Start
    form: str
    threads: int
    suggest: Suggest
    fitted: Any = None
    seconds: list[float] = field(default_factory=list)


def measure_suggestion(
    model: ModelName,
    dim: int,
    n: int,
    *,
    steps: int = 10,
    peer_steps: int | None = None,
    show: Callable[[str], object] = lambda _: None,
) -> SuggestionSpeed:
    """Our suggestions and then BoTorch's at one size, each without a pause, as in a loop that does nothing else.

    Args:
        model: "independent" or "joint".
        dim: Dimensions; see `eign_lab.speed.fits.samples` for the functions.
        n: Points before the first step.
        steps: How many points are added, one at a time, with a suggestion after each.
        peer_steps: How many of these steps BoTorch takes; it needs minutes for each at 14 x 500.
        show: Is told what is being done.
    """
    data = samples(dim, n + steps)
    runs = [_our_start(model, data.first(n), threads) for threads in (1, 2)]
    peers = _fastest_peers(model, data, n, runs[0], show)
    time.sleep(REST)
    found, _ = ([_our_step(run, data.only(i), seed=i) for i in range(n, n + steps)] for run in runs)
    deficits, searched = [], []
    for i, (acquisition, x) in enumerate(found[:peer_steps]):
        show(f"step {i + 1} of {steps}")
        others = [_peer_step(peer, data.first(n + i + 1), acquisition.weights) for peer in peers]
        deficits += [_deficit(acquisition, x, other) for other in others]
        searched.append(_deficit(acquisition, x, _botorch_search(acquisition)))
    run = min(runs, key=lambda run: run.seconds)
    return SuggestionSpeed(
        model=model,
        dim=dim,
        n=n,
        threads=run.threads,
        fit_seconds=median(run.fit_seconds),
        search_seconds=median(run.search_seconds),
        peers={peer.start: PeerSpeed(peer.form, peer.threads, median(peer.seconds)) for peer in peers},
        not_lower=(sum(deficit <= 1e-6 for deficit in deficits), len(deficits)),
        searched=(sum(deficit <= 1e-6 for deficit in searched), len(searched)),
        shortfall=max(0.0, *deficits, *searched),
    )


def _our_start(name: ModelName, data: Samples, threads: int) -> _Ours:
    with limited_threads(threads):
        return _Ours(fit(_MODELS[name](*data)), threads)


def _our_step(run: _Ours, new: Samples, *, seed: int) -> tuple[EIGN, Tensor]:
    """One more point, a refit and a suggestion; what was maximised, and the point."""
    with limited_threads(run.threads):
        started = time.perf_counter()
        run.model = fit(run.model.append(*new))
        fitted = time.perf_counter()
        acquisition = _ei_gn(run.model)
        found = maximize(acquisition, seed=seed)
        run.search_seconds.append(time.perf_counter() - fitted)
        run.fit_seconds.append(fitted - started)
        return _maximized(acquisition, seed=seed), found.x


def _peer_step(peer: _Peer, seen: Samples, weights: tuple[float, float]) -> Tensor:
    effort = default_effort(seen.x.shape[1])
    with limited_threads(peer.threads):
        started = time.perf_counter()
        start = peer.fitted if peer.start == "warm" else None
        found = peer.suggest(seen, effort=effort, weights=weights, start=start)
        peer.seconds.append(time.perf_counter() - started)
    peer.fitted = found.fitted
    return found.x


def _fastest_peers(name: ModelName, data: Samples, n: int, ours: _Ours, show: Callable[[str], object]) -> list[_Peer]:
    """A suggestion in every configuration, cold and then warm with one point more; the fastest of each kind."""
    weights = _maximized(_ei_gn(ours.model), seed=n).weights

    def try_out(form: str, threads: int) -> list[_Peer]:
        show(f"BoTorch as {form} with {threads} thread{'s' * (threads > 1)}")
        cold, warm = (_Peer(start, form, threads, _PEERS[name][form]) for start in STARTS)
        _peer_step(cold, data.first(n), weights)
        before = warm.fitted = cold.fitted
        _peer_step(warm, data.first(n + 1), weights)
        warm.fitted = before
        return [cold, warm]

    tried: list[_Peer] = []
    for form in _PEERS[name]:
        try:
            tried += try_out(form, 1)
        except RuntimeError as error:
            # One batched model of 15 processes wants 30 GB to search with 500 points.
            if "allocate memory" not in str(error):
                raise
            show(f"BoTorch as {form} does not fit into memory")
    forms = {peer.form for peer in tried}
    for form in promising({form: [p.seconds[0] for p in tried if p.form == form] for form in sorted(forms)}):
        tried += try_out(form, 2)
    fastest = [min((p for p in tried if p.start == start), key=lambda p: p.seconds[0]) for start in STARTS]
    for peer in fastest:
        peer.seconds.clear()
    return fastest


def _ei_gn(model: Any) -> EIGN:
    best = incumbent(model)
    return EIGN(model, best.best_f, best.best_grad, alpha=ALPHA)


def _maximized(acquisition: EIGN, *, seed: int) -> EIGN:
    """What the search maximised: the acquisition with its terms rescaled over the pool."""
    dim = acquisition.model.observations.dim
    pool = global_candidates(default_effort(dim).raw_samples, dim, np.random.default_rng(seed))
    return acquisition.weighted(*rescaled(acquisition, acquisition.pool_terms(pool)).weights)


def _botorch_search(acquisition: EIGN) -> Tensor:
    """Where BoTorch's search ends, with the same restarts and raw samples, on our model."""
    dim = acquisition.model.observations.dim
    effort = default_effort(dim)
    bounds = torch.tensor([[0.0] * dim, [1.0] * dim], dtype=torch.float64)
    x, _ = optimize_acqf(
        acquisition,
        bounds,
        q=1,
        num_restarts=effort.restarts,
        raw_samples=effort.raw_samples,
        options={"seed": 0, "init_batch_limit": 256},
    )
    return x[0]


def _deficit(acquisition: EIGN, ours: Tensor, other: Tensor) -> float:
    """How much lower the acquisition is at ours, relative to the larger magnitude and to 1e-9 deviations of y."""
    mine, theirs = acquisition.evaluate(torch.stack([ours, other.detach()]).numpy())
    return float((theirs - mine) / max(abs(theirs), abs(mine), 1e-9 * acquisition.y_scale))


def suggestion_table(rows: Sequence[SuggestionSpeed]) -> Table:
    """The measurements with their bars, a column each."""
    columns = [
        {
            "seconds a suggestion": f"{row.seconds:.4f}",
            "fit + search": f"{row.fit_seconds:.4f} + {row.search_seconds:.4f}",
            **{
                f"BoTorch {start}": f"{row.peers[start].seconds:.3f} s, {row.peers[start].form}, "
                f"{row.peers[start].threads} thread{'s' * (row.peers[start].threads > 1)}"
                for start in STARTS
            },
            **{f"times as fast as {start} (goal {BARS[start]:.0f})": f"{row.ratio(start):.0f}" for start in STARTS},
            "suggestions not lower": "{} of {}".format(*row.not_lower),
            "the same on our model": "{} of {}".format(*row.searched),
            "worst shortfall": f"{row.shortfall:.1e}",
        }
        for row in rows
    ]
    headings = [f"{'EI-GN' if row.model == 'independent' else 'dEI-GN'} {row.dim}, {row.n}" for row in rows]
    return transposed("One more point, all refitted, acquisition maximised: d, n", headings, columns)


def show_suggestion_speed(*, steps: int = 10, peer_steps: int | None = None, largest: int = 500) -> None:
    """Measure every size with at most `largest` points; each row is printed when it is there, for some take minutes."""
    console = Console()
    for model, sizes in SIZES.items():
        for dim, n in sizes:
            if n <= largest:
                with console.status("") as status:
                    show = partial(show_status, status, f"{model}, d = {dim}, n = {n}")
                    row = measure_suggestion(model, dim, n, steps=steps, peer_steps=peer_steps, show=show)
                console.print(suggestion_table([row]))
