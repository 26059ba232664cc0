"""The whole job, from files to files: ranktrees and its peers, each with its own readers.

    python benchmarks/bench_job.py [--queries 1580] [--trees 100] [--threads 2] [--repeats 5] [--only NAME]
    python benchmarks/bench_job.py --gz            of compressed files, which a peer has to unpack first
    python benchmarks/bench_job.py --stream 4GB    training rows that are never all in memory
    python benchmarks/bench_job.py --smoke         a few rows, to see that it works

Rows are MSLR-shaped (136 features, about 120 rows per query), and lines name all features: 170 MB of text
to train on, and 60 MB to test. A job imports its library, reads both files, trains, scores the test rows,
evaluates NDCG@10, explains the scores of about a thousand rows, and writes the scores and the model. Each
job has a new process (see turns.py), and one of them works at a time. Seconds are medians over the repeats;
ratios are of ours to the peer's, repeat by repeat, as median and range. The peak is that of the whole
process. NDCG@10 is that of the scores in the files, by our measure, so that all of them are judged alike.

What belongs to a step differs a little. LightGBM bins while it reads, and the others while they train. It
has no queries in files of this format: it reads lines without ``qid:``, and the sizes of queries from a
file beside them, which is written before the clock starts. It scores and explains rows of a file, which it
reads again. No peer opens compressed files. All write scores by `numpy.savetxt`.

With ``--stream`` the text to train on is made batch by batch. Ours are `Batches.from_letor`, which reads
twice: a quick look for the number of features, and then the rows; "read" is until the last of them has
come. LightGBM's is ``two_round``, its mode for files that are larger than memory.
"""

import argparse
import gzip
import io
import re
import shutil
import tempfile
import time
from functools import partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import data
import numpy as np
from turns import Process, interleaved, print_refusals, ratio

RATE = 0.1
EXPLAINED = 1000  # rows, rounded up to whole queries
SMOKE = {"queries": 12, "trees": 3, "leaves": 8, "repeats": 1}
UNITS = {"kB": 1e3, "MB": 1e6, "GB": 1e9}
QID, SIZES = re.compile(rb" qid:\S+"), ".query"
IMPORT, UNPACK, READ, READ_TEST = "import", "unpack", "read the training rows", "read the test rows"
TRAIN, SCORE, EVALUATE, EXPLAIN = "train", "score", "evaluate", "explain"
WRITE, SAVE = "write the scores", "write the model"
STEPS = (IMPORT, UNPACK, READ, READ_TEST, TRAIN, SCORE, EVALUATE, EXPLAIN, WRITE, SAVE)


# The jobs. ``lap(step)`` says what the time since the last lap was spent on.


def settings_of_ours(options):
    """As those of bench_fit.py, so that all libraries do the same work."""
    return {
        "max_iter": options.trees,
        "max_leaf_nodes": options.leaves,
        "n_jobs": options.threads,
        "learning_rate": RATE,
        "l2_regularization": 0.0,
        "subsample": 1.0,
        "max_features": 1.0,
        "random_state": 0,
    }


def ours(lap, files, options):
    from ranktrees import LambdaMARTRanker, as_measure, contributions, load_letor

    yield lap(IMPORT)
    X, y, qid = load_letor(files.train, return_X_y_qid=True)
    lap(READ)
    X_test, y_test, qid_test = load_letor(files.test, n_features=X.shape[1], return_X_y_qid=True)
    lap(READ_TEST)
    ranker = LambdaMARTRanker(**settings_of_ours(options)).fit(X, y, qid=qid)
    lap(TRAIN)
    scores = ranker.predict(X_test)
    lap(SCORE)
    as_measure("ndcg@10")(y_test, scores, qid=qid_test)
    lap(EVALUATE)
    contributions(ranker, X_test[: files.explained])
    lap(EXPLAIN)
    np.savetxt(files.scores, scores, "%.9g")
    lap(WRITE)
    ranker.ensemble_.save(files.model)
    lap(SAVE)


