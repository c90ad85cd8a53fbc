"""Tables, figures, text and page of a report, from made-up runs."""

import re
from dataclasses import replace

import numpy as np
import pytest

from eign_lab.papers.ei_gn.experiments import EXPERIMENTS
from eign_lab.papers.ei_gn.markdown import as_markdown
from eign_lab.papers.ei_gn.page import as_page
from eign_lab.papers.ei_gn.published import PUBLISHED
from eign_lab.papers.ei_gn.report import make_report
from eign_lab.papers.ei_gn.words import RULE
from eign_lab.report.figures import draw_curves, method_styles, save
from eign_lab.report.summaries import checkpoint_table, ending_table
from eign_lab.runs.experiment import quick_version
from eign_lab.runs.export import ExportedResults
from eign_lab.runs.outcomes import gather
from eign_lab.statistics import holm, paired_wilcoxon

from ..report_cases import made_up_results, small_experiment

ABLATION = small_experiment(EXPERIMENTS["ablation"])


@pytest.fixture(autouse=True)
def headless(monkeypatch):
    import matplotlib as mpl

    mpl.use("Agg")


@pytest.fixture(scope="module")
def shekel():
    return gather(made_up_results([ABLATION], range(7)), ABLATION).problems["shekel-4"]


def column(table, heading):
    k = table.headings.index(heading)
    return {row[0]: row[k] for row in table.rows}


class TestTables:
    def test_checkpoints_stand_beside_the_papers_numbers(self, shekel):
        table = checkpoint_table(shekel, PUBLISHED)
        best = shekel.runs["EI"].best[:, 79]
        expected = f"{best.mean():.4g} ± {best.std(ddof=1) / np.sqrt(7):.2g}"
        assert column(table, "at 80")["EI"] == expected
        assert column(table, "paper at 80") == {
            "dEI-GN": "5.01 ± 0.58",
            "dEI": "4.42 ± 0.46",
            "EI-GN": "3.88 ± 0.47",
            "EI": "0.93 ± 0.08",
            "L-BFGS-B": "–",
            "dLogEI": "–",
            "auto": "–",
        }

    def test_the_end(self, shekel):
        table = ending_table(shekel)
        optimum = shekel.optimum
        last = {method: runs.best[:, -1] for method, runs in shekel.runs.items()}
        regret = np.exp(np.log(optimum - last["dEI"]).mean())
        assert column(table, "regret")["dEI"] == f"{regret:.2g}"
        gain = optimum - np.median(shekel.initial)
        found = int((last["dEI-GN"] >= optimum - 0.01 * gain).sum())
        assert column(table, "optimum found")["dEI-GN"] == f"{found} of 7"
        half = [int(np.argmax(run >= optimum - 0.5 * gain)) + 1 for run in shekel.runs["EI"].best]
        assert column(table, "to 50%")["EI"] == f"{np.median(half):.0f} (7/7)"
        assert column(table, "to 99%")["EI"] == "– (0/7)"
        assert column(table, "s per suggestion")["EI"] == "0.03"

    def test_paired_tests_are_against_the_reference(self, shekel):
        table = ending_table(shekel)
        last = {method: runs.best[:, -1] for method, runs in shekel.runs.items()}
        p_values = {m: paired_wilcoxon(last[m], last["EI-GN"]) for m in last if m != "EI-GN"}
        assert column(table, "p")["dEI"] == f"{p_values['dEI']:.2g}"
        adjusted = dict(zip(p_values, holm(list(p_values.values())), strict=True))
        assert column(table, "p (Holm)")["EI"] == f"{adjusted['EI']:.2g}"
        assert column(table, "p")["EI-GN"] == "–"
        difference = (last["dEI"] - last["EI-GN"]).mean()
        assert column(table, "minus EI-GN")["dEI"].startswith(f"{difference:.3g} (")

    def test_without_a_known_optimum_the_best_value_seen_takes_its_place(self, shekel):
        blind = replace(shekel, optimum=None)
        best = max(runs.best.max() for runs in shekel.runs.values())
        assert blind.reference == best
        table = ending_table(blind)
        assert set(column(table, "optimum found").values()) == {"–"}
        assert f"the best value seen, {best:.4g}" in table.note


