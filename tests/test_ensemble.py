import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import Ridge

from ranktrees import (
    EnsembleRanker,
    HistGBRTRegressor,
    LambdaMARTRanker,
    make_ranking,
    refine_weights,
)
from ranktrees._core.model.trees import find_fault
from ranktrees._core.support.dtypes import NODE
from ranktrees.model.ensemble import Ensemble, Trees
from reference import scoring as reference


def random_ensemble(seed, *args, **others):
    return reference.random_ensemble(np.random.default_rng(seed), *args, **others)


def rows(seed, ensemble, n_rows=50):
    return reference.random_rows(np.random.default_rng(seed), ensemble, n_rows)


def test_from_trees_puts_trees_and_bit_sets_together():
    rng = np.random.default_rng(0)
    categories = [None, [1.0, 2.0, 5.0]]
    trees, bitsets = zip(*[reference.random_tree(rng, 9, categories, [0.5]) for _ in range(6)], strict=True)
    together = Ensemble.from_trees(trees, bitsets, n_features=2, categories=categories)
    alone = [
        Ensemble.from_trees([nodes], [bits], n_features=2, categories=categories)
        for nodes, bits in zip(trees, bitsets, strict=True)
    ]
    assert len(together) == together.n_trees == 6
    X = rows(1, together)
    np.testing.assert_array_equal(together.leaves(X), np.hstack([one.leaves(X) for one in alone]))
    with pytest.raises(ValueError, match="bitsets has 5 entries, expected 6, one per tree"):
        Ensemble.from_trees(trees, bitsets[:5], n_features=2, categories=categories)
    few = [bits[:-1] for bits in bitsets]
    with pytest.raises(ValueError, match=r"tree 0: categories must be below \d+, its number of bit sets"):
        Ensemble.from_trees(trees, few, n_features=2, categories=categories)


def test_trees_become_ensembles_while_more_come():
    rng = np.random.default_rng(2)
    others = {"n_features": 2, "categories": [None, [1.0, 2.0, 5.0]]}
    pairs = [reference.random_tree(rng, size, others["categories"], [0.5]) for size in (1, 40, 9, 3, 30, 5)]
    pairs = [(nodes, np.concatenate([bits[:1], bits])) for nodes, bits in pairs]  # one set is nobody's
    for nodes, _ in pairs:
        nodes["categories"][nodes["categories"] >= 0] += 1
    trees, ensembles = Trees(2), []
    for nodes, bits in pairs:
        trees.append(nodes, bits)
        ensembles.append(trees.ensemble(**others))
    for n, ensemble in enumerate(ensembles, start=1):
        assert ensemble == Ensemble.from_trees(*zip(*pairs[:n], strict=True), **others)
        assert ensemble == Ensemble.from_trees(*zip(*list(trees)[:n], strict=True), **others)
        assert not ensemble.nodes.flags.writeable
    assert trees[-1][0].tobytes() == trees[5][0].tobytes()


def test_what_was_written_stays_as_more_memory_is_got():
    rng, trees, written = np.random.default_rng(0), Trees(3), []
    for size in rng.integers(1, 900, 40):
        nodes = np.zeros(size, NODE)
        nodes["feature"], nodes["value"] = -1, rng.normal(size=size)
        trees.append(nodes)
        written.append(nodes.tobytes())
    assert [nodes.tobytes() for nodes, _ in trees] == written


@pytest.mark.parametrize("many", [False, True])
def test_one_bit_set_per_categorical_node_in_order(many):
    ensemble = random_ensemble(1, 10, many=many)
    split = ensemble.nodes["categories"] >= 0
    np.testing.assert_array_equal(ensemble.nodes["categories"][split], np.arange(len(ensemble.bitsets)))
    for node in ensemble.nodes[split]:
        bits = ensemble.bitsets[node["categories"]]
        assert sum(int(word) << 32 * i for i, word in enumerate(bits)) < 2 ** int(
            ensemble.n_codes[node["feature"]]
        )


