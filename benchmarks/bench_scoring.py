"""Time of scoring: ranktrees and its peers, interleaved in the same run, on the same model where possible.

    python benchmarks/bench_scoring.py boosted [--trees 100 1000] [--leaves 16 64] [--features 136]
    python benchmarks/bench_scoring.py forest     trees of full depth, on 20 000 rows
    python benchmarks/bench_scoring.py codes      ours: what is paid per row before the first tree

Options of all: ``--rows 1 120 40000`` (of a call: one document, a query, in bulk), ``--threads 1 2``,
``--repeats``, ``--only`` and ``--skip`` (names), ``--keep FOLDER`` (what is fitted, converted and
compiled stays there, and is not made again), ``--make`` (that alone). A peer that is not installed,
fails, or is left out is named below the table. To have them all::

    pip install catboost hessboost lightgbm onnx onnxruntime tl2cgen treelite xgboost-cpu ydf
    python -m venv L; L/bin/pip install lleaves "llvmlite<0.45" lightgbm
    python -m venv D; D/bin/pip install daal4py==2024.7.0 "scikit-learn<1.6" packaging lightgbm
    python benchmarks/bench_scoring.py boosted --slow --python lleaves=L/bin/python daal4py=D/bin/python

tl2cgen (it needs gcc) and lleaves compile for minutes, and are left out without ``--slow``.

How it is measured. Every scorer, ours too, is loaded from files by a process of its own, pinned to as
many processors as it has threads. One of them works at a time: in each repeat every scorer gets its turn
of ``--seconds``, and calls with other rows each time, so that branch predictors do not learn them; the
first call of a turn is not counted if there are others. Rows are a C-contiguous float32 array, and what
comes back is scores: what a library does in between, such as converting the rows, is its time. A figure
is the median over the repeats of the median call, in brackets the best call; ratios are of the peer's to
ours, repeat by repeat, and then the median and the range. The cold start is measured apart: reading the
model and scoring 120 rows, after the imports.

The same model. Ours is fitted, more than ``--fitted`` trees being copies of those, and its cuts are
rounded down to float32: no value of a row lies between, and libraries that compare in single precision
send each row to the same leaf. It is written as a LightGBM text model, from which LightGBM, hessboost,
treelite, tl2cgen and lleaves start; for onnxruntime as a ``TreeEnsembleRegressor``; for XGBoost as JSON
and for daal4py as LightGBM text, where ``x <= cut`` has to be said as ``x < the next float32``. "off by"
is the largest difference to our scores, in standard deviations of those, on rows of which half lack a
tenth of their values. Models marked "own" were trained by the library to the same shape: they are other
trees, and the scores cannot be compared.
"""

import argparse
import importlib
import itertools
import json
import os
import pickle
import re
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from turns import Process, interleaved, print_refusals, ratio

RATE = 0.1
QUERY = 120  # rows, of a call that is measured as the cold start
CHECKED = 4000  # rows, on which scores are compared
MEMORY = 8 << 30  # bytes of a process: daal4py lays trees out as complete ones, 2^depth nodes
SLICES = 500  # at most so many different calls
PER_CALL = 1000  # rows, up to which the time of a call is of interest


# The scorers. ``make(folder, shape)`` leaves in the folder what ``load(folder, n_threads)`` reads to return a
# function from rows to scores. Both run in a process of their own; one of --python need not have ranktrees.


@dataclass(frozen=True)
class Scorer:
    """One line of the table."""

    load: Callable
    make: Callable = lambda folder, shape: None
    needs: tuple = ()  # what is imported before the clock starts
    own: bool = False  # the library's own trees
    slow: bool = False  # compiles for minutes
    prepare: Callable = lambda folder: lambda rows: rows  # what is done to rows, and is not timed


def load_ensemble(folder, n_threads):
    """Ours, as a server would have it."""
    from ranktrees.model.ensemble import Ensemble

    ensemble = Ensemble.load(folder / "model.ranktrees")
    return lambda X: ensemble.predict(X, n_jobs=n_threads)


def load_ensemble_twice(folder, n_threads):
    """Ours with each tree twice; what is done before the trees is the same."""
    from ranktrees.model.ensemble import Ensemble

    ensemble = Ensemble.load(folder / "model.ranktrees")
    ensemble = ensemble.extend(ensemble)
    return lambda X: ensemble.predict(X, n_jobs=n_threads)


