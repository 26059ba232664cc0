r"""The native model format: an ensemble as bytes, which are checked before anything in them is trusted.

A file holds the following, without gaps and with numbers in little-endian order:

====== ======================= ============================================================================
offset type                    meaning
====== ======================= ============================================================================
0      8 bytes                 magic: ``89 52 4B 54 0D 0A 1A 0A`` (``\x89RKT\r\n\x1a\n``); a transfer that
                               rewrites line ends or clears the high bit breaks it
8      uint32                  version, 1; 2 if a feature has more than 256 categories
12     uint64                  number of bytes of the whole file
20     float64                 ``base``
28     uint8                   ``average``, 0 or 1
29     sections                in the order below: for each its uint64 number of bytes, then the bytes
end-32 32 bytes                SHA-256 of all bytes before it
====== ======================= ============================================================================

============== ============================ ================================================================
section        type                         meaning
============== ============================ ================================================================
tree offsets   int64[n_trees + 1]           ``tree_offsets``
nodes          ``NODE[n_nodes]``            56 bytes per node: float64 ``cut``, ``value``, ``gain``; int64
                                            ``count``; int32 ``feature``, ``left``, ``right``,
                                            ``categories``; uint8 ``missing_left``; 3 zero bytes;
                                            float32 ``cover``
bit sets       uint32[n_categorical][8]     ``bitsets``; in version 2 as many words as the largest code needs
features       int16[n_features]            number of categories of each feature, -1 if not categorical; in
                                            version 2 int32
categories     float64[...]                 the values of the categories of all features, one after another
codes          uint16[...]                  only in version 2: the code of each of these categories
columns        JSON in ASCII                ``{"feature_names": null, "category_levels": {}}``, or with a list
                                            of names, one per feature, and lists of levels by feature; and
                                            ``"link": "logistic"`` or ``"poisson"`` at the end if there is one
============== ============================ ================================================================

`~ranktrees.model.ensemble.Ensemble` describes what these mean. A model is written in exactly one way: equal
ensembles give equal bytes, and bytes in any other form are refused.

Reading is safe whatever the bytes are. The length and the SHA-256 are checked first, so a file that was cut
off or damaged is refused. Every number of bytes is compared with the bytes that are left before any array is
made. So memory stays within a small multiple of the size of the file: four times for trees, at most thirty
times for features, which take the fewest bytes in a file, and forty times for columns. Last comes the check
that every ensemble passes: children come after their parent in the same tree, each node but the root has one
parent, features and categories exist, no number is NaN, and names and levels are distinct. It passes over the
arrays once, and guarantees that a walk ends and stays inside them. Nothing is executed (no pickle).
"""

from __future__ import annotations

import hashlib
import json
import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from ranktrees._core.support.dtypes import NODE as NODE_IN_MEMORY

if TYPE_CHECKING:
    from ranktrees.model.arrays import ModelArrays

__all__ = ["dumps", "loads"]

MAGIC = b"\x89RKT\r\n\x1a\n"
VERSION = 2
MOST_CATEGORIES_IN_1 = 256
COUNT = {1: "<i2", 2: "<i4"}  # the type of numbers of categories, by version
NODE = np.dtype(
    [
        *((name, "<f8") for name in ("cut", "value", "gain")),
        ("count", "<i8"),
        *((name, "<i4") for name in ("feature", "left", "right", "categories")),
        ("missing_left", "u1"),
        ("unused", "u1", (3,)),
        ("cover", "<f4"),
    ]
)
HEAD = struct.Struct("<8sIQdB")
SIZE = struct.Struct("<Q")
DIGEST_SIZE = 32


def dumps(ensemble: ModelArrays) -> bytes:
    """Write an ensemble.

    Parameters
    ----------
    ensemble : Ensemble
        The model.

    Returns
    -------
    bytes
        The model as bytes, which are the same for equal models on every machine.

    Examples
    --------
    >>> from ranktrees.model import Ensemble
    >>> ensemble = Ensemble.from_trees([], n_features=3, base=0.5)
    >>> dumps(ensemble)[:12]
    b'\\x89RKT\\r\\n\\x1a\\n\\x01\\x00\\x00\\x00'
    >>> Ensemble.from_bytes(dumps(ensemble)) == ensemble
    True
    """
    body = _body(ensemble)
    return body + hashlib.sha256(body).digest()


