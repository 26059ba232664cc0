"""NDCG@10 of the settings that validation queries choose: ranktrees and CatBoost, by one rule.

    python benchmarks/bench_choice.py [--sets mq2008 ohsumed] [--seeds 3] [--jobs 2] [--keep FOLDER] [--test]
        [--libraries AveragedRanker CatBoost] [--settings best balanced YetiRank QueryRMSE]

Each library has eight settings, and 36 candidates: a setting alone, or the mean of two, whose scores are
divided by their standard deviation within validation queries. Boosters may grow 1000 trees and stop early, as
in `bench_accuracy`.

    parts of a fold      train  train  train  validation  test
    rehearsal            learn ....... stop   choose              stop: a quarter of the training queries
    performance          learn .............. stop        test

The candidate with the highest mean NDCG@10 over the validation queries of the rehearsals of all folds is
chosen. The validation part of one LETOR fold is the test part of another; so each fold has a choice of its
own, by all validation queries but those that it tests on. Queries that training stopped on are no judges of
it: the round is the best for just these, which flatters one model more than the mean of two, who stop at
different rounds. What they would choose is shown beside it.

"One for all" chooses by the mean over the sets, so that all have the same; "single" leaves the means of two
out. Without ``--test`` only validation is shown. The qualities of AveragedRanker are not chosen among: with
``--test`` each is compared with CatBoost's two defaults and their mean, and with what was chosen of CatBoost,
as is the time that it takes. ``--keep`` keeps the scores of what was fitted in a folder,
by the names of settings: empty it when one changes.
"""

import argparse
import itertools
import math
import tempfile
import time
import warnings
from collections import Counter

import data
import joblib
import numpy as np
from bench_accuracy import averaged, by_query, catboost, ndcg, ours
from scipy import stats

from ranktrees import HistGBRTRegressor, LambdaMARTRanker

NOISY = {"loss": "lambdaloss", "noise": 1.0}
SETTINGS = {
    "ranktrees": {
        "lambdamart": ours(LambdaMARTRanker),
        "lambdamart, noise": ours(LambdaMARTRanker, noise=1.0),
        "lambdamart, noise, 8 leaves": ours(LambdaMARTRanker, noise=1.0, max_leaf_nodes=8),
        "lambdaloss, noise, 15 leaves, rate .03": ours(
            LambdaMARTRanker, max_leaf_nodes=15, learning_rate=0.03, **NOISY
        ),
        "xendcg, 15 leaves, rate .03": ours(
            LambdaMARTRanker, loss="xendcg", max_leaf_nodes=15, learning_rate=0.03
        ),
        "query_rmse, 8 leaves": ours(LambdaMARTRanker, loss="query_rmse", max_leaf_nodes=8),
        "squared error": ours(HistGBRTRegressor),
        "squared error, 8 leaves": ours(
            HistGBRTRegressor, max_leaf_nodes=8, max_features=0.3, gradient_sampling=1.0
        ),
    },
    "AveragedRanker": {quality: averaged(quality) for quality in ("best", "balanced", "fast")},
    "CatBoost": {
        "YetiRank": catboost(),
        "QueryRMSE": catboost("QueryRMSE"),
        "QueryRMSE, depth 5, rate .05": catboost("QueryRMSE", depth=5, learning_rate=0.05),
        "QueryRMSE, .3 of features": catboost("QueryRMSE", rsm=0.3),
        "RMSE": catboost("RMSE"),
        "YetiRank, depth 5, rate .05": catboost(depth=5, learning_rate=0.05),
        "YetiRank, depth 4, rate .1": catboost(depth=4, learning_rate=0.1),
        "YetiRank:mode=NDCG": catboost("YetiRank:mode=NDCG"),
    },
}
DEFAULTS_OF_CATBOOST = (("YetiRank",), ("QueryRMSE",), ("YetiRank", "QueryRMSE"))
DEFAULT = {library: (next(iter(settings)),) for library, settings in SETTINGS.items()}
REHEARSED, STOPPED_ON, TEST = "rehearsed", "stopped on", "test"  # validation queries, twice; test queries
BY_SET, SINGLE = "by set", "single"
RULES = tuple(itertools.product((REHEARSED, STOPPED_ON), (BY_SET, "one for all"), (SINGLE, "means of two")))