def test_codes_of_categories_have_one_form():
    """Of up to 256 categories each has its own; codes of more begin from 0 in the order of the categories."""
    for n, groups, expected in (
        (256, [1] * 100 + [0] * 156, None),
        (300, np.arange(300), None),
        (300, np.arange(300)[::-1], None),
        (300, [2] * 100 + [0] * 150 + [1] * 50, [0] * 100 + [1] * 150 + [2] * 50),
    ):
        stump, bitsets = reference.stump(), np.full((1, 10), 2**32 - 1, np.uint32)
        stump["categories"][0], bitsets[0, 0] = 0, 2**32 - 2  # code 0 goes right
        known = {"categories": [np.arange(float(n))], "groups": [groups]}
        ensemble = Ensemble(stump, [0, 3], n_features=1, bitsets=bitsets, **known)
        own = ensemble.groups[0]
        assert own is expected if expected is None else own.tolist() == expected
        assert ensemble.bitsets.shape[1] == (10 if expected is None and n == 300 else 8)
        np.testing.assert_array_equal(ensemble.goes_left(0), np.asarray(groups) != 0)
        assert Ensemble.from_bytes(ensemble.to_bytes()) == ensemble


@pytest.mark.parametrize("groups", [[0, 2, 0], [0, -1, 0], [0, 0], [0.0, 1.0, 0.0], None])
def test_codes_that_are_none_are_refused(groups):
    categories = [None if groups is None else np.arange(3.0)]
    with pytest.raises(ValueError, match=r"groups\[0\] must be a code for each of its"):
        Ensemble.from_trees([], n_features=1, categories=categories, groups=[groups or [0]])


def test_arrays_are_copied_and_read_only():
    stump, bitsets, categories = reference.stump(), np.ones((1, 8), np.uint32), [np.array([1.0, 2.0])]
    stump["categories"][0] = 0
    ensemble = Ensemble(stump, [0, 3], n_features=1, bitsets=bitsets, categories=categories)
    before = ensemble.digest()
    stump["value"], bitsets[:], categories[0][:] = 9.0, 0, 7.0
    assert ensemble.digest() == before
    for array in (ensemble.nodes, ensemble.tree_offsets, ensemble.bitsets, ensemble.categories[0]):
        assert not array.flags.writeable