def ours_in_batches(lap, files, options):
    from ranktrees import LambdaMARTRanker, as_measure, contributions
    from ranktrees.datasets import Batches

    def rows():
        yield from Batches.from_letor(files.train)
        lap(READ)

    yield lap(IMPORT)
    ranker = LambdaMARTRanker(**settings_of_ours(options)).fit(Batches(rows, folder=files.folder))
    lap(TRAIN)
    test = list(Batches.from_letor(files.test, n_features=ranker.n_features_in_))
    lap(READ_TEST)
    scores = np.concatenate([ranker.predict(batch.X) for batch in test])
    lap(SCORE)
    y_test, qid_test = (np.concatenate(parts) for parts in list(zip(*test, strict=True))[1:3])
    as_measure("ndcg@10")(y_test, scores, qid=qid_test)
    lap(EVALUATE)
    contributions(ranker, test[0].X[: files.explained])
    lap(EXPLAIN)
    np.savetxt(files.scores, scores, "%.9g")
    lap(WRITE)
    ranker.ensemble_.save(files.model)
    lap(SAVE)


def lightgbm(lap, files, options, **loading):
    import lightgbm as peer

    settings = {
        "objective": "lambdarank",
        "num_leaves": options.leaves,
        "learning_rate": RATE,
        "num_threads": options.threads,
        "metric": "ndcg",
        "eval_at": [10],
        "verbose": -1,
        **loading,
    }
    yield lap(IMPORT)
    train, test = (unpacked(path, files, lap) for path in (files.train_without_qid, files.test_without_qid))
    rows = peer.Dataset(train, params=settings).construct()
    lap(READ)
    rows_of_test = peer.Dataset(test, reference=rows, params=settings).construct()
    lap(READ_TEST)
    model = peer.train(settings, rows, options.trees, keep_training_booster=True)
    lap(TRAIN)
    scores = model.predict(test)
    lap(SCORE)
    model.eval(rows_of_test, "test")
    lap(EVALUATE)
    model.predict(files.few, pred_contrib=True)
    lap(EXPLAIN)
    np.savetxt(files.scores, scores, "%.9g")
    lap(WRITE)
    model.save_model(files.model)
    lap(SAVE)


def xgboost(lap, files, options):
    import xgboost as peer

    settings = {
        "objective": "rank:ndcg",
        "tree_method": "hist",
        "grow_policy": "lossguide",
        "max_leaves": options.leaves,
        "max_depth": 0,
        "eta": RATE,
        "nthread": options.threads,
        "eval_metric": "ndcg@10",
    }
    yield lap(IMPORT)
    train, test = (unpacked(path, files, lap) for path in (files.train, files.test))
    rows = peer.DMatrix(f"{train}?format=libsvm", nthread=options.threads)
    lap(READ)
    rows_of_test = peer.DMatrix(f"{test}?format=libsvm", nthread=options.threads)
    lap(READ_TEST)
    model = peer.train(settings, rows, options.trees)
    lap(TRAIN)
    scores = model.predict(rows_of_test)
    lap(SCORE)
    model.eval(rows_of_test)
    lap(EVALUATE)
    model.predict(rows_of_test.slice(range(files.explained), allow_groups=True), pred_contribs=True)
    lap(EXPLAIN)
    np.savetxt(files.scores, scores, "%.9g")
    lap(WRITE)
    model.save_model(f"{files.model}.ubj")
    lap(SAVE)


def catboost(lap, files, options):
    import catboost as peer

    settings = {
        "loss_function": "YetiRank",
        "grow_policy": "Lossguide",
        "max_leaves": options.leaves,
        "iterations": options.trees,
        "learning_rate": RATE,
        "random_seed": 0,
        "metric_period": options.trees,
        "verbose": False,
        "allow_writing_files": False,
        "thread_count": options.threads,
    }
    threads = {"thread_count": options.threads}
    yield lap(IMPORT)
    train, test = (unpacked(path, files, lap) for path in (files.train, files.test))
    rows = peer.Pool(f"libsvm://{train}", **threads)
    lap(READ)
    rows_of_test = peer.Pool(f"libsvm://{test}", **threads)
    lap(READ_TEST)
    model = peer.CatBoostRanker(**settings).fit(rows)
    lap(TRAIN)
    scores = model.predict(rows_of_test, **threads)
    lap(SCORE)
    model.eval_metrics(rows_of_test, ["NDCG:top=10"], ntree_start=options.trees - 1, **threads)
    lap(EVALUATE)
    few = rows_of_test.slice(np.arange(files.explained))
    model.get_feature_importance(few, type="ShapValues", **threads)
    lap(EXPLAIN)
    np.savetxt(files.scores, scores, "%.9g")
    lap(WRITE)
    model.save_model(files.model)
    lap(SAVE)


