"""How new rows differ from earlier ones, column by column."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from scipy.stats import ks_2samp

from ranktrees import Ensemble, HistGBRTRegressor, drift

N = 400
RNG = np.random.default_rng(0)
SITES = np.array(["de", "fr", "uk"])


def frame(n=N, sites=SITES, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "price": rng.normal(size=n),
            "stars": rng.integers(1, 6, n),
            "site": pd.Categorical(sites[rng.integers(0, len(sites), n)]),
            "text": sites[rng.integers(0, len(sites), n)],
        }
    )


def test_the_same_rows_do_not_differ():
    found = drift(frame(), frame().sample(frac=1, random_state=0))
    assert found.index.tolist() == ["price", "stars", "site", "text"]
    assert found["unseen_categories"].tolist() == [()] * 4
    assert (found[["missing_before", "missing", "unseen", "psi"]] == 0).all(axis=None)
    for name in ("outside", "ks"):
        assert (found[name][:2] == 0).all()
        assert found[name][2:].isna().all()


@pytest.mark.parametrize("convert", [lambda rows: rows, pl.from_pandas], ids=["pandas", "polars"])
def test_unseen_categories_are_named_and_counted(convert):
    new = frame(10)
    for name in ("site", "text"):
        new[name] = pd.Series(["uk", "xx", None, "yy", "yy", "uk", "yy", "de", "de", "xx"])
    new["site"] = new["site"].astype("category")
    found = drift(convert(frame()), convert(new))
    for name in ("site", "text"):
        assert found.loc[name, "unseen"] == 0.5
        assert found.loc[name, "unseen_categories"] == ("yy", "xx")
        assert found.loc[name, "missing"] == 0.1
        assert found.loc[name, "psi"] > 1


def test_numbers_are_compared_with_their_earlier_range_and_distribution():
    earlier, new = RNG.normal(size=(N, 2)), RNG.normal(0.5, size=(N // 2, 2))
    new[:20, 0], earlier[:40, 1], new[0, 1] = np.nan, np.nan, np.inf
    found = drift(earlier, new)
    assert found.index.tolist() == [0, 1]
    assert found["missing"].tolist() == [0.1, 0.0]
    assert found["missing_before"].tolist() == [0.0, 0.1]
    for j in range(2):
        old, now = (x[~np.isnan(x)] for x in (earlier[:, j], new[:, j]))
        assert found["outside"][j] == ((now < old.min()) | (now > old.max())).sum() / len(new)
        assert found["ks"][j] == ks_2samp(old, now).statistic
    assert (found["psi"] > 0.1).all()


def test_the_stability_index_is_that_of_its_formula():
    earlier = np.repeat([1.0, 2.0], [30, 10])[:, None]  # its deciles, and so the cuts, are 1 and 2
    new = np.array([1.0, 2.0, 2.0, np.nan])[:, None]
    # nothing lies above the second cut
    p, q = np.array([30, 10, 0, 0]) + 0.5, np.array([1, 2, 0, 1]) + 0.5
    p, q = p / p.sum(), q / q.sum()
    np.testing.assert_allclose(drift(earlier, new)["psi"], [((q - p) * np.log(q / p)).sum()])


def test_sparse_rows_are_those_of_dense_ones():
    earlier, new = (np.where(RNG.random((N, 5)) < 0.2, RNG.normal(size=(N, 5)), 0.0) for _ in range(2))
    pd.testing.assert_frame_equal(drift(sp.csr_array(earlier), sp.csr_array(new)), drift(earlier, new))


def test_a_model_knows_categories_alone(tmp_path):
    rows = frame().drop(columns="text")
    model = HistGBRTRegressor(max_iter=2).fit(rows, rows["price"])
    model.save(tmp_path / "model.rkt")
    new = rows[:4].assign(site=pd.Categorical(["uk", "xx", "de", None]), price=[1.0, np.nan, 2.0, 99.0])
    found = drift(model, new)
    pd.testing.assert_frame_equal(drift(Ensemble.load(tmp_path / "model.rkt"), new), found)
    with_rows = drift(rows, new)
    for name in ("missing", "unseen", "unseen_categories"):
        assert found[name].tolist() == with_rows[name].tolist()
    assert found["missing"].tolist() == [0.25, 0, 0.25]
    assert found["unseen_categories"]["site"] == ("xx",)
    for name in ("missing_before", "outside", "psi", "ks"):
        assert found[name].isna().all()
        assert with_rows[name].notna().any()


def test_columns_without_values():
    nothing, some = np.full((5, 1), np.nan), np.ones((5, 1))
    for earlier, new in ((nothing, some), (some, nothing), (nothing, nothing)):
        found = drift(earlier, new)
        assert np.isfinite(found["psi"]).all()
        assert found["ks"].isna().all()


@pytest.mark.parametrize(
    ("reference", "new", "error", "parts"),
    [
        (frame(), frame()[["site", "price", "stars", "text"]], ValueError, "same order"),
        (frame(), frame().assign(site=1), ValueError, "column 'site' of X holds 1"),
        (frame(), frame().to_numpy(), ValueError, "X is .* expected a data frame"),
        (np.ones((3, 2)), np.ones((3, 3)), ValueError, "3 features"),
        (frame().assign(day=pd.Timestamp(0)), frame(), ValueError, "column 'day' of reference holds dates"),
        ("rows", frame(), ValueError, "reference is 'rows'"),
        (pd.core, frame(), ValueError, "reference is"),
    ],
)
def test_what_cannot_be_compared_is_refused(reference, new, error, parts):
    with pytest.raises(error, match=parts):
        drift(reference, new)


def test_other_models_are_refused():
    from sklearn.linear_model import Ridge

    with pytest.raises(TypeError, match="model is a Ridge"):
        drift(Ridge(), np.ones((3, 2)))
