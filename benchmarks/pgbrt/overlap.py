"""What is gained by sending the histograms of a feature while those of the next are made.

    sudo python -m benchmarks.pgbrt.overlap [--ranks 2] [--rates 50 100 200 1000] [--rows 20000] [--bins 25]

Ranks are processes of this machine that send each other messages through the loopback device of a network
namespace of their own, whose rate is limited (``tc qdisc ... tbf``, which needs Linux and its superuser).
Prints, for each rate in megabits per second, the median seconds of a tree if a rank sends all histograms of a
layer at once and waits for them, and if it sends those of a few features while it makes others.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time

import joblib
import numpy as np

N_TREES, N_REPEATS = 10, 5
BY_MESSAGES = {"MPIR_CVAR_NOLOCAL": "1", "MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp"}


def limited(command, rate):
    """Run a command in a network namespace whose loopback device has this rate, and return what it prints."""
    shape = f"tc qdisc add dev lo root tbf rate {rate}mbit burst 256kb latency 1s"
    script = f'ip link set lo up && {shape} && exec "$@"'
    done = subprocess.run(
        ["unshare", "--net", "bash", "-c", script, "bash", *command],
        env=os.environ | BY_MESSAGES | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout


def measure(n_rows, max_bins):
    """Fit on all ranks in turn with and without overlap; print the median seconds of a tree of each."""
    import ranktrees.mpi  # noqa: F401
    from ranktrees import HistGBRTRegressor, make_ranking
    from ranktrees.processes.communicator import Communicator, active, training_with

    with joblib.parallel_config("mpi", timeout=60):
        ranks = active()
    overlapping = ranks._gather_in_turn
    at_once = Communicator._gather_in_turn.__get__(ranks)
    n_queries = n_rows // ranks.size // 100
    X, y, qid = make_ranking(
        n_queries, "web", rows_per_query=100, random_state=ranks.rank, return_X_y_qid=True
    )
    rules = {"split_search": "pgbrt", "max_bins": max_bins, "max_leaf_nodes": None, "max_depth": 5}
    qid = qid + ranks.rank * n_queries
    model = HistGBRTRegressor(
        max_iter=N_TREES, max_features=1.0, gradient_sampling=None, random_state=0, n_jobs=1, **rules
    )
    seconds, models = {"at once": [], "in turn": []}, set()
    for _ in range(N_REPEATS):
        for name, gather in (("at once", at_once), ("in turn", overlapping)):
            ranks._gather_in_turn = gather
            one, more = (time_of(model, n, ranks, training_with, (X, y, qid)) for n in (1, 1 + N_TREES))
            seconds[name].append((more[0] - one[0]) / N_TREES)
            models.add(more[1])
    if ranks.rank == 0:
        assert len(models) == 1, "overlap has changed the model"
        print(*(statistics.median(of) for of in seconds.values()))


def time_of(model, n_trees, ranks, training_with, rows):
    X, y, qid = rows
    ranks.allgather(None)
    started = time.perf_counter()
    with training_with(ranks):
        model.set_params(max_iter=n_trees).fit(X, y, qid=qid)
    ranks.allgather(None)
    return time.perf_counter() - started, model.ensemble_.digest()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rates", type=int, nargs="+", default=[50, 100, 200, 1000])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--bins", type=int, default=25)
    parser.add_argument("--on-rank", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.on_rank:
        measure(arguments.rows, arguments.bins)
        return
    from ranktrees.mpi.launching import default_launcher

    own = [sys.executable, "-m", "benchmarks.pgbrt.overlap", "--on-rank"]
    given = ["--rows", str(arguments.rows), "--bins", str(arguments.bins)]
    command = [*default_launcher(arguments.ranks), *own, *given]
    print("| megabits per second | at once, ms a tree | in turn | ratio |\n|---|---|---|---|")
    for rate in arguments.rates:
        at_once, in_turn = np.array(limited(command, rate).split(), float) * 1000
        print(f"| {rate:,} | {at_once:.0f} | {in_turn:.0f} | {in_turn / at_once:.2f} |", flush=True)


if __name__ == "__main__":
    main()
