"""Heat a room without a hot spot: python examples/heat_design.py [--picture FILE].

A small and a large heater warm a room that a wall with a door divides, with a cold window in one corner. Where should
they stand, and how strong should they be, so that three desks are as near to 20 degrees as possible? Nowhere may the
floor be hotter than 36 degrees, which is known only after a simulation, and the fuse allows 1.35 kW in all, which is
known before. A heater on the wrong side of the wall is a local optimum.

One run gives the temperature. One adjoint gives the gradient of the comfort by all six parameters, a second one that of
the hottest spot: each costs one more linear system with the same matrix.
"""

import argparse
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import LinearConstraint, OptimizeResult
from scipy.sparse import coo_matrix
from scipy.sparse.linalg import factorized

import eign

SIDE = 24
SPACING = 1.0 / SIDE
WALL, DOOR = 0.5, (0.42, 0.58)
LOSS, WINDOW, WIDTH, SHARPNESS = 4.0, 4.0, 0.08, 2.0
WANTED, HOTTEST, FUSE = 20.0, 36.0, 1.35
DESKS = ((0.2, 0.8), (0.3, 0.2), (0.8, 0.25))

# --8<-- [start:problem]
BOUNDS = {
    "small x": (0.05, 0.95),
    "small y": (0.05, 0.95),
    "small kW": (0.1, 0.6),
    "large x": (0.05, 0.95),
    "large y": (0.05, 0.95),
    "large kW": (0.4, 1.5),
}
CONSTRAINTS = [
    {"hottest spot": (None, HOTTEST)},  # what the simulation returns beside its value
    LinearConstraint([[0, 0, 1, 0, 0, 1]], -np.inf, FUSE),  # known: small kW + large kW
]
# --8<-- [end:problem]
CENTRES = (np.arange(SIDE) + 0.5) * SPACING
X, Y = (axis.ravel() for axis in np.meshgrid(CENTRES, CENTRES))
AT_DESKS = np.mean([np.hypot(X - x, Y - y) < 0.12 for x, y in DESKS], axis=0)
AT_DESKS /= AT_DESKS.sum()


@cache
def solver() -> Any:
    """Solves (LOSS - div k grad) T = s for cells of equal size with insulated edges; the matrix is symmetric."""
    in_wall = (np.abs(X - WALL) < SPACING) & ~((DOOR[0] < Y) & (DOOR[1] > Y))
    conductivity = np.where(in_wall, 0.01, 0.35)
    index = np.arange(SIDE * SIDE).reshape(SIDE, SIDE)
    here = np.concatenate([index[:, :-1].ravel(), index[:-1].ravel()])
    there = np.concatenate([index[:, 1:].ravel(), index[1:].ravel()])
    flux = 2.0 / (1.0 / conductivity[here] + 1.0 / conductivity[there]) / SPACING**2
    rows = np.concatenate([here, there, here, there, index.ravel()])
    columns = np.concatenate([there, here, here, there, index.ravel()])
    loss = np.where((X > 0.7) & (Y > 0.7), WINDOW, 1.0) * LOSS
    entries = np.concatenate([-flux, -flux, flux, flux, loss])
    return factorized(coo_matrix((entries, (rows, columns))).tocsc())


