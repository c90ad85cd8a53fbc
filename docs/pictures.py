"""Make the pictures of the pages, from the code that stands above them and from the examples: `make pictures`."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib as mpl

DOCS = Path(__file__).resolve().parent
EXAMPLES = DOCS.parent / "examples"


def draw(page: Path) -> list[Path]:
    """Run the page's code, block after block, and save the last figure where the page links a picture."""
    import matplotlib.pyplot as plt

    mpl.use("Agg")
    namespace: dict[str, object] = {}
    made = []
    pattern = r"^```python\n(.*?)^```|^!\[[^\]]*\]\((figures/[\w.]+)\)"
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):  # some pages write files
        for code, picture in re.findall(pattern, page.read_text(), re.DOTALL | re.MULTILINE):
            if code:
                exec(compile(code, page.name, "exec"), namespace)
                continue
            made.append(DOCS / picture)
            plt.gcf().savefig(made[-1], dpi=100)
            plt.close("all")
    return made


def run_examples() -> list[Path]:
    """Run the worked examples, each of which draws its picture."""
    heat, hyper, policy, lab = (DOCS / f"figures/example_{name}.png" for name in ("heat", "hyper", "policy", "lab"))
    path = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}  # for the command eign
    with tempfile.TemporaryDirectory() as place:
        for command in (
            [sys.executable, EXAMPLES / "heat_adjoint/optimize.py", Path(place) / "heat", "--picture", heat],
            [sys.executable, EXAMPLES / "hypergradients.py", "--picture", hyper],
            [sys.executable, EXAMPLES / "policy_search.py", "--picture", policy],
            ["sh", EXAMPLES / "laboratory/run.sh", Path(place) / "lab"],
            [sys.executable, EXAMPLES / "laboratory/picture.py", Path(place) / "lab/lab.db", lab],
        ):
            subprocess.run(command, check=True, env=os.environ | path)
    return [heat, hyper, policy, lab]


def copy_results() -> list[Path]:
    """Pictures of the laboratory's results: the judge's last report, and the study of the nugget."""
    copied = {"auto/auto-report.svg": "auto.svg", "nugget.svg": "nugget.svg"}
    return [
        Path(shutil.copy(DOCS.parent / "results" / result, DOCS / "figures" / picture))
        for result, picture in copied.items()
    ]


if __name__ == "__main__":
    for picture in [*draw(DOCS / "plots.md"), *draw(DOCS / "project.md"), *run_examples(), *copy_results()]:
        print(picture.relative_to(DOCS.parent))