def test_trees_can_be_looked_at():
    ensemble = random_ensemble(2, 4)
    assert [len(tree) for tree in ensemble] == np.diff(ensemble.tree_offsets).tolist()
    assert all(tree.n_leaves == (len(tree) + 1) // 2 for tree in ensemble)
    assert max(tree.depth for tree in ensemble) == ensemble.depth
    np.testing.assert_array_equal(ensemble[-1].nodes, ensemble[3].nodes)
    for t in (4, -5):
        with pytest.raises(IndexError):
            ensemble[t]
    with pytest.raises(TypeError, match=r"not by a slice; use first\(n\) or after\(n\) for several"):
        ensemble[1:]


def test_depth():
    assert Ensemble.from_trees([], n_features=1).depth == 0
    assert Ensemble.from_trees([reference.stump()], n_features=1).depth == 1
    ensemble = random_ensemble(3, 5, 40)

    def depth(nodes, i=0):
        children = (nodes[i]["left"], nodes[i]["right"]) if nodes[i]["feature"] >= 0 else ()
        return max([1 + depth(nodes, child) for child in children], default=0)

    assert [tree.depth for tree in ensemble] == [depth(tree.nodes) for tree in ensemble]


def test_first():
    ensemble = random_ensemble(4, 6, base=0.5)
    X = rows(4, ensemble)
    np.testing.assert_array_equal(ensemble.first(4).leaves(X), ensemble.leaves(X)[:, :4])
    assert ensemble.first(6) == ensemble
    np.testing.assert_array_equal(ensemble.first(0).predict(X), np.full(50, 0.5))
    for n in (-1, 7):
        with pytest.raises(ValueError, match="n must be between 0 and the number of trees, 6"):
            ensemble.first(n)


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(0, 4),
    average=st.booleans(),
    n_features=st.integers(1, 5),
    many=st.tuples(st.booleans(), st.booleans()),
)
@settings(deadline=None, max_examples=40)
def test_extend(seed, n, average, n_features, many):
    one = random_ensemble(seed, 4, n_features=n_features, average=average, base=0.5, many=many[0])
    two = random_ensemble(seed + 1, n, n_features=n_features, average=average, base=0.5, many=many[1])
    before = one.digest(), two.digest()
    both = one.extend(two)
    assert (one.digest(), two.digest()) == before
    X = np.vstack([rows(seed, one), rows(seed, two)])
    np.testing.assert_array_equal(both.leaves(X), np.hstack([one.leaves(X), two.leaves(X)]))
    sums = (one.predict(X) - 0.5) * (4 if average else 1) + (two.predict(X) - 0.5) * (n if average else 1)
    expected = 0.5 + sums / (4 + n if average else 1)
    np.testing.assert_allclose(both.predict(X), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("average", [False, True])
def test_after_is_what_first_leaves_out(average):
    ensemble = random_ensemble(5, 6, base=0.5, average=average)
    for n in range(7):
        assert ensemble.first(n).extend(ensemble.after(n)) == ensemble
    assert ensemble.after(6).n_trees == 0
    assert ensemble.after(6).base == 0.5
    for n in (-1, 7):
        with pytest.raises(ValueError, match="n must be between 0 and the number of trees, 6"):
            ensemble.after(n)


def test_extend_refuses_what_does_not_fit():
    ensemble = random_ensemble(6)
    with pytest.raises(ValueError, match="other has n_features=5, expected 4"):
        ensemble.extend(random_ensemble(6, n_features=5))
    with pytest.raises(ValueError, match="other has average=True, expected False"):
        ensemble.extend(random_ensemble(6, average=True))
    with pytest.raises(ValueError, match=r"other has link='poisson', expected None"):
        ensemble.extend(random_ensemble(6).with_link("poisson"))
    with pytest.raises(ValueError, match=r"other has base=1\.0, expected 0\.0"):
        ensemble.extend(random_ensemble(6, base=1.0))
    one, two = (
        Ensemble.from_trees([], n_features=1, categories=[np.arange(4e4) + start]) for start in (0, 30_000)
    )
    with pytest.raises(ValueError, match=r"categories\[0\] must be a list of at most 65535 values"):
        one.extend(two)


@given(
    seed=st.integers(0, 2**32 - 1),
    sizes=st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=4),
    weighted=st.booleans(),
    many=st.booleans(),
)
@settings(deadline=None, max_examples=40)
def test_joined_is_the_weighted_sum(seed, sizes, weighted, many):
    """To the bit: bases are summed, then values of trees, each times its weight, over the number of trees."""
    rng = np.random.default_rng(seed)
    parts = [
        random_ensemble(rng.integers(2**32), n_trees, average=average, base=rng.normal(), many=many)
        for n_trees, average in sizes
    ]
    weights = rng.normal(size=len(parts)) if weighted else np.ones(len(parts))
    joined = Ensemble.joined(parts, weights if weighted else None)
    X = np.vstack([rows(seed, part) for part in parts])
    scores = np.zeros(len(X))
    for part, weight in zip(parts, weights, strict=True):
        scores += weight * part.base
    for part, weight in zip(parts, weights, strict=True):
        for tree, leaf in zip(part, part.leaves(X).T, strict=True):
            scores += weight * tree.nodes["value"][leaf] / (len(part) if part.average else 1)
    np.testing.assert_array_equal(joined.predict(X), scores)
    expected = sum(w * part.predict(X) for part, w in zip(parts, weights, strict=True))
    np.testing.assert_allclose(joined.predict(X), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(joined.leaves(X), np.hstack([part.leaves(X) for part in parts]))
    importances = sum(
        abs(w) * part.feature_importances() / (max(len(part), 1) if part.average else 1)
        for part, w in zip(parts, weights, strict=True)
    )
    np.testing.assert_allclose(joined.feature_importances(), importances, rtol=1e-9)
    np.testing.assert_array_equal(
        joined.feature_importances("split"), sum(part.feature_importances("split") for part in parts)
    )


def test_joined_does_not_care_how_it_is_bracketed():
    one, two, three = (random_ensemble(seed, 3, average=seed == 1, base=seed / 7) for seed in range(3))
    at_once = Ensemble.joined([one, two, three])
    assert Ensemble.joined([Ensemble.joined([one, two]), three]) == at_once
    assert Ensemble.joined([at_once]) == at_once
    assert Ensemble.joined([one]) == one
    assert Ensemble.from_bytes(at_once.to_bytes()) == at_once
    assert at_once.n_trees == 9


def test_joined_refuses_what_does_not_fit():
    one = random_ensemble(1)
    for ensembles, weights, message in (
        ([], None, "ensembles is empty, expected at least one"),
        ([one, random_ensemble(1, n_features=5)], None, r"ensembles have \[4, 5\] features"),
        ([one, one.with_link("logistic")], None, r"links \[None, 'logistic'\].*with_link\(None\)"),
        ([one, one], [1.0], r"weights=\[1.0\], expected 2 finite numbers, one per ensemble"),
        ([one], [np.inf], r"weights=\[inf\]"),
        ([one], 2.0, r"weights=2.0"),
        ([one], [1e308], "must be finite"),
    ):
        with pytest.raises(ValueError, match=message), np.errstate(over="ignore"):
            Ensemble.joined(ensembles, weights)
    with pytest.raises(TypeError, match=r"ensembles has a Ridge; expected an Ensemble: .*ensemble_"):
        Ensemble.joined([one, Ridge()])


def test_what_is_no_ensemble_no_number_and_no_path_is_told(tmp_path):
    ensemble = random_ensemble(0)
    for n in ("3", 2.5, True, None, -1, 6):
        for part in (ensemble.first, ensemble.after):
            with pytest.raises(
                ValueError, match=f"n must be between 0 and .*, 5, got {n!r}; expected a whole"
            ):
                part(n)
    model = EnsembleRanker(ensemble)
    with pytest.raises(
        TypeError, match="other is a EnsembleRanker; expected an Ensemble: for a fitted estimat"
    ):
        ensemble.extend(model)
    for alone in (ensemble, model):
        with pytest.raises(
            TypeError, match=r"ensembles is a Ensemble.*; expected several: pass a list of them"
        ):
            Ensemble.joined(alone)
    for ask in (ensemble.save, model.save, Ensemble.load):
        with pytest.raises(TypeError, match="path is a NoneType; expected the path of a file"):
            ask(None)
    for data in (None, "model.rkt"):
        with pytest.raises(
            TypeError, match=r"data is a .*; expected what to_bytes returned: .* use Ensemble.load"
        ):
            Ensemble.from_bytes(data)


def test_importances_of_trees_that_were_joined_with_a_weight_of_zero():
    X, y, qid = make_ranking(20, random_state=0, return_X_y_qid=True)
    one, other = (HistGBRTRegressor(max_iter=2, random_state=k).fit(X, y, qid=qid).ensemble_ for k in (0, 1))
    joined = Ensemble.joined([one, other], [2.0, 0.0])
    np.testing.assert_allclose(joined.feature_importances(), 2 * one.feature_importances())


def test_feature_importances():
    ensemble = random_ensemble(8, 10)
    gains, splits = np.zeros((2, 4))
    for node in ensemble.nodes:
        if node["feature"] >= 0:
            gains[node["feature"]] += node["gain"]
            splits[node["feature"]] += 1
    np.testing.assert_array_equal(ensemble.feature_importances(), gains)
    np.testing.assert_array_equal(ensemble.feature_importances("split"), splits)
    np.testing.assert_array_equal(Ensemble.from_trees([], n_features=3).feature_importances(), np.zeros(3))
    with pytest.raises(ValueError, match=r"kind must be 'gain' or 'split' .*, got 'cover'"):
        ensemble.feature_importances("cover")


def test_equality_hash_and_digest_are_those_of_the_content():
    one, same, other = random_ensemble(9), random_ensemble(9), random_ensemble(10)
    assert one == same
    assert hash(one) == hash(same)
    assert one.digest() == same.digest()
    assert one != other
    assert one.digest() != other.digest()
    assert one != "ensemble"


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickle_goes_through_the_checked_bytes(protocol):
    ensemble = random_ensemble(11)
    pickled = pickle.dumps(ensemble, protocol)
    assert pickle.loads(pickled) == ensemble
    data = ensemble.to_bytes()
    assert data in pickled or protocol < 3
    if protocol >= 3:
        with pytest.raises(ValueError, match="checksum does not match"):
            pickle.loads(pickled.replace(data, data[:-1] + bytes([data[-1] ^ 1])))
    assert copy.deepcopy(ensemble) == ensemble
    assert clone(ensemble, safe=False) is ensemble


def test_the_state_is_the_checked_bytes():
    ensemble = random_ensemble(11)
    state = ensemble.__getstate__()
    assert state == ensemble.to_bytes()
    restored = Ensemble.__new__(Ensemble)  # as skops restores an object
    restored.__setstate__(state)
    assert restored == ensemble
    assert not restored.nodes.flags.writeable
    with pytest.raises(ValueError, match="checksum does not match"):
        restored.__setstate__(state[:-1] + bytes([state[-1] ^ 1]))


def test_repr():
    assert repr(Ensemble.from_trees([reference.stump()], n_features=2, base=0.1)) == (
        "Ensemble(n_trees=1, n_nodes=3, depth=1, n_features=2, base=0.1, average=False)"
    )


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ({"n_features": 0}, "n_features must be between 1"),
        ({"base": np.nan}, "base must be finite"),
        ({"categories": [None, None]}, "categories has 2 entries, expected 1, one per feature"),
        ({"categories": [[2.0, 1.0]]}, r"categories\[0\] must be finite and rising"),
        ({"categories": [[[1.0]]]}, r"categories\[0\] must be a list"),
        (
            {"bitsets": np.zeros((1, 4), np.uint32)},
            r"bitsets must have shape \(n, 8\), or more words, got \(1, 4\)",
        ),
        ({"tree_offsets": [0, 2]}, "tree_offsets must rise from 0 to the number of nodes, 3"),
        ({"tree_offsets": 3}, "must be one-dimensional"),
        ({"nodes": np.zeros((3, 1), NODE)}, "must be one-dimensional"),
    ],
)
def test_constructor_refuses(others, message):
    arguments = {"nodes": reference.stump(), "tree_offsets": [0, 3], "n_features": 1} | others
    with pytest.raises(ValueError, match=message):
        Ensemble(**arguments)


