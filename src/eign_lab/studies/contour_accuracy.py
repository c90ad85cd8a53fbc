"""Largest error of the exact EI_s and EI_g over random cases, against the same contour with 12 times the nodes.

    python -m eign_lab.studies.contour_accuracy [--cases 6000]

The tests compare with other methods; this looks for the rare point at which the error estimate is too optimistic.
"""

import argparse

import torch
from torch import Tensor

from eign.formulas import characteristic


def cases(n: int, d: int, kind: str) -> tuple[Tensor, ...]:
    """Offset, linear variance, weight, variances and covariances of V, over orders of magnitude in each."""
    draw = torch.Generator().manual_seed(1000 * d + (kind == "EI_g"))

    def uniform(low: float, high: float, *shape: int) -> Tensor:
        return low + (high - low) * torch.rand(*shape, generator=draw, dtype=torch.float64)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=draw, dtype=torch.float64)

    mean = normal(n, d) * 10 ** (uniform(-2, 2, n, 1) + uniform(-1, 1, n, d))
    variance = 100 ** (uniform(-2, 2, n, 1) + uniform(-1.5, 1.5, n, d))
    second = mean.square() + variance
    if kind == "EI_s":
        best = normal(n, d) * second.mean(-1, keepdim=True).sqrt() * 10 ** uniform(-1, 1, n, 1)
        offset, weight = (mean.square() - best.square()).sum(-1), torch.ones(n, dtype=torch.float64)
        return offset, 4 * (mean.square() * variance).sum(-1), weight, variance, 2 * variance * mean
    weight = -(10 ** uniform(-3, 2, n)) / second.sum(-1)
    pull = 2 * weight.unsqueeze(-1) * mean
    linear = 100 ** uniform(-3, 1, n) + (pull.square() * variance).sum(-1)
    scale = (linear + 2 * (weight.unsqueeze(-1) * variance).square().sum(-1)).sqrt()
    return 3 * scale * normal(n) - weight * variance.sum(-1), linear, weight, variance, pull * variance


def main() -> None:
    """Print a line for each quantity and dimension."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=6000)
    count = parser.parse_args().cases
    panels = characteristic._FIRST_PANELS
    for kind in ("EI_s", "EI_g"):
        for d in (1, 2, 3, 6, 20):
            arguments = cases(count, d, kind)
            scale = (arguments[1] + 2 * (arguments[2].unsqueeze(-1) * arguments[3]).square().sum(-1)).sqrt()
            value = characteristic.expected_positive_part(*arguments)
            characteristic._FIRST_PANELS = 12 * panels
            fine = characteristic.expected_positive_part(*arguments)
            characteristic._FIRST_PANELS = panels
            error = ((value - fine) / scale).abs()
            print(f"{kind} d = {d:<3} {count} cases: largest error {error.max():.1e} of the deviation of V")


if __name__ == "__main__":
    main()
