"""Damaged models in the native format, with lengths and a checksum that fit: refused, or a model that holds.

    python tests/fuzz/native_files.py [--seconds 3600] [--files N] [--seed 0] [--first 0]

What is read is written to the same bytes, and scores as a plain walk does. `fuzzing` says the rest.
"""

import contextlib
import hashlib
import sys
from pathlib import Path

import numpy as np

from ranktrees import Ensemble
from ranktrees.model import native

sys.path.insert(0, str(Path(__file__).parents[1]))  # where this is a script
from fuzz.fuzzing import LIMIT, NUMBERS, damaged, damaged_json, main, picked, require_valid
from reference import scoring as reference

SECTIONS = ["tree offsets", "nodes", "bit sets", "features", "categories", "columns"]
TYPES = {
    "tree offsets": np.dtype("<i8"),
    "nodes": native.NODE,
    "bit sets": np.dtype("<u4"),
    "categories": np.dtype("<f8"),
    "codes": np.dtype("<u2"),
}


def as_sections(data):
    """The head's numbers and the sections of a model, apart."""
    _, version, _, base, average = native.HEAD.unpack_from(data)
    sections, at = [], native.HEAD.size
    while at < len(data) - native.DIGEST_SIZE:
        (n_bytes,) = native.SIZE.unpack_from(data, at)
        sections.append(data[at + 8 : at + 8 + n_bytes])
        at += 8 + n_bytes
    return {"version": version, "base": base, "average": average}, sections


def as_model(head, sections, sizes=None):
    """The bytes of a model, with lengths and checksum that fit."""
    sizes = [len(section) for section in sections] if sizes is None else sizes
    pairs = zip(sizes, sections, strict=True)
    body = b"".join(native.SIZE.pack(size) + bytes(section) for size, section in pairs)
    n_bytes = native.HEAD.size + len(body) + native.DIGEST_SIZE
    body = native.HEAD.pack(native.MAGIC, head["version"], n_bytes, head["base"], head["average"]) + body
    return body + hashlib.sha256(body).digest()


def corpus():
    """Small models of all kinds."""
    rng = np.random.default_rng(0)
    for seed in range(12):
        n_features = int(rng.integers(1, 6))
        names = [None, [f"name {f} é" for f in range(n_features)]][seed % 2]
        levels = {0: ["x", 2, True, 0.5]} if seed % 3 == 0 else {}
        yield reference.random_ensemble(
            rng,
            int(rng.integers(0, 4)),
            int(rng.integers(1, 9)),
            n_features,
            many=seed % 4 == 3,
            base=float(rng.normal()),
            average=seed % 5 == 0,
            feature_names=names,
            category_levels=levels,
        )


def damaged_array(rng, section, dtype):
    """A section with some of its numbers changed."""
    values = np.frombuffer(section, dtype).copy()
    for _ in range(rng.geometric(0.5) if len(values) else 0):
        i, field = rng.integers(len(values)), None
        if dtype.names:
            field = picked(rng, dtype.names)
        target = values[field] if field else values
        near = target[rng.integers(len(values))].copy()
        if rng.random() < 0.5 and near.ndim == 0 and near.dtype.kind != "V":
            with np.errstate(all="ignore"):
                near = near + near.dtype.type(picked(rng, [1, 2, near]))
        elif near.ndim == 0:
            with contextlib.suppress(OverflowError), np.errstate(all="ignore"):
                near = np.array(picked(rng, NUMBERS)).astype(near.dtype) if rng.random() < 0.7 else near
        target[i] = near
    return values.tobytes()


def damaged_model(rng, data):
    """A model whose head, sections or their sizes are changed, behind a checksum that fits."""
    head, sections = as_sections(data)
    names = [*SECTIONS[:-1], *(["codes"] if head["version"] == 2 else []), "columns"]
    for _ in range(rng.geometric(0.6)):
        i = int(rng.integers(len(sections)))
        match rng.integers(12):
            case 0:
                head["version"] = int(rng.integers(4))
            case 1:
                head["base"] = picked(rng, [0.0, -0.0, 1e308, np.nan, np.inf, 5e-324])
            case 2:
                head["average"] = int(rng.integers(3))
            case 3:
                sections[i] = damaged(rng, sections[i])
            case 4:
                sections[i] = picked(rng, sections)
            case 5 if len(sections[-1]):
                with contextlib.suppress(ValueError):
                    sections[-1] = damaged_json(rng, sections[-1])
            case 6:
                sizes = [len(section) for section in sections]
                sizes[i] = int(picked(rng, [0, 1, 8, 2**31, 2**63, 2**64 - 1, sizes[i] + 1, sizes[i] + 8]))
                return as_model(head, sections, sizes)
            case 7:
                body = damaged(rng, as_model(head, sections)[: -native.DIGEST_SIZE])
                return body + hashlib.sha256(body).digest()
            case _:
                name = names[i]
                dtype = (
                    np.dtype(native.COUNT[head["version"]])
                    if name == "features" and head["version"] in native.COUNT
                    else TYPES.get(name)
                )
                if dtype is not None and len(sections[i]) % dtype.itemsize == 0:
                    sections[i] = damaged_array(rng, sections[i], dtype)
    return as_model(head, sections)


@contextlib.contextmanager
def fuzzer():
    models = [ensemble.to_bytes() for ensemble in corpus()]

    def fuzz(rng):
        data = damaged_model(rng, picked(rng, models))
        try:
            ensemble = Ensemble.from_bytes(data)
        except ValueError:
            return "refused"
        assert ensemble.to_bytes() == data
        require_valid(rng, ensemble)
        return "read"

    yield fuzz


if __name__ == "__main__":
    main(fuzzer, __doc__, limit=LIMIT)