def heating(x: float, y: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Degrees per hour of a heater of 1 kW in each cell, and its derivatives by the place."""
    shape = 150.0 * np.exp(-((X - x) ** 2 + (Y - y) ** 2) / (2 * WIDTH**2)) / (2 * np.pi * WIDTH**2) * 0.3
    return shape, shape * (X - x) / WIDTH**2, shape * (Y - y) / WIDTH**2


def temperature(design: dict[str, float]) -> np.ndarray:
    """In each cell."""
    small, large = (heating(design[f"{half} x"], design[f"{half} y"])[0] for half in ("small", "large"))
    return np.asarray(solver()(design["small kW"] * small + design["large kW"] * large))


# --8<-- [start:simulate]
def simulate(design: dict[str, float]) -> eign.Evaluation:
    """Discomfort and hottest spot, each with its gradient: one run and two adjoints."""
    heat = temperature(design)
    discomfort = AT_DESKS @ (heat - WANTED) ** 2
    # A smooth bound of the maximum from above: the maximum itself has kinks.
    weights = np.exp(SHARPNESS * (heat - heat.max()))
    hottest = heat.max() + np.log(weights.sum()) / SHARPNESS
    by_comfort = adjoint(design, 2.0 * AT_DESKS * (heat - WANTED))
    by_hottest = adjoint(design, weights / weights.sum())
    return eign.Evaluation(
        value=discomfort,
        gradient=by_comfort,
        constraints={"hottest spot": hottest},
        constraint_gradients={"hottest spot": by_hottest},
    )


def adjoint(design: dict[str, float], slope: np.ndarray) -> dict[str, float]:
    """The gradient of a function of the temperature by the design, from its slope by the temperature in each cell."""
    weight = solver()(slope)  # the matrix is symmetric, so that its transpose is solved the same way
    gradient = {}
    for half in ("small", "large"):
        shape, by_x, by_y = heating(design[f"{half} x"], design[f"{half} y"])
        power = design[f"{half} kW"]
        gradient[f"{half} x"], gradient[f"{half} y"] = power * float(weight @ by_x), power * float(weight @ by_y)
        gradient[f"{half} kW"] = float(weight @ shape)
    return gradient


# --8<-- [end:simulate]


# --8<-- [start:search]
def search(*, method: str = "auto", budget: int = 40, seed: int = 0) -> OptimizeResult:
    """So many runs, each with two adjoints."""
    return eign.minimize(simulate, BOUNDS, constraints=CONSTRAINTS, method=method, budget=budget, seed=seed)


# --8<-- [end:search]


def draw(result: OptimizeResult, to: Path) -> None:
    """The temperature of the design that was found, and how the search went."""
    import matplotlib.pyplot as plt

    from eign import plot

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    field = temperature(dict(zip(BOUNDS, result.x, strict=True))).reshape(SIDE, SIDE)
    image = left.imshow(field, origin="lower", extent=(0, 1, 0, 1), cmap="cividis")
    figure.colorbar(image, ax=left, label="temperature")
    for low, high in ((0.0, DOOR[0]), (DOOR[1], 1.0)):
        left.plot([WALL, WALL], [low, high], color="white", linewidth=4)
    left.plot(*np.transpose(DESKS), "s", markersize=12, fillstyle="none", color="white", label="desks")
    left.plot(result.x[::3], result.x[1::3], "x", markersize=9, color="#D55E00", label="heaters")
    left.legend(loc="upper right", fontsize="small", facecolor="#334466", labelcolor="white")
    plot.convergence(result, axes=right)
    right.set_ylabel("discomfort")
    figure.savefig(to, dpi=100)
    plt.close(figure)


def main() -> None:
    """Search and print; with --picture draw."""
    parser = argparse.ArgumentParser(description="Heat a room without a hot spot.")
    parser.add_argument("--picture", type=Path)
    given = parser.parse_args()
    result = search()
    print(f"{result.message}: {int(result.feasible.sum())} of {result.nfev} designs are feasible")
    print(f"discomfort {result.fun:.3f}, hottest spot {result.constr[0]:.3f} of {HOTTEST:g} degrees")
    print(f"power {result.x[2] + result.x[5]:.3f} of {FUSE:g} kW")
    for name, value in zip(BOUNDS, result.x, strict=True):
        print(f"{name:<10}{value:.3f}")
    print(f"one degree more would be worth {result.multipliers[0]:.3f}, one kW {result.linear_multipliers[0]:.3f}")
    if given.picture is not None:
        draw(result, given.picture)


if __name__ == "__main__":
    main()
