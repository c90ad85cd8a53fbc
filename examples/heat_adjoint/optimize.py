"""Find two heaters from what sensors read: python examples/heat_adjoint/optimize.py [directory] [--picture FILE].

A plate with a badly conducting wall is warmed by a small and a large heater. Nine sensors read six temperatures each.
Where are the heaters, and how strong? The misfit has many local minima: a heater on the wrong side of the wall, or two
that have changed places. `heat.c` is compiled here; it solves the heat equation and its discrete adjoint, so value and
gradient by all six parameters cost two runs.
"""

import argparse
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
from scipy.optimize import OptimizeResult

import eign
from eign.integrations.command import Command

HIDDEN = np.array([0.7, 0.3, 0.5, 0.3, 0.7, 1.2])
PLACE = (0.05, 0.95)
BOUNDS = [PLACE, PLACE, (0.2, 0.8), PLACE, PLACE, (0.8, 2.0)]
# Misfits below this are alike: the square of a sensor's accuracy.
ACCURACY = 1e-5


class Plate:
    """The program `heat`, compiled into a directory, and the readings of the hidden heaters."""

    def __init__(self, directory: Path) -> None:
        """Compile, and measure once."""
        compiler = shutil.which("cc")
        if compiler is None:
            raise SystemExit("this example needs a C compiler: no cc on the PATH; install gcc or clang")
        directory.mkdir(parents=True, exist_ok=True)
        self.program, readings = directory / "heat", directory / "readings.json"
        source = Path(__file__).with_name("heat.c")
        subprocess.run([compiler, "-O2", "-o", self.program, source, "-lm"], check=True)
        readings.write_text(self.run("readings", HIDDEN))
        self.misfit = Command([self.program, "misfit", readings], timeout=60)

    def run(self, what: str, x: np.ndarray) -> str:
        """What the program prints for a point."""
        point = json.dumps({"x": x.tolist()})
        return subprocess.run([self.program, what], input=point, capture_output=True, text=True, check=True).stdout

    def temperature(self, x: np.ndarray) -> np.ndarray:
        """At the end, a row for each row of cells."""
        return np.array([line.split() for line in self.run("field", x).splitlines()], dtype=float)

    # --8<-- [start:misfit]
    def log_misfit(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """The logarithm of the misfit, with the chain rule: minima differ in their order of magnitude."""
        answer = self.misfit(x)
        value = answer.value + ACCURACY
        return np.log(value), np.array(answer.gradient) / value

    # --8<-- [end:misfit]


def search(plate: Plate, *, method: str = "auto", seed: int = 1) -> OptimizeResult:
    """Fifty evaluations."""
    return eign.minimize(plate.log_misfit, BOUNDS, method=method, budget=50, seed=seed)


def draw(plate: Plate, result: OptimizeResult, runs: dict[str, list[OptimizeResult]], to: Path) -> None:
    """The temperature with the heaters, hidden and found, and how methods compare."""
    import matplotlib.pyplot as plt

    from eign import plot

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    image = left.imshow(plate.temperature(HIDDEN), origin="lower", extent=(0, 1, 0, 1), cmap="cividis")
    figure.colorbar(image, ax=left, label="temperature")
    sensors = (np.array([5, 16, 26]) + 0.5) / 32
    left.plot(*(grid.ravel() for grid in np.meshgrid(sensors, sensors)), ".", color="white", label="sensors")
    left.plot(HIDDEN[::3], HIDDEN[1::3], "o", markersize=14, fillstyle="none", color="white", label="hidden heaters")
    left.plot(result.x[::3], result.x[1::3], "x", markersize=9, color="#D55E00", label="found")
    left.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, 1.12),
        ncols=3,
        fontsize="small",
        facecolor="#334466",
        labelcolor="white",
    )
    plot.compare(runs, optimum=float(np.log(ACCURACY)), axes=right)
    right.set_ylabel("log of the misfit, best so far")
    figure.savefig(to, dpi=100)
    plt.close(figure)


def main() -> None:
    """Compile, search, print; with --picture compare with other methods over five seeds and draw."""
    parser = argparse.ArgumentParser(description="Find two heaters from what sensors read.")
    parser.add_argument("directory", nargs="?", default="heat_adjoint", type=Path)
    parser.add_argument("--picture", type=Path)
    given = parser.parse_args()
    plate = Plate(given.directory)
    result = search(plate)
    print(f"misfit {np.exp(result.fun) - ACCURACY:.1e} after {result.nfev} evaluations")
    for name, found, hidden in zip(("small", "large"), result.x.reshape(2, 3), HIDDEN.reshape(2, 3), strict=True):
        print(f"{name} heater at {found[:2].round(3)} with power {found[2]:.3f}; hidden {hidden[:2]}, {hidden[2]}")
    if given.picture is not None:
        methods = ("auto", "l-bfgs", "sobol")
        runs = {method: [search(plate, method=method, seed=seed) for seed in range(5)] for method in methods}
        draw(plate, result, runs, given.picture)


if __name__ == "__main__":
    main()
