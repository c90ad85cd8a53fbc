"""The documentation builds without a warning, and its formulas are MathML."""

import os
import re
import subprocess
import sys
from pathlib import Path
from types import FunctionType

import eign
import eign.integrations.autodiff
import eign.integrations.ax
import eign.integrations.optuna
import eign.plot
import eign.search
import eign.study

ROOT = Path(__file__).parents[2]


def undocumented(pages):
    """Public names that the reference does not have."""
    missing = []
    rooms = [eign.study, eign.models, eign.acquisition, eign.search, eign.problems, eign.plot, eign.formulas]
    names = {room: room.__all__ for room in rooms}
    for room in (eign.integrations.autodiff, eign.integrations.ax, eign.integrations.optuna):
        own = (name for name, thing in vars(room).items() if getattr(thing, "__module__", None) == room.__name__)
        names[room] = [name for name in own if not name.startswith("_")]
    for room, public in names.items():
        for name in public:
            thing = getattr(room, name)
            is_described = not isinstance(thing, type | FunctionType) or f'id="{thing.__module__}.{name}"' in pages
            missing += [] if is_described else [f"{room.__name__}.{name}"]
    return missing


def test_site_builds_and_shows_its_formulas(tmp_path):
    result = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    # Without --quiet, which also switches --strict off.
    assert result.returncode == 0, result.stderr
    assert "WARNING" not in result.stdout + result.stderr
    home = (tmp_path / "site" / "index.html").read_text()
    for target in re.findall(r'(?:href|src)="(?!https?:)([^"#]+)', home):
        assert (tmp_path / "site" / target).exists(), f"the home page links to {target}"
    assert 'src="figures/auto.svg"' in home
    pages = {path.parent.name: path.read_text() for path in (tmp_path / "site").glob("*/index.html")}
    assert {"api", "architecture", "equations", "mathematics"} <= set(pages)
    assert pages["api"].count("<math") > 50
    assert not undocumented("".join(pages.values()))
    assert pages["mathematics"].count("<math") > 20
    for page in pages.values():
        without_code = re.sub(r"<(pre|code)\b.*?</\1>", "", page, flags=re.DOTALL)
        assert "math::" not in without_code
        assert 'class="arithmatex"' not in without_code
        assert not re.search(r"8(&lt;|<| )--", re.sub(r"<[^>]+>", "", page))  # every file that a page includes is there
        assert not re.search(r'(src|href)="https?://[^"]+\.(js|css)"', page)  # nothing is loaded from elsewhere
