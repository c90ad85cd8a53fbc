"""Make the pictures of the pages from the code that stands above them: `make pictures`."""

import re
from pathlib import Path

import matplotlib as mpl

DOCS = Path(__file__).parent


def draw(page: Path) -> list[Path]:
    """Run the page's code, block after block, and save the last figure where the page links a picture."""
    import matplotlib.pyplot as plt

    mpl.use("Agg")
    namespace: dict[str, object] = {}
    made = []
    pattern = r"^```python\n(.*?)^```|^!\[[^\]]*\]\((figures/[\w.]+)\)"
    for code, picture in re.findall(pattern, page.read_text(), re.DOTALL | re.MULTILINE):
        if code:
            exec(compile(code, page.name, "exec"), namespace)
            continue
        made.append(DOCS / picture)
        plt.gcf().savefig(made[-1], dpi=100)
        plt.close("all")
    return made


if __name__ == "__main__":
    for path in draw(DOCS / "plots.md"):
        print(path.relative_to(DOCS.parent))
