"""The home page of the documentation is the README, with its links as seen from this directory."""

import re
from pathlib import Path
from typing import Any

_README = Path(__file__).parents[1] / "README.md"
# What lies outside of the documentation, and the page that shows the same.
_ELSEWHERE = {
    "results/auto/auto-report.svg": "figures/auto.svg",
    "results/auto/auto-report.md": "auto.md#how-good-it-is",
    "results/constrained/auto-report.md": "constraints_method.md#measured",
}


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """MkDocs hook: the text of the home page; all others stay as they are."""
    return as_seen_from_docs(_README.read_text()) if page.file.src_uri == "index.md" else markdown


def as_seen_from_docs(text: str) -> str:
    """Rewrite the targets of links and pictures.

    >>> as_seen_from_docs("[a](docs/auto.md), ![b](results/auto/auto-report.svg), [c](https://example.org)")
    '[a](auto.md), ![b](figures/auto.svg), [c](https://example.org)'
    """
    return re.sub(r"\]\(([^)]+)\)", lambda link: f"]({_ELSEWHERE.get(link[1], link[1].removeprefix('docs/'))})", text)