def load_estimator(folder, n_threads):
    """Ours, with the checks of the scikit-learn estimator."""
    return pickle.loads((folder / "estimator.pickle").read_bytes()).set_params(n_jobs=n_threads).predict


def load_lightgbm(folder, n_threads):
    import lightgbm as peer

    booster = peer.Booster(model_file=folder / "model.txt")
    return lambda X: booster.predict(X, num_threads=n_threads)


def make_xgboost(folder, shape):
    from ranktrees import Ensemble, dump_xgboost

    dump_xgboost(Ensemble.load(folder / "model.ranktrees"), folder / "xgboost.json")


def load_xgboost(folder, n_threads):
    """``inplace_predict``: a DMatrix would remember the scores it was last asked for."""
    import xgboost as peer

    booster = peer.Booster({"nthread": n_threads}, model_file=folder / "xgboost.json")
    return booster.inplace_predict


def make_onnx(folder, shape):
    from ranktrees import Ensemble, dump_onnx

    dump_onnx(Ensemble.load(folder / "model.ranktrees"), folder / "model.onnx")


def load_onnx(folder, n_threads):
    import onnxruntime as peer

    options = peer.SessionOptions()
    options.intra_op_num_threads = n_threads
    options.inter_op_num_threads = 1
    session = peer.InferenceSession(folder / "model.onnx", options, providers=["CPUExecutionProvider"])
    return lambda X: session.run(None, {"X": X})[0][:, 0]


def load_hessboost(folder, n_threads):
    """One row has a function of its own."""
    import hessboost as peer

    booster = peer.Booster(folder / "model.txt")
    return lambda X: booster.predict_row(X[0]) if len(X) == 1 else booster.predict(X)


def load_treelite(folder, n_threads):
    import treelite

    model = treelite.frontend.load_lightgbm_model(folder / "model.txt")
    return lambda X: treelite.gtil.predict(model, X, nthread=n_threads).ravel()


def make_tl2cgen(folder, shape):
    import tl2cgen
    import treelite

    model = treelite.frontend.load_lightgbm_model(folder / "model.txt")
    settings = {"quantize": 1, "parallel_comp": 16}
    tl2cgen.export_lib(model, toolchain="gcc", libpath=folder / "tl2cgen.so", params=settings)


def load_tl2cgen(folder, n_threads):
    import tl2cgen

    predictor = tl2cgen.Predictor(folder / "tl2cgen.so", nthread=n_threads)
    return lambda X: predictor.predict(tl2cgen.DMatrix(X)).ravel()


def load_lleaves(folder, n_threads):
    """Compiles where the file is not yet there."""
    import lleaves

    model = lleaves.Model(folder / "model.txt")
    model.compile(cache=folder / "lleaves.bin")
    return lambda X: model.predict(X, n_jobs=n_threads)


def make_lleaves(folder, shape):
    load_lleaves(folder, 1)


def load_daal4py(folder, n_threads):
    """Converted at each start: it has no file of its own. It reads LightGBM's ``<=`` as ``<``."""
    import daal4py
    import lightgbm

    daal4py.daalinit(n_threads)
    model = daal4py.mb.convert_model(lightgbm.Booster(model_file=folder / "daal4py.txt"))
    return lambda X: model.predict(X).ravel()


def trained_on(folder):
    """(X, y) of the contest's model."""
    train = np.load(folder / "train.npz")
    return train["X"], train["y"]


def catboost(name, grow):
    """CatBoost: ``grow`` is how, given a number of leaves."""

    def make(folder, shape):
        import catboost as peer

        X, y = trained_on(folder)
        model = peer.CatBoostRegressor(
            iterations=shape["trees"],
            learning_rate=RATE,
            border_count=254,
            verbose=False,
            allow_writing_files=False,
            **grow(shape["leaves"]),
        )
        model.fit(X, y).save_model(folder / f"{name}.cbm")

    def load(folder, n_threads):
        import catboost as peer

        model = peer.CatBoost().load_model(folder / f"{name}.cbm")
        return lambda X: model.predict(X, thread_count=n_threads)

    return Scorer(load, make, ("catboost",), own=True)


