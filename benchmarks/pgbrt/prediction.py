"""More cores than there are: what was measured here, put into a formula.

A tree on P ranks of one core each takes::

    a + b rows / P                              computing, where a is another for one rank and for several
    + (calls + meetings) log2(P) latency        each call, and the meeting of all ranks before it
    + what a rank sends / bandwidth             n (P - 1) / P of a sum of which each rank needs a part, twice
                                                that where all need all; P - 1 times what is told to each

with a, b and what is sent growing with the number of features. The times of computing are those of a
processor, calls left out; latency and bandwidth are those between two processes here, or a link's. Ranks have
as many rows each, and nothing is sent while anything is computed.
"""

import math
import time
from typing import NamedTuple

import numpy as np

from ..survey.lab import kept
from ..survey.markdown import table
from . import growth, scaling, sets

LOSS = "squared loss"
HERE = "as measured here"
RANKS = (2, 8, 16, 32, 48)
MEETING = 1024  # bytes that each rank sends to each other before a call
SIZES = (8, 100_000, 1_000_000)
CALLS = ("allreduce", "reduce_scatter")
N_CALLS = 500
PAPERS = {"MSLR Fold 1": (723_412, 136), "Yahoo Set 1": (473_134, 519)}


class Link(NamedTuple):
    """Between any two ranks: seconds for a message, and bytes a second."""

    latency: float
    bandwidth: float


GIVEN = {"10 Gb/s, 10 us": Link(10e-6, 1.25e9), "1 Gb/s, 50 us": Link(50e-6, 1.25e8)}


def microseconds(communicator, _rows):
    """float64[n_calls, n_sizes]: the fastest time of a call by messages, with the meeting before it."""
    communicator = communicator.by_messages()
    found = np.empty((len(CALLS), len(SIZES)))
    for place, call in enumerate(CALLS):
        for column, n_bytes in enumerate(SIZES):
            values = np.ones(n_bytes // 8, np.int64)
            counts = [len(part) for part in np.array_split(values, communicator.size)]
            arguments = (values, counts) if call == "reduce_scatter" else (values,)
            taken = []
            for _ in range(N_CALLS):
                values[:] = 1
                started = time.perf_counter()
                getattr(communicator, call)(*arguments)
                taken.append(time.perf_counter() - started)
            found[place, column] = 1e6 * min(taken)
    return found


def _measured(lab):
    def make():
        return growth.on_ranks(2, microseconds, sets.web(2, scaling.SHAPE.n_features, 10))[0]

    return kept(lab.folder, ("collectives", CALLS, SIZES), make)


def collectives(lab):
    """Microseconds of a call between two ranks here, the meeting before it included."""
    found = _measured(lab)
    rows = [[call, *(f"{us:.0f}" for us in line)] for call, line in zip(CALLS, found, strict=True)]
    return [table(["us", *(f"{size} bytes" for size in SIZES)], rows)]


def link_here(lab):
    """The link between two processes: a short call is nothing but latency, a long one mostly bandwidth."""
    short, *_, long = _measured(lab)[CALLS.index("reduce_scatter")] / 1e6
    return Link(short, SIZES[-1] / 2 / (long - short))


class Work(NamedTuple):
    """CPU milliseconds of a tree: those that no row takes, by one rank and by one of several, and a row's."""

    alone: float
    of_several: float
    per_row: float

    def on(self, n_ranks, n_rows):
        """Of one of so many ranks."""
        return (self.alone if n_ranks == 1 else self.of_several) + self.per_row * n_rows / n_ranks


def work_of(lab, search):
    """Fitted to what was measured on one rank, and on two."""
    n_rows = [n * scaling.SHAPE.rows_per_query for n in scaling.N_QUERIES]
    ms = [scaling.computing_of(lab, LOSS, search, n, 1) for n in scaling.N_QUERIES]
    per_row, alone = np.polyfit(n_rows, ms, 1)
    alone = max(0.0, alone)  # what it is told from is noisy
    both = scaling.computing_of(lab, LOSS, search, scaling.DIVIDED, 2)
    of_rows = per_row * scaling.DIVIDED * scaling.SHAPE.rows_per_query / 2
    return Work(alone, max(alone, both - of_rows), per_row)


def ms_of(n_ranks, n_rows, work, sent, link, wider):
    """Milliseconds of a tree; ``sent`` is what was sent on two ranks, with so many times fewer features."""
    others = n_ranks - 1
    of_calls = dict(zip(growth.CALLS, sent["bytes"], strict=True))
    n_bytes = (
        wider * (of_calls["reduce_scatter"] + of_calls["allreduce"]) * 2 * others / n_ranks
        + (of_calls["allgather"] + of_calls["stack"]) * others
        + sent["meetings"] * MEETING * others
    )
    calls = dict(zip(growth.CALLS, sent["messages"], strict=True))
    in_meetings = calls["stack"]  # said when ranks meet
    n_steps = (sum(calls.values()) - in_meetings + sent["meetings"]) * math.log2(n_ranks)
    telling = 1000 * (n_steps * link.latency + n_bytes / link.bandwidth)
    return wider * work.on(n_ranks, n_rows) + telling


def prediction(lab):
    """PREDICTED, not measured: how many times faster than one core."""
    links = {HERE: link_here(lab)} | GIVEN
    rows = []
    for search in lab.searches:
        work = work_of(lab, search)
        sent = scaling.sent_of(lab, LOSS, search, scaling.N_QUERIES[-1])
        for name, (n_rows, n_features) in PAPERS.items():
            wider = n_features / scaling.SHAPE.n_features
            for link in links:
                alone, *ms = (ms_of(n, n_rows, work, sent, links[link], wider) for n in (1, *RANKS))
                speedups = [f"{alone / each:.1f}" for each in ms]
                rows.append([f"{LOSS}, {search}", name, link, f"{alone:.0f}", *speedups])
    head = ["predicted", "rows", "link", "ms per tree, 1 core", *(f"{n} ranks" for n in RANKS)]
    return [table(head, rows), _of_work(lab), _of_links(links)]


def _of_links(links):
    rows = [
        [name, f"{1e6 * link.latency:.0f}", f"{link.bandwidth / 1e6:.0f}"] for name, link in links.items()
    ]
    return table(["link", "latency, us", "bandwidth, MB/s"], rows)


def _of_work(lab):
    found = [(search, work_of(lab, search)) for search in lab.searches]
    rows = [
        [f"{LOSS}, {name}", f"{work.alone:.1f}", f"{work.of_several:.1f}", f"{1e6 * work.per_row:.0f}"]
        for name, work in found
    ]
    return table(["computing", "a, one rank, ms", "a, several, ms", "b, ns"], rows)


PARTS = {"collectives": collectives, "prediction": prediction}
