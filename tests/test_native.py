import hashlib
import json
import os
import struct
import tracemalloc
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.native_files import as_model, as_sections
from ranktrees.model import native
from ranktrees.model.ensemble import Ensemble
from reference import scoring as reference


def three_trees():
    rng = np.random.default_rng(3)
    ensemble = reference.random_ensemble(rng, 3, 5, n_features=3, base=0.25)
    while len(ensemble.bitsets) < 2:
        ensemble = reference.random_ensemble(rng, 3, 5, n_features=3, base=0.25)
    return ensemble


LEVELS = st.lists(
    st.text(max_size=3) | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    unique=True,
    max_size=5,
)


def names_of(n_features):
    return st.lists(st.text(max_size=3), unique=True, min_size=n_features, max_size=n_features)


@given(
    seed=st.integers(0, 2**32 - 1),
    n_trees=st.integers(0, 6),
    max_leaves=st.integers(1, 20),
    n_features=st.integers(1, 8),
    average=st.booleans(),
    base=st.floats(allow_nan=False, allow_infinity=False),
    columns=st.data(),
    many=st.booleans(),
)
@settings(deadline=None, max_examples=60)
def test_round_trip_is_identity(seed, n_trees, max_leaves, n_features, average, base, columns, many):
    rng = np.random.default_rng(seed)
    called = {
        "feature_names": columns.draw(st.none() | names_of(n_features)),
        "category_levels": columns.draw(st.dictionaries(st.integers(0, n_features - 1), LEVELS, max_size=3)),
    }
    ensemble = reference.random_ensemble(
        rng, n_trees, max_leaves, n_features, average=average, base=base, many=many, **called
    )
    data = ensemble.to_bytes()
    back = Ensemble.from_bytes(data)
    assert back.to_bytes() == data
    assert back == ensemble
    for name in ("nodes", "tree_offsets", "bitsets"):
        np.testing.assert_array_equal(getattr(back, name), getattr(ensemble, name))
    assert back.feature_names == ensemble.feature_names
    assert repr(back.category_levels) == repr(ensemble.category_levels)  # True is not 1
    pairs = zip((*back.categories, *back.groups), (*ensemble.categories, *ensemble.groups), strict=True)
    for values, expected in pairs:
        assert (values is None) == (expected is None)
        np.testing.assert_array_equal(values, expected)
    X = reference.random_rows(rng, ensemble, 10)
    assert back.predict(X).tobytes() == ensemble.predict(X).tobytes()


@pytest.mark.parametrize("link", ["logistic", "poisson"])
def test_a_link_is_a_key_of_the_columns(link):
    ensemble = three_trees()
    linked = ensemble.with_link(link)
    data, plain = linked.to_bytes(), ensemble.to_bytes()
    written = json.dumps({"feature_names": None, "category_levels": {}})
    assert plain[:-32].endswith(written.encode())
    assert data[:-32].endswith(f'{written[:-1]}, "link": "{link}"}}'.encode())
    back = Ensemble.from_bytes(data)
    assert (back.link, back) == (link, linked)
    assert back != ensemble
    assert back.with_link(None) == ensemble


def test_bytes_are_these_for_ever():
    ensemble = Ensemble.from_trees(
        [reference.stump()],
        n_features=2,
        categories=[None, [2.0, 7.0]],
        base=0.5,
        average=True,
        feature_names=["a", "é"],
        category_levels={1: ["x", 2]},
    )
    node = "<dddqiiiiB3xf"
    expected = b"".join(
        [
            b"\x89RKT\r\n\x1a\n" + struct.pack("<IQdB", 1, 383, 0.5, 1),
            struct.pack("<Qqq", 16, 0, 1 + 2),
            struct.pack("<Q", 168),
            struct.pack(node, 0.5, 0.0, 3.0, 5, 0, 1, 2, -1, 1, 0.0),
            struct.pack(node, 0.0, 1.0, 0.0, 2, -1, -1, -1, -1, 0, 0.0),
            struct.pack(node, 0.0, 2.0, 0.0, 3, -1, -1, -1, -1, 0, 0.0),
            struct.pack("<Q", 0),
            struct.pack("<Qhh", 4, -1, 2),
            struct.pack("<Qdd", 16, 2.0, 7.0),
            struct.pack("<Q", 70)
            + b'{"feature_names": ["a", "\\u00e9"], "category_levels": {"1": ["x", 2]}}',
        ]
    )
    assert ensemble.to_bytes() == expected + hashlib.sha256(expected).digest()