def test_negative_zero_is_the_category_zero():
    stump = reference.stump()
    stump["categories"][0] = 0
    bitsets = np.zeros((1, 8), np.uint32)
    bitsets[0, 0] = 1
    ensemble = Ensemble(stump, [0, 3], n_features=1, bitsets=bitsets, categories=[[-0.0, 1.0]])
    np.testing.assert_array_equal(ensemble.leaves([[0.0], [-0.0], [1.0], [2.0]]), [[1], [1], [2], [1]])


@settings(deadline=None, max_examples=200)
@given(seed=st.integers(0, 10**6), n_changes=st.integers(0, 3))
def test_faults_are_found_where_there_are_some(seed, n_changes):
    rng = np.random.default_rng(seed)
    ensemble = reference.random_ensemble(rng, 3, 6)
    nodes, has_categories = ensemble.nodes.copy(), [each is not None for each in ensemble.categories]
    for _ in range(n_changes):
        field = rng.choice([name for name in NODE.names if name != "unused"])
        i, kind = rng.integers(len(nodes)), NODE[field].kind
        nodes[field][i] = rng.choice(
            [np.nan, np.inf, 2.5] if kind == "f" else [0, 1, 2, 3, 7] + [-1, -2] * (kind == "i")
        )
    fault = find_fault(
        nodes,
        ensemble.tree_offsets,
        len(ensemble.bitsets),
        np.array(has_categories, np.uint8),
        np.zeros(len(nodes), np.uint8),
    )
    trees = np.split(nodes, ensemble.tree_offsets[1:-1])
    sound = [
        reference.is_a_tree(tree, len(has_categories), len(ensemble.bitsets), has_categories)
        for tree in trees
    ]
    assert all(sound) if fault is None else fault[0] == sound.index(False)


