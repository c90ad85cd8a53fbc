"""The documentation tells the truth: mapped names exist, every label of the paper is mapped, examples run."""

import importlib
import importlib.util
import pkgutil
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LABELS = {
    *("eq: GP_mean", "eq: GP_var", "alg: EI-GN", "eq: g", "eq: EI-GN", "eq: EI-GN lower bound", "eq: EI_s"),
    *("eq:g_decomposition", "eq:event_def", "eq: EI_s chi square", "eq: EI_s overline", "eq: EI-GN final"),
    *("lemma: positive part inequality", "eq: EI_g_1", "eq: EI_g_lower_bound", "eq: whitening", "eq: three_terms"),
    *("eq: three_terms_1", "eq: three_terms_2", "eq: three_terms_3", "eq:trunc_first_moment_component", "eq: w"),
    *("eq: three_terms_simplified", "eq: three_terms_simplified_1", "eq: three_terms_simplified_2"),
    *("eq: final_AF", "eq: final_AF_1", "eq: final_AF_2", "eq: final_AF_3"),
}


def equation_map() -> dict[str, str]:
    rows = re.findall(r"^\| `([^`]+)` \|[^|]*\| (.+) \|$", (ROOT / "docs/equations.md").read_text(), re.MULTILINE)
    return dict(rows)


def resolve(name: str) -> object:
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def test_every_label_of_the_paper_is_mapped():
    assert set(equation_map()) == LABELS


@pytest.mark.parametrize(("label", "where"), equation_map().items())
def test_mapped_names_exist_and_say_what_they_implement(label, where):
    names = re.findall(r"`([\w.]+)`", where)
    assert names or re.fullmatch(r"open: .+ \(issue \d+\)", where), where
    for name in names:
        assert callable(resolve(name))
        assert resolve(name).__doc__


def test_a_label_in_a_docstring_is_a_label_of_the_paper():
    sources = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    mentioned = set(re.findall(r"`((?:eq|alg|lemma): ?[^`]+)`", sources))
    assert mentioned
    assert mentioned <= LABELS


def test_references_in_docstrings_resolve():
    sources = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    for name in set(re.findall(r":func:`([\w.]+)`", sources)):
        assert callable(resolve(name)), name


def texts() -> dict[str, str]:
    """All that users and contributors read."""
    paths = [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "notes").glob("*.md"),
    ]
    return {str(path.relative_to(ROOT)): path.read_text() for path in paths}


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/architecture.md", "docs/dependencies.md"])
def test_paths_exist(page):
    """In backticks, from the root or from within the packages; a star stands for some names."""
    named = re.findall(r"`([\w*/]+(?:/|\.(?:py|md|toml)))`", texts()[page])
    assert named
    assert not [name for name in named if not any([*ROOT.glob(name), *(ROOT / "src").rglob(name)])]


@pytest.mark.parametrize("page", [page for page in texts() if not page.startswith("docs/")])
def test_links_between_files_exist(page):
    """MkDocs checks those of the site."""
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", texts()[page]):
        assert (ROOT / page).parent.joinpath(target).exists(), target


@pytest.mark.parametrize("page", texts())
def test_dotted_names_exist(page):
    text = texts()[page]
    for name in set(re.findall(r"`(eign(?:_lab)?(?:\.\w+)+)[`(]", text)):
        pkgutil.resolve_name(name)
    for name in set(re.findall(r"python -m (eign_lab[\w.]*)", text)):
        assert importlib.util.find_spec(name), name


# These pages are run by tests of their own, which also look at what comes out.
FOLLOWED = {"long_runs.md", "project.md"}
PAGES = [f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md") if path.name not in FOLLOWED]


@pytest.mark.parametrize("page", ["README.md", *PAGES])
def test_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some write files
    namespace: dict[str, object] = {}
    for code in re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE):
        exec(compile(code, page, "exec"), namespace)
