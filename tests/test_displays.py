"""What is drawn is what was computed, and what is computed for pictures only."""

import sys

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from ranktrees import (
    HistGBRTRegressor,
    LambdaMARTRanker,
    as_measure,
    compare,
    make_clicks,
    make_ranking,
    score_curves,
    tree_table,
)
from ranktrees.displays import (
    CostCurveDisplay,
    CutoffDisplay,
    ImportanceDisplay,
    LearningCurvesDisplay,
    PairedDifferenceDisplay,
    PartialDependenceDisplay,
    PositionBiasDisplay,
    RelevanceCalibrationDisplay,
    TreeDisplay,
)
from ranktrees.evaluation import cutoff_curves, mean_interval, per_query_table, relevance_calibration
from ranktrees.inspection import permutation_importance, position_bias, tree_graph

pyplot = pytest.importorskip("matplotlib.pyplot")
pyplot.switch_backend("agg")

X, Y, QID = make_ranking(40, rows_per_query=10, n_features=5, random_state=0, return_X_y_qid=True)
NAMES = ["title", "body", "clicks", "age", "site"]
FRAME = pd.DataFrame(X, columns=NAMES)
FRAME["site"] = pd.Categorical(np.array(['"uk"', "fr", "de", "es", "it"])[np.arange(len(Y)) % 5])
FRAME.loc[::9, "age"] = np.nan
LABELS = np.minimum(Y + (FRAME["site"] != "fr"), 4)
RANKER = LambdaMARTRanker(max_iter=12, n_iter_no_change=6, random_state=0).fit(
    FRAME[QID < 20],
    LABELS[QID < 20],
    qid=QID[QID < 20],
    X_val=FRAME[QID >= 20],
    y_val=LABELS[QID >= 20],
    qid_val=QID[QID >= 20],
)
REGRESSOR = HistGBRTRegressor(max_iter=10, random_state=0).fit(FRAME, LABELS)
SCORES = {"ranker": RANKER.predict(FRAME), "regressor": REGRESSOR.predict(FRAME)}


@pytest.fixture(autouse=True)
def _close():
    yield
    pyplot.close("all")


@pytest.fixture
def ax():
    return pyplot.subplots()[1]


