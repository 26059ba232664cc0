"""Rankers on random polynomials and on rows like those of the web (table 1, figure 2)."""

import time
from functools import cache

import numpy as np

from ranktrees import HistGBRTClassifier, HistGBRTRegressor, LambdaMARTRanker, OrdinalRanker

from ..drawing import FIGURES, draw
from ..survey.lab import kept, paired, quality
from ..survey.markdown import difference, number, table
from . import sets
from .net import FORCES, LambdaRankNet
from .report import MEASURES, columns, findings, values_of

# Trees by least squares, of all rows and features, as in the paper.
TREES = {"max_features": 1.0, "gradient_sampling": None, "split_criterion": "squared_error", "n_jobs": 1}
ROUNDS = (10, 20, 25, 40, 50, 70, 100, 125, 140, 200, 250, 300, 400, 500, 600, 800, 1000)
HIDDEN = (10, 32, 100)
LEAVES, RATES = (10, 15, 20), (0.05, 0.1, 0.15)  # the ranges of figure 2
MART, MCRANK, ORDINAL, NET = "λ-MART", "McRank", "ordinal", "λ-Rank"
REGRESSION, SECOND_ORDER, BM25 = "regression", "λ-MART, second order", "BM25"
SMALL_NET = "λ-Rank, 10 hidden"
WEB = "like the web"
TREES_A_ROUND = {MCRANK: 5, ORDINAL: 4}
MOST_ROUNDS = {MCRANK: 500, ORDINAL: 250}  # in figure 2; others have all of `ROUNDS`
EQUAL_TREES = (100, 200, 1000)
GOALS = (100, 200, 500, 1000, 2500)

CLAIMS = (
    (MART, MCRANK),
    (MART, NET),
    (MCRANK, NET),
    (MART, SMALL_NET),
    (MCRANK, SMALL_NET),
    (MART, REGRESSION),
    (SECOND_ORDER, MART),
    (NET, BM25),
)


def ranker(name, leaves, rate, rounds=ROUNDS[-1]):
    """The ranker of this name."""
    given = TREES | {"max_leaf_nodes": leaves, "learning_rate": rate, "max_iter": rounds}
    if name == REGRESSION:
        del given["split_criterion"]  # of the squared error, there is no other
        return HistGBRTRegressor(**given)
    if name in (MCRANK, ORDINAL):
        method = "multiclass" if name == MCRANK else "ordinal"
        return OrdinalRanker(HistGBRTClassifier(**given), method=method, n_jobs=1)
    if name == SECOND_ORDER:
        given["split_criterion"] = "newton"
    return LambdaMARTRanker(FORCES, **given)


# By title: the rows by the number of artificial queries, and the settings of the paper for table 1.
PANELS = {
    "artificial": (sets.artificial, {MART: (10, 0.1), MCRANK: (10, 0.05)}),
    WEB: (sets.web, {MART: (15, 0.1), MCRANK: (10, 0.05)}),
}


def _rows(lab, title, part=1):
    """(the name of the rows, the rows): so many of the queries, as many as there are or a part of them."""
    make, _ = PANELS[title]
    n_queries = lab.n_queries // part
    return (title, n_queries), make(n_queries)


def _net(lab, name, parts, n_hidden):
    """(epochs, scores of validation and of test rows, seconds)."""
    net = LambdaRankNet(n_hidden, max_epochs=300)

    def make():
        started = time.process_time()
        net.fit(parts.train, parts.validation)
        seconds = time.process_time() - started
        return np.hstack([net.n_epochs_, net.predict(parts.validation.X), net.predict(parts.test.X), seconds])

    epochs, *scores, seconds = kept(lab.folder, ("net", name, net), make)
    return int(epochs), *np.split(np.array(scores), [len(parts.validation.y)]), seconds


def _in_table_1(lab, title):
    """By contender: (scores of the test rows, its size, CPU seconds)."""
    name, parts = _rows(lab, title)
    *_, settings = PANELS[title]
    found = {}
    for of in (MART, MCRANK, NET, REGRESSION, SECOND_ORDER):
        if of == NET:
            nets = {n_hidden: _net(lab, name, parts, n_hidden) for n_hidden in HIDDEN}
            best = max(HIDDEN, key=lambda n: np.nanmean(quality(parts.validation, nets[n][1])))
            for n_hidden, called in ({HIDDEN[0]: SMALL_NET} | {best: NET}).items():
                _, _, scores, seconds = nets[n_hidden]
                found[called] = scores, f"{n_hidden} hidden", f"{seconds:.0f}"
        else:
            model = ranker(of, *settings.get(of, settings[MART]))
            rounds, _, scores, seconds = lab.best(name, model, ROUNDS, parts)
            found[of] = scores, f"{rounds * TREES_A_ROUND.get(of, 1)} trees", f"{seconds:.0f}"
    if title == WEB:
        found[BM25] = parts.test.X[:, sets.BM25.start], "of the body", ""
    return found