def ydf(learner, settings, prepared=False):
    """YDF, by the engine that it holds for the fastest; ``prepared``: the rows are in its data set."""
    name = f"ydf-{learner}"

    def make(folder, shape):
        import ydf as peer

        if (folder / name).exists():
            return
        X, y = trained_on(folder)
        learn = getattr(peer, learner)(
            label="y",
            task=peer.Task.REGRESSION,
            num_trees=shape["trees"],
            max_depth=-1,
            **settings(shape["leaves"]),
        )
        learn.train({"x": X, "y": y.astype(np.float32)}, verbose=0).save(str(folder / name))

    def load(folder, n_threads):
        import ydf as peer

        model = peer.load_model(str(folder / name))
        print("engine:", model.list_compatible_engines()[0])
        if prepared:
            return lambda dataset: model.predict(dataset, num_threads=n_threads)
        return lambda X: model.predict({"x": X}, num_threads=n_threads)

    def prepare(folder):
        import ydf as peer

        spec = peer.load_model(str(folder / name)).data_spec()
        return lambda X: peer.create_vertical_dataset({"x": X}, data_spec=spec, required_columns=[])

    if prepared:
        return Scorer(load, make, ("ydf",), own=True, prepare=prepare)
    return Scorer(load, make, ("ydf",), own=True)


def ydf_leaves(leaves):
    """63 instead of 64: as many as its fastest engine takes."""
    return {
        "growing_strategy": "BEST_FIRST_GLOBAL",
        "max_num_nodes": 63 if leaves == 64 else leaves,
        "shrinkage": RATE,
        "subsample": 0.2,  # it looks at all values, and trains that much faster
        "validation_ratio": 0.0,
        "early_stopping": "NONE",
    }


def sklearn(make_estimator):
    """scikit-learn; threads are limited from outside."""
    name = make_estimator.__name__

    def make(folder, shape):
        with open(folder / f"{name}.pickle", "wb") as file:
            pickle.dump(make_estimator(shape).fit(*trained_on(folder)), file)

    def load(folder, n_threads):
        model = pickle.loads((folder / f"{name}.pickle").read_bytes())
        if "n_jobs" in model.get_params():
            model.set_params(n_jobs=n_threads)
        return model.predict

    return Scorer(load, make, ("sklearn.ensemble",), own=True)


def hist_gradient_boosting(shape):
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(
        learning_rate=RATE, max_iter=shape["trees"], max_leaf_nodes=shape["leaves"], early_stopping=False
    )


def random_forest(shape):
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(shape["trees"], max_features="sqrt", n_jobs=-1, random_state=0)


SAME = {
    "ranktrees": Scorer(load_ensemble, needs=("ranktrees",)),
    "ranktrees, estimator": Scorer(load_estimator, needs=("ranktrees",)),
    "LightGBM": Scorer(load_lightgbm, needs=("lightgbm",)),
    "XGBoost": Scorer(load_xgboost, make_xgboost, needs=("xgboost",)),
    "onnxruntime": Scorer(load_onnx, make_onnx, needs=("onnx", "onnxruntime")),
    "hessboost": Scorer(load_hessboost, needs=("hessboost",)),
    "treelite gtil": Scorer(load_treelite, needs=("treelite",)),
    "tl2cgen": Scorer(load_tl2cgen, make_tl2cgen, needs=("treelite", "tl2cgen"), slow=True),
    "lleaves": Scorer(load_lleaves, make_lleaves, needs=("lleaves",), slow=True),
    "daal4py": Scorer(load_daal4py, needs=("daal4py.mb", "lightgbm")),
}
SCORERS = {
    "boosted": {
        **SAME,
        "CatBoost, leaf-wise": catboost(
            "leaf-wise", lambda leaves: {"grow_policy": "Lossguide", "max_leaves": leaves, "max_depth": 16}
        ),
        "CatBoost, symmetric": catboost("symmetric", lambda leaves: {"depth": int(np.log2(leaves))}),
        "YDF": ydf("GradientBoostedTreesLearner", ydf_leaves),
        "YDF, rows in its data set": ydf("GradientBoostedTreesLearner", ydf_leaves, prepared=True),
        "HistGradientBoosting": sklearn(hist_gradient_boosting),
    },
    "forest": {
        **SAME,
        "YDF": ydf("RandomForestLearner", lambda leaves: {"min_examples": 1}),
        "RandomForestRegressor": sklearn(random_forest),
    },
    "codes": {
        "ranktrees": Scorer(load_ensemble, needs=("ranktrees",)),
        "ranktrees, each tree twice": Scorer(load_ensemble_twice, needs=("ranktrees",)),
    },
}


# The contest: a folder with the model, the rows that it was fitted to, and those to score.


