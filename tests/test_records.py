"""Scores of records, and a service that gives them."""

import json
import pickle
import runpy
import time
import urllib.error
import urllib.request
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from threading import Thread
from types import MappingProxyType

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge

from ranktrees import (
    AveragedRanker,
    Ensemble,
    EnsembleRanker,
    HistGBRTClassifier,
    HistGBRTRegressor,
    LambdaMARTRanker,
    OrdinalRanker,
    RandomForestRanker,
    RecordScorer,
)

SERVICE = Path(__file__).parent.parent / "examples" / "service.py"
SMALL = {"random_state": 0, "n_jobs": 1, "min_samples_leaf": 3, "max_leaf_nodes": 8}
SITES, SIZES, STARS = ("de", "fr", "uk"), ("S", "M", "L"), (1, 2, 5)


def some_frame(n_rows=240, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n_rows, 3)).round(1), columns=["price", "age", "clicks"])
    frame["new"] = rng.random(n_rows) < 0.5
    frame["site"] = pd.Categorical(rng.choice(SITES, n_rows))
    frame["size"] = pd.Categorical(rng.choice(SIZES, n_rows), SIZES, ordered=True)
    frame["stars"] = pd.Categorical(rng.choice(STARS, n_rows))
    frame.loc[::5, ["price", "site", "stars"]] = None
    y = frame["price"].fillna(0) + (frame["site"] == "uk") + (frame["size"] != "M") + (frame["stars"] == 2)
    labels = np.clip(np.round(y + rng.normal(0, 0.3, n_rows) + 1), 0, 4).to_numpy()
    return frame, labels, np.arange(n_rows) // 12


@pytest.fixture(scope="module")
def rows():
    """A frame, labels and query ids; do not change them."""
    return some_frame()


@pytest.fixture(scope="module")
def ranker(rows):
    frame, y, qid = rows
    return LambdaMARTRanker(max_iter=12, **SMALL).fit(frame, y, qid=qid)


@pytest.fixture(scope="module")
def score(ranker):
    return RecordScorer(ranker)


def predicted(model, records, method="predict"):
    """What the model predicts for a data frame of the records."""
    names = list(model.feature_names_in_)
    frame = pd.DataFrame(records, columns=names, dtype=object)
    numbers = [name for j, name in enumerate(names) if j not in model._category_levels]
    return getattr(model, method)(frame.astype(dict.fromkeys(numbers, float)))


NUMBERS = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats() | st.floats(width=32)
RECORDS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "price": NUMBERS,
            "age": NUMBERS | st.floats(-2, 2).map(np.float32),
            "clicks": NUMBERS | st.integers(-3, 3).map(np.int64),
            "new": NUMBERS | st.booleans().map(np.bool_),
            "site": st.sampled_from([*SITES, np.str_("uk"), "unseen", "", None, float("nan"), pd.NA]),
            "size": st.sampled_from([*SIZES, "XL", None]),
            "stars": st.sampled_from([*STARS, 2.0, True, np.int64(5), 3, -1, None]),
        },
    ),
    max_size=6,
)


@given(RECORDS, st.randoms(use_true_random=False))
@settings(max_examples=60)
def test_scores_are_those_of_a_data_frame(ranker, score, records, random):
    shuffled = [dict(random.sample(list(record.items()), len(record))) for record in records]
    scores = score(shuffled)
    assert scores.dtype == np.float64
    assert scores.shape == (len(records),)
    lists = [[record.get(name) for name in ranker.feature_names_in_] for record in records]
    assert_array_equal(score(lists), scores)
    if records:
        assert_array_equal(scores, predicted(ranker, records))


MODELS = {
    "LambdaMARTRanker": lambda: LambdaMARTRanker(max_iter=4, **SMALL),
    "AveragedRanker": lambda: AveragedRanker("fast", max_iter=3, random_state=0, n_jobs=1),
    "RandomForestRanker": lambda: RandomForestRanker(n_estimators=4, **SMALL),
    "squared_error": lambda: HistGBRTRegressor(max_iter=4, **SMALL),
    "poisson": lambda: HistGBRTRegressor("poisson", max_iter=4, **SMALL),
    "two classes": lambda: HistGBRTClassifier(max_iter=4, **SMALL),
    "several classes": lambda: HistGBRTClassifier(max_iter=4, **SMALL),
    "init": lambda: LambdaMARTRanker(max_iter=2, init=HistGBRTRegressor(max_iter=2, **SMALL), **SMALL),
    "ensemble": None,
    "frozen": lambda: LambdaMARTRanker(max_iter=4, **SMALL),
}


