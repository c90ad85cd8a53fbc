"""Every piece of code of the page on failures fails with the message below it."""

import re
import warnings
from pathlib import Path

import optuna
import pytest

PAGE = Path(__file__).parents[2] / "docs/faq.md"
CASES = re.findall(r"^### (.+?)\n\n```py\n(.*?)^```\n\n```text\n(.*?)\n```", PAGE.read_text(), re.DOTALL | re.MULTILINE)


def said(code, capsys):
    """What the code says: an error, a warning or a line, as Python shows it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.filterwarnings("always", module=r"eign\..*|__faq__")
        warnings.filterwarnings("always", message="GradientSampler|.*contradict")
        try:
            exec(compile(code, PAGE.name, "exec"), {"__name__": "__faq__"})
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    return f"{caught[0].category.__name__}: {caught[0].message}" if caught else capsys.readouterr().out.strip()


def test_every_entry_is_found():
    assert len(CASES) == PAGE.read_text().count("\n### ")


@pytest.mark.parametrize(("title", "code", "message"), CASES, ids=[title for title, _, _ in CASES])
def test_it_fails_as_the_page_says(title, code, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    text, message = " ".join(said(code, capsys).split()), " ".join(message.split())  # the page breaks lines
    if message.endswith("..."):
        assert text.startswith(message.removesuffix("..."))
    else:
        assert text == message
