"""Minimise what a shell script computes: python examples/program_shell/optimize.py [directory].

Points have names here and go through files. The evaluations are kept in the directory, `program_shell` unless given.
"""

import sys
from pathlib import Path

import eign
from eign.integrations.command import Command


def main(directory: Path) -> None:
    """Optimise on two workers, print."""
    script = Path(__file__).with_name("simulate.sh")
    command = Command([script, "{input}", "{output}"], input="file", timeout=60, directory=directory)
    result = eign.minimize(command, {"radius": (2.0, 6.0), "height": (3.0, 15.0)}, budget=20, seed=0, workers=2)
    radius, height = result.x
    print(f"{result.fun:.1f} cm2 with radius {radius:.2f} and height {height:.2f}: {result.message}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "program_shell"))
