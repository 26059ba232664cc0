"""What all fuzzers share: damage, a run of inputs within limits, and what a model that was read must be.

An input depends on the seed and its number only. A fuzzer is a function from a random generator to the kind
of the input that it has drawn; it raises if the input shows a fault. Each input has limits of processor time
and memory, and warnings are errors.
"""

import argparse
import contextlib
import copy
import json
import os
import resource
import signal
import tempfile
import time
import warnings
from collections import Counter
from itertools import count
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from ranktrees import Ensemble, FitWarning
from reference import scoring as reference

LIMIT, BYTES = 1.0, 200 << 20  # for an input: seconds of processor time, and memory beyond what is taken
PATIENCE = 10  # seconds for another library
WIDE = 10_000  # features, beyond which a model is not scored

NUMBERS = [
    0,
    1,
    -1,
    2,
    3,
    7,
    31,
    32,
    255,
    256,
    257,
    0.5,
    -0.0,
    1e-40,
    5e-324,
    1e38,
    3.4028235e38,
    1e39,
    1e308,
]
NUMBERS += [2**15, 2**31 - 1, 2**31, -(2**31), 2**32, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 2**64, 10**400]
NUMBERS += [float("nan"), float("inf"), -float("inf")]
VALUES = [None, True, False, "", "0", "1", "nan", "-1", "1e400", "1_0", "é", "\0", [], {}, [[]], [0], {"": 0}]


# ---- damage -----------------------------------------------------------------------------------------------


def picked(rng, values):
    """One of the values, as it is."""
    return values[rng.integers(len(values))]


def part(rng, n, most=64):
    """A random slice of a sequence of ``n``, mostly short."""
    start = rng.integers(n + 1)
    return slice(start, min(n, start + rng.integers(1, 2 + rng.integers(most))))


def damaged(rng, data):
    """Bytes with a change or a few."""
    data = bytearray(data)
    for _ in range(rng.geometric(0.5)):
        where, other = part(rng, len(data)), bytes(data[part(rng, len(data))])
        match rng.integers(7):
            case 0 if data:
                data[rng.integers(len(data))] ^= 1 << rng.integers(8)
            case 1 if data:
                data[rng.integers(len(data))] = picked(rng, [0, 1, 2, 9, 10, 32, 45, 48, 57, 127, 128, 255])
            case 2:
                del data[where]
            case 3:
                data[where.start : where.start] = other
            case 4:
                data[where] = other
            case 5:
                data[where.start : where.start] = rng.bytes(rng.integers(1, 9))
            case _ if rng.random() < 0.1:
                del data[where.start :]
    return bytes(data)


def other_number(rng, number):
    """A number near another one, or an extreme one."""
    with contextlib.suppress(OverflowError):
        match rng.integers(8):
            case 0:
                return number + 1
            case 1:
                return number - 1
            case 2:
                return -number
            case 3:
                return number * 2
            case 4:
                return float(np.float32(number)) if abs(number) < 1e38 else 0
            case 5:
                return int(rng.integers(300))
    return picked(rng, NUMBERS)


def other_word(rng, word):
    """Another spelling or another number for a word, which is a number more often than not."""
    if rng.random() < 0.1:
        return damaged(rng, word.encode()).decode("latin-1")
    for read in (int, float):
        with contextlib.suppress(ValueError, OverflowError):
            return str(other_number(rng, read(word)))
    return picked(rng, ["", word + word, word[:-1], str(picked(rng, NUMBERS)), word.upper()])


def damaged_list(rng, values, change):
    """A list with an element changed, gone, doubled or moved, or its end cut off."""
    values = list(values)
    if not values:
        return [change(None)] if rng.random() < 0.5 else values
    i, j = rng.integers(len(values), size=2)
    match rng.integers(9):
        case 0:
            del values[i]
        case 1:
            values.insert(j, copy.deepcopy(values[i]))
        case 2:
            values[i], values[j] = values[j], values[i]
        case 3:
            values[i] = copy.deepcopy(values[j])
        case 4 if rng.random() < 0.3:
            del values[i:]
        case _:
            values[i] = change(values[i])
    return values


def damaged_value(rng, value):
    """A value of JSON with a change somewhere in it."""
    if rng.random() < 0.03:
        return copy.deepcopy(picked(rng, [*VALUES, *NUMBERS]))
    match value:
        case list():
            return damaged_list(rng, value, lambda each: damaged_value(rng, each))
        case dict() if value:
            name, other = (picked(rng, list(value)) for _ in range(2))
            match rng.integers(30):
                case 0:
                    return {key: each for key, each in value.items() if key != name}
                case 1:
                    return value | {name: copy.deepcopy(value[other])}
                case 2:
                    return {other_word(rng, key) if key == name else key: each for key, each in value.items()}
            return value | {name: damaged_value(rng, value[name])}
        case str():
            return other_word(rng, value)
        case int() | float():
            return other_number(rng, value)
    return copy.deepcopy(picked(rng, [*VALUES, *NUMBERS]))


def damaged_json(rng, data):
    """A text in JSON with changes to its values and, sometimes, to its bytes."""
    value = json.loads(data)
    for _ in range(rng.geometric(0.6)):
        value = damaged_value(rng, value)
    data = json.dumps(value).encode()
    return damaged(rng, data) if rng.random() < 0.1 else data