JOBS = {"ranktrees": ours, "LightGBM": lightgbm, "XGBoost": xgboost, "CatBoost": catboost}
STREAMS = {"ranktrees, batches": ours_in_batches, "LightGBM, two_round": partial(lightgbm, two_round=True)}


def unpacked(path, files, lap):
    """A file that the library can open, with the sizes of its queries beside it if they were there."""
    if not path.endswith(".gz"):
        return path
    plain = Path(files.folder, Path(path).stem)
    with gzip.open(path) as packed, open(plain, "wb") as to:
        shutil.copyfileobj(packed, to, 1 << 20)
    sizes = Path(path.removesuffix(".gz") + SIZES)
    if sizes.exists():
        shutil.copy(sizes, f"{plain}{SIZES}")
    lap(UNPACK)
    return str(plain)


class Laps:
    """Seconds by step."""

    def __init__(self):
        self.seconds = dict.fromkeys(STEPS, 0.0)
        self.begin()

    def begin(self):
        self.since = time.perf_counter()

    def __call__(self, step):
        self.seconds[step] += time.perf_counter() - self.since
        self.begin()


def working(questions, name, files, options):
    """The job of a contender (see turns.py): its laps, and the peak of its process."""
    with tempfile.TemporaryDirectory(dir=Path(files["train"]).parent) as folder:
        laps = Laps()
        files = SimpleNamespace(**files, folder=folder, model=f"{folder}/model")
        job = {**JOBS, **STREAMS}[name](laps, files, SimpleNamespace(**options))
        next(job)
        yield {}
        for _ in questions:
            laps.begin()
            next(job, None)
            yield {"seconds": laps.seconds, "peak": peak()}


def peak():
    """The most memory that this process had so far, in MB; ``ru_maxrss`` begins with that of its parent."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024 / 1e6


# The files.


def write(path, parts, size=None):
    """Write rows, with ``qid:`` and without, and the sizes of queries; stop at so many bytes.

    Returns the sizes, and the bytes of the text.
    """
    from ranktrees import dump_letor

    opened = gzip.open if path.endswith(".gz") else open
    sizes, n_bytes = [], 0
    with opened(path, "wb") as to, opened(without_qid(path), "wb") as plain:
        for X, y, qid in parts:
            text = io.BytesIO()
            dump_letor(X, y, text, qid=qid, keep_zeros=True)
            to.write(text.getbuffer())
            plain.writelines(QID.sub(b"", line, count=1) for line in io.BytesIO(text.getbuffer()))
            sizes += data.sizes(qid).tolist()
            n_bytes += len(text.getbuffer())
            if size is not None and n_bytes >= size:
                break
    Path(without_qid(path).removesuffix(".gz") + SIZES).write_text("\n".join(map(str, sizes)) + "\n")
    return sizes, n_bytes


def without_qid(path):
    return path.replace(".txt", ".svm")


def made(n_queries, seed):
    from ranktrees import make_ranking

    return make_ranking(n_queries, kind="web", random_state=seed, return_X_y_qid=True)


def made_in_batches(n_queries):
    """Without end."""
    for seed in count(1):
        X, y, qid = made(n_queries, seed)
        yield X, y, qid + seed * n_queries


def files_of(options, folder):
    """Write all files. Returns where they are, labels and queries of the test rows, and bytes to train on."""
    end = ".txt.gz" if options.gz else ".txt"
    train, test, few = (str(folder / name) for name in (f"train{end}", f"test{end}", "few.txt"))
    X, y, qid = made(options.queries, 0)
    first = qid < options.queries * 3 // 4
    parts = made_in_batches(options.queries) if options.stream else [(X[first], y[first], qid[first])]
    _, n_bytes = write(train, parts, options.stream)
    X, y, qid = X[~first], y[~first], qid[~first]
    ends = np.cumsum(write(test, [(X, y, qid)])[0])
    explained = int(ends[min(np.searchsorted(ends, EXPLAINED), len(ends) - 1)])
    write(few, [(X[:explained], y[:explained], qid[:explained])])
    files = {"train": train, "test": test, "explained": explained, "few": without_qid(few)}
    files |= {"train_without_qid": without_qid(train), "test_without_qid": without_qid(test)}
    return files, y, qid, n_bytes


# The tables.


def contest(options, folder):
    """Everybody's turns: answers, and NDCG@10 of the last scores, by name; and the bytes to train on."""
    from ranktrees import as_measure

    files, y, qid, n_bytes = files_of(options, folder)
    names = [
        name
        for name in (STREAMS if options.stream else JOBS)
        if name.startswith("ranktrees") or options.only in name
    ]

    def process_of(name):
        its = files | {"scores": str(folder / f"{name}.scores")}
        return Process(working, [name, its, vars(options)], options.threads, folder / f"{name}.log")

    answers = {}
    for _ in range(options.repeats):
        said, refusals = interleaved(process_of, names, ["work"])
        print_refusals(refusals)
        names = list(said)
        for name, (_, answer) in said.items():
            answers.setdefault(name, []).append(answer)
    answers = {name: answers[name] for name in names}
    qualities = {
        name: as_measure("ndcg@10")(y, np.loadtxt(folder / f"{name}.scores"), qid=qid) for name in names
    }
    return answers, qualities, n_bytes


