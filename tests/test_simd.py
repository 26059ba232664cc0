"""The bytes of a model do not depend on the width of the processor's registers."""

import os
import subprocess
import sys

import pytest

from ranktrees._core.support import simd

MODELS = """
from ranktrees import HistGBRTRegressor, LambdaMARTRanker, RandomForestRanker, make_ranking
from ranktrees.support import parallel
from ranktrees._core.support import simd

parallel.VALUES_PER_THREAD = 1
X, y, qid = make_ranking(20, n_features=20, random_state=0, return_X_y_qid=True)
X[::7, ::3] = X[3::5, 1::3] = float("nan")
digests = []
costs = {"feature_costs": range(20), "cost_weight": 0.1}
for n_jobs in (1, 3):
    rules = {"random_state": 0, "n_jobs": n_jobs}
    for model in (
        LambdaMARTRanker(max_iter=4, subsample=0.7, **rules),
        HistGBRTRegressor(max_iter=4, max_features=1.0, split_search="full", **rules),
        HistGBRTRegressor("poisson", max_iter=4, split_search="coarse_to_fine", **rules),
        HistGBRTRegressor(max_iter=4, max_features=0.3, split_search="coarse_to_fine", **rules),
        HistGBRTRegressor(max_iter=4, split_search="exact", **rules),
        HistGBRTRegressor(max_iter=4, split_search="streaming", max_bins=25, **rules),
        LambdaMARTRanker(max_iter=4, split_search="coarse_to_fine", handle_missing="left", **rules),
        HistGBRTRegressor(max_iter=4, handle_missing="three_way", **rules),
        RandomForestRanker(4, **rules),
        LambdaMARTRanker(max_iter=4, split_search="coarse_to_fine", **costs, **rules),
        HistGBRTRegressor(max_iter=4, max_features=1.0, **costs, **rules),
        RandomForestRanker(4, stage_size=2, **costs, **rules),
    ):
        model.fit(X, y, qid=qid)
        digests.append(model.ensemble_.digest() + str(model.predict(X).sum()))
print(simd.level(), digests[:12] == digests[12:], *digests)
"""


def run(code, level):
    """What a process prints that is held down to a level."""
    environment = {**os.environ, "RANKTREES_SIMD": level}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)


def test_every_level_gives_the_same_models():
    printed = {level: run(MODELS, level) for level in simd.supported()}
    assert {found.stderr for found in printed.values()} == {""}
    found = {level: done.stdout.split(maxsplit=2) for level, done in printed.items()}
    assert {level: words[0] for level, words in found.items()} == {level: level for level in simd.supported()}
    assert {words[1] for words in found.values()} == {"True"}
    assert len({words[2] for words in found.values()}) == 1


def test_without_a_wish_the_widest_is_used():
    if "RANKTREES_SIMD" not in os.environ:
        assert simd.level() == simd.supported()[-1]


@pytest.mark.parametrize("level", ["avx1024", "", *sorted({*simd.LEVELS} - {*simd.supported()})])
def test_a_level_that_the_processor_does_not_support_is_refused(level):
    done = run("import ranktrees", level)
    assert done.returncode == 1
    assert "ImportError: RANKTREES_SIMD=" in done.stderr