class TestFigures:
    def test_one_panel_a_problem_with_the_same_colours(self):
        experiment = small_experiment(EXPERIMENTS["ablation"], problems=2)
        figure = draw_curves(gather(made_up_results([experiment], range(3)), experiment))
        styles = method_styles(experiment)
        for axes, problem in zip(figure.axes, experiment.problems, strict=True):
            assert problem.label in axes.get_title(loc="left")
            drawn = {line.get_label(): line.get_color() for line in axes.get_lines()}
            assert {name: look.colour for name, look in styles.items()}.items() <= drawn.items()

    def test_a_method_has_one_colour_in_all_experiments_and_no_two_look_the_same(self):
        for experiment in EXPERIMENTS.values():
            styles = method_styles(experiment)
            assert len(set(styles.values())) == len(experiment.methods)
            assert styles["L-BFGS-B"].colour == "#000000"

    def test_a_sweep_is_shaded_and_its_rival_is_not(self):
        styles = method_styles(EXPERIMENTS["alpha"])
        assert len(set(styles.values())) == len(EXPERIMENTS["alpha"].methods)
        assert styles["L-BFGS-B"].dash == "dashed"

    def test_the_same_figure_gives_the_same_bytes(self, tmp_path):
        outcome = gather(made_up_results([ABLATION], range(2)), ABLATION)
        for place in ("one", "two"):
            save(draw_curves(outcome), tmp_path / place, "curves")
        for kind in ("png", "svg"):
            assert (tmp_path / "one" / f"curves.{kind}").read_bytes() == (
                tmp_path / "two" / f"curves.{kind}"
            ).read_bytes()

    def test_many_methods_with_long_names_leave_room_for_the_curves(self, tmp_path):
        """Matplotlib warns, which is an error here, where a legend leaves none."""
        settings = EXPERIMENTS["settings"]
        figure = draw_curves(gather(made_up_results([settings], range(2)), settings))
        save(figure, tmp_path, "settings", ("png",))
        assert figure.axes[0].get_window_extent().height > 2.0 * figure.dpi
        box = figure.legends[0].get_window_extent()
        assert box.x0 >= 0
        assert box.x1 <= figure.bbox.x1

    def test_without_an_optimum_there_is_no_regret(self):
        outcome = gather(made_up_results([ABLATION], range(2)), ABLATION)
        (problem,) = outcome.problems.values()
        assert draw_curves(replace(outcome, problems={"p": replace(problem, optimum=None)}), regret=True) is None


class TestReport:
    def test_text_and_page_of_partial_results(self, tmp_path):
        empty = replace(EXPERIMENTS["truncation"], problems=EXPERIMENTS["truncation"].problems[1:])
        keep = {("EI", 1): 0.3, ("dEI", 2): 0.0}
        results = made_up_results([ABLATION], range(3), keep=lambda _, method, seed: keep.get((method, seed), 1.0))
        report = make_report(results, tmp_path, [ABLATION, empty, EXPERIMENTS["fig1"]], {})
        text = as_markdown(report, tmp_path)
        assert "Of 18 claims 0 hold, 0 do not hold, and 18 are not decided." in text
        assert "no test can decide with fewer than" in text
        assert "- shekel-4, EI: 1 of 3 runs not finished, the furthest at 38 of 125 evaluations" in text
        assert "- shekel-4: left out, for not all methods have them: seeds 1, 2" in text
        assert "1 seed; proposing points took" in text
        assert "There are no runs yet: eign paper truncation" in text
        assert RULE in text
        for link in re.findall(r"\]\((figures/[^)]+)\)", text):
            assert (tmp_path / link).stat().st_size > 1000
        page = as_page(report)
        assert report.sections[-1].pictures[0].png.name == "fig1-landscapes.png"
        assert "data:image/png;base64," in page
        assert page.count("plotly.js v") == 1
        assert len(re.findall(r'class="badge', page)) >= 18
        assert not re.search(r'<(?:script|img|link|iframe)[^>]+(?:src|href)="(?!data:)', page)

    def test_an_extra_experiment_is_shown_when_it_has_runs_of_its_own(self, tmp_path):
        mirrored = small_experiment(EXPERIMENTS["mirrored"])
        for own in (False, True):
            results = made_up_results([ABLATION, *[mirrored] * own], range(2))
            report = make_report(results, tmp_path, [ABLATION, mirrored], {})
            shown = [section.outcome.experiment.id for section in report.sections]
            assert shown == ["ablation", *["mirrored"] * own]

    def test_figures_are_svg_too_if_wanted(self, tmp_path):
        results = made_up_results([ABLATION], range(2))
        for svg in (False, True):
            text = as_markdown(make_report(results, tmp_path, [ABLATION], {}, svg=svg), tmp_path)
            assert (tmp_path / "figures" / "ablation.svg").exists() == svg
            assert ("[SVG](figures/ablation.svg)" in text) == svg

    def test_no_text_of_an_experiment_becomes_part_of_the_page(self, tmp_path):
        script = "\"'><script>alert(1)</script>"
        problem = replace(ABLATION.problems[0], label=script)
        methods = tuple(replace(method, label=method.label + script) for method in ABLATION.methods[:2])
        crafted = replace(ABLATION, title=script, problems=(problem,), methods=methods)
        half = made_up_results([crafted], range(3), keep=lambda problem, method, seed: 1.0 if seed else 0.5)
        report = make_report(half, tmp_path, [crafted], {})
        page, text = as_page(report), as_markdown(report, tmp_path)
        assert page.count("&lt;script&gt;alert(1)") > 3
        assert "<script>alert" not in page
        assert "\"'>" not in re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
        assert "&lt;script>alert(1)" in text
        assert "<script" not in text

    def test_nothing_at_all(self, tmp_path):
        report = make_report(ExportedResults({}), tmp_path, [EXPERIMENTS["ablation"]], {})
        assert not report.is_trial
        assert "There are no runs yet" in as_markdown(report, tmp_path)
        assert report.hours == 0.0

    def test_trial_runs_are_shown_and_decide_nothing(self, tmp_path):
        results = made_up_results([quick_version(ABLATION)], range(12))
        report = make_report(results, tmp_path, [ABLATION], {})
        assert report.is_trial
        assert all(judged.judgement.seeds == 0 for judged in report.claims)
        text = as_markdown(report, tmp_path)
        assert "trial runs" in text
        assert f"at {quick_version(ABLATION).problems[0].budget} |" in text
