"""Results that go on: as data frames, in notebooks, as LaTeX, and as pictures of comparisons."""

import sys

import numpy as np
import pytest

from ranktrees import compare, compare_to_baseline, optimal_weight
from ranktrees.evaluation import CostCurve, ScoreCurves, compare_values, holm, mean_interval
from ranktrees.measures import NDCG, RMSE, P

RANDOM = np.random.default_rng(0)
QID = np.repeat(np.arange(30), 6)
Y = RANDOM.integers(0, 3, len(QID))
Y[:6] = 0  # the first query has no relevant row
SCORES = {
    "good": Y + RANDOM.normal(size=len(Y)),
    "bad": RANDOM.normal(size=len(Y)),
    "50 % & _best_": Y + 0.1 * RANDOM.normal(size=len(Y)),
}


@pytest.fixture
def axes():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    yield pyplot.subplots()[1]
    pyplot.close("all")


# ---- several rankers by several measures -----------------------------------------------------------


@pytest.mark.parametrize("test", ["t", "bootstrap", "randomization"])
def test_a_report_is_made_of_comparisons(test):
    report = compare(Y, SCORES, qid=QID, measure=["ndcg@5", "rmse"], test=test)
    assert report.measures == (NDCG @ 5, RMSE)
    names = list(SCORES)
    assert report.names == tuple(names)
    pairs = [(names[0], names[1]), (names[0], names[2]), (names[1], names[2])]
    for column, measure in enumerate(report.measures):
        expected = [compare(Y, SCORES[a], SCORES[b], qid=QID, measure=measure, test=test) for a, b in pairs]
        assert [report.comparisons[measure, a, b] for a, b in pairs] == expected
        assert [report.comparisons[measure, a, b].names for a, b in pairs] == pairs
        adjusted = holm([each.p_value for each in expected]).tolist()
        assert [report.p_values[measure, a, b] for a, b in pairs] == adjusted
        means = [expected[0].mean_a, expected[0].mean_b, expected[1].mean_b]
        assert report.means[:, column].tolist() == means


def test_letters_are_the_rankers_that_are_beaten():
    report = compare(Y, SCORES, qid=QID, measure=["ndcg@5", "rmse"])
    good, bad, best = SCORES
    assert report.better_than(best) == [good, bad]
    assert report.better_than(good, "ndcg@5") == [bad]
    assert report.better_than(bad) == []
    assert report.better_than(best, max_p=0.0) == []
    assert report.better_than(best, "rmse") == [good, bad]  # whose errors are larger
    frame = report.to_frame()
    assert frame.index.tolist() == ["a", "b", "c"]
    assert frame.columns.tolist() == ["ranker", "NDCG @ 5", "RMSE"]
    means = report.means
    assert frame["NDCG @ 5"].tolist() == [f"{means[0, 0]:.4f}ᵇ", f"{means[1, 0]:.4f}", f"{means[2, 0]:.4f}ᵃᵇ"]
    assert report.to_frame(max_p=0.0)["NDCG @ 5"].tolist() == [f"{mean:.4f}" for mean in means[:, 0]]
    lines = repr(report).splitlines()
    assert lines[0] == "NDCG @ 5: 29 queries, 1 left out; RMSE: 30 queries"
    assert lines[4].split("  ")[-2:] == [f"{means[2, 0]:.4f}ᵃᵇ", f"{means[2, 1]:.4f}ᵃᵇ"]
    assert "<td>50 % &amp; _best_</td>" in report._repr_html_()


def test_a_query_counts_if_all_rankers_have_a_value():
    def top_label(labels, scores):
        return float(labels[np.argmax(scores)]) if scores[0] != 0 else np.nan

    a, b, c = np.ones(8), np.array([1.0, 1, 0, 2, 1, 3, 1, 4]), np.array([2.0, 1, 2, 1, 0, 1, 2, 1])
    report = compare([1, 2] * 4, {"a": a, "b": b, "c": c}, qid=np.repeat(range(4), 2), measure=top_label)
    assert {found.n_queries for found in report.comparisons.values()} == {2}
    assert report.means.tolist() == [[1.0], [1.5], [1.0]]