# ------------------------------------------------------------------------------------ what columns are called


def test_columns_are_called_as_was_said():
    ensemble = random_ensemble(0, feature_names=np.array(list("abcd")), category_levels={3: [2, 1], 1: []})
    assert ensemble.feature_names == tuple("abcd")
    assert list(ensemble.category_levels.items()) == [(1, ()), (3, (2, 1))]
    assert {type(name) for name in ensemble.feature_names} == {str}
    with pytest.raises(TypeError):
        ensemble.category_levels[0] = ("a",)
    nameless = random_ensemble(0)
    assert nameless.feature_names is None
    assert nameless.category_levels == {}
    assert nameless != ensemble


@pytest.mark.parametrize(
    ("called", "message"),
    [
        ({"feature_names": list("abc")}, "feature_names has 3 entries, expected 4, one per feature"),
        ({"feature_names": list("abca")}, "feature_names has 'a' twice, expected each once"),
        ({"feature_names": [1, 2, 3, 4]}, "feature_names has 1, expected strings"),
        ({"feature_names": "abcd"}, "feature_names='abcd'; expected a name for each column, in their order"),
        ({"feature_names": set("abcd")}, r"feature_names=\{.*; expected a name for each column, in their"),
        ({"feature_names": dict.fromkeys("abcd")}, r"feature_names=\{.*; expected a name for each column"),
        ({"category_levels": {4: ["a"]}}, "category_levels has a feature 4, expected 0 to 3"),
        ({"category_levels": {"a": ["a"]}}, "category_levels has a feature 'a', expected 0 to 3"),
        (
            {"category_levels": {1: [(1, 2)]}},
            r"category_levels\[1\] has \(1, 2\), expected strings, booleans",
        ),
        ({"category_levels": {1: [np.nan]}}, r"category_levels\[1\] has nan, expected strings, booleans and"),
        ({"category_levels": {1: ["a", "a"]}}, r"category_levels\[1\] has 'a' twice, expected each once"),
    ],
)
def test_columns_that_cannot_be_called_so(called, message):
    with pytest.raises(ValueError, match=message):
        random_ensemble(0, **called)


