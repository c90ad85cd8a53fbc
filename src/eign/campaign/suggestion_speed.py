"""How long a whole EI-GN suggestion takes beside plain BoTorch: one more point, refit all, search.

Data, restarts and raw samples are the same for all; the points that are added are a fixed sequence. BoTorch runs in its
fastest configuration, found by trying them all on the first step: one list of models or one batched model, one or two
threads; cold, as users run it, and from the previous hyperparameters. So that seconds are not bought with worse
suggestions, all are judged by one acquisition on one model: ours of that step.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final, Literal

import numpy as np
import torch
from botorch.optim.optimize import optimize_acqf
from rich.console import Console
from rich.table import Table
from torch import Tensor

from eign.acquisition import EIGN, incumbent
from eign.campaign import botorch_fits, botorch_suggestions
from eign.campaign.botorch_suggestions import Suggest
from eign.campaign.speed import Samples, limited_threads, samples
from eign.models import IndependentGradientGP, JointGradientGP, fit
from eign.search import default_effort, maximize
from eign.search.candidates import global_candidates
from eign.search.rescaling import rescaled

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
    """BoTorch from one kind of start: its fastest configuration, seconds a suggestion, and its suggestions."""

    form: str
    threads: int
    seconds: float
    suggestions: list[Tensor]


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


@dataclass(frozen=True)
class _Run:
    """Our steps: seconds of fit and search, what was maximised and what was suggested."""

    fit_seconds: list[float]
    search_seconds: list[float]
    acquisitions: list[EIGN]
    suggestions: list[Tensor]

    @property
    def seconds(self) -> float:
        return median(map(sum, zip(self.fit_seconds, self.search_seconds, strict=True)))


def measure_suggestion(
    model: ModelName, dim: int, n: int, *, steps: int = 10, peer_steps: int | None = None
) -> SuggestionSpeed:
    """Our suggestions beside BoTorch's at one size.

    Args:
        model: "independent" or "joint".
        dim: Dimensions; see `eign.campaign.speed.samples` for the functions.
        n: Points before the first step.
        steps: How many points are added, one at a time, with a suggestion after each.
        peer_steps: How many of these steps BoTorch takes; it needs half a minute for each at 14 x 500.
    """
    data = samples(dim, n + steps)
    runs = {threads: _our_steps(model, data, n, steps, threads) for threads in (1, 2)}
    threads = min(runs, key=lambda count: runs[count].seconds)
    run = runs[threads]
    peers = _peer_steps(model, data, n, peer_steps or steps, [target.weights for target in run.acquisitions])
    pairs = [
        (run.acquisitions[step], run.suggestions[step], other)
        for peer in peers.values()
        for step, other in enumerate(peer.suggestions)
    ]
    deficits = np.array([_deficit(*pair) for pair in pairs])
    ours_searched = zip(run.acquisitions, run.suggestions, strict=True)
    searched = np.array([_deficit(a, x, _botorch_search(a)) for a, x in list(ours_searched)[: peer_steps or steps]])
    return SuggestionSpeed(
        model=model,
        dim=dim,
        n=n,
        threads=threads,
        fit_seconds=median(run.fit_seconds),
        search_seconds=median(run.search_seconds),
        peers=peers,
        not_lower=(int((deficits <= 1e-6).sum()), len(deficits)),
        searched=(int((searched <= 1e-6).sum()), len(searched)),
        shortfall=float(max(0.0, deficits.max(), searched.max())),
    )


def _our_steps(name: ModelName, data: Samples, n: int, steps: int, threads: int) -> _Run:
    run = _Run([], [], [], [])
    with limited_threads(threads):
        model = fit(_MODELS[name](*data.first(n)))
        for i in range(n, n + steps):
            started = time.perf_counter()
            model = fit(model.append(*data.only(i)))
            fitted = time.perf_counter()
            best = incumbent(model)
            acquisition = EIGN(model, best.best_f, best.best_grad, alpha=ALPHA)
            found = maximize(acquisition, seed=i)
            run.search_seconds.append(time.perf_counter() - fitted)
            run.fit_seconds.append(fitted - started)
            run.acquisitions.append(_maximized(acquisition, seed=i))
            run.suggestions.append(found.x)
    return run


def _maximized(acquisition: EIGN, *, seed: int) -> EIGN:
    """What the search maximised: the acquisition with its terms rescaled over the pool."""
    dim = acquisition.model.observations.dim
    pool = global_candidates(default_effort(dim).raw_samples, dim, np.random.default_rng(seed))
    return acquisition.weighted(*rescaled(acquisition, acquisition.terms(pool)).weights)


def _peer_steps(
    name: ModelName, data: Samples, n: int, steps: int, weights: Sequence[tuple[float, float]]
) -> dict[Start, PeerSpeed]:
    """All configurations on the first step, and the fastest of each start on the others."""
    effort = default_effort(data.x.shape[1])
    trials: dict[Start, list[tuple[float, str, int, Any, Tensor]]] = {start: [] for start in STARTS}
    for form, suggest in _PEERS[name].items():
        for threads in (1, 2):
            with limited_threads(threads):
                # The fit before the first step, which the warm start needs, is the trial of the cold one.
                started = time.perf_counter()
                before = suggest(data.first(n), effort=effort, weights=weights[0], start=None)
                trials["cold"].append((time.perf_counter() - started, form, threads, None, before.x))
                started = time.perf_counter()
                first = suggest(data.first(n + 1), effort=effort, weights=weights[0], start=before.fitted)
                trials["warm"].append((time.perf_counter() - started, form, threads, first.fitted, first.x))
    peers: dict[Start, PeerSpeed] = {}
    for start in STARTS:
        seconds, form, threads, fitted, x = min(trials[start], key=lambda trial: trial[0])
        # The cold trial was one point short; its time counts, its suggestion was for other data.
        times, suggestions = ([seconds], [x]) if start == "warm" else ([], [])
        with limited_threads(threads):
            for step in range(len(suggestions), steps):
                started = time.perf_counter()
                found = _PEERS[name][form](
                    data.first(n + step + 1),
                    effort=effort,
                    weights=weights[step],
                    start=fitted if start == "warm" else None,
                )
                times.append(time.perf_counter() - started)
                fitted = found.fitted
                suggestions.append(found.x)
        peers[start] = PeerSpeed(form, threads, median(times), suggestions)
    return peers


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
    """The measurements with their bars."""
    table = Table(title="One more point, all refitted, acquisition maximised: seconds a suggestion")
    for heading in ("method", "d, n", "eign", "fit + search", *(f"BoTorch {start}" for start in STARTS)):
        table.add_column(heading, justify="right")
    for heading in (*(f"ratio ({BARS[start]:.0f})" for start in STARTS), "not lower", "same model", "worst"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(
            "EI-GN" if row.model == "independent" else "dEI-GN",
            f"{row.dim}, {row.n}",
            f"{row.seconds:.4f}",
            f"{row.fit_seconds:.4f} + {row.search_seconds:.4f}",
            *(f"{peer.seconds:.3f} ({peer.form}, {peer.threads})" for peer in row.peers.values()),
            *(f"{row.ratio(start):.0f}" for start in STARTS),
            "{}/{}".format(*row.not_lower),
            "{}/{}".format(*row.searched),
            f"{row.shortfall:.1e}",
        )
    return table


def show_suggestion_speed(*, steps: int = 10, peer_steps: int | None = None, largest: int = 500) -> None:
    """Measure every size with at most `largest` points and print the table."""
    console = Console()
    rows = []
    for model, sizes in SIZES.items():
        for dim, n in sizes:
            if n <= largest:
                with console.status(f"{model}, d = {dim}, n = {n}"):
                    rows.append(measure_suggestion(model, dim, n, steps=steps, peer_steps=peer_steps))
    console.print(suggestion_table(rows))