def texts_of(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


# ---- what is computed for pictures -----------------------------------------------------------------


@pytest.mark.parametrize("measure", ["ndcg", "err", "p"])
def test_cutoffs_are_means_of_queries(measure):
    found = cutoff_curves(LABELS, SCORES, qid=QID, measure=measure, cutoffs=[7, 1, 3], confidence=0.8)
    measures = [as_measure(measure) @ k for k in (1, 3, 7)]
    table = per_query_table(LABELS, SCORES, qid=QID, measure=measures)
    assert found.cutoffs.tolist() == [1, 3, 7]
    assert found.names == tuple(SCORES)
    for name, *curves in zip(found.names, found.values, found.low, found.high, strict=True):
        expected = [mean_interval(table[name][repr(each)], 0.8)[:3] for each in measures]
        assert list(zip(*curves, strict=True)) == expected
    frame = found.to_frame()
    assert frame.index.tolist() == [1, 3, 7]
    assert frame["ranker"]["low"].tolist() == found.low[0].tolist()
    assert cutoff_curves(LABELS, SCORES["ranker"], qid=QID, cutoffs=4).cutoffs.tolist() == [1, 2, 3, 4]


def test_cutoffs_that_there_are_not():
    with pytest.raises(TypeError, match="AUC has no cutoff"):
        cutoff_curves(LABELS, SCORES, qid=QID, measure="auc")
    for wrong in (0, [], [1, 0], 2.5):
        with pytest.raises(
            ValueError, match=r"cutoffs=.*; expected a whole number of at least 1, or several"
        ):
            cutoff_curves(LABELS, SCORES, qid=QID, cutoffs=wrong)
    with pytest.raises(ValueError, match="y_score is empty"):
        cutoff_curves(LABELS, {}, qid=QID)
    with pytest.raises(ValueError, match=r"y_score\['short'\] has 3 rows, but y_true has 400"):
        cutoff_curves(LABELS, {"short": [1, 2, 3]}, qid=QID)


@pytest.mark.parametrize("strategy", ["quantile", "uniform"])
def test_calibration_by_hand(strategy):
    labels, scores, qid = LABELS.to_numpy(), SCORES["regressor"], QID[::-1]
    found = relevance_calibration(labels, scores, qid=qid, n_bins=5, strategy=strategy, confidence=0.9)
    ends = np.linspace(scores.min(), scores.max(), 6)
    if strategy == "quantile":
        ends = np.quantile(scores, np.linspace(0, 1, 6), method="inverted_cdf")
    for i in range(5):
        inside = (scores > ends[i]) & (scores <= ends[i + 1]) | (i == 0) & (scores == ends[0])
        assert found.n_rows[i] == inside.sum()
        assert found.scores[i] == pytest.approx(scores[inside].mean())
        assert found.labels[i] == pytest.approx(labels[inside].mean())
        table = pd.DataFrame({"y": labels[inside], "n": 1}).groupby(qid[inside]).sum()
        n = len(table)
        error = (
            np.sqrt(n / (n - 1) * ((table["y"] - table["n"] * found.labels[i]) ** 2).sum()) / table["n"].sum()
        )
        half = stats.t.ppf(0.95, n - 1) * error
        assert (found.low[i], found.high[i]) == pytest.approx(
            (found.labels[i] - half, found.labels[i] + half)
        )


def test_calibration_of_rows_that_are_a_query_each_is_a_mean_of_rows():
    found = relevance_calibration(LABELS, SCORES["ranker"], qid=np.arange(len(Y)), n_bins=1)
    expected = mean_interval(LABELS)
    assert (found.labels[0], found.low[0], found.high[0]) == pytest.approx(expected[:3])
    assert np.isnan(relevance_calibration(LABELS, SCORES["ranker"]).low).all()


def test_rows_of_one_score_share_a_bin():
    found = relevance_calibration([0, 1, 2, 0, 4], [1, 1, 1, 1, 2], n_bins=4)
    assert found.n_rows.tolist() == [4, 1]
    assert found.labels.tolist() == [0.75, 4.0]
    assert found.to_frame()["score"].tolist() == [1.0, 2.0]
    for options, message in (
        ({"n_bins": 0}, "n_bins=0; expected a whole number of at least 1"),
        ({"strategy": "kmeans"}, "strategy='kmeans'; expected 'quantile' or 'uniform'"),
        ({"confidence": 95}, "confidence=95; expected a number between 0 and 1"),
    ):
        with pytest.raises(ValueError, match=message):
            relevance_calibration([0, 1], [0, 1], **options)


@pytest.fixture(scope="module")
def of_clicks():
    log = make_clicks(Y, qid=QID, n_sessions=5, n_shown=6, random_state=0)
    ranker = LambdaMARTRanker(max_iter=5, random_state=0)
    return ranker.fit(X[log.rows], log.target, qid=log.qid, position=log.position)


def test_positions_have_what_the_model_has_found(of_clicks):
    found = position_bias(of_clicks)
    frame = found.to_frame()
    assert frame.index.tolist() == [1, 2, 3, 4, 5, 6]
    assert frame["clicked"].tolist() == of_clicks.propensities_.tolist()
    assert frame["unclicked"].tolist() == of_clicks.unclicked_propensities_.tolist()
    assert repr(found).startswith("PositionBias(6 positions: clicked 1 ... ")
    with pytest.raises(ValueError, match=r"LambdaMARTRanker without propensities_; expected .* position="):
        position_bias(RANKER)


def test_a_graph_has_the_nodes_of_the_table():
    graph, table = tree_graph(RANKER, 2), tree_table(RANKER)
    table = table[table["tree"] == 2].set_index("node")
    assert graph.to_frame().equals(table)
    for node, row in table.iterrows():
        lines = graph.texts[node].splitlines()
        assert lines[-1] == f"{row['count']} rows"
        assert ("or missing" in lines) == (row["missing"] == "left")
        if row["left"] < 0:
            assert float(lines[0]) == pytest.approx(row["value"], rel=1e-3)
        elif row["feature"] != "site":
            feature, cut = lines[0].split(" <= ")
            assert feature == row["feature"]
            assert float(cut) == pytest.approx(row["cut"], rel=1e-4)
    dot = graph.to_dot()
    children = [
        f"{node} -> {row[side]} [" in dot for node, row in table.iterrows() for side in ("left", "right")
    ]
    assert sum(children) == dot.count("->") == len(table) - 1


def test_categories_are_listed_and_quotes_escaped():
    table = tree_table(RANKER)
    [first] = table[table["categories"].notna()].head(1).to_dict("records")
    graph = tree_graph(RANKER, first["tree"])
    line = graph.texts[first["node"]].splitlines()[0]
    left = first["categories"]
    more = f", {len(left) - 3} more" if len(left) > 3 else ""
    assert line == f"site in {', '.join(left[:3])}{more}"
    assert '\\"uk\\"' in graph.to_dot()


def test_deep_nodes_can_be_left_out():
    graph = tree_graph(RANKER, max_depth=1)
    assert list(graph.texts) == graph.table.index[graph.table["depth"] <= 1].tolist()
    assert graph.to_dot().count("->") == 2
    for options, message in (
        ({"number": 99}, r"number=99; expected that of one of the \d+ trees"),
        ({"number": 0.5}, r"number=0.5; expected that of one of the \d+ trees"),
        ({"max_depth": -1}, "max_depth=-1; expected a whole number of at least 0, or None"),
    ):
        with pytest.raises(ValueError, match=message):
            tree_graph(RANKER, **options)


def test_notebooks_show_graphviz_where_it_is(monkeypatch, tmp_path):
    graph = tree_graph(RANKER)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert graph._repr_html_() == graph.table._repr_html_()
    dot = tmp_path / "dot"
    dot.write_text('#!/bin/sh\necho "<?xml ?>"\necho "<svg>$1"\n/bin/cat\necho "</svg>"\n')
    dot.chmod(0o755)
    assert graph._repr_html_() == f"<svg>-Tsvg\n{graph.to_dot()}</svg>\n"


# ---- displays --------------------------------------------------------------------------------------


@pytest.mark.parametrize("among", ["all", "query"])
def test_importances_are_bars(ax, among):
    display = ImportanceDisplay.from_estimator(
        RANKER, FRAME, LABELS, qid=QID, among=among, max_features=3, ax=ax
    )
    expected = permutation_importance(RANKER, FRAME, LABELS, qid=QID, among=among)
    assert display.result.by_query.tobytes() == expected.by_query.tobytes()
    best = np.argsort(-expected.values)[:3]
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert [text.get_text() for text in ax.get_yticklabels()] == [NAMES[i] for i in best]
    assert [bar.get_width() for bar in ax.patches] == expected.values[best].tolist()
    [bars] = ax.collections
    for segment, i in zip(bars.get_segments(), best, strict=True):
        assert segment[:, 0] == pytest.approx([expected.low[i], expected.high[i]])
    assert ax.get_ylabel() == "the first 3 of 5 features"
    bottom, top = ax.get_ylim()
    assert bottom > top  # the highest is on top


def test_importances_to_trees_need_no_rows(ax):
    display = ImportanceDisplay.from_estimator(RANKER, kind="split", ax=ax)
    assert display.result.values.tolist() == RANKER.feature_importances("split").tolist()
    assert not ax.collections
    assert ax.get_ylabel() == ""
    for options, message in (
        ({}, "kind='permutation' needs X and y"),
        ({"kind": "gain", "X": FRAME, "y": LABELS}, "X has no effect with kind='gain'"),
        ({"kind": "gain", "n_repeats": 3}, "n_repeats has no effect with kind='gain'"),
    ):
        with pytest.raises(TypeError, match=message):
            ImportanceDisplay.from_estimator(RANKER, **options)
    with pytest.raises(ValueError, match="kind must be 'gain' or 'split'"):
        ImportanceDisplay.from_estimator(RANKER, kind="shap")
    with pytest.raises(ValueError, match="max_features=0; expected the number of features to show"):
        display.plot(max_features=0)


def test_learning_curves(ax):
    display = LearningCurvesDisplay.from_estimator(RANKER, ax=ax)
    curves = score_curves(RANKER)
    assert ax.lines[0].get_ydata().tolist() == curves["training", "ndcg@10"].tolist()
    assert ax.lines[2].get_ydata().tolist() == curves["validation", "ndcg@10"].tolist()
    sets = {"all": (FRAME, LABELS, QID)}
    display = LearningCurvesDisplay.from_estimator(RANKER, sets=sets, measure="err", every=4)
    assert display.ax_ is not ax
    assert (
        display.ax_.lines[0].get_xdata().tolist()
        == score_curves(RANKER, sets=sets, measure="err", every=4).n_trees.tolist()
    )
    assert display.ax_.get_ylabel() == "ERR"


@pytest.mark.parametrize("names", [None, ("ours", "theirs")])
def test_paired_differences(ax, names):
    display = PairedDifferenceDisplay.from_estimator(
        RANKER, REGRESSOR, FRAME, LABELS, qid=QID, measure="err", names=names, ax=ax
    )
    expected = compare(LABELS, *SCORES.values(), qid=QID, measure="err")
    assert display.result == expected
    wins, losses = (patch.get_data().values for patch in ax.patches[:2])
    np.testing.assert_array_equal(wins + losses, np.sort(expected.values_a - expected.values_b)[::-1])
    a, b = names or ("a", "b")
    assert texts_of(ax)[:2] == [f"{a} is better: {expected.wins}", f"{b} is better: {expected.losses}"]
    for wrong in ("ab", ("ours", "ours"), ("ours",)):
        with pytest.raises(ValueError, match=r"names=.*; expected the names of the two rankers"):
            PairedDifferenceDisplay.from_predictions(LABELS, *SCORES.values(), qid=QID, names=wrong)


def test_cutoffs(ax):
    display = CutoffDisplay.from_predictions(LABELS, SCORES, qid=QID, cutoffs=5, ax=ax)
    curves = display.result
    assert [line.get_ydata().tolist() for line in ax.lines] == curves.values.tolist()
    for band, low, high in zip(ax.collections, curves.low, curves.high, strict=True):
        of_band = band.get_paths()[0].vertices
        assert (of_band[:, 1].min(), of_band[:, 1].max()) == (low.min(), high.max())
    assert texts_of(ax) == ["ranker", "regressor"]
    assert ax.get_ylabel() == "NDCG @ k, 95 % interval"
    one = CutoffDisplay.from_estimator(RANKER, FRAME, LABELS, qid=QID, measure="p", cutoffs=[2, 4])
    assert texts_of(one.ax_) == ["LambdaMARTRanker"]
    assert (
        one.result.values.tolist()
        == cutoff_curves(LABELS, SCORES["ranker"], qid=QID, measure="p", cutoffs=[2, 4]).values.tolist()
    )


@pytest.mark.parametrize("ref_line", [False, True])
def test_calibration(ax, ref_line):
    display = RelevanceCalibrationDisplay.from_estimator(
        REGRESSOR, FRAME, LABELS, qid=QID, n_bins=4, ref_line=ref_line, ax=ax
    )
    found = display.result
    line = ax.containers[0].lines[0]
    assert line.get_xdata().tolist() == found.scores.tolist()
    assert line.get_ydata().tolist() == found.labels.tolist()
    [bars] = ax.containers[0].lines[2]
    for segment, low, high in zip(bars.get_segments(), found.low, found.high, strict=True):
        assert segment[:, 1] == pytest.approx([low, high])
    assert [line.get_slope() for line in ax.lines if hasattr(line, "get_slope")] == [1] * ref_line


@pytest.mark.parametrize("kind", ["partial", "ale"])
def test_effects(kind):
    display = PartialDependenceDisplay.from_estimator(
        RANKER, FRAME, ["age", "site", 0], kind=kind, grid_resolution=9, n_cols=2
    )
    age, site, _ = display.results
    of_age, of_site, of_title = display.axes_
    assert of_age.lines[0].get_xdata().tolist() == age.values.tolist()
    assert of_age.lines[0].get_ydata().tolist() == age.effect.tolist()
    assert set(of_age.lines[1].get_ydata()) == {age.missing}
    assert texts_of(of_age) == ["missing values"]
    assert [segment[0, 0] for segment in of_age.collections[0].get_segments()] == age.deciles.tolist()
    assert of_site.lines[0].get_ydata().tolist() == site.effect.tolist()
    assert [text.get_text() for text in of_site.get_xticklabels()] == [*site.values]
    assert of_title.get_legend() is None
    assert [each.get_xlabel() for each in display.axes_] == ["age", "site", "title"]
    label = "mean score" if kind == "partial" else "accumulated local effect"
    assert [each.get_ylabel() for each in display.axes_] == [label, "", label]
    assert len(display.figure_.axes) == 3
    own = pyplot.subplots(1, 3)[1]
    assert display.plot(own).axes_.tolist() == own.tolist()
    assert own[0].get_ylabel() == own[1].get_ylabel() == label


def test_a_category_with_missing_values_ends_with_them(ax):
    frame = FRAME.assign(site=FRAME["site"].where(QID % 3 > 0))
    model = HistGBRTRegressor(max_iter=5, random_state=0).fit(frame, LABELS)
    [effect] = PartialDependenceDisplay.from_estimator(model, frame, ["site"], ax=ax).results
    assert [text.get_text() for text in ax.get_xticklabels()] == [*effect.values, "missing"]
    assert ax.lines[0].get_ydata().tolist() == [*effect.effect, effect.missing]


def test_effects_that_cannot_be_drawn(ax):
    for wrong in ("age", [], 0):
        with pytest.raises(ValueError, match=r"features=.*; expected a list of names or numbers"):
            PartialDependenceDisplay.from_estimator(RANKER, FRAME, wrong)
    with pytest.raises(ValueError, match="kind='both'; expected 'partial' or 'ale'"):
        PartialDependenceDisplay.from_estimator(RANKER, FRAME, ["age"], kind="both")
    with pytest.raises(ValueError, match="ax has 1 axes; expected 2, one for each feature"):
        PartialDependenceDisplay.from_estimator(RANKER, FRAME, ["age", 0], ax=ax, grid_resolution=2)
    with pytest.raises(ValueError, match="n_cols=0; expected a whole number of at least 1"):
        PartialDependenceDisplay.from_estimator(RANKER, FRAME, ["age"], n_cols=0, grid_resolution=2)


def test_position_bias(ax, of_clicks):
    PositionBiasDisplay.from_estimator(of_clicks, ax=ax)
    assert ax.lines[0].get_xdata().tolist() == [1, 2, 3, 4, 5, 6]
    assert ax.lines[0].get_ydata().tolist() == of_clicks.propensities_.tolist()
    assert ax.lines[1].get_ydata().tolist() == of_clicks.unclicked_propensities_.tolist()
    assert texts_of(ax) == ["clicked", "not clicked"]


def test_cost_curves(ax):
    costs = {"feature_costs": [1, 2, 3, 4, 5]}
    display = CostCurveDisplay.from_estimator(RANKER, FRAME, LABELS, qid=QID, name="one", ax=ax, **costs)
    expected = RANKER.cost_curve(FRAME, LABELS, qid=QID, **costs)
    assert display.result.cost.tolist() == expected.cost.tolist()
    assert ax.lines[0].get_ydata().tolist() == expected.value.tolist()
    assert ax.lines[0].get_label() == "one"


@pytest.mark.parametrize("max_depth", [0, 1, None])
def test_trees_are_drawn_with_parents_amid_their_children(max_depth):
    display = TreeDisplay.from_estimator(RANKER, 1, max_depth=max_depth)
    graph = display.result
    drawn = {}
    for text in display.ax_.texts:
        if "rows" in text.get_text():
            drawn[text.get_position()] = text.get_text()
    assert sorted(drawn.values()) == sorted(graph.texts.values())
    places = graph._places()
    assert {place: graph.texts[node] for node, place in places.items()} == drawn
    edges = graph._edges()
    leaves = sorted(places[node][0] for node in graph.texts if node not in {parent for parent, *_ in edges})
    assert leaves == list(range(len(leaves)))
    for parent in {parent for parent, *_ in edges}:
        left, right = (places[child] for one, child, _ in edges if one == parent)
        assert left[0] < places[parent][0] == (left[0] + right[0]) / 2 < right[0]
        assert left[1] == right[1] == places[parent][1] - 1
    assert [text.get_text() for text in display.ax_.texts].count("yes") == len(edges) / 2


def test_pictures_need_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for draw in (
        lambda: ImportanceDisplay.from_estimator(RANKER, kind="gain"),
        lambda: PartialDependenceDisplay.from_estimator(RANKER, FRAME, ["age"], grid_resolution=2),
        lambda: TreeDisplay.from_estimator(RANKER),
        lambda: CutoffDisplay.from_predictions(LABELS, SCORES, qid=QID, cutoffs=1),
    ):
        with pytest.raises(ImportError, match=r'pip install "ranktrees\[plot\]"'):
            draw()
