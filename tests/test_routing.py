"""Estimators made of others pass metadata on to those that request it, and to no others."""

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from ranktrees import BlendRanker, ModelFeatures, OrdinalRanker, WithSourceRows

pytestmark = pytest.mark.filterwarnings("ignore::ranktrees.MissingQueryWarning")

X = np.random.default_rng(0).normal(size=(12, 2))
Y = np.arange(12) % 2
WEIGHTS = np.arange(12) + 1.0


class Told(ClassifierMixin, BaseEstimator):
    """A classifier that notes the number of rows of each fit, and whether it had weights."""

    fits = []  # noqa: RUF012

    def fit(self, X, y, sample_weight=None, extra=None):
        self.fits.append((len(y), sample_weight is not None, extra))
        self.classes_ = np.array([0, 1])
        return self

    def predict(self, X, offset=0):
        return np.full(len(X), offset)

    def predict_proba(self, X, offset=0):
        return np.full((len(X), 2), 0.5 + offset)

    def score(self, X, y, sample_weight=None):
        return float(sample_weight is not None)


class Untold(Told):
    """Another one, so that a message says which is meant."""


@pytest.fixture(autouse=True)
def routing():
    Told.fits.clear()
    with sklearn.config_context(enable_metadata_routing=True):
        yield


WAYS = {
    "ordinal": (OrdinalRanker, "fit", [12]),
    "features": (lambda told: ModelFeatures(told, cv=2), "fit", [12]),
    "features out of fold": (lambda told: ModelFeatures(told, cv=2), "fit_transform", [12, 6, 6]),
    "source": (WithSourceRows, "fit", [12]),
    "blend": (lambda told: BlendRanker([("told", told)], cv="train"), "fit", [12]),
    "blend out of fold": (lambda told: BlendRanker([("told", told)], cv=2), "fit", [12, 6, 6]),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("request_", [True, False, None])
def test_weights_go_to_those_that_request_them(way, request_):
    make, method, n_rows = WAYS[way]
    fit = getattr(make(Told().set_fit_request(sample_weight=request_)), method)
    if request_ is None:
        with pytest.raises(UnsetMetadataPassedError, match=r"for Told.fit"):
            fit(X, Y, sample_weight=WEIGHTS)
        assert Told.fits == []
        fit(X, Y)
    elif request_ or "features" not in way:
        fit(X, Y, sample_weight=WEIGHTS)
    else:  # nobody wants them, as ModelFeatures itself does not
        with pytest.raises(TypeError, match="sample_weight"):
            fit(X, Y, sample_weight=WEIGHTS)
        n_rows = []
    assert Told.fits == [(n, request_ is True, None) for n in n_rows]


def test_each_part_of_a_blend_is_asked_for_itself():
    parts = [
        ("a", Told().set_fit_request(sample_weight=True)),
        ("b", Told().set_fit_request(sample_weight=False)),
    ]
    BlendRanker(parts, cv=2).fit(X, Y, sample_weight=WEIGHTS)
    assert Told.fits == [(12, True, None), (12, False, None)] + [(6, True, None)] * 2 + [(6, False, None)] * 2
    with pytest.raises(UnsetMetadataPassedError, match=r"for Untold.fit"):
        BlendRanker([*parts, ("c", Untold())], cv=2).fit(X, Y, sample_weight=WEIGHTS)


def test_features_in_a_pipeline_are_routed_weights():
    features = ModelFeatures(Told().set_fit_request(sample_weight=True), cv=2)
    make_pipeline(features, Ridge().set_fit_request(sample_weight=False)).fit(X, Y, sample_weight=WEIGHTS)
    assert Told.fits == [(12, True, None), (6, True, None), (6, True, None)]


def test_fitted_models_that_are_not_fitted_again_are_not_asked():
    told = Told().fit(X, Y)
    ModelFeatures(told, cv="prefit").fit(X, Y, sample_weight=WEIGHTS)
    BlendRanker([("told", told)], cv="prefit").fit(X, Y, sample_weight=WEIGHTS)
    assert len(Told.fits) == 1


def test_rows_of_a_source_pass_on_all_arguments_by_request():
    told = Told().set_fit_request(extra=True).set_predict_request(offset=True)
    told.set_predict_proba_request(offset=True).set_score_request(sample_weight=False)
    model = WithSourceRows(told).fit(X, Y, extra="something")
    assert Told.fits == [(12, False, "something")]
    assert (model.predict(X, offset=3) == 3).all()
    assert (model.predict_proba(X, offset=0.25) == 0.75).all()
    assert model.score(X, Y, sample_weight=WEIGHTS) == 0
    with pytest.raises(UnsetMetadataPassedError, match=r"\[extra\]"):
        WithSourceRows(Told()).fit(X, Y, extra="something")


def test_weights_of_source_rows_are_refused_by_who_does_not_want_any():
    told = Told().set_fit_request(sample_weight=False)
    model = WithSourceRows(told, X, Y, source_weight=0.5, source_size=1, classifier=Told(), cv=2)
    with pytest.raises(ValueError, match="source_weight is given, but the fit of Told takes no weights"):
        model.fit(X, Y)


@pytest.mark.parametrize(
    "model", [OrdinalRanker(Told()), BlendRanker([("told", Told())]), WithSourceRows(Told())]
)
def test_queries_are_requested_by_default(model):
    assert model.get_metadata_routing().consumes("fit", {"qid", "groups"}) == {"qid", "groups"}
