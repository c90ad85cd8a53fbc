"""The page of a report in a real browser: no error, nothing from elsewhere, curves drawn."""

import re
import shutil
import subprocess

import pytest

from eign_lab.papers.ei_gn.experiments import EXPERIMENTS
from eign_lab.papers.ei_gn.page import POLICY, as_page
from eign_lab.papers.ei_gn.report import make_report

from ..report_cases import made_up_results, small_experiment

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="Chromium is not installed")

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars"),
    *(
        "--allow-file-access-from-files",
        "--enable-logging=stderr",
        "--virtual-time-budget=10000",
        "--window-size=800,3000",
    ),
)


def opened(path, profile):
    """The document after its scripts have run, and what the console said."""
    result = subprocess.run(
        [BROWSER, *FLAGS, f"--user-data-dir={profile}", "--dump-dom", path.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    return result.stdout, [line for line in result.stderr.splitlines() if "CONSOLE" in line]


# A phone: 390 pixels wide. The script, which the page's own policy does not bind, writes down what does not fit.
PHONE = """<body><iframe src="index.html" width="390" height="3000"></iframe><script>
addEventListener("load", () => {
  const page = document.querySelector("iframe").contentDocument;
  const find = selector => [...page.querySelectorAll(selector)];
  document.body.dataset.width = page.documentElement.scrollWidth;
  document.body.dataset.lines = find(".js-line").filter(line => line.getAttribute("d").length > 20).length;
  document.body.dataset.widest = Math.max(...find(".main-svg").map(svg => svg.getBoundingClientRect().right));
  const requested = page.defaultView.performance.getEntriesByType("resource").map(entry => entry.name);
  document.body.dataset.requests = requested.filter(name => !name.startsWith("data:")).length;
});
</script></body>"""


def test_page_on_a_phone(tmp_path):
    experiment = small_experiment(EXPERIMENTS["ablation"])
    results = made_up_results([experiment], range(3))
    (tmp_path / "index.html").write_text(as_page(make_report(results, tmp_path, [experiment], {})), encoding="utf-8")
    (tmp_path / "phone.html").write_text(PHONE)
    document, console = opened(tmp_path / "phone.html", tmp_path / "profile")
    assert console == []
    measured = {name: float(value) for name, value in re.findall(r'data-(\w+)="([\d.]+)"', document)}
    assert measured["requests"] == 0
    assert measured["width"] <= 390
    assert measured["widest"] <= 390
    # A line and a band for each of seven methods; the regrets are drawn when they are asked for.
    assert measured["lines"] == 14


def test_the_policy_of_the_page_refuses_what_comes_from_elsewhere(tmp_path):
    """So that an empty console means something."""
    policy = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    (tmp_path / "index.html").write_text(f'<head>{policy}</head><img src="https://example.invalid/x.png">')
    _, console = opened(tmp_path / "index.html", tmp_path / "profile")
    assert any("Content Security Policy" in line for line in console)