def test_what_is_made_of_an_ensemble_has_its_columns():
    called = {"feature_names": list("abcd"), "category_levels": {1: ["fr", "uk"]}}
    ensemble = random_ensemble(1, 6, **called)
    frame = pd.DataFrame(rows(1, ensemble), columns=list("abcd")).assign(b=["fr", "uk"] * 25)
    for other in (
        ensemble.first(2),
        ensemble.first(0),
        ensemble.after(2),
        ensemble.extend(ensemble),
        ensemble.extend(random_ensemble(2, 3)),
        ensemble.extend(random_ensemble(2, 0)),
        random_ensemble(2, 0).extend(ensemble),
        Ensemble.joined([ensemble]),
        Ensemble.joined([random_ensemble(2, 3), ensemble], [0.5, -0.5]),
        refine_weights(ensemble, frame, np.arange(50) % 3),
        copy.copy(ensemble),
        copy.deepcopy(ensemble),
        pickle.loads(pickle.dumps(ensemble)),
        Ensemble.from_trees(
            [tree.nodes for tree in random_ensemble(1, categorical=False)], n_features=4, **called
        ),
    ):
        assert other.feature_names == tuple("abcd")
        assert other.category_levels == {1: ("fr", "uk")}


def test_columns_of_ensembles_that_are_joined_agree():
    one = random_ensemble(1, feature_names=list("abcd"), category_levels={1: ["fr", "uk"]})
    other = random_ensemble(2, feature_names=list("abdc"))
    codes = random_ensemble(2, category_levels={1: ["de", "fr"]})
    for join in (
        one.extend,
        lambda each: Ensemble.joined([one, each]),
        lambda each: Ensemble.joined([each, one]),
    ):
        with pytest.raises(
            ValueError, match=r"have the columns \['a'.* and \['a'.*; expected the same, in the"
        ):
            join(other)
        with pytest.raises(
            ValueError, match=r"have the levels \('.* and \('.*\) of feature 1; .*average joins"
        ):
            join(codes)
    more = Ensemble.joined([other, random_ensemble(3, category_levels={2: ["x"]}), codes])
    assert more.feature_names == tuple("abdc")
    assert more.category_levels == {1: ("de", "fr"), 2: ("x",)}