def print_tables(answers, qualities, n_bytes):
    """Seconds of each step; and of each job, with its peak, and which steps take most of it."""
    seconds = {
        name: {step: np.array([each["seconds"][step] for each in said]) for step in STEPS}
        for name, said in answers.items()
    }
    own = next(iter(seconds))
    peers = [name for name in seconds if name != own]
    print(f"{n_bytes / 1e6:.0f} MB of text to train on\n")
    print(f"| seconds | {own} |" + "".join(f" {name} | ours / its |" for name in peers))
    print("|--|--:|" + "--:|--:|" * len(peers))
    for step in STEPS:
        if any(taken[step].any() for taken in seconds.values()):
            cells = [f"{np.median(seconds[own][step]):.3f}"]
            for name in peers:
                taken, its = seconds[own][step], seconds[name][step]
                cells += [f"{np.median(its):.3f}", ratio(taken, its) if taken.all() and its.all() else ""]
            print(f"| {step} | {' | '.join(cells)} |")
    whole = {name: sum(taken.values()) for name, taken in seconds.items()}
    print("\n| job | s | ours / its | MB/s read | peak, MB | NDCG@10 | most of the time |")
    print("|--|--:|--:|--:|--:|--:|--|")
    for name, said in answers.items():
        read = n_bytes / 1e6 / np.median(seconds[name][READ])
        most = np.median([each["peak"] for each in said])
        medians = {step: np.median(taken) for step, taken in seconds[name].items()}
        slowest = sorted(medians, key=medians.get, reverse=True)[:3]
        shares = ", ".join(f"{step} {medians[step] / np.median(whole[name]):.0%}" for step in slowest)
        compared = "" if name == own else ratio(whole[own], whole[name])
        print(
            f"| {name} | {np.median(whole[name]):.2f} | {compared} | {read:.0f} | {most:.0f} "
            f"| {qualities[name]:.4f} | {shares} |"
        )


def size(text):
    """As 4GB, in bytes."""
    found = re.fullmatch(r"([0-9.]+)(kB|MB|GB)", text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r}; expected a size such as 4GB or 500MB")
    return float(found[1]) * UNITS[found[2]]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--queries", type=int, default=1580, help="three quarters to train on, if in memory")
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--leaves", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--gz", action="store_true", help="compressed files")
    parser.add_argument("--stream", type=size, metavar="SIZE", help="of the text to train on, made for it")
    parser.add_argument("--only", default="", help="ours, and libraries with this in their name")
    parser.add_argument("--folder", help="for files: on a disk with twice as much room as there is text")
    parser.add_argument("--smoke", action="store_true", help="a few rows, once")
    options = parser.parse_args()
    if options.smoke:
        vars(options).update(SMOKE)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        print_tables(*contest(options, Path(folder)))


if __name__ == "__main__":
    main()