@pytest.mark.parametrize("kind", MODELS)
def test_every_tree_model_scores_records(rows, ranker, kind):
    frame, y, qid = rows
    if kind == "ensemble":
        given_ = Ensemble.from_bytes(ranker.ensemble_.to_bytes())
        model = EnsembleRanker(given_)
    else:
        labels = y > 1 if kind == "two classes" else y
        model = given_ = MODELS[kind]().fit(frame, labels, qid=qid)
    if kind == "frozen":
        given_ = FrozenEstimator(model)
    records = [{"price": 1, "site": "uk"}, {"size": "L"}, *frame[:20].to_dict("records")]
    methods = ["predict"]
    if isinstance(model, HistGBRTClassifier):
        methods += ["predict_proba", "decision_function"]
    for method in methods:
        one = RecordScorer(given_, method=method)
        expected = predicted(model, records, method)
        assert_array_equal(one(records), expected)
        assert one([]).shape == (0, *expected.shape[1:])
        assert_array_equal(pickle.loads(pickle.dumps(one))(records), expected)


def test_a_model_without_names_scores_lists(rows):
    frame, y, qid = rows
    X = frame[["price", "age", "clicks"]].to_numpy(np.float32)
    model = LambdaMARTRanker(max_iter=4, categorical_features=[1], **SMALL).fit(X, y, qid=qid)
    score = RecordScorer(model)
    for records in (X.tolist(), list(map(tuple, X.tolist())), X, list(X)):
        assert_array_equal(score(records), model.predict(X))
    with pytest.raises(ValueError, match=r"record 1 is a dict.*names of its columns.*list of 3 values"):
        score([[1, 2, 3], {"price": 1}])
    named = EnsembleRanker(model.ensemble_, feature_names=["a", "b", "c"])
    assert_array_equal(RecordScorer(named)([{"b": 2}]), model.predict([[None, 2, None]]))


def test_names_that_are_numbers(rows):
    frame, y, qid = rows
    for names in ([0, 1, 2], [7, 5, 3]):
        X = frame[["price", "age", "clicks"]].set_axis(names, axis=1)
        model = LambdaMARTRanker(max_iter=4, **SMALL).fit(X, y, qid=qid)
        assert_array_equal(RecordScorer(model)(X.to_dict("records")), model.predict(X))


class Site(StrEnum):
    UK = "uk"


@pytest.mark.parametrize(
    "record",
    [
        OrderedDict(price=1.5, site="uk"),
        MappingProxyType({"price": 1.5, "site": "uk"}),
        pd.Series({"price": 1.5, "site": "uk"}),
        {"price": Decimal("1.5"), "site": Site.UK},
        {"price": np.float16(1.5), "site": np.str_("uk"), "age": pd.NA, "size": pd.NA, "stars": np.nan},
        (1.5, None, None, None, "uk", None, None),
        np.array([1.5, None, None, None, "uk", None, None], object),
    ],
)
def test_records_and_values_of_other_types(score, record):
    assert_array_equal(score([record]), score([{"price": 1.5, "site": "uk"}]))
    assert_array_equal(score(iter([record])), score((record,)))


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"pric": 1.0}, "record 1 has the key 'pric'.*nearest is 'price'.*ignore="),
        ({"price": 1.0, "id": 3}, "record 1 has the key 'id', which is no column"),
        ({"price": "1.0"}, "'price' of record 1 holds '1.0'; expected a number"),
        ({"price": b"1.0"}, "'price' of record 1 holds b'1.0'; expected a number"),
        ({"price": 2**53 + 1}, "'price' of record 1 holds the integer 9007199254740993"),
        ({"price": -(2**70)}, "'price' of record 1 holds the integer -1180591620717411303424"),
        ({"price": np.int64(2**53 + 1)}, "'price' of record 1 holds the integer 9007199254740993"),
        ({"price": [1.0, 2.0]}, "'price' of record 1 holds several values"),
        ({"price": {"eur": 1}}, "'price' of record 1 holds <dict of length 1>; expected numbers"),
        ({"price": 1j}, "'price' of record 1 holds 1j; expected numbers"),
        ({"price": np.datetime64("2024-01-01", "ns")}, "'price' of record 1 holds dates"),
        ({"price": np.timedelta64(3, "D")}, "'price' of record 1 holds dates or durations"),
        ({"site": 1}, "'site' of record 1 holds 1, a number, .* kind str, such as 'de'"),
        ({"stars": "5"}, "'stars' of record 1 holds '5', a str, .* kind number, such as 1"),
        ({"site": ["uk"]}, "'site' of record 1 holds <list of length 1>; expected a category"),
        ([1.0, 2.0], "record 1 is a list of 2 values; expected 7"),
        ((), "record 1 is a list of 0 values; expected 7"),
        ("price", "record 1 is 'price'; expected a dict"),
        (None, "record 1 is None; expected a dict"),
    ],
)
def test_what_does_not_fit_is_refused_by_record_and_key(score, record, message):
    with pytest.raises(ValueError, match=message):
        score([{"price": 1.0}, record])


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ({"price": 1.0}, r"records is <dict of length 1>.*pass \[record\]"),
        (pd.DataFrame({"price": [1.0]}), "records is <DataFrame of shape .*predict"),
        ("price", "records is 'price'"),
        (None, "records is None"),
    ],
)
def test_one_record_alone_or_a_frame_is_refused(score, records, message):
    with pytest.raises(ValueError, match=message):
        score(records)