def test_one_model_has_one_spelling():
    rng = np.random.default_rng(0)
    first = Ensemble.from_trees([reference.stump()], n_features=1)
    nodes = reference.stump()
    nodes["unused"] = 7
    nodes["cut"][1:] = np.nan
    nodes["left"][1:] = rng.integers(100, size=2)
    nodes["missing_left"][1:] = 3
    assert Ensemble.from_trees([nodes], n_features=1).to_bytes() == first.to_bytes()


def test_every_truncation_is_refused():
    data = three_trees().to_bytes()
    for n in range(len(data)):
        with pytest.raises(ValueError, match=r"truncated|not a ranktrees model"):
            Ensemble.from_bytes(data[:n])


def test_every_flipped_bit_is_refused():
    data = bytearray(three_trees().to_bytes())
    for bit in range(8 * len(data)):
        data[bit // 8] ^= 1 << bit % 8
        with pytest.raises(ValueError, match=r"checksum|truncated|too many|not a ranktrees model|version"):
            Ensemble.from_bytes(data)
        data[bit // 8] ^= 1 << bit % 8
    assert Ensemble.from_bytes(data) == three_trees()


@pytest.mark.parametrize(
    ("change", "message"),
    {
        "empty": (lambda b: b"", "not a ranktrees model"),
        "text": (lambda b: b"tree\nversion=v4\n", "not a ranktrees model"),
        "zeros": (lambda b: bytes(len(b)), "not a ranktrees model"),
        "BOM": (lambda b: b"\xef\xbb\xbf" + b, "not a ranktrees model"),
        "LF to CRLF": (lambda b: b.replace(b"\n", b"\r\n"), "not a ranktrees model"),
        "CRLF to LF": (lambda b: b.replace(b"\r\n", b"\n"), "not a ranktrees model"),
        "NUL at the end": (lambda b: b + b"\0", "1 bytes too many"),
        "twice": (lambda b: b + b, "bytes too many"),
        "later version": (lambda b: b[:8] + b"\x03" + b[9:], "format version 3, but this release reads"),
        "version 0": (lambda b: b[:8] + b"\x00" + b[9:], "format version 0"),
        "other checksum": (lambda b: b[:-1] + bytes([b[-1] ^ 1]), "checksum does not match"),
    }.values(),
)
def test_files_that_are_something_else(change, message):
    with pytest.raises(ValueError, match=message):
        Ensemble.from_bytes(change(three_trees().to_bytes()))


def changed_nodes(nodes, **fields):
    nodes = nodes.copy()
    for field, (i, value) in fields.items():
        nodes[field][i] = value
    return nodes


STUMPS = Ensemble.from_trees([reference.stump()] * 2, n_features=2, categories=[None, [1.0]])
BAD_NODES = {
    "child is itself": ({"left": (0, 0)}, "a child must come after its parent"),
    "child before": ({"left": (3, -1)}, "a child must come after its parent"),
    "child in the next tree": ({"right": (0, 3)}, "a child must come after its parent"),
    "child far away": ({"right": (3, 2**31 - 1)}, "tree 1, node 0: a child must come after its parent"),
    "same child twice": ({"right": (0, 1)}, "exactly one node"),
    "orphans": ({"feature": (0, -1)}, "exactly one node"),
    "feature too high": ({"feature": (0, 2)}, "tree 0, node 0: feature must be -1"),
    "feature too low": ({"feature": (1, -2)}, "tree 0, node 1: feature must be -1"),
    "cut is NaN": ({"cut": (3, np.nan)}, "tree 1, node 0: cut must not be NaN"),
    "value is NaN": ({"value": (4, np.nan)}, "tree 1, node 1: value must be finite"),
    "value is infinite": ({"value": (2, -np.inf)}, "value must be finite"),
    "gain is NaN": ({"gain": (0, np.nan)}, "gain must be finite"),
    "count": ({"count": (0, -1)}, "count must not be negative"),
    "missing_left": ({"missing_left": (0, 2)}, "missing_left must be 0 or 1"),
    "cover is NaN": ({"cover": (0, np.nan)}, "cover must be finite and not negative"),
    "cover below 0": ({"cover": (1, -1.0)}, "cover must be finite and not negative"),
    "no such bit set": ({"feature": (0, 1), "categories": (0, 0)}, "categories must be below 0"),
    "categories of another": ({"categories": (0, -2)}, "not zero"),
    "leaf with a cut": ({"cut": (1, 1.0)}, "not zero"),
    "unused byte": ({"unused": (0, 1)}, "not zero"),
}


@pytest.mark.parametrize("case", BAD_NODES)
def test_bad_nodes_are_refused(case):
    fields, message = BAD_NODES[case]
    head, sections = as_sections(STUMPS.to_bytes())
    nodes = np.frombuffer(sections[1], native.NODE)
    sections[1] = changed_nodes(nodes, **fields).tobytes()
    with pytest.raises(ValueError, match=message):
        Ensemble.from_bytes(as_model(head, sections))


def test_categorical_split_needs_categories_and_its_bit_set():
    ensemble = three_trees()
    split = np.flatnonzero(ensemble.nodes["categories"] >= 0)
    head, sections = as_sections(ensemble.to_bytes())
    bad = {
        "bit set of another": ("categories", split[:2], [1, 0], "not zero"),
        "feature without categories": ("feature", split[0], 0, "a categorical split on a feature without"),
        "past the last": ("categories", split[-1], len(split), f"categories must be below {len(split)}"),
    }
    for field, at, value, message in bad.values():
        nodes = np.frombuffer(sections[1], native.NODE).copy()
        nodes[field][at] = value
        with pytest.raises(ValueError, match=message):
            Ensemble.from_bytes(as_model(head, [sections[0], nodes.tobytes(), *sections[2:]]))
    with pytest.raises(ValueError, match="not zero"):
        Ensemble.from_bytes(as_model(head, [*sections[:2], sections[2] + bytes(32), *sections[3:]]))
    with pytest.raises(ValueError, match="not zero"):
        Ensemble.from_bytes(as_model(head, [*sections[:2], b"\xff" * len(sections[2]), *sections[3:]]))


def int64s(*values):
    return np.array(values, "<i8").tobytes()


BAD_SECTIONS = {
    "no offsets": (0, b"", "tree_offsets not empty"),
    "offsets begin late": (0, int64s(1, 3, 6), "tree_offsets must rise from 0"),
    "offsets fall": (0, int64s(0, 6, 3, 6), "tree_offsets must rise from 0"),
    "empty tree": (0, int64s(0, 3, 3, 6), "tree_offsets must rise from 0"),
    "offsets end early": (0, int64s(0, 3), "tree_offsets must rise from 0"),
    "offsets wrap around": (0, int64s(0, 2**63 - 1, -(2**63), 6), "tree_offsets must rise from 0"),
    "trees cut elsewhere": (0, int64s(0, 2, 6), "tree 0, node 0: a child must come"),
    "half an offset": (0, int64s(0, 3, 6)[:-4], "tree offsets has 20 bytes, expected a multiple of 8"),
    "a node too few": (1, lambda b: b[:-56], "tree_offsets must rise from 0"),
    "half a node": (1, lambda b: b[:-28], "nodes has 308 bytes, expected a multiple of 56"),
    "half a bit set": (2, bytes(16), "bit sets has 16 bytes, expected a multiple of 32"),
    "no features": (3, b"", "the features have 0 categories, but the file has 1"),
    "fewer features": (3, struct.pack("<h", 1), None),
    "categories below none": (3, struct.pack("<hh", -2, 1), "the features have 1 categories"),
    "more categories": (3, struct.pack("<hh", -1, 2**15 - 1), "the features have 32767 categories, but"),
    "category is NaN": (4, struct.pack("<d", np.nan), "finite and rising"),
    "category is -0.0": (4, struct.pack("<d", -0.0), "not zero"),
    "fewer categories": (4, b"", "the features have 1 categories, but the file has 0"),
}


@pytest.mark.parametrize("case", BAD_SECTIONS)
def test_bad_sections_are_refused(case):
    i, section, message = BAD_SECTIONS[case]
    head, sections = as_sections(STUMPS.to_bytes())
    sections[i] = section(sections[i]) if callable(section) else section
    data = as_model(head, sections)
    if message is None:
        assert Ensemble.from_bytes(data).to_bytes() == data
    else:
        with pytest.raises(ValueError, match=message):
            Ensemble.from_bytes(data)


@pytest.mark.parametrize(
    ("counts", "values", "message"),
    [
        ((2, -1), [2.0, 1.0], "finite and rising"),
        ((2, -1), [1.0, 1.0], "finite and rising"),
        ((257, -1), np.arange(257.0), "not written by ranktrees"),
        ((256, -1), np.arange(256.0), None),
        ((0, -1), [], None),
        ((), [], "n_features must be between 1"),
    ],
)
def test_categories(counts, values, message):
    head, sections = as_sections(STUMPS.to_bytes())
    sections[3:5] = np.array(counts, "<i2").tobytes(), np.array(values, "<f8").tobytes()
    data = as_model(head, sections)
    if message is None:
        assert len(Ensemble.from_bytes(data).categories[0]) == counts[0]
    else:
        with pytest.raises(ValueError, match=message):
            Ensemble.from_bytes(data)


def columns(names=None, levels=MappingProxyType({})):
    return json.dumps({"feature_names": names, "category_levels": dict(levels)})


BAD_COLUMNS = {
    "nothing": ("", "the section of columns has no names and levels"),
    "no JSON": ("{", "the section of columns has no names and levels"),
    "not ASCII": ('"é"', "the section of columns has no names and levels"),
    "a list": ("[]", "the section of columns has no names and levels"),
    "one of two": ('{"feature_names": null}', "the section of columns has no names and levels"),
    "too deep": ("[" * 200_000, "the section of columns has no names and levels"),
    "more": (columns()[:-1] + ', "more": 1}', "not zero"),
    "no link": (columns()[:-1] + ', "link": null}', "not zero"),
    "a link of later": (columns()[:-1] + ', "link": "probit"}', "link='probit'; expected .* a newer one"),
    "a link that is a list": (columns()[:-1] + ', "link": ["logistic"]}', r"link=\['logistic'\]; expected"),
    "a link before": ('{"link": "poisson", ' + columns()[1:], "not zero"),
    "other spaces": (columns().replace(" ", ""), "not zero"),
    "other escapes": (columns(["a", "b"]).replace("a", r"\u0061", 1), "not zero"),
    "UTF-16": (columns().encode("utf-16"), "the section of columns has no names and levels"),
    "too few names": (columns(["a"]), "feature_names has 1 entries, expected 2, one per feature"),
    "too many names": (columns(["a", "b", "c"]), "feature_names has 3 entries, expected 2"),
    "a name twice": (columns(["a", "a"]), "feature_names has 'a' twice, expected each once"),
    "no string": (columns(["a", 1]), "feature_names has 1, expected strings"),
    "a list as a name": (columns(["a", []]), r"feature_names has \[\], expected strings"),
    "names are a number": (columns(2), "the section of columns has no names and levels"),
    "names are a string": (columns("ab"), "not zero"),
    "names are a mapping": (columns({"a": 1, "b": 2}), "not zero"),
    "levels of no feature": (columns(None, {"2": []}), "category_levels has a feature 2, expected 0 to 1"),
    "levels below": (columns(None, {"-1": []}), "category_levels has a feature -1, expected 0 to 1"),
    "feature is no number": (columns(None, {"a": []}), "the section of columns has no names and levels"),
    "feature spelt otherwise": (columns(None, {"01": []}), "not zero"),
    "features fall": (columns(None, {"1": [], "0": []}), "not zero"),
    "levels are a list": (columns().replace("{}", "[]"), "the section of columns has no names and levels"),
    "levels are a number": (columns(None, {"1": 3}), "the section of columns has no names and levels"),
    "level twice": (columns(None, {"1": ["a", "a"]}), r"category_levels\[1\] has 'a' twice"),
    "level is equal": (columns(None, {"1": [1, True]}), r"category_levels\[1\] has True twice"),
    "level is none": (columns(None, {"1": [None]}), r"has None, expected strings, booleans"),
    "level is a list": (columns(None, {"1": [[]]}), r"has \[\], expected strings, booleans"),
    "level is NaN": (columns(None, {"1": [np.nan]}), r"has nan, expected strings, booleans"),
    "level is infinite": (columns(None, {"1": [np.inf]}), r"has inf, expected strings, booleans"),
    "level is too large": (columns(None, {"1": [3]}).replace("3", "3" * 9999), "no names and levels"),
    "level spelt otherwise": (columns(None, {"1": [1.5]}).replace("1.5", "1.50"), "not zero"),
}


@pytest.mark.parametrize("case", BAD_COLUMNS)
def test_bad_columns_are_refused(case):
    section, message = BAD_COLUMNS[case]
    head, sections = as_sections(STUMPS.to_bytes())
    sections[5] = section if isinstance(section, bytes) else section.encode()
    with pytest.raises(ValueError, match=message):
        Ensemble.from_bytes(as_model(head, sections))


@pytest.mark.parametrize(
    ("opening", "item", "closing"),
    [
        ('{"feature_names": [', "{}", "]}"),
        ('{"category_levels": {"0": [', "[]", "]}}"),
        ("[", '{"":[]}', "]"),
    ],
)
def test_columns_take_little_memory_whatever_they_are(opening, item, closing):
    head, sections = as_sections(STUMPS.to_bytes())
    sections[5] = (opening + ",".join([item] * 100_000) + closing).encode()
    data = as_model(head, sections)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="columns"):
            Ensemble.from_bytes(data)
        assert tracemalloc.get_traced_memory()[1] < 40 * len(data)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("section", range(6))
@pytest.mark.parametrize("size", [2**63, 2**64 - 1, 2**32, 2**40])
def test_huge_sizes_allocate_nothing(section, size):
    head, sections = as_sections(STUMPS.to_bytes())
    sizes = [len(each) for each in sections]
    sizes[section] = size
    data = as_model(head, sections, sizes)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="truncated: the section of"):
            Ensemble.from_bytes(data)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("categories", "most"),
    [(None, 15), ([], 20), ([1.0], 30)],
    ids=["not categorical", "no category", "one category"],
)
def test_features_without_trees_take_little_memory(categories, most):
    categories = None if categories is None else [categories] * 20_000
    data = Ensemble.from_trees([], n_features=20_000, categories=categories).to_bytes()
    tracemalloc.start()
    try:
        Ensemble.from_bytes(data)
        assert tracemalloc.get_traced_memory()[1] < most * len(data)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("section", "change", "message"),
    [
        (None, None, None),
        (2, lambda words: words[:-1], "words of bit sets, expected a multiple of"),
        (
            3,
            lambda counts: counts + np.array([0, 1]),
            "the features have 301 categories, but the file has 300",
        ),
        (5, lambda codes: codes[:-1], "the features have 300 categories, but the file has 299"),
        (5, lambda codes: codes + 1, r"groups\[1\] must be a code for each of its 300 categories"),
        (5, lambda codes: codes[::-1], "not written by ranktrees"),
    ],
)
def test_codes_of_many_categories(section, change, message):
    stump, sets = reference.stump(), np.full((1, 9), 2**32 - 1, np.uint32)
    stump["feature"][0], stump["categories"][0] = 1, 0
    listed = {"categories": [None, np.arange(300.0)], "groups": [None, np.minimum(np.arange(300), 260)]}
    head, sections = as_sections(Ensemble.from_trees([stump], [sets], n_features=2, **listed).to_bytes())
    if change is not None:
        dtype = {2: "<u4", 3: "<i4", 5: "<u2"}[section]
        sections[section] = change(np.frombuffer(sections[section], dtype)).astype(dtype).tobytes()
    data = as_model(head, sections)
    if message is None:
        assert Ensemble.from_bytes(data).groups[1].tolist() == listed["groups"][1].tolist()
    else:
        with pytest.raises(ValueError, match=message):
            Ensemble.from_bytes(data)