def damaged_lines(rng, data):
    """A text of lines such as ``name=1 2 3`` with changes to lines and words and, sometimes, to its bytes."""

    def change(line):
        name, equals, words = (line or "").partition("=")
        if rng.random() < 0.1:
            return other_word(rng, name) + equals + words
        return (
            name
            + equals
            + " ".join(damaged_list(rng, words.split(" "), lambda word: other_word(rng, word or "")))
        )

    lines = data.decode().split("\n")
    for _ in range(rng.geometric(0.6)):
        if rng.random() < 0.2:
            lines = damaged_list(rng, lines, change)
        else:
            i = rng.integers(len(lines))
            lines[i] = change(lines[i])
    data = "\n".join(lines).encode()
    return damaged(rng, data) if rng.random() < 0.1 else data


def folder_in_memory():
    """A new folder, in memory if that can be: a disk would take longer than what is done with the files."""
    return tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)


# ---- what was read ----------------------------------------------------------------------------------------


def require_valid(rng, ensemble):
    """Raise unless a model is written and read back to itself, and scores as a plain walk does."""
    data = ensemble.to_bytes()
    assert Ensemble.from_bytes(data).to_bytes() == data
    if ensemble.n_features <= WIDE:
        rows = reference.random_rows(rng, ensemble, 8)
        with np.errstate(over="ignore", invalid="ignore"):
            np.testing.assert_array_equal(ensemble.predict(rows), reference.predict(ensemble, rows))
            np.testing.assert_array_equal(ensemble.leaves(rows), reference.leaves(ensemble, rows))


def size(ensemble):
    """What the rounding of a sum is to be compared with: the largest values of all trees."""
    values = np.abs(ensemble.nodes["value"]) * (ensemble.nodes["feature"] < 0)
    largest = np.maximum.reduceat(values, ensemble.tree_offsets[:-1]) if len(ensemble) else values
    with np.errstate(over="ignore"):
        return abs(ensemble.base) + largest.sum()


def read(load, path, data):
    """What ``load`` makes of a file with these bytes; None if it is refused, with the name of the file."""
    Path(path).write_bytes(data)
    try:
        return load(path)
    except ValueError as error:
        if str(path) not in str(error):
            raise
        return None


def _answer_all(questions, answer):
    """Answer questions in a process of its own; once a question has ended it, in another one."""
    with open(os.devnull, "w") as nowhere:
        for output in (1, 2):
            os.dup2(nowhere.fileno(), output)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    while True:
        if (child := os.fork()) == 0:
            with contextlib.suppress(EOFError):
                while True:
                    question, reply = questions.recv(), None
                    signal.alarm(PATIENCE)
                    with contextlib.suppress(Exception):  # whatever it raises: it does not take the file
                        reply = answer(*question)
                    signal.alarm(0)
                    questions.send(reply)
            os._exit(0)
        if os.waitpid(child, 0)[1] == 0:
            return
        questions.send(None)


class Judge:
    """Another library, which answers in a process of its own, and may end it.

    Parameters
    ----------
    answer : callable
        A function of a module.
    asked : bool
        If not, there is no process, and no answer.
    """

    def __init__(self, answer, asked=True):
        self._questions = None
        if not asked:
            return
        spawning = get_context("spawn")
        self._questions, others = spawning.Pipe()
        self._process = spawning.Process(target=_answer_all, args=(others, answer), daemon=True)
        self._process.start()
        others.close()

    def __call__(self, *question):
        """Return the answer, or None if there is none."""
        if self._questions is None:
            return None
        self._questions.send(question)
        return self._questions.recv()

    def close(self):
        """End it."""
        if self._questions is not None:
            self._questions.close()
            self._process.join()


# ---- the run ----------------------------------------------------------------------------------------------


@contextlib.contextmanager
def limits(seconds):
    """Make it an error to take more processor time, or more than `BYTES` of memory."""

    def late(*_):
        raise TimeoutError(f"an input took more than {seconds} s")

    before = resource.getrlimit(resource.RLIMIT_AS)
    n_pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (n_pages * resource.getpagesize() + BYTES, before[1]))
    handler = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, handler)
        resource.setrlimit(resource.RLIMIT_AS, before)


def run(fuzz, seed, *, first=0, n_inputs=None, seconds=np.inf, limit=LIMIT):
    """Draw inputs until there are enough or the time is over.

    Parameters
    ----------
    fuzz : callable
        A function from a random generator to the kind of the input.
    seed, first : int
        The seed, and the number of the first input.
    n_inputs : int or None
    seconds : float
    limit : float
        Seconds of processor time for each input.

    Returns
    -------
    kinds : Counter
        The number of inputs of each kind.
    """
    kinds, last = Counter(), time.monotonic() + seconds
    numbers = count(first) if n_inputs is None else range(first, first + n_inputs)
    for number in numbers:
        if time.monotonic() >= last:
            break
        try:
            with warnings.catch_warnings(), limits(limit):
                warnings.simplefilter("error")
                warnings.simplefilter("ignore", FitWarning)
                kinds[fuzz(np.random.default_rng([seed, number]))] += 1
        except BaseException as error:
            error.add_note(f"input {number} of seed {seed}")
            raise
    return kinds


def main(fuzzer, description, **options):
    """The command of a fuzzer, which ``fuzzer()`` makes for as long as a block."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=3600.0, help="an hour")
    parser.add_argument("--files", type=int, help="how many inputs, if they take less time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    limited = {"first": given.first, "n_inputs": given.files, "seconds": given.seconds}
    with fuzzer() as fuzz:
        kinds = run(fuzz, given.seed, **limited, **options)
    print(f"{kinds.total()} inputs: " + ", ".join(f"{n} {kind}" for kind, n in kinds.most_common()))