def table_1(lab):
    """NDCG of the test queries, with 95 % intervals, of the paper's three rankers and of others."""
    made = []
    for title in PANELS:
        _, parts = _rows(lab, title)
        found = _in_table_1(lab, title)
        values = {of: values_of([parts.test], [scores]) for of, (scores, *_) in found.items()}
        claims = [pair for pair in CLAIMS if set(pair) <= set(values)]
        _, sizes, times = zip(*found.values(), strict=True)
        head = f"{title}, {lab.n_queries} queries"
        made += [
            columns(head, values, size=sizes, **{"CPU seconds": times}),
            findings(head, values, claims),
        ]
    return made


# ------------------------------------------------------------------------------------------- speed, figure 2


def _rounds(of):
    return tuple(rounds for rounds in ROUNDS if rounds <= MOST_ROUNDS.get(of, ROUNDS[-1]))


@cache
def chosen(lab, title, of):
    """(leaves, rate) by validation queries, with a tenth of the queries."""
    name, parts = _rows(lab, title, part=10)
    rounds = _rounds(of)

    def reached(setting):
        _, validation, *_ = lab.best(name, ranker(of, *setting, rounds[-1]), rounds, parts)
        return np.nanmean(quality(parts.validation, validation))

    return max([(leaves, rate) for leaves in LEAVES for rate in RATES], key=reached)


def figure_2(lab):
    """NDCG@10 of the test queries over the number of trees, and paired tests of as many trees."""
    panels, settings, rows, needed = {}, [], [], []
    for title in PANELS:
        name, parts = _rows(lab, title)
        found = {of: chosen(lab, title, of) for of in (MART, MCRANK)}
        settings += [[title, of, str(leaves), number(rate, 2)] for of, (leaves, rate) in found.items()]
        values = {}
        for of in (MART, MCRANK, ORDINAL, REGRESSION, SECOND_ORDER):
            rounds = _rounds(of)
            model = ranker(of, *found[MCRANK if of in TREES_A_ROUND else MART], rounds[-1])
            _, scores, _ = lab.curves(name, model, rounds, parts)
            values[of] = {
                n * TREES_A_ROUND.get(of, 1): quality(parts.test, of_stage, MEASURES["NDCG@10"])
                for n, of_stage in zip(rounds, scores, strict=True)
            }
        panels[title] = {
            of: (list(curve), [np.nanmean(value) for value in curve.values()]) for of, curve in values.items()
        }
        for trees in EQUAL_TREES:
            at = {of: values[of][trees] for of in (MART, MCRANK, ORDINAL)}
            cells = [number(np.nanmean(value)) for value in at.values()]
            tests = [difference(paired(at[MART], at[of])) for of in TREES_A_ROUND]
            rows.append([title, str(trees), *cells, *tests])
        for trees in GOALS:
            goal = np.nanmean(values[MCRANK][trees])
            needed.append([title, str(trees), number(goal), _first(*panels[title][MART], goal)])
    if lab.draws:
        draw(FIGURES / "lambdasmart_2.svg", panels, x="trees", y="NDCG@10", log=True)
    over = [f"{MART} above {of}" for of in TREES_A_ROUND]
    return [
        table(["chosen", "", "leaves", "rate"], settings),
        table([f"{lab.n_queries} queries", "trees", MART, MCRANK, ORDINAL, *over], rows),
        table(["", f"trees of {MCRANK}", "its NDCG@10", f"trees of {MART} for it"], needed),
    ]


def _first(trees, values, goal):
    """The number of trees with which the goal is reached, on the line between the two nearest."""
    above = next((place for place, value in enumerate(values) if value >= goal), None)
    if above is None:
        return f"more than {trees[-1]}"
    if above == 0:
        return f"at most {trees[0]}"
    return f"{np.interp(goal, values[above - 1 : above + 1], trees[above - 1 : above + 1]):.0f}"


TABLES = {"1": table_1, "figure 2": figure_2}
