import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge

from ranktrees.measures import P
from ranktrees.support.spelling import spelt


def gain(label):
    return label


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.float64(0.1), 0.1),
        (np.arange(3.0), [0.0, 1.0, 2.0]),
        (pd.Series([1, 2]), (1, 2)),
        ([{0, 8}], [{8, 0}]),
        ({"b", "a"}, frozenset(["a", "b"])),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (Ridge(alpha=0.5), Ridge(0.5)),
        (lambda: 1, lambda: 1),
    ],
)
def test_equal_values_are_spelt_the_same(one, other):
    assert spelt(one) == spelt(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.zeros(2000), np.eye(1, 2000, 1000)[0]),
        (pd.Series(np.zeros(2000)), pd.Series(np.eye(1, 2000, 1000)[0])),
        (Ridge(tol=np.zeros(2000)), Ridge(tol=np.eye(1, 2000, 1000)[0])),
        (None, "None"),
        (["a", "b"], ["a, b"]),
        (P @ 1, P @ 2),
        (np.zeros(10**5), np.eye(1, 10**5, 50_000)[0]),
        (pd.DataFrame(np.zeros((200, 40))), pd.DataFrame(np.eye(200, 40, 5))),
        (Ridge(tol=sp.csr_array(np.zeros((200, 40)))), Ridge(tol=sp.csr_array(np.eye(200, 40, 5)))),
        (gain, spelt),
    ],
)
def test_others_are_told_apart(one, other):
    assert spelt(one) != spelt(other)


def test_large_arrays_are_short():
    rows = np.zeros(10**6)
    assert spelt(rows) == spelt(rows.copy())
    assert len(spelt(Ridge(tol=rows))) < 200


def test_nothing_of_one_process_is_told():
    class Thing:
        pass

    said = spelt([gain, {"x": (1, None)}, Thing()])
    assert said.startswith("[<function gain>, {'x': [1, None]}, <")
    assert "0x" not in said
    assert said == spelt([gain, {"x": (1, None)}, Thing()])
