"""Minimise what a C program computes: python examples/program_c/optimize.py [directory].

The program is compiled into the directory (`program_c` unless given), and every evaluation gets a directory below it.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import eign
from eign.integrations.command import Command


def main(directory: Path) -> None:
    """Compile, optimise on two workers, print."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise SystemExit("this example needs a C compiler: no cc on the PATH; install gcc or clang")
    directory.mkdir(parents=True, exist_ok=True)
    program = directory / "simulate"
    subprocess.run([compiler, "-O2", "-o", program, Path(__file__).with_name("simulate.c")], check=True)

    command = Command([program], timeout=60, retries=1, directory=directory / "evaluations")
    result = eign.minimize(command, [(-2.0, 2.0), (-1.0, 1.0)], budget=20, seed=0, workers=2)
    print(f"minimum {result.fun:.4f} at {result.x.round(3)}: {result.message}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "program_c"))
