"""How well does each cell of a plate conduct? 400 parameters by adjoint: python examples/conductivities.py [--cells N].

Four heaters warm a plate of 20 x 20 cells, one after the other, and 16 sensors read its temperature. The parameters are
the logarithms of the cells' conductivities. One solution of the heat equation for each heater gives the misfit, and one
more with the same factored matrix gives its derivatives by all 400 parameters.
"""

import argparse

import numpy as np
from scipy.optimize import OptimizeResult
from scipy.sparse import csr_array, eye_array
from scipy.sparse.linalg import splu

import eign


class Plate:
    """A plate of N x N cells with readings of a conductivity that nobody is told."""

    def __init__(self, cells: int = 20) -> None:
        """Place heaters and sensors, and read."""
        self.cells, n = cells, cells * cells
        cell = np.arange(n).reshape(cells, cells)
        self.edges = np.concatenate(
            [np.c_[cell[:, :-1].ravel(), cell[:, 1:].ravel()], np.c_[cell[:-1].ravel(), cell[1:].ravel()]]
        )
        rows = np.repeat(np.arange(len(self.edges)), 2)
        signs = np.tile([1.0, -1.0], len(self.edges))
        self.differences = csr_array((signs, (rows, self.edges.ravel())), shape=(len(self.edges), n))
        near, far = cells // 6, cells - 1 - cells // 6
        self.heat = np.zeros((n, 4))
        self.heat[[cell[near, near], cell[near, far], cell[far, near], cell[far, far]], range(4)] = cells
        places = np.linspace(near, far, 4).astype(int)
        self.sensors = cell[np.ix_(places, places)].ravel()
        x, y = np.indices((cells, cells)) / (cells - 1)
        self.hidden = (
            1.2
            * (
                np.exp(-((x - 0.3) ** 2 + (y - 0.6) ** 2) / 0.05) - np.exp(-((x - 0.7) ** 2 + (y - 0.3) ** 2) / 0.05)
            ).ravel()
        )
        self.readings = self.temperatures(self.hidden)[0][self.sensors]

    def temperatures(self, logs: np.ndarray):
        """Under each heater, cells x 4, and what solves the same equation for other heat."""
        conductivity = np.exp(logs)
        between = 0.5 * conductivity[self.edges].sum(axis=1)
        # The plate loses a little heat everywhere.
        matrix = self.differences.T @ (self.differences * between[:, None]) + 0.05 * eye_array(len(logs))
        factor = splu(matrix.tocsc())
        return factor.solve(self.heat), factor.solve

    # --8<-- [start:misfit]
    def misfit(self, logs: np.ndarray) -> tuple[float, np.ndarray]:
        """Squared errors of the sensors and the roughness of the plate, with the gradient by adjoint."""
        warm, solve = self.temperatures(logs)
        error = np.zeros_like(warm)
        error[self.sensors] = warm[self.sensors] - self.readings
        adjoint = solve(error)
        rough = self.differences @ logs
        of_edge = ((self.differences @ warm) * (self.differences @ adjoint)).sum(axis=1)
        of_cell = np.bincount(self.edges.ravel(), weights=np.repeat(-0.5 * of_edge, 2), minlength=len(logs))
        value = 0.5 * (error**2).sum() + 0.01 * rough @ rough
        return value, of_cell * np.exp(logs) + 0.02 * (self.differences.T @ rough)

    # --8<-- [end:misfit]


def search(plate: Plate, *, budget: int = 100, method: str = "auto", seed: int = 0) -> OptimizeResult:
    """Conductivities between e^-2 and e^2."""
    bounds = [(-2.0, 2.0)] * plate.cells**2
    return eign.minimize(plate.misfit, bounds, method=method, budget=budget, seed=seed)


def main() -> None:
    """Search and print."""
    parser = argparse.ArgumentParser(description="Find how well each cell of a plate conducts.")
    parser.add_argument("--cells", type=int, default=20)
    parser.add_argument("--budget", type=int, default=100)
    given = parser.parse_args()
    plate = Plate(given.cells)
    result = search(plate, budget=given.budget)
    best = np.minimum.accumulate(result.history.y)
    for count in (1, given.budget // 4, given.budget // 2, given.budget):
        print(f"after {count:3d} evaluations: misfit {best[min(count, len(best)) - 1]:.6f}")
    print(f"of the hidden plate, with its roughness: {plate.misfit(plate.hidden)[0]:.6f}")


if __name__ == "__main__":
    main()