def test_wrong_number_of_sections():
    head, sections = as_sections(STUMPS.to_bytes())
    with pytest.raises(ValueError, match="8 bytes too many after the last section"):
        Ensemble.from_bytes(as_model(head, [*sections, b""]))
    with pytest.raises(ValueError, match="truncated: no room for the section of columns"):
        Ensemble.from_bytes(as_model(head, sections[:-1]))


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("base", np.nan, "base must be finite"),
        ("base", np.inf, "base must be finite"),
        ("average", 2, "not zero"),
    ],
)
def test_bad_head_is_refused(field, value, message):
    head, sections = as_sections(STUMPS.to_bytes())
    with pytest.raises(ValueError, match=message):
        Ensemble.from_bytes(as_model(head | {field: value}, sections))


def test_a_tree_as_deep_as_it_has_nodes():
    n_leaves = 20_001
    n = 2 * n_leaves - 1
    nodes = np.zeros(n, native.NODE)
    nodes["feature"], nodes["left"], nodes["right"], nodes["categories"] = -1, -1, -1, -1
    inner = np.arange(0, n - 1, 2)
    nodes["feature"][inner], nodes["left"][inner], nodes["right"][inner] = 0, inner + 1, inner + 2
    nodes["cut"][inner] = -np.inf
    nodes["value"][-1] = 1.0
    ensemble = Ensemble.from_bytes(Ensemble(nodes, [0, n], n_features=1).to_bytes())
    assert ensemble.depth == n_leaves - 1
    np.testing.assert_array_equal(ensemble.predict([[0.0]]), [1.0])