def with_holes(X, share, seed):
    """A copy that lacks that share of its values."""
    X = X.copy()
    X[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    return X


def fitted(shape, options):
    """(estimator, its ensemble, X, y); the cuts are rounded down to float32."""
    from ranktrees import LambdaMARTRanker, RandomForestRanker, make_ranking
    from ranktrees.model.ensemble import Ensemble
    from ranktrees.support.cuts import round_down

    X, y, qid = make_ranking(
        options.queries, kind="web", n_features=shape["features"], random_state=0, return_X_y_qid=True
    )
    X = with_holes(X, options.missing, 0)
    n_trees = min(shape["trees"], options.fitted)
    if shape["kind"] == "forest":
        estimator = RandomForestRanker(n_trees, min_samples_leaf=1, random_state=0)
    else:
        estimator = LambdaMARTRanker(
            max_iter=n_trees, max_leaf_nodes=shape["leaves"], learning_rate=RATE, random_state=0
        )
    grown = estimator.fit(X, y, qid=qid).ensemble_
    nodes = grown.nodes.copy()
    nodes["cut"] = round_down(nodes["cut"])
    copies = -(-shape["trees"] // n_trees)
    offsets = np.concatenate([[0], (np.diff(grown.tree_offsets)[None, :].repeat(copies, 0)).cumsum()])
    estimator.ensemble_ = Ensemble(
        np.tile(nodes, copies), offsets, n_features=grown.n_features, base=grown.base, average=grown.average
    ).first(shape["trees"])
    return estimator, X, y


def make_contest(folder, shape, options):
    """Fit, and write everything that scorers start from; kept if it is there."""
    from ranktrees import dump_lightgbm, make_ranking
    from ranktrees.formats.plain import first_float32_above

    if not (folder / "shape.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        estimator, X, y = fitted(shape, options)
        ensemble = estimator.ensemble_
        ensemble.save(folder / "model.ranktrees")
        (folder / "estimator.pickle").write_bytes(pickle.dumps(estimator))
        np.savez(folder / "train.npz", X=X, y=y)

        dump_lightgbm(ensemble, folder / "model.txt")
        nodes = ensemble.nodes.copy()
        nodes["cut"] = first_float32_above(nodes["cut"])
        dump_lightgbm(ensemble._replace(nodes=nodes), folder / "daal4py.txt")

        inner = nodes["feature"] >= 0
        passed = nodes["count"][inner].sum() / nodes["count"][ensemble.tree_offsets[:-1]].sum()
        mean_leaves = np.count_nonzero(~inner) / len(ensemble)
        found = {**shape, "mean_leaves": mean_leaves, "passed": passed, "depth": ensemble.depth}
        (folder / "shape.json").write_text(json.dumps(found))

    queries = 2 + max(*options.rows, 2 * CHECKED) // 100
    X = make_ranking(
        queries,
        kind="web",
        n_features=shape["features"],
        rows_per_query=QUERY,
        random_state=1,
        return_X_y_qid=True,
    )[0]
    np.save(folder / "rows.npy", with_holes(X, options.missing, 1))
    checked = np.concatenate([X[:CHECKED], with_holes(X[CHECKED : 2 * CHECKED], 0.1, 2)])
    np.save(folder / "checked.npy", checked)
    return json.loads((folder / "shape.json").read_text())


# A scorer's process (see turns.py).


def slug(name):
    return re.sub(r"\W+", "-", name)


def imported(contest, name):
    """The scorer, in its process."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    scorer = SCORERS[contest][name]
    for module in scorer.needs:
        importlib.import_module(module)
    return scorer


def conversion(_, contest, name, folder):
    """Make what the scorer needs: the seconds it took."""
    scorer = imported(contest, name)
    folder = Path(folder)
    started = time.perf_counter()
    scorer.make(folder, json.loads((folder / "shape.json").read_text()))
    yield {"seconds": time.perf_counter() - started}


def scoring(questions, contest, name, folder, n_threads):
    """Load it: the cold start; then a turn for each number of rows and seconds."""
    scorer = imported(contest, name)
    folder = Path(folder)
    X = np.load(folder / "rows.npy")
    prepare = scorer.prepare(folder)
    first = prepare(X[:QUERY])
    started = time.perf_counter()
    predict = scorer.load(folder, n_threads)
    predict(first)
    cold = time.perf_counter() - started
    scores = predict(prepare(np.load(folder / "checked.npy")))
    np.save(folder / f"{slug(name)}.scores.npy", np.asarray(scores, float))
    yield {"cold": cold}
    slices = {}
    for n_rows, seconds in questions:
        if n_rows not in slices:
            starts = range(0, len(X) - n_rows + 1, n_rows)[:SLICES]
            slices[n_rows] = itertools.cycle([prepare(X[i : i + n_rows]) for i in starts])
        yield turn(predict, slices[n_rows], seconds)


def turn(predict, slices, seconds):
    """Median and best of the calls that the time allows."""
    taken = []
    ends = time.perf_counter() + seconds
    while not taken or time.perf_counter() < ends:
        rows = next(slices)
        started = time.perf_counter()
        predict(rows)
        taken.append(time.perf_counter() - started)
    counted = taken[1:] or taken
    return {"median": float(np.median(counted)), "best": min(counted)}


def process_of(work, contest, name, folder, n_processors, options, *arguments):
    """The process of a scorer."""
    python = options.python.get(name, sys.executable)
    log = folder / f"{slug(name)}.log"
    return Process(work, [contest, name, str(folder), *arguments], n_processors, log, python)


# The tables.


def chosen(contest, shape, options):
    """(scorers to run, why others do not)."""
    scorers, why_not = {}, {}
    for name, scorer in SCORERS[contest].items():
        wanted = not options.only or any(each in name for each in options.only)
        refused = any(each in name for each in options.skip)
        if name.startswith("ranktrees"):
            scorers[name] = scorer
        elif refused or not wanted:
            why_not[name] = "not asked for"
        elif scorer.slow and not options.slow:
            why_not[name] = "compiles for minutes, see --slow"
        elif scorer.own and shape["trees"] > options.fitted:
            why_not[name] = f"its own model would have more than --fitted {options.fitted} trees"
        else:
            scorers[name] = scorer
    return scorers, why_not


def make(contest, folder, scorers, options):
    """What scorers start from: seconds of each that took some, and why some have nothing."""
    everywhere = len(os.sched_getaffinity(0))
    seconds, why_not = {}, {}
    for name in scorers:
        done = folder / f"{slug(name)}.made.json"
        if not done.exists():
            process = process_of(conversion, contest, name, folder, everywhere, options)
            answer = process.answer()
            process.close()
            if "refusal" in answer:
                why_not[name] = answer["refusal"]
                continue
            done.write_text(json.dumps(answer))
        seconds[name] = json.loads(done.read_text())["seconds"]
    return seconds, why_not


def measure(contest, folder, scorers, n_threads, options):
    """(cold starts, turns of each number of rows, why some have none), by name."""

    def start(name):
        return process_of(scoring, contest, name, folder, n_threads, options, n_threads)

    questions = [[n_rows, options.seconds] for n_rows in options.rows]
    answers, why_not = interleaved(start, scorers, questions * options.repeats)
    cold = {name: first["cold"] for name, (first, *_) in answers.items()}
    turns = {
        name: {n_rows: taken[i :: len(questions)] for i, n_rows in enumerate(options.rows)}
        for name, (_, *taken) in answers.items()
    }
    return cold, turns, why_not


def medians(turns):
    return np.array([each["median"] for each in turns])


def unit(n_rows):
    """(what a figure counts, figures per second)."""
    return ("us a call", 1e6) if n_rows <= PER_CALL else ("us a row", 1e6 / n_rows)


def off_by(folder, name, own):
    """The largest difference to our scores, in standard deviations."""
    ours, theirs = (np.load(folder / f"{slug(each)}.scores.npy") for each in ("ranktrees", name))
    return "own" if own else f"{np.abs(ours - theirs).max() / ours.std():.1g}"


def table(contest, folder, scorers, n_threads, options):
    """Print it, and return why some are missing."""
    cold, turns, why_not = measure(contest, folder, scorers, n_threads, options)
    print("| scorer |", end="")
    for n_rows in options.rows:
        print(f" {n_rows} rows: {unit(n_rows)[0]} | its / ours |", end="")
    print(" cold start, ms | off by |\n|---|" + "---|---|" * len(options.rows) + "---|---|")
    for name, of_rows in turns.items():
        print(f"| {name} |", end="")
        for n_rows, taken in of_rows.items():
            scale = unit(n_rows)[1]
            best = min(each["best"] for each in taken)
            print(
                f" {np.median(medians(taken)) * scale:.3g} ({best * scale:.3g}) "
                f"| {ratio(medians(taken), medians(turns['ranktrees'][n_rows]))} |",
                end="",
            )
        print(f" {cold[name] * 1e3:.3g} | {off_by(folder, name, scorers[name].own)} |")
    return why_not


def codes(contest, folder, scorers, n_threads, options):
    """What is paid however many trees there are: twice the time, less the time with each tree twice.

    The cuts, and so the mapping of values to codes, are the same in both.
    """
    _, turns, why_not = measure(contest, folder, scorers, n_threads, options)
    once, twice = turns.values()
    print("| rows | unit | all | before the trees | share |\n|---|---|---|---|---|")
    for n_rows in options.rows:
        what, scale = unit(n_rows)
        whole = medians(once[n_rows])
        before = 2 * whole - medians(twice[n_rows])
        share = before / whole
        print(
            f"| {n_rows} | {what} | {np.median(whole) * scale:.3g} | {np.median(before) * scale:.3g} "
            f"| {np.median(share):.0%} ({share.min():.0%} to {share.max():.0%}) |"
        )
    return why_not


def show(shape, options, home):
    """Make the models of one shape, and print a table for each number of threads."""
    key = [*shape.values(), options.queries, options.fitted, options.missing]
    folder = home / "-".join(map(str, key))
    found = make_contest(folder, shape, options)
    scorers, why_not = chosen(options.what, shape, options)
    seconds, cannot = make(options.what, folder, scorers, options)
    scorers = {name: scorer for name, scorer in scorers.items() if name not in cannot}
    print(
        f"{shape['trees']} trees of {found['mean_leaves']:.0f} leaves (depth {found['depth']}; a training "
        f"row passes {found['passed']:.1f} nodes a tree), {shape['features']} features",
        flush=True,
    )
    for n_threads in [] if options.make else options.threads:
        print(f"\n{n_threads} thread(s)\n")
        measured = codes if options.what == "codes" else table
        cannot |= measured(options.what, folder, scorers, n_threads, options)
        print(flush=True)
    converted = [
        f"{name} {seconds[name]:.0f} s"
        for name, scorer in scorers.items()
        if seconds[name] > 1 and not scorer.own
    ]
    if converted:
        print("Converted before, which is in no figure: " + ", ".join(converted) + ".")
    print_refusals({**why_not, **cannot})
    print(flush=True)


class Pythons(argparse.Action):
    """NAME=PYTHON ..."""

    def __call__(self, parser, namespace, values, option_string=None):
        pairs = dict(each.partition("=")[::2] for each in values)
        unknown = set(pairs) - set(SCORERS["boosted"]) - set(SCORERS["forest"])
        if unknown or not all(pairs.values()):
            parser.error(f"--python: expected NAME=PYTHON with the name of a scorer, got {' '.join(values)}")
        namespace.python = {**namespace.python, **pairs}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=SCORERS)
    parser.add_argument("--trees", type=int, nargs="+", default=[100])
    parser.add_argument("--leaves", type=int, nargs="+", default=[64], help="not of a forest")
    parser.add_argument("--features", type=int, default=136)
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 120, 4000], help="of a call")
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.1, help="of a scorer's turn")
    parser.add_argument("--queries", type=int, default=170, help="to fit, of about 120 rows")
    parser.add_argument("--fitted", type=int, default=1000, help="trees; more are copies of those")
    parser.add_argument("--missing", type=float, default=0.0, help="share of values that are missing")
    parser.add_argument(
        "--only", nargs="+", default=[], help="scorers that have one of these in their name, and ours"
    )
    parser.add_argument("--skip", nargs="+", default=[], help="not those that do")
    parser.add_argument("--slow", action="store_true", help="those that compile for minutes, too")
    parser.add_argument(
        "--python", nargs="+", default={}, action=Pythons, help="NAME=PYTHON, to run that scorer"
    )
    parser.add_argument("--keep", type=Path, help="folder of models")
    parser.add_argument("--make", action="store_true", help="time nothing: for --keep")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as passing:
        home = options.keep or Path(passing)
        of_leaves = ["full"] if options.what == "forest" else options.leaves
        kind = "forest" if options.what == "forest" else "boosted"
        for n_trees, leaves in itertools.product(options.trees, of_leaves):
            shape = {"kind": kind, "trees": n_trees, "leaves": leaves, "features": options.features}
            show(shape, options, home)


if __name__ == "__main__":
    main()
