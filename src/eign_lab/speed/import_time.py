"""How long `import eign` takes next to `import botorch`, each in a fresh interpreter.

Run by `make bench`. The fastest of several tries counts: other work on the machine only ever adds to it.
"""

import subprocess
import sys

TRIES = 5
PROGRAM = "import time; start = time.perf_counter(); import {}; print(time.perf_counter() - start)"


def import_seconds(module: str) -> float:
    """Seconds of an import in a new process."""
    command = [sys.executable, "-c", PROGRAM.format(module)]
    runs = [subprocess.run(command, check=True, capture_output=True, text=True) for _ in range(TRIES)]
    return min(float(run.stdout) for run in runs)


def main() -> None:
    """Print a line for each package."""
    seconds = {module: import_seconds(module) for module in ("eign", "numpy", "torch", "botorch")}
    for module, taken in seconds.items():
        print(f"import {module:8} {1e3 * taken:8.1f} ms")
    print(f"import botorch takes {seconds['botorch'] / seconds['eign']:.0f} times as long as import eign")


if __name__ == "__main__":
    main()