def test_save_and_load(tmp_path):
    ensemble, path = three_trees(), tmp_path / "model.rkt"
    ensemble.save(path)
    assert Ensemble.load(path) == ensemble
    assert Ensemble.load(str(path)) == ensemble
    assert hashlib.sha256(path.read_bytes()).hexdigest() == ensemble.digest()
    ensemble.first(1).save(path)
    assert Ensemble.load(path).n_trees == 1
    assert os.listdir(tmp_path) == ["model.rkt"]
    path.write_bytes(b"garbage")
    with pytest.raises(ValueError, match=r"model\.rkt: not a ranktrees model"):
        Ensemble.load(path)
    with pytest.raises(FileNotFoundError, match=r"there is no folder '.*nowhere'; expected"):
        ensemble.save(tmp_path / "nowhere" / "model.rkt")
    with pytest.raises(IsADirectoryError, match=r"path=.* is a folder; expected the path of a file"):
        ensemble.save(tmp_path)
    with pytest.raises(FileNotFoundError):
        Ensemble.load(tmp_path / "missing")


def test_save_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    ensemble, path = three_trees(), tmp_path / "model.rkt"
    ensemble.save(path)

    def fail(*args):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        ensemble.first(1).save(path)
    assert os.listdir(tmp_path) == ["model.rkt"]
    assert Ensemble.load(path) == ensemble


def test_save_through_a_link_keeps_the_link(tmp_path):
    target, link = tmp_path / "model.rkt", tmp_path / "latest"
    three_trees().save(target)
    link.symlink_to(target)
    three_trees().first(1).save(link)
    assert link.is_symlink()
    assert Ensemble.load(target).n_trees == 1