def test_a_report_as_latex():
    pytest.importorskip("jinja2")
    report = compare(Y, SCORES, qid=QID, measure=["ndcg@5", P(rel=2) @ 3])
    latex = report.to_latex(caption="All of them")
    assert r"c & 50 \% \& \_best\_ & " in latex
    assert f"{report.means[2, 0]:.4f}$^{{ab}}$" in latex
    assert r"\caption{All of them}" in latex
    assert r"\toprule" in latex
    assert r"\toprule" not in report.to_latex(hrules=False)


def test_what_cannot_be_reported():
    with pytest.raises(TypeError, match=r"scores_b is .*, and scores_a a dict; expected the scores of all"):
        compare(Y, SCORES, SCORES["bad"], qid=QID)
    with pytest.raises(TypeError, match="compare needs the scores of at least two rankers"):
        compare(Y, SCORES["bad"], qid=QID)
    with pytest.raises(ValueError, match="scores_a has 1 rankers; expected from 2 to 25"):
        compare(Y, {"bad": SCORES["bad"]}, qid=QID)
    with pytest.raises(ValueError, match=r"measure is empty; expected one or more"):
        compare(Y, SCORES, qid=QID, measure=[])
    with pytest.raises(ValueError, match=r"RMSE of scores_a\['b'\] must hold one finite value per query"):
        compare([1, 0], {"a": [1, 0], "b": [np.inf, 0]}, measure="rmse")


# ---- data frames -----------------------------------------------------------------------------------


def test_comparisons_as_frames():
    found = compare(Y, SCORES["good"], SCORES["bad"], qid=QID)
    frame = found.to_frame()
    assert frame.index.tolist() == ["a", "b"]
    low, high = found.interval
    first = [found.mean_a, found.difference, low, high, found.p_value, found.wins, found.ties, found.losses]
    assert frame.loc["a"].tolist() == first
    assert frame.loc["b", "mean"] == found.mean_b
    assert frame.loc["b"].drop("mean").isna().all()
    several = compare_to_baseline(Y, SCORES, "bad", qid=QID)
    frame = several.to_frame()
    assert frame.index.tolist() == ["bad", "good", "50 % & _best_"]
    assert frame["p_value"].dropna().to_dict() == several.p_values
    assert frame["wins"].dropna().tolist() == [each.wins for each in several.values()]
    assert several["good"].names == ("good", "bad")
    assert repr(several["good"]).splitlines()[1:4] == [
        f"good          {found.mean_a:.4f}",
        f"bad           {found.mean_b:.4f}",
        f"good - bad  {found.difference:+8.4f}, 95 % interval {low:+.4f} to {high:+.4f}, "
        f"p = {several['good'].p_value:.1g} by Student's t test",
    ]


def test_curves_as_frames():
    values = {("training", NDCG @ 10): np.array([0.5, 0.75]), ("test", "loss"): np.array([3.0, 2.0])}
    frame = ScoreCurves(np.array([10, 20]), values, 20).to_frame()
    assert frame.index.tolist() == [10, 20]
    assert frame.columns.tolist() == [("training", "NDCG @ 10"), ("test", "loss")]
    assert frame["test"]["loss"].tolist() == [3.0, 2.0]
    frame = CostCurve("ERR", np.array([1, 2]), np.array([5.0, 25.0]), np.array([0.5, 0.625])).to_frame()
    assert frame.loc[2].to_dict() == {"cost": 25.0, "ERR": 0.625}
    curve = optimal_weight([1, 0, 2], [3.0, 2.0, 1.0], [0.0, 1.0, 3.0])
    frame = curve.to_frame()
    assert frame["weight"].tolist() == curve.weights.tolist()
    assert frame["at"].tolist() == curve.values_at.tolist()
    assert frame["behind"].tolist()[:-1] == curve.values.tolist()
    assert np.isnan(frame["behind"].iloc[-1])


RESULTS = {
    "comparison": lambda: compare_values([1.0, 2.0, 2.0], [1.0, 3.0, 1.0]),
    "comparisons": lambda: compare_to_baseline(Y, SCORES, "bad", qid=QID),
    "report": lambda: compare(Y, SCORES, qid=QID),
    "curves": lambda: ScoreCurves(np.array([10]), {("test", "loss"): np.array([3.0])}, 10),
    "cost": lambda: CostCurve("ERR", np.array([1]), np.array([5.0]), np.array([0.5])),
    "weight": lambda: optimal_weight([1, 0], [3.0, 2.0], [0.0, 1.0]),
}


