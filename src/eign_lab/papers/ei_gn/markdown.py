"""A report as Markdown, for a repository."""

from pathlib import Path

from eign_lab.papers.ei_gn.judgements import JudgedClaim
from eign_lab.papers.ei_gn.report import Report, Section
from eign_lab.papers.ei_gn.words import RULE, TITLE, TRIAL, footer, seeds_text, tally
from eign_lab.report.summaries import Table, as_markdown_table, without_tags


def as_markdown(report: Report, directory: Path) -> str:
    """The text; figures are linked relative to the directory it is written to."""
    blocks = [f"# {TITLE}"]
    if report.is_trial:
        blocks.append(f"**{TRIAL}**")
    blocks += [tally(report.claims), "## Claims", _claims(report.claims), RULE, "### What the claims rest on"]
    blocks += [text for judged in report.claims if (text := _parts(judged))]
    blocks += [_section(section, directory) for section in report.sections]
    blocks.append(f"---\n\n{footer(report)}")
    return "\n\n".join(blocks) + "\n"


def _claims(claims: tuple[JudgedClaim, ...]) -> str:
    rows = tuple(
        (
            str(judged.claim.number),
            judged.claim.text,
            f"**{judged.judgement.verdict}**",
            str(judged.judgement.seeds or "–"),
            judged.judgement.numbers,
        )
        for judged in claims
    )
    lines = as_markdown_table(Table("", ("", "claim", "verdict", "seeds", "numbers"), rows)).split("\n")
    return "\n".join([lines[0], "|---:|---|---|---:|---|", *lines[2:]])


def _parts(judged: JudgedClaim) -> str:
    if len(judged.parts) < 2:
        return ""
    lines = [f"- {part}: {judgement.verdict} ({judgement.numbers})" for part, judgement in judged.parts]
    return "\n".join([f"Claim {judged.claim.number}:", "", *lines])


def _section(section: Section, directory: Path) -> str:
    outcome = section.outcome
    blocks = [f"## {without_tags(outcome.experiment.title)} (`{outcome.experiment.id}`)", f"{seeds_text(outcome)}."]
    for picture in section.pictures:
        image = f"![{picture.caption}]({picture.png.relative_to(directory).as_posix()})"
        vector = f" [SVG]({picture.svg.relative_to(directory).as_posix()})" if picture.svg else ""
        blocks.append(f"{image}\n\n{picture.caption}{vector}")
    for label, tables in section.tables.items():
        blocks.append(f"### {without_tags(label)}")
        blocks += [f"{as_markdown_table(table)}\n\n{table.note}" for table in tables]
    if outcome.missing and not outcome.is_empty:
        blocks.append("Missing:\n\n" + "\n".join(f"- {without_tags(line)}" for line in outcome.missing))
    return "\n\n".join(blocks)