@pytest.mark.parametrize("frame_of", [pd.DataFrame, pl.DataFrame, pa.table])
def test_columns_of_frames_are_compared(frame_of):
    ensemble = random_ensemble(1, categorical=False, feature_names=list("abcd"))
    X = rows(1, ensemble)
    frame = frame_of({name: X[:, j] for j, name in enumerate("abcd")})
    turned = frame_of({name: X[:, "abcd".index(name)] for name in "badc"})
    for method in (ensemble.predict, ensemble.leaves, lambda X: next(ensemble.staged_predict(X))):
        np.testing.assert_array_equal(method(frame), method(X))
        with pytest.raises(ValueError, match=r"X has the columns \['b', 'a', .* was trained on \['a', 'b'"):
            method(turned)
    np.testing.assert_array_equal(ensemble.predict(pd.DataFrame(X)), ensemble.predict(X))
    assert len(ensemble.first(0)._with_columns(None, {}).predict(turned)) == 50


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"])
def test_frames_are_read_as_by_the_estimator(make):
    X, y, qid = make_ranking(40, rows_per_query=15, n_features=3, random_state=0, return_X_y_qid=True)
    shops = (y + np.arange(len(y)) % 2) % 3
    columns = {"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "shop": np.array(["tea", "ale", "rum"])[shops]}
    frame = pd.DataFrame(columns).astype({"shop": "category"})
    model = LambdaMARTRanker(max_iter=20, random_state=0).fit(frame, y, qid=qid)
    ensemble, rows = model.ensemble_, make({**columns, "shop": frame["shop"]})
    numbers = frame.assign(shop=frame["shop"].cat.codes).to_numpy(np.float64)
    np.testing.assert_array_equal(ensemble.predict(rows), model.predict(frame))
    np.testing.assert_array_equal(ensemble.leaves(rows), ensemble.leaves(numbers))
    for by_rows, by_numbers in zip(
        ensemble.staged_predict(rows), ensemble.staged_predict(numbers), strict=True
    ):
        np.testing.assert_array_equal(by_rows, by_numbers)
    by_frame, by_rows = (refine_weights(of, X, y, qid=qid) for of, X in ((model, frame), (ensemble, rows)))
    assert by_frame == by_rows


def test_numbers_in_a_frame_are_looked_up_where_there_are_levels():
    X, y, qid = make_ranking(40, rows_per_query=15, n_features=3, random_state=0, return_X_y_qid=True)
    numbers = pd.DataFrame(X.astype(float), columns=list("abc")).assign(
        shop=(y + np.arange(len(y)) % 2) % 3 + 10.0
    )
    model = LambdaMARTRanker(max_iter=20, random_state=0).fit(
        numbers.astype({"shop": "category"}), y, qid=qid
    )
    np.testing.assert_array_equal(model.ensemble_.predict(numbers), model.predict(numbers))


NAMES = {"feature_names": list("abcd")}


@pytest.mark.parametrize(
    ("own", "given", "message"),
    [
        ({}, {"feature_names": ["a"]}, "feature_names has 1 entries, expected 4, one per feature"),
        (NAMES, {"feature_names": ["a"]}, "feature_names has 1 entries, expected 4"),
        ({}, {"feature_names": list("abca")}, "feature_names has 'a' twice, expected each once"),
        ({}, {"feature_names": "abcd"}, r"feature_names.*'abcd'"),
        ({}, {"feature_names": 4}, r"feature_names.* 4|feature_names=4"),
        ({}, {"feature_names": set("abcd")}, r"feature_names=\{.*; expected a name for each column"),
        (
            {},
            {"category_levels": {"zzz": ["u"]}},
            "category_levels names 'zzz', but .* or feature_names, too",
        ),
        (
            NAMES,
            {"feature_names": list("abdc")},
            r"feature_names=\['a', .*, but the columns of the trees are called \['a', 'b', .*, "
            "in which 'd' has another place",
        ),
        (
            NAMES,
            {"feature_names": list("bxyz")},
            "'b' has another place; expected names in that order",
        ),
        ({}, {"category_levels": {4: ["u"]}}, "category_levels has the index 4, .* from 0 to 3"),
        (NAMES, {"category_levels": {"zzz": ["u"]}}, "category_levels names 'zzz', which is not a feature"),
        (NAMES, {"category_levels": {99: ["u"]}}, "category_levels has the index 99"),
        (
            NAMES,
            {"category_levels": {"b": ["u"], 1: ["u"]}},
            "category_levels has feature 1 twice, as 'b' and as 1",
        ),
        ({}, {"category_levels": {1: "uv"}}, r"category_levels\[1\]='uv'; expected .*: pass a list of them"),
        ({}, {"category_levels": {1: {"u", "v"}}}, r"category_levels\[1\]=\{.*: pass a list of them"),
        ({}, {"category_levels": {1: 7}}, r"category_levels\[1\]=7; expected"),
        (
            {},
            {"category_levels": {1: ["u", "u"]}},
            r"category_levels\[1\] has 'u' twice, expected each once",
        ),
        (
            {},
            {"category_levels": {1: ["u", None]}},
            r"category_levels\[1\] has None, expected hashable levels: missing values have no code",
        ),
        (
            {},
            {"category_levels": {1: [["u"]]}},
            r"category_levels\[1\] has \['u'\], expected hashable",
        ),
        ({}, {"category_levels": ["u"]}, r"category_levels.*\['u'\]"),
        (
            NAMES | {"category_levels": {1: ["u", "v"]}},
            {"category_levels": {"b": ["v", "u"]}},
            r"category_levels\['b'\]=\('v', 'u'\), but the ensemble has \('u', 'v'\); expected the same",
        ),
    ],
)
def test_what_a_ranker_is_told_of_columns_is_checked_as_it_is_used(own, given, message):
    ensemble = random_ensemble(1, categorical=False, **own)
    X = rows(1, ensemble)
    ranker = clone(EnsembleRanker(ensemble, **given))
    X = pd.DataFrame(X, columns=list("abcd")) if own else X
    for method in (ranker.fit, ranker.predict):
        with pytest.raises(ValueError, match=message):
            method(X)


def test_a_ranker_may_call_columns_otherwise(tmp_path):
    ensemble = random_ensemble(1, categorical=False, **NAMES)
    X, names = rows(1, ensemble), ["a", "number of b", "c", "d"]
    frame = pd.DataFrame(X, columns=names)
    ranker = EnsembleRanker(ensemble, feature_names=names, category_levels={"number of b": [3.0, 5.0]})
    numbers = frame["number of b"].map({3.0: 0.0, 5.0: 1.0})
    expected = ensemble.predict(frame.assign(**{"number of b": numbers}).to_numpy())
    np.testing.assert_array_equal(ranker.fit(frame).predict(frame), expected)
    ranker.save(tmp_path / "model.rkt")
    assert Ensemble.load(tmp_path / "model.rkt").feature_names == tuple(names)
    known = EnsembleRanker(ensemble._with_columns(names, {}))
    joined = EnsembleRanker.average([EnsembleRanker(ensemble, feature_names=names), known])
    np.testing.assert_allclose(joined.predict(frame), ensemble.predict(X))
    with pytest.raises(ValueError, match="feature names should match"):
        ranker.predict(pd.DataFrame(X, columns=list("abcd")))


@pytest.mark.parametrize("by", [1, "b"])
@pytest.mark.parametrize("whose", ["own", "given"])
@pytest.mark.parametrize("as_", [list, tuple, np.array, pd.Index, pd.Series])
def test_levels_by_the_name_of_a_column(by, whose, as_):
    names, levels = list("abcd"), ["uk", "fr"]
    ensemble = random_ensemble(1, categorical=False, feature_names=names if whose == "own" else None)
    told = {"category_levels": {by: as_(levels)}, "feature_names": names if whose == "given" else None}
    X = rows(1, ensemble)
    X[:, 1] = np.arange(len(X)) % 2
    frame = pd.DataFrame(X, columns=names).assign(b=pd.Categorical(np.array(levels)[X[:, 1].astype(int)]))
    ranker = EnsembleRanker(ensemble, **told).fit(frame)
    np.testing.assert_array_equal(ranker.predict(frame), ensemble.predict(X))
    assert ranker.category_levels is told["category_levels"]
    restored = EnsembleRanker(ensemble, feature_names=names, category_levels={1: levels})
    assert ranker._category_levels == restored._category_levels == {1: ("uk", "fr")}


def test_levels_of_numpy_are_saved(tmp_path):
    ranker = EnsembleRanker(random_ensemble(1), category_levels={0: np.array([30, 10]), 3: np.array(["a"])})
    ranker.save(tmp_path / "model.rkt")
    assert Ensemble.load(tmp_path / "model.rkt").category_levels == {0: (30, 10), 3: ("a",)}


def test_levels_may_be_those_of_another_ensemble():
    one, other = random_ensemble(1), random_ensemble(1, category_levels={3: ["u", "v"]})
    ranker = EnsembleRanker(one, category_levels=other.category_levels)
    assert ranker._category_levels == {3: ("u", "v")}
    ranker._validate_params()
