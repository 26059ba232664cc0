"""Many LETOR files, well-formed or nearly so: compiled and slow reading agree, and nobody leaves the memory.

    python tests/fuzz/letor.py [--files 1000000] [--seed 0] [--first 0]     the kernels, under sanitizers
    python tests/fuzz/letor.py --load [--files 100000] [--seed 0]           `load_letor`

The first compiles ``letor.c``, which includes the headers of the kernels, with the sanitizers of the C
compiler (``$CC``, or cc) for addresses and undefined behaviour, and compares the kernels with a slow
reader in C, whose numbers are those of strtod. Numbers are also written and read back. The second
compares `load_letor`, dense and sparse, with ``tests/reference/letor.py`` and, where it takes the file,
too, with the reader of scikit-learn. Whoever finds a fault says in which file, which ``--first N --files
1`` draws again.
"""

import argparse
import io
import os
import shlex
import struct
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file

from ranktrees._core.rows.letor import powers_of_ten
from ranktrees.datasets import load_letor

sys.path.insert(0, str(Path(__file__).parents[1]))  # where this is a script
from reference import letor as reference

HERE = Path(__file__).parent
CORE = HERE.parents[1] / "pyx" / "ranktrees" / "_core"
FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-ffp-contract=off", "-Wno-unused-function", f"-I{CORE}"]
WATCHED = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
MISSING = ["NULL", "-"]
WIDE = 10_000  # features, beyond which arrays are not compared cell by cell


class NoCompilerError(Exception):
    """Says why the program could not be compiled."""


def compiled(folder):
    """The path of the program."""
    program, probe = Path(folder, "letor"), Path(folder, "probe.c")
    command = [*shlex.split(os.environ.get("CC", "cc")), *FLAGS, *WATCHED, "-o", str(program)]

    def compile(source):
        return subprocess.run([*command, str(source), "-lm"], capture_output=True, text=True, check=False)

    try:
        done = compile(HERE / "letor.c")
    except OSError as error:
        raise NoCompilerError(f"no C compiler: {error}") from None
    if done.returncode:
        probe.write_text("int main(void) { return 0; }\n")
        if compile(probe).returncode:
            raise NoCompilerError(f"the C compiler has no sanitizers: {done.stderr.strip()}")
        raise AssertionError(done.stderr)
    return program


def read(program, seed, first, n_files):
    """Compare as many files; returns what was read, in words."""
    powers = program.with_name("powers")
    powers_of_ten().tofile(powers)
    command = [program, "read", str(seed), str(first), str(n_files), powers]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise AssertionError(done.stderr[-5000:])
    return done.stdout.strip()


def drawn(program, seed, first, n_files):
    """Yield the same files, as bytes."""
    command = [program, "print", str(seed), str(first), str(n_files)]
    text = subprocess.run(command, capture_output=True, check=True).stdout
    while text:
        (n_bytes,) = struct.unpack_from("=I", text)
        yield text[4 : 4 + n_bytes]
        text = text[4 + n_bytes :]


def load(content, **options):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* are kept as surrogates")
        return load_letor(io.BytesIO(content), return_ids=True, return_X_y_qid=True, **options)


def compare(content, *, dtype=np.float32, missing=(), n_features=None, absent=0.0):
    """Read a file by `load_letor` and by the slow reader, which have to agree. Returns what the file is."""
    options = {"dtype": dtype, "missing": missing, "n_features": n_features}
    texts = [text.encode() for text in missing]
    try:
        rows = reference.read_letor(content, n_features or 2**31 - 1, dtype, texts)
    except reference.MalformedLineError as error:
        said = f"line {error}: (?!None)"
        for sparse in (False, True):
            with pytest.raises(ValueError, match=said):
                load(content, sparse=sparse, **options)
        return "malformed"
    width = n_features or max((max(row[2], default=0) for row in rows), default=0)
    if not rows or not width:
        with pytest.raises(ValueError, match=r"holds no (rows|feature:value pair)"):
            load(content, **options)
        return "empty"
    X, y, qid, ids = load(content, sparse=True, **options)
    assert X.has_canonical_format
    assert np.all(X.data != 0)
    assert y.tolist() == [row[0] for row in rows]
    np.testing.assert_array_equal(qid, reference.queries(rows), strict=True)
    assert ids.tolist() == [row[3].decode("utf-8", "surrogateescape") for row in rows]
    if width > WIDE:
        return "wide"
    np.testing.assert_array_equal(X.toarray(), reference.dense(rows, width, dtype, 0), strict=True)
    dense, *others = load(content, absent=absent, **options)
    np.testing.assert_array_equal(dense, reference.dense(rows, width, dtype, absent), strict=True)
    for ours, again in zip(others, (y, qid, ids), strict=True):
        np.testing.assert_array_equal(ours, again, strict=True)
    elsewhere = not missing and qid.dtype == np.int64 and is_read_elsewhere(content, X, y, qid)
    return "read, by scikit-learn, too" if elsewhere else "read"


def is_read_elsewhere(content, X, y, qid):
    """Whether scikit-learn takes the file, too; then it reads the same."""
    options = {"n_features": X.shape[1], "dtype": X.dtype, "zero_based": False, "query_id": True}
    try:
        theirs = load_svmlight_file(io.BytesIO(content), **options)
    except (ValueError, OverflowError):
        return False
    for own, their in zip((X.toarray(), y, qid), (theirs[0].toarray(), *theirs[1:]), strict=True):
        np.testing.assert_array_equal(own, their)
    return True


def load_and_compare(program, seed, first, n_files):
    """`compare` as many files, each with arguments of its own; returns how many there were of each kind."""
    kinds = Counter()
    for number, content in enumerate(drawn(program, seed, first, n_files), first):
        rng = np.random.default_rng([seed, number])
        options = {
            "dtype": (np.float32, np.float64)[rng.integers(2)],
            "missing": MISSING[: rng.integers(3)],
            "n_features": (None, 10)[rng.integers(2)],
            "absent": (0.0, np.nan)[rng.integers(2)],
        }
        try:
            kinds[compare(content, **options)] += 1
        except BaseException as error:  # as that of pytest.raises is
            error.add_note(f"file {number} of seed {seed}: {content!r}")
            raise
    return kinds


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--load", action="store_true", help="load_letor instead of the kernels")
    parser.add_argument("--files", type=int, help="1,000,000; 100,000 of `load_letor`")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    n_files = options.files or (100_000 if options.load else 1_000_000)
    with tempfile.TemporaryDirectory() as folder:
        program = compiled(folder)
        if options.load:
            kinds = load_and_compare(program, options.seed, options.first, n_files)
            print(", ".join(f"{n} {kind}" for kind, n in kinds.most_common()))
        else:
            print(read(program, options.seed, options.first, n_files))


if __name__ == "__main__":
    main()