def rehearsal(train, number):
    """(The training rows but a quarter of their queries, the rows of that quarter)."""
    queries = np.unique(train[2])
    drawn = np.random.default_rng(number).permutation(queries)[: len(queries) // 4]
    stops = np.isin(train[2], drawn)
    return tuple(tuple(column[rows] for column in train) for rows in (~stops, stops))


def scores_of(library, setting, name, seed, rehearsing):
    """(scores of validation rows and, unless ``rehearsing``, of test rows, for each fold; seconds)."""
    scores, seconds = [], 0.0
    for number, (train, validation, test) in enumerate(data.folds(name)):
        learned, stopped = rehearsal(train, number) if rehearsing else (train, validation)
        started = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the peers' own
            predict = SETTINGS[library][setting](learned, stopped, seed)
        seconds += time.process_time() - started
        scores.append([predict(rows[0]) for rows in ([validation] if rehearsing else [validation, test])])
    return scores, seconds


def candidates_of(library):
    """The settings, each a tuple of one, and all pairs."""
    settings = SETTINGS[library]
    return [*((one,) for one in settings), *itertools.combinations(settings, 2)]


def spread(rows, scores):
    """The standard deviation of scores within queries."""
    _, query = np.unique(rows[2], return_inverse=True)
    means = np.bincount(query, scores) / np.bincount(query)
    return np.sqrt(np.mean((scores - means[query]) ** 2))


class Results:
    """NDCG@10 of every candidate on the queries of every fold of a set."""

    def __init__(self, name, scores, n_seeds):
        self._folds = [
            {REHEARSED: validation, STOPPED_ON: validation, TEST: test}
            for _, validation, test in data.folds(name)
        ]
        self._queries = [{part: np.unique(rows[2]) for part, rows in fold.items()} for fold in self._folds]
        self.n_folds = len(self._folds)
        self._scores, self._n_seeds, self._values = scores, n_seeds, {}

    def values(self, library, candidate, part):
        """[float64[n_queries] of each fold]: means over seeds."""
        key = library, candidate, part
        if key not in self._values:
            self._values[key] = [
                np.mean(
                    [ndcg(rows[part], self._blend(*key, fold, seed)) for seed in range(self._n_seeds)], axis=0
                )
                for fold, rows in enumerate(self._folds)
            ]
        return self._values[key]

    def _blend(self, library, candidate, part, fold, seed):
        """The sum of the scores of each setting over their spread among the validation queries."""
        blend = 0.0
        for setting in candidate:
            scores = self._scores[library, setting, seed, part == REHEARSED][fold]
            blend = blend + scores[part == TEST] / spread(self._folds[fold][REHEARSED], scores[0])
        return blend

    def by_query(self, library, choices, part):
        """One value for each query of a part of all folds; ``choices`` has a candidate for each fold."""
        values = [self.values(library, candidate, part)[fold] for fold, candidate in enumerate(choices)]
        return by_query([queries[part] for queries in self._queries], values)

    def everywhere(self, library, candidate, part):
        """The same of one candidate in all folds."""
        return self.by_query(library, [candidate] * self.n_folds, part)

    def validated(self, library, candidate, part, tested_fold=None):
        """The mean over validation queries of all folds, but those of the test part of one."""
        values = self.everywhere(library, candidate, part)
        queries = np.unique(np.concatenate([queries[part] for queries in self._queries]))
        tested = [] if tested_fold is None else self._queries[tested_fold][TEST]
        return np.nanmean(values[~np.isin(queries, tested)])


def chosen(results, name, library, part, scope, kind):
    """The candidate of each fold of a set."""
    candidates = [one for one in candidates_of(library) if kind != SINGLE or len(one) == 1]
    judges = [name] if scope == BY_SET else results

    def validated(candidate, fold):
        return np.mean(
            [
                results[judge].validated(library, candidate, part, fold if judge == name else None)
                for judge in judges
            ]
        )

    folds = range(results[name].n_folds)
    return [max(candidates, key=lambda one: validated(one, fold)) for fold in folds]


def line(*cells):
    """A line of a table in Markdown."""
    print(f"| {' | '.join(cells)} |")


def heading(*cells):
    """The first lines of a table."""
    print()
    line(*cells)
    print("|---" * len(cells) + "|")


def called(candidate):
    """The name of a candidate."""
    return " + ".join(candidate)


def means(by_set):
    """The cells of the mean of each set, and of the mean of these."""
    found = [np.nanmean(values) for values in by_set.values()]
    return [f"{mean:.4f}" for mean in (*found, np.mean(found))]


def differences(by_set, others):
    """The cells of the mean differences, with t, of each set, and of the mean of these."""
    paired = [by_set[name] - others[name] for name in by_set]
    found = [(np.nanmean(one), stats.sem(one, nan_policy="omit")) for one in paired]
    mean, errors = zip(*found, strict=True)
    found.append((np.mean(mean), math.hypot(*errors) / len(errors)))
    return [f"{mean:+.4f} ({mean / error if error else 0.0:+.1f})" for mean, error in found]


def validation_table(results, library, seconds):
    """Every candidate on rehearsals, its difference to the default, and the seconds of its performances."""
    heading(f"{library}, {REHEARSED}", *results, "mean", "mean - default's", f"mean, {STOPPED_ON}", "seconds")
    rehearsed, stopped_on = (
        {
            candidate: {name: one.everywhere(library, candidate, part) for name, one in results.items()}
            for candidate in candidates_of(library)
        }
        for part in (REHEARSED, STOPPED_ON)
    )
    for candidate, by_set in rehearsed.items():
        line(
            called(candidate),
            *means(by_set),
            differences(by_set, rehearsed[DEFAULT[library]])[-1],
            means(stopped_on[candidate])[-1],
            f"{sum(seconds[library, setting] for setting in candidate):.0f}",
        )


def choices_table(choices):
    """What each rule chose, and in how many folds."""
    sets = next(iter(choices.values()))
    heading("library", "judged by queries", "scope", "among", *sets)
    for (library, rule), by_set in choices.items():
        counts = [Counter(map(called, candidates)).most_common() for candidates in by_set.values()]
        line(library, *rule, *("; ".join(f"{one} ({times})" for one, times in found) for found in counts))


def test_tables(results, choices):
    """Means over the test queries, and differences between libraries, and to the defaults."""
    tested = {
        (library, ", ".join(rule)): {
            name: results[name].by_query(library, candidates, TEST) for name, candidates in by_set.items()
        }
        for (library, rule), by_set in choices.items()
    }
    heading(TEST, *results, "mean")
    for (library, rule), by_set in tested.items():
        line(f"{library}: {rule}", *means(by_set))
    libraries = list(dict.fromkeys(library for library, _ in tested))
    for library, other in itertools.product(libraries[:1], libraries):
        heading(f"{TEST}: {library} - {other}", *results, "mean")
        for (_, rule), by_set in ((key, by_set) for key, by_set in tested.items() if key[0] == library):
            for against in dict.fromkeys((rule, "default")):
                if (library, rule) != (other, against):
                    line(f"{rule} - {against}", *differences(by_set, tested[other, against]))


def averages_table(results, seconds, choices):
    """Each quality of AveragedRanker against CatBoost's defaults, their mean, and what was chosen of them."""

    def tested(library, candidate):
        return {name: one.everywhere(library, candidate, TEST) for name, one in results.items()}

    others = [one for one in DEFAULTS_OF_CATBOOST if set(one) <= set(SETTINGS["CatBoost"])]
    heading(TEST, *results, "mean", "seconds")
    rows = [("AveragedRanker", (quality,)) for quality in SETTINGS["AveragedRanker"]]
    for library, candidate in rows + [("CatBoost", one) for one in others]:
        taken = sum(seconds[library, setting] for setting in candidate)
        line(called(candidate), *means(tested(library, candidate)), f"{taken:.0f}")
    for _, quality in rows:
        ours = tested("AveragedRanker", quality)
        heading(f"{called(quality)} less", *results, "mean", "its time over theirs")
        for other in others:
            theirs = sum(seconds["CatBoost", setting] for setting in other)
            ratio = f"{seconds['AveragedRanker', quality[0]] / theirs:.2f}"
            line(
                called(other),
                *differences(tested("AveragedRanker", quality), tested("CatBoost", other)),
                ratio,
            )
        for rule in RULES:
            by_query = {
                name: results[name].by_query("CatBoost", candidates, TEST)
                for name, candidates in choices["CatBoost", rule].items()
            }
            line(", ".join(rule), *differences(ours, by_query), "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=list(data.NAMES))
    parser.add_argument("--libraries", nargs="+", default=list(SETTINGS))
    parser.add_argument("--settings", nargs="+", help="leave out all others")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1, help="fits at the same time, one thread each")
    parser.add_argument("--keep", help="folder of the scores of what is fitted")
    parser.add_argument("--test", action="store_true", help="look at the test queries, too")
    arguments = parser.parse_args()
    if data.folder() is None:
        parser.exit(message="No real data sets here: set RANKTREES_DATA to a folder that has them.\n")
    for library in SETTINGS:
        for setting in set(SETTINGS[library]) - set(arguments.settings or SETTINGS[library]):
            del SETTINGS[library][setting]
    tasks = [
        (library, setting, name, seed, rehearsing)
        for seed in range(arguments.seeds)
        for library in arguments.libraries
        for setting in SETTINGS[library]
        for name in arguments.sets
        for rehearsing in (True, False)
    ]
    with tempfile.TemporaryDirectory() as passing:
        remembered = joblib.Memory(arguments.keep or passing, verbose=0).cache(scores_of)
        found = joblib.Parallel(arguments.jobs)(joblib.delayed(remembered)(*task) for task in tasks)
    scores, seconds = {name: {} for name in arguments.sets}, Counter()
    for (library, setting, name, *run), (of_folds, taken) in zip(tasks, found, strict=True):
        scores[name][library, setting, *run] = of_folds
        seconds[library, setting] += 0.0 if run[-1] else taken / arguments.seeds
    results = {name: Results(name, scores[name], arguments.seeds) for name in arguments.sets}
    choices = {}
    for library in arguments.libraries:
        validation_table(results, library, seconds)
        for rule in RULES:
            choices[library, rule] = {name: chosen(results, name, library, *rule) for name in results}
        choices[library, ("default",)] = {
            name: [DEFAULT[library]] * one.n_folds for name, one in results.items()
        }
    choices_table({key: by_set for key, by_set in choices.items() if key[1] in RULES})
    if arguments.test:
        test_tables(results, choices)
        if {"AveragedRanker", "CatBoost"} <= set(arguments.libraries):
            averages_table(results, seconds, choices)


if __name__ == "__main__":
    main()
