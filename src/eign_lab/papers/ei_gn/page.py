"""A report as one page for the browser: it brings all it needs, and loads nothing from anywhere."""

import base64
from html import escape
from typing import Final

from eign.plot.interactive import compare_interactive
from eign_lab.papers.ei_gn.judgements import JudgedClaim
from eign_lab.papers.ei_gn.landscapes import PROBLEM as MIXTURE
from eign_lab.papers.ei_gn.report import Report, Section
from eign_lab.papers.ei_gn.words import RULE, TITLE, TRIAL, count_of_seeds, footer, seeds_text, tally
from eign_lab.report.figures import curves_of, drawn_from, problem_styles
from eign_lab.report.summaries import Table
from eign_lab.statistics import Verdict

# The policy makes the promise true: a browser refuses to load anything that the page does not bring.
POLICY: Final = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
_BADGES: Final = {Verdict.HOLDS: "holds", Verdict.FAILS: "fails", Verdict.OPEN: "open"}
_STYLE: Final = """
:root { color-scheme: light; --line: #d9dee3; --soft: #5b6670; --link: #0072b2; }
* { box-sizing: border-box; }
body { margin: 0; font: 16px/1.5 system-ui, sans-serif; color: #16202a; background: #fff; }
main { max-width: 66rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 1rem 0; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .5rem; padding-top: 1rem; border-top: 1px solid var(--line); }
h3 { font-size: 1.05rem; margin: 1.5rem 0 .25rem; }
a { color: var(--link); }
code { background: #f2f4f6; padding: 0 .25em; border-radius: 3px; }
nav { display: flex; flex-wrap: wrap; gap: .4rem; }
nav a { padding: .25rem .6rem; border: 1px solid var(--line); border-radius: 1rem; text-decoration: none; }
.soft, figcaption, .note { color: var(--soft); font-size: .875rem; }
.trial { padding: .75rem 1rem; background: #fff4d6; border-left: 4px solid #e69f00; }
.scroll { overflow-x: auto; margin: .5rem 0; }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; white-space: nowrap; }
th, td { padding: .3rem .7rem; text-align: right; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0; background: #fff; }
figure { margin: 1rem 0; }
figure img { width: 100%; min-width: 36rem; height: auto; }
.curves { min-height: 430px; }
details { border: 1px solid var(--line); border-radius: 6px; margin: .4rem 0; padding: .5rem .75rem; }
summary { cursor: pointer; display: flex; flex-wrap: wrap; gap: .25rem .6rem; align-items: baseline; }
summary .text { flex: 1 1 16rem; }
details li { font-size: .875rem; margin: .25rem 0; overflow-wrap: anywhere; }
.badge { font-size: .8rem; font-weight: 600; padding: .05rem .55rem; border-radius: 1rem; white-space: nowrap; }
.holds { background: #d5efe6; color: #00563f; }
.fails { background: #fbe0cf; color: #8a3c00; }
.open { background: #e8ebee; color: #3d4852; }
"""


def as_page(report: Report) -> str:
    """The page, with plotly's script in it once."""
    from plotly.offline import get_plotlyjs

    links = "".join(
        f'<a href="#{escape(section.outcome.experiment.id)}">{escape(section.outcome.experiment.id)}</a>'
        for section in report.sections
    )
    trial = f'<p class="trial">{escape(TRIAL)}</p>' if report.is_trial else ""
    claims = "".join(_claim(judged) for judged in report.claims)
    sections = "".join(_section(section, number) for number, section in enumerate(report.sections))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<title>{escape(TITLE)}</title>
<style>{_STYLE}</style>
<script>{get_plotlyjs()}</script>
</head>
<body>
<main>
<h1>{escape(TITLE)}</h1>
{trial}
<nav><a href="#claims">claims</a>{links}</nav>
<h2 id="claims">Claims</h2>
<p>{escape(tally(report.claims))}</p>
{claims}
<p class="note">{escape(RULE)}</p>
{sections}
<p class="soft">{escape(footer(report))}</p>
</main>
</body>
</html>
"""


def _claim(judged: JudgedClaim) -> str:
    claim, judgement = judged.claim, judged.judgement
    seeds = f'<span class="soft">{count_of_seeds(judgement.seeds)}</span>' if judgement.seeds else ""
    parts = "".join(
        f"<li>{_badge(part_judgement.verdict)} {escape(str(part))}: {escape(part_judgement.numbers)}</li>"
        for part, part_judgement in judged.parts
    )
    title = f'<span class="text">{claim.number}. {escape(claim.text)}</span>'
    details = f'<p class="note">{escape(judgement.numbers)}</p><ul>{parts}</ul>'
    return f"<details><summary>{title}{seeds}{_badge(judgement.verdict)}</summary>{details}</details>"


def _badge(verdict: Verdict) -> str:
    return f'<span class="badge {_BADGES[verdict]}">{escape(verdict)}</span>'


def _section(section: Section, number: int) -> str:
    outcome = section.outcome
    parts = [
        f'<h2 id="{escape(outcome.experiment.id)}">{escape(outcome.experiment.title)}</h2>',
        f'<p class="soft">{escape(seeds_text(outcome))}</p>',
    ]
    if any(problem.name == MIXTURE for problem in outcome.experiment.problems) and section.pictures:
        parts.append(_landscapes(section))
    for place, (label, tables) in enumerate(section.tables.items()):
        # Plotly writes the name of an element into the page and into a script as it is: no text of the user's is in it.
        curves = _curves(section, label, f"curves-{number}-{place}")
        parts += [f"<h3>{escape(label)}</h3>", curves, *(_table(table) for table in tables)]
    if outcome.missing and not outcome.is_empty:
        lines = "".join(f"<li>{escape(line)}</li>" for line in outcome.missing)
        parts.append(f"<details><summary>What is missing ({len(outcome.missing)})</summary><ul>{lines}</ul></details>")
    return "".join(parts)


def _landscapes(section: Section) -> str:
    picture = section.pictures[0]
    data = base64.b64encode(picture.png.read_bytes()).decode()
    caption = escape(picture.caption)
    image = f'<div class="scroll"><img alt="{caption}" src="data:image/png;base64,{data}"></div>'
    return f"<figure>{image}<figcaption>{caption}</figcaption></figure>"


def _curves(section: Section, label: str, name: str) -> str:
    from plotly.io import to_html

    problem = section.outcome.problems[label]
    figure = compare_interactive(
        curves_of(problem),
        maximize=True,
        optimum=problem.optimum,
        start=drawn_from(problem),
        styles=problem_styles(section.outcome, problem),
    )
    config = {"responsive": True, "displaylogo": False, "displayModeBar": False}
    body: str = to_html(figure, include_plotlyjs=False, full_html=False, config=config, div_id=name)
    return f'<div class="curves">{body}</div>'


def _table(table: Table) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in table.headings)
    rows = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows)
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
        f'<p class="note">{escape(table.note)}</p>'
    )