@pytest.mark.parametrize("make", RESULTS.values(), ids=RESULTS)
def test_notebooks_show_the_frame_or_without_pandas_the_text(make, monkeypatch):
    result = make()
    assert result._repr_html_() == result.to_frame()._repr_html_()
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert result._repr_html_() is None
    with pytest.raises(ImportError, match="to_frame returns a pandas DataFrame: pip install pandas"):
        result.to_frame()


# ---- pictures --------------------------------------------------------------------------------------


@pytest.mark.parametrize("greater_is_better", [True, False])
def test_differences_are_drawn_from_the_clearest_win_to_the_clearest_loss(greater_is_better, axes):
    a, b = np.array([0.5, 0.9, np.nan, 0.25, 0.5]), np.array([0.75, 0.4, 1.0, 0.25, 0.25])
    found = compare_values(a, b, greater_is_better=greater_is_better)
    assert found.plot(axes) is axes
    expected = [0.5, 0.25, 0.0, -0.25] if greater_is_better else [-0.25, 0.0, 0.25, 0.5]
    wins, losses = (patch.get_data().values for patch in axes.patches[:2])
    assert (wins + losses).tolist() == expected
    assert ((wins != 0) & (losses != 0)).sum() == 0
    assert (np.sign(wins) * (1 if greater_is_better else -1)).min() == 0
    texts = [text.get_text() for text in axes.get_legend().get_texts()]
    assert texts == [f"a is better: {found.wins}", f"b is better: {found.losses}", "mean, 95 % interval"]
    mean = axes.lines[-1]
    assert mean.get_ydata()[0] == found.difference
    assert axes.get_xlabel() == "4 queries, 1 left out, 1 as good"
    assert axes.get_ylabel() == "values: a - b"


def test_comparisons_are_drawn_as_intervals(axes):
    found = compare_to_baseline(Y, SCORES, "bad", qid=QID, measure="ndcg@5")
    assert found.plot(axes) is axes
    assert [text.get_text() for text in axes.get_yticklabels()] == list(found)
    [container] = axes.containers
    line, _, [bars] = container.lines
    assert line.get_xdata().tolist() == [each.difference for each in found.values()]
    for each, segment in zip(found.values(), bars.get_segments(), strict=True):
        assert segment[:, 0] == pytest.approx(each.interval)
    assert axes.get_xlabel() == "NDCG @ 5: over bad, 95 % interval"
    bottom, top = axes.get_ylim()
    assert bottom > top  # the first is above


@pytest.mark.parametrize("measures", [["ndcg@5"], ["ndcg@5", "rmse"]])
def test_a_report_is_drawn_as_means_with_the_intervals_over_its_queries(measures, axes):
    report = compare(Y, SCORES, qid=QID, measure=measures, confidence=0.9)
    assert report.plot(axes) is axes
    assert [text.get_text() for text in axes.get_yticklabels()] == list(SCORES)
    assert len(axes.containers) == len(measures)
    for column, (measure, container) in enumerate(zip(report.measures, axes.containers, strict=True)):
        line, _, [bars] = container.lines
        assert line.get_xdata() == pytest.approx(report.means[:, column])
        assert line.get_ydata().round().tolist() == [0, 1, 2]  # beside the name
        for name, segment in zip(SCORES, bars.get_segments(), strict=True):
            of_queries = compare(Y, SCORES[name], SCORES["good"], qid=QID, measure=measure).values_a
            expected = mean_interval(of_queries, 0.9)
            assert segment[:, 0] == pytest.approx([expected.low, expected.high])
    bottom, top = axes.get_ylim()
    assert bottom > top  # the first is above
    if len(measures) == 1:
        assert axes.get_xlabel() == "NDCG @ 5, 90 % interval"
        assert axes.get_legend() is None
    else:
        assert axes.get_xlabel() == "mean, 90 % interval"
        assert [text.get_text() for text in axes.get_legend().get_texts()] == ["NDCG @ 5", "RMSE"]
        heights = [container.lines[0].get_ydata()[0] for container in axes.containers]
        assert heights[0] < heights[1]  # the intervals do not cover each other


def test_pictures_need_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for name in ("comparison", "comparisons", "report"):
        with pytest.raises(ImportError, match=r'pip install "ranktrees\[plot\]"'):
            RESULTS[name]().plot()