def test_other_keys_are_ignored_if_they_are_named(ranker, score):
    record = {"price": 1.0, "site": "uk"}
    expected = score([record])
    named = RecordScorer(ranker, ignore=["id", "title", "id"])
    for others in ({"id": 1}, {"title": "x"}, {"id": 1, "title": None}, {}):
        assert_array_equal(named([others | record]), expected)
        assert_array_equal(RecordScorer(ranker, ignore=True)([others | record]), expected)
    with pytest.raises(ValueError, match="record 0 has the key 'url'"):
        named([record | {"id": 1, "url": "x"}])
    with pytest.raises(ValueError, match="ignore has 'price', a column of the model"):
        RecordScorer(ranker, ignore={"id", "price"})
    for wrong in ("id", None, 3):
        with pytest.raises(ValueError, match=f"ignore={wrong!r}; expected the keys"):
            RecordScorer(ranker, ignore=wrong)


def test_models_and_methods_that_cannot_score_records_are_refused(rows, ranker):
    frame, y, qid = rows
    X = frame[["age", "clicks"]]
    with pytest.raises(ValueError, match=r"method='predict_proba'; expected one of \['predict'\]"):
        RecordScorer(ranker, method="predict_proba")
    with pytest.raises(TypeError, match="model is a OrdinalRanker"):
        RecordScorer(OrdinalRanker(HistGBRTClassifier(max_iter=1, **SMALL)).fit(X, y, qid=qid))
    started = HistGBRTRegressor(max_iter=1, init=Ridge(), **SMALL).fit(X, y)
    with pytest.raises(ValueError, match=r"started from Ridge.*pass data frames to its predict"):
        RecordScorer(started)


def test_a_later_fit_does_not_change_a_scorer(rows):
    frame, y, qid = rows
    model = LambdaMARTRanker(max_iter=2, **SMALL).fit(frame, y, qid=qid)
    score, records = RecordScorer(model), frame[:9].to_dict("records")
    before = score(records)
    model.fit(frame[["age"]], y[::-1].copy(), qid=qid)
    assert_array_equal(score(records), before)


def test_threads_share_a_scorer(rows, score):
    records = [{"site": "new"} | record for record in rows[0].to_dict("records")]
    queries = [records[i : i + 7] for i in range(0, len(records), 7)] * 8
    with ThreadPoolExecutor(8) as threads:
        scores = list(threads.map(score, queries))
    for query, found in zip(queries, scores, strict=True):
        assert_array_equal(found, score(query))


# ----------------------------------------------------------------------------------------------- the service


@pytest.fixture
def service(ranker, tmp_path, monkeypatch):
    """The address of the example of the guide, started as from a shell, which serves the ranker."""
    pytest.importorskip("fastapi")
    uvicorn = pytest.importorskip("uvicorn")
    servers = []
    monkeypatch.setattr(
        "uvicorn.run",
        lambda app, **options: servers.append(
            uvicorn.Server(uvicorn.Config(app, log_level="error", **options))
        ),
    )
    ranker.save(tmp_path / "model.rkt")
    monkeypatch.setattr("sys.argv", ["service.py", str(tmp_path / "model.rkt"), "--port", "0"])
    runpy.run_path(str(SERVICE), run_name="__main__")
    (server,) = servers
    thread = Thread(target=server.run)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.001)
    host, port = server.servers[0].sockets[0].getsockname()
    yield f"http://{host}:{port}"
    server.should_exit = True
    thread.join()


def ask(address, query):
    request = urllib.request.Request(
        f"{address}/rank", json.dumps(query).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)["detail"]


@pytest.mark.filterwarnings("ignore")  # of other packages
def test_the_service_of_the_guide_ranks(ranker, score, service):
    frame = some_frame(30, seed=1)[0]
    records = json.loads(frame.to_json(orient="records"))
    expected = np.argsort(-ranker.predict(frame), kind="stable")[:5]
    candidates = [{"id": f"row {i}"} | record for i, record in enumerate(records)]

    def one(_):
        return ask(service, {"candidates": candidates, "k": 5})

    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(one, range(8)))
    assert [one["id"] for one in answers[0]] == [f"row {i}" for i in expected]
    assert [one["score"] for one in answers[0]] == score([records[i] for i in expected]).tolist()
    assert all(answer == answers[0] for answer in answers)
    assert ask(service, {"candidates": []}) == []
    for wrong, message in [
        ({"id": 1, "pric": 1.0}, "record 0 has the key 'pric'"),
        ({"id": 1, "price": "1.0"}, "'price' of record 0 holds '1.0'"),
    ]:
        code, detail = ask(service, {"candidates": [wrong]})
        assert code == 422
        assert message in detail