def loads(data: Any) -> dict[Any, Any]:
    """Read the arrays of an ensemble, of which `Ensemble.from_bytes` makes one.

    Parameters
    ----------
    data : bytes-like
        The bytes that `dumps` returned.

    Returns
    -------
    dict
        The arguments of `Ensemble`, not yet checked by it.

    Raises
    ------
    TypeError
        If ``data`` is not bytes-like.
    ValueError
        If ``data`` is not a whole model: if it is cut off, too long, damaged, of a later version, or not a
        model at all.

    Examples
    --------
    >>> loads(b"tree\\nversion=v4\\n")
    Traceback (most recent call last):
    ...
    ValueError: not a ranktrees model: it does not begin with b'\\x89RKT\\r\\n\\x1a\\n'; load_lightgbm...
    """
    try:
        data = memoryview(data).cast("B")
    except TypeError:
        raise TypeError(
            f"data is a {type(data).__name__}; expected what to_bytes returned: to read a file, use "
            "Ensemble.load."
        ) from None
    if data[: len(MAGIC)] != MAGIC[: len(data)] or len(data) == 0:
        raise ValueError(
            f"not a ranktrees model: it does not begin with {MAGIC!r}; load_lightgbm, load_xgboost and "
            "load_catboost read models of other libraries"
        )
    if len(data) < HEAD.size + DIGEST_SIZE:
        raise ValueError(f"truncated: {len(data)} bytes cannot hold a model")
    _, version, n_bytes, base, average = HEAD.unpack_from(data)
    if not 1 <= version <= VERSION:
        raise ValueError(f"format version {version}, but this release reads up to {VERSION}: use a newer one")
    if len(data) < n_bytes:
        raise ValueError(f"truncated: {len(data)} bytes of {n_bytes}")
    if len(data) > n_bytes:
        raise ValueError(f"{len(data) - n_bytes} bytes too many after a model of {n_bytes} bytes")
    body, digest = data[:-DIGEST_SIZE], data[-DIGEST_SIZE:]
    if hashlib.sha256(body).digest() != digest:
        raise ValueError("checksum does not match: the model was damaged")

    sections = body[HEAD.size :]
    tree_offsets, sections = _take(sections, "tree offsets", np.dtype("<i8"))
    nodes, sections = _take(sections, "nodes", NODE)
    bitsets, sections = _take(sections, "bit sets", np.dtype("<u4"), 8 if version == 1 else 1)
    n_categories, sections = _take(sections, "features", np.dtype(COUNT[version]))
    values, sections = _take(sections, "categories", np.dtype("<f8"))
    categories, groups, n_words = _split(values, n_categories), None, 8
    if version == 2:
        codes, sections = _take(sections, "codes", np.dtype("<u2"))
        groups = [None if part is None or not len(part) else part for part in _split(codes, n_categories)]
        n_words = max(n_words, -(-(int(codes.max(initial=0)) + 1) // 32))
        if len(bitsets) % n_words:
            raise ValueError(f"{len(bitsets)} words of bit sets, expected a multiple of {n_words}")
    columns, sections = _take(sections, "columns", np.dtype("u1"))
    if len(sections) > 0:
        raise ValueError(f"{len(sections)} bytes too many after the last section")
    return {
        "nodes": nodes.astype(NODE_IN_MEMORY),
        "tree_offsets": tree_offsets,
        "n_features": len(n_categories),
        "bitsets": bitsets.reshape(-1, n_words),
        "categories": categories,
        "groups": groups,
        "base": base,
        "average": average,
        **_read_columns(columns),
    }


def _body(ensemble: ModelArrays) -> bytes:
    values, _ = ensemble.category_table
    most = max(0 if each is None else len(each) for each in ensemble.categories)
    version = 1 if most <= MOST_CATEGORIES_IN_1 else 2
    n_categories = (-1 if each is None else len(each) for each in ensemble.categories)
    sections = (
        ensemble.tree_offsets.astype("<i8"),
        ensemble.nodes.astype(NODE),
        ensemble.bitsets.astype("<u4"),
        np.fromiter(n_categories, COUNT[version], ensemble.n_features),
        values.astype("<f8"),
        *([ensemble.category_codes.astype("<u2")] if version == 2 else []),
        np.frombuffer(_spelt_columns(ensemble), "u1"),
    )
    n_bytes = HEAD.size + sum(SIZE.size + section.nbytes for section in sections) + DIGEST_SIZE
    parts = [HEAD.pack(MAGIC, version, n_bytes, ensemble.base, ensemble.average)]
    for section in sections:
        parts += [SIZE.pack(section.nbytes), section.tobytes()]
    return b"".join(parts)


def _spelt_columns(ensemble: ModelArrays) -> bytes:
    columns = {"feature_names": ensemble.feature_names, "category_levels": dict(ensemble.category_levels)}
    link = {} if ensemble.link is None else {"link": ensemble.link}
    return json.dumps(columns | link, allow_nan=False).encode("ascii")


def _read_columns(section: Any) -> dict[str, Any]:
    try:
        columns = json.loads(str(section, "ascii"))
        names, levels = columns["feature_names"], columns["category_levels"]
        return {
            "feature_names": None if names is None else tuple(names),
            "category_levels": {int(feature): tuple(each) for feature, each in levels.items()},
            "link": columns.get("link"),
        }
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(
            f"the section of columns has no names and levels ({type(error).__name__}: {error})"
        ) from None


def _take(sections: Any, name: str, dtype: Any, width: int = 1) -> tuple[np.ndarray, Any]:
    """Return the next section as an array (a view), and the bytes after it."""
    if len(sections) < SIZE.size:
        raise ValueError(f"truncated: no room for the section of {name}")
    (n_bytes,) = SIZE.unpack_from(sections)
    sections = sections[SIZE.size :]
    if n_bytes > len(sections):
        raise ValueError(f"truncated: the section of {name} has {len(sections)} bytes of {n_bytes}")
    unit = dtype.itemsize * width
    if n_bytes % unit != 0:
        raise ValueError(f"the section of {name} has {n_bytes} bytes, expected a multiple of {unit}")
    return np.frombuffer(sections[:n_bytes], dtype), sections[n_bytes:]


def _split(values: np.ndarray, n_categories: np.ndarray) -> list[Any]:
    """The categories of each feature, or None, from the values of all and the number of each."""
    sizes = np.maximum(n_categories, 0).astype(np.int64)
    if n_categories.min(initial=0) < -1 or sizes.sum() != len(values):
        raise ValueError(f"the features have {sizes.sum()} categories, but the file has {len(values)}")
    nothing = values[:0]
    categories = [nothing if n == 0 else None for n in n_categories]
    stops = np.cumsum(sizes)
    for feature in np.flatnonzero(sizes):
        categories[feature] = values[stops[feature] - sizes[feature] : stops[feature]]
    return categories
