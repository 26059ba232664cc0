"""Synthetic rankings: the random polynomials of RankNet and LambdaSMART, and a set shaped like MSLR-WEB.

Features and relevance are computed from uniform draws by additions, multiplications, divisions and square
roots only, which every machine rounds alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from sklearn.utils import Bunch

from ranktrees.support.numeric import is_real, is_whole

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ranktrees.support.annotations import RandomState

_BLOCK_ROWS = 4096
_POLYNOMIAL_ROWS = 50
_POLYNOMIAL_FEATURES = 50

_STREAMS = ("body", "anchor", "title", "url", "whole document")
_STATISTICS = (
    "covered query term number",
    "covered query term ratio",
    "stream length",
    "IDF",
    *(
        f"{statistic} of {count}"
        for count in ("term frequency", "stream length normalized term frequency", "tf*idf")
        for statistic in ("sum", "min", "max", "mean", "variance")
    ),
    "boolean model",
    "vector space model",
    "BM25",
    "LMIR.ABS",
    "LMIR.DIR",
    "LMIR.JM",
)
_PAGE = (
    "number of slashes in URL",
    "length of URL",
    "inlink number",
    "outlink number",
    "PageRank",
    "SiteRank",
    "QualityScore",
    "QualityScore2",
    "query-url click count",
    "url click count",
    "url dwell time",
)
_WEB_FEATURES = len(_STATISTICS) * len(_STREAMS) + len(_PAGE)
_WEB_SHARES = (0.52, 0.32, 0.13, 0.02, 0.01)
_WEB_MEAN_ROWS = 120
_WEB_SIZE_SPREAD = 0.6
_WEB_LARGEST_QUERY = 900
_WEB_QUERY_EFFECT = 0.6

# Per stream: typical length, how much the match with the topic shows in it, mean share of terms covered.
_STREAM_LENGTH = (400, 12, 8, 12)
_STREAM_MATCH = (0.85, 0.6, 0.75, 0.5)
_STREAM_COVERED = (0.7, 0.5, 0.45, 0.2)
_TERMS_SHARES = (0.16, 0.28, 0.24, 0.15, 0.08, 0.05, 0.03, 0.01)


@overload
def make_ranking(
    n_queries: int = 100,
    kind: Literal["polynomial", "web"] = "polynomial",
    *,
    rows_per_query: ArrayLike | None = None,
    n_features: int | None = None,
    n_grades: int = 5,
    grade_shares: ArrayLike | None = None,
    noise: float | None = None,
    random_state: RandomState = None,
    return_X_y_qid: Literal[False] = False,
) -> Bunch: ...


@overload
def make_ranking(
    n_queries: int = 100,
    kind: Literal["polynomial", "web"] = "polynomial",
    *,
    rows_per_query: ArrayLike | None = None,
    n_features: int | None = None,
    n_grades: int = 5,
    grade_shares: ArrayLike | None = None,
    noise: float | None = None,
    random_state: RandomState = None,
    return_X_y_qid: Literal[True],
) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.int64]]: ...


def make_ranking(
    n_queries: int = 100,
    kind: Literal["polynomial", "web"] = "polynomial",
    *,
    rows_per_query: ArrayLike | None = None,
    n_features: int | None = None,
    n_grades: int = 5,
    grade_shares: ArrayLike | None = None,
    noise: float | None = None,
    random_state: RandomState = None,
    return_X_y_qid: bool = False,
) -> Any:
    """Make a ranking data set with a known rule of relevance.

    Parameters
    ----------
    n_queries : int, default=100
        The number of queries.
    kind : {"polynomial", "web"}, default="polynomial"
        The rule of relevance, see Notes.
    rows_per_query : int or array-like of int of shape (n_queries,), default=None
        The number of rows of each query, at least 1. If None, 50 for ``"polynomial"``. For ``"web"`` it is
        drawn from a lognormal distribution with mean 120 and kept between 1 and 900.
    n_features : int, default=None
        The number of features. If None, 50 for ``"polynomial"`` and 136 for ``"web"``.
    n_grades : int, default=5
        The number of grades, at least 2. Labels are ``0 .. n_grades - 1``.
    grade_shares : array-like of float of shape (n_grades,), default=None
        The share of each grade among all rows, from grade 0 upwards. The shares sum to 1. If None, equal
        shares for ``"polynomial"``. For ``"web"`` they are those of MSLR-WEB, (.52, .32, .13, .02, .01), or,
        if there are not five grades, each grade is half as frequent as the one below it.
    noise : float, default=None
        The standard deviation of the noise that is added to the relevance before it is cut into grades.
        Without noise the relevance has standard deviation 1. If None, 0 for ``"polynomial"`` and 1.2 for
        ``"web"``.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None, default=None
        The source of randomness. The same int always makes the same set. A Generator is drawn from, and a
        RandomState draws one seed. If None, each call makes another set.
    return_X_y_qid : bool, default=False
        Whether to return the tuple ``(X, y, qid)`` instead of a `Bunch`.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        data : float32 ndarray of shape (n_rows, n_features)
            The rows, query by query.
        target : int64 ndarray of shape (n_rows,)
            The labels.
        qid : int64 ndarray of shape (n_rows,)
            The query of each row, ``0 .. n_queries - 1``, in increasing order.
        feature_names : list of str
            The names of the features.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    The relevance of all rows is cut into labels at the quantiles given by `grade_shares`.

    ``"polynomial"`` is the second artificial ranking function of RankNet [1]_, which LambdaSMART [2]_ also
    uses, with 50 rows per query and labels 0 to 4. Features are uniform in [-1, 1]. With a random vector
    :math:`a` in :math:`[-1, 1]^d` and random permutations :math:`P, Q, R` of the features, the relevance of a
    row :math:`x` is the mean of

    .. math:: \\sum_i a_i x_i, \\qquad \\sum_i x_i x_{P(i)}, \\qquad \\sum_i x_i x_{Q(i)} x_{R(i)},

    each first scaled to mean 0 and variance 1 over all rows. The mean is then scaled to variance 1 again.
    Each call draws its own vector and permutations. So for training and test data, make one set and split it
    by query.

    ``"web"`` is meant for benchmarks. It has the shape of MSLR-WEB [3]_, but not its data. The 136 features
    are 25 text statistics of five streams (body, anchor, title, url, whole document) and 11 features of the
    page, in the order and with the names of MSLR. They are counts with heavy tails, 35 to 40 % zeros and
    strong correlations. IDF is constant within a query. The relevance is a nonlinear function of the features
    (saturating text matches, products of match and page quality, clicks, a penalty for stuffed pages) plus an
    effect of the query plus noise. If fewer features are requested, they are a regular choice out of the 136.
    If more are requested, each further one is one of the 136 times a heavy-tailed noise.

    References
    ----------
    .. [1] Burges, Shaked, Renshaw, Lazier, Deeds, Hamilton, Hullender, *Learning to Rank using Gradient
       Descent*, ICML 2005.
    .. [2] Wu, Burges, Svore, Gao, *Adapting Boosting for Information Retrieval Measures*, Information
       Retrieval 13, 2010.
    .. [3] Qin, Liu, *Introducing LETOR 4.0 Datasets*, arXiv:1306.2597, 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktrees.datasets import make_ranking
    >>> X, y, qid = make_ranking(20, random_state=0, return_X_y_qid=True)
    >>> X.shape, np.bincount(y), np.bincount(qid)[:3]
    ((1000, 50), array([200, 200, 200, 200, 200]), array([50, 50, 50]))
    >>> data = make_ranking(20, "web", random_state=0)
    >>> data.data.shape[1], data.feature_names[10]
    (136, 'stream length, body')
    """
    if not isinstance(kind, str) or kind not in ("polynomial", "web"):
        raise ValueError(f'kind={kind!r}; expected "polynomial" or "web".')
    check_integer("n_queries", n_queries, 1)
    check_integer("n_grades", n_grades, 2)
    if n_features is not None:
        check_integer("n_features", n_features, 1)
    if noise is not None and not (is_real(noise) and 0 <= noise < np.inf):
        raise ValueError(f"noise={noise!r}; expected a finite number of at least 0.")
    shares = _check_shares(grade_shares, n_grades, kind)
    rng = generator_of(random_state)

    if kind == "polynomial":
        sizes = _check_sizes(_POLYNOMIAL_ROWS if rows_per_query is None else rows_per_query, n_queries)
        qid = np.repeat(np.arange(n_queries), sizes)
        X, relevance = _polynomial(rng, len(qid), n_features or _POLYNOMIAL_FEATURES)
        feature_names = [f"x{j}" for j in range(X.shape[1])]
        noise = 0.0 if noise is None else noise
    else:
        sizes = (
            _web_sizes(rng, n_queries) if rows_per_query is None else _check_sizes(rows_per_query, n_queries)
        )
        qid = np.repeat(np.arange(n_queries), sizes)
        X, relevance, feature_names = _web(rng, qid, n_queries, n_features or _WEB_FEATURES)
        noise = 1.2 if noise is None else noise
    y = _cut(relevance + noise * _bell(rng, len(qid)), shares)
    if return_X_y_qid:
        return X, y, qid
    return Bunch(data=X, target=y, qid=qid, feature_names=feature_names)


def _polynomial(rng: np.random.Generator, n_rows: int, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    X = rng.random((n_rows, n_features), np.float32)
    X *= 2
    X -= 1
    weight = 2 * rng.random(n_features) - 1
    P, Q, R = (rng.permutation(n_features) for _ in range(3))
    linear, quadratic, cubic = np.zeros((3, n_rows))
    for i in range(n_features):
        x = X[:, i].astype(np.float64)
        linear += weight[i] * x
        quadratic += x * X[:, P[i]]
        cubic += x * X[:, Q[i]] * X[:, R[i]]
    return X, _standardise(_standardise(linear) + _standardise(quadratic) + _standardise(cubic))


def _web_sizes(rng: np.random.Generator, n_queries: int) -> np.ndarray:
    log_mean = np.log(_WEB_MEAN_ROWS) - _WEB_SIZE_SPREAD**2 / 2
    sizes = rng.lognormal(log_mean, _WEB_SIZE_SPREAD, n_queries)
    return np.clip(sizes, 1, _WEB_LARGEST_QUERY).astype(np.int64)


def _web(
    rng: np.random.Generator, qid: np.ndarray, n_queries: int, n_features: int
) -> tuple[np.ndarray, np.ndarray, list[Any]]:
    """Rows, relevance and feature names, computed a block of rows at a time."""
    names = [f"{statistic}, {stream}" for statistic in _STATISTICS for stream in _STREAMS]
    names += _PAGE
    chosen = np.linspace(0, _WEB_FEATURES - 1, min(n_features, _WEB_FEATURES)).round().astype(int)
    noisy = np.arange(n_features - len(chosen)) % _WEB_FEATURES
    feature_names = [names[j] for j in chosen]
    feature_names += [f"noisy {names[j]} ({i})" for i, j in enumerate(noisy)]

    terms = 1 + rng.choice(len(_TERMS_SHARES), n_queries, p=_TERMS_SHARES).astype(np.float32)
    idf = terms * (2 + 6 * rng.random(n_queries, np.float32))
    effect = _bell(rng, n_queries)

    X = np.empty((len(qid), n_features), np.float32)
    signal = np.empty(len(qid))
    for start in range(0, len(qid), _BLOCK_ROWS):
        rows = slice(start, start + _BLOCK_ROWS)
        query = qid[rows]
        streams, page = _web_block(rng, terms[query], idf[query])
        signal[rows] = _web_signal(streams, page, idf[query])
        columns = np.concatenate([streams.reshape(-1, len(query)), page])
        X[rows, : len(chosen)] = columns[chosen].T
        for i, j in enumerate(noisy, len(chosen)):
            X[rows, i] = columns[j] * _skewed(_bell(rng, len(query)))
    relevance = _standardise(_standardise(signal) + _WEB_QUERY_EFFECT * effect[qid])
    return X, relevance, feature_names


def _web_block(rng: np.random.Generator, terms: np.ndarray, idf: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Text statistics of shape (25, 5, n) and page features of shape (11, n), for n rows."""
    n = len(terms)
    topic, authority = _bell(rng, n), _bell(rng, n)
    page = _web_page(rng, topic, authority)
    streams = np.zeros((len(_STATISTICS), len(_STREAMS), n), np.float32)
    lengths: list[Any] = []
    sums: list[Any] = []
    largest: list[Any] = []
    covers: list[Any] = []
    for s, shown in enumerate(_STREAM_MATCH):
        match = shown * topic + np.sqrt(np.float32(1 - shown**2)) * _bell(rng, n)
        length = np.ceil(_STREAM_LENGTH[s] * _skewed(_bell(rng, n)) / (4 if s >= 2 else 1)) + 2 * (s >= 2)
        if _STREAMS[s] == "anchor":
            length *= authority + _bell(rng, n) > 0.6  # few pages have anchors
        share = np.clip(_STREAM_COVERED[s] + 0.35 * match, 0, 1)
        covered = np.floor(share * terms + rng.random(n, np.float32))
        covered = np.minimum(np.minimum(covered, terms), length)
        repeats = np.sqrt(length) / 8 * _skewed(0.7 * match + 0.7 * _bell(rng, n))
        tf_sum = np.minimum(covered + np.floor(covered * repeats), length)
        spread = rng.random(n, np.float32)
        tf_max = np.ceil(tf_sum * (1 + (covered - 1) * spread * spread) / np.maximum(covered, 1))
        tf_max = np.minimum(tf_max, tf_sum - np.maximum(covered - 1, 0))
        lengths.append(length)
        sums.append(tf_sum)
        largest.append(tf_max)
        covers.append(covered)
    # The whole document is the other streams together.
    lengths.append(sum(lengths))
    sums.append(sum(sums))
    largest.append(sum(largest))
    covers.append(np.maximum.reduce(covers))
    for s in range(len(_STREAMS)):
        lowness = rng.random(n, np.float32)
        _fill_statistics(
            streams[:, s], terms, idf, covers[s], lengths[s], sums[s], largest[s], lowness, _typical_length(s)
        )
    return streams, page


def _typical_length(s: int) -> int:
    return _STREAM_LENGTH[s] if s < len(_STREAM_LENGTH) else sum(_STREAM_LENGTH)


def _fill_statistics(
    out: np.ndarray,
    terms: np.ndarray,
    idf: np.ndarray,
    covered: np.ndarray,
    length: np.ndarray,
    tf_sum: np.ndarray,
    tf_max: np.ndarray,
    lowness: np.ndarray,
    typical: int,
) -> None:
    """Write the 25 statistics of one stream, computed from its counts, to `out` of shape (25, n)."""
    all_covered = covered == terms
    rest = (tf_sum - tf_max) / np.maximum(covered - 1, 1)
    tf_min = np.where(covered > 1, np.floor(1 + (rest - 1) * lowness), tf_max) * all_covered
    tf_mean = tf_sum / terms
    # The product is the largest possible variance for a given mean, minimum and maximum (Bhatia and Davis).
    tf_variance = np.maximum((tf_max - tf_mean) * (tf_mean - tf_min), 0) * (0.5 + 0.5 * lowness)
    per_word = 1 / np.maximum(length, 1)
    term_idf = idf / terms
    norm = 0.25 + 0.75 * length / typical
    present = length > 0

    out[0], out[1], out[2] = covered, covered / terms, length
    out[3] = idf
    frequencies = (tf_sum, tf_min, tf_max, tf_mean, tf_variance)
    for i, frequency in enumerate(frequencies):
        is_variance = i == len(frequencies) - 1
        out[4 + i] = frequency
        out[9 + i] = frequency * (per_word * per_word if is_variance else per_word)
        out[14 + i] = frequency * (term_idf * term_idf if is_variance else term_idf)
    out[19] = all_covered
    out[20] = tf_mean / np.sqrt(tf_mean * tf_mean + tf_variance + norm)
    out[21] = idf * covered / terms * tf_sum * 2.2 / (tf_sum + 1.2 * norm * np.maximum(covered, 1))
    rate = tf_sum * per_word
    for i, smoothing in enumerate((0.005, 0.02, 0.1)):
        out[22 + i] = 0 - idf * present * smoothing / (smoothing + rate)


def _web_page(rng: np.random.Generator, topic: np.ndarray, authority: np.ndarray) -> np.ndarray:
    """The 11 page features, of shape (11, n)."""
    n = len(topic)
    page = np.empty((len(_PAGE), n), np.float32)
    slashes = 1 + np.floor(4 * np.square(rng.random(n, np.float32)))
    page[0] = slashes
    page[1] = 12 + np.floor(slashes * 12 * _skewed(0.5 * _bell(rng, n)))
    page[2] = np.floor(2 * np.square(_skewed(0.9 * authority + 0.4 * _bell(rng, n))) - 1).clip(0)
    page[3] = np.floor(8 * _skewed(0.3 * authority + 0.9 * _bell(rng, n)))
    page[4] = np.floor(900 * _skewed(0.8 * authority + 0.6 * _bell(rng, n)))
    page[5] = np.floor(9000 * _skewed(0.6 * authority + 0.7 * _bell(rng, n)))
    page[6] = np.floor(20 * _skewed(_bell(rng, n))).clip(1, 255)
    page[7] = np.floor(30 * _skewed(0.5 * authority + 0.8 * _bell(rng, n))).clip(1, 255)
    popular = 0.4 * topic + 0.5 * authority + 0.75 * _bell(rng, n)
    clicks = np.floor(4 * _skewed(popular)) * (popular > 0.3)
    page[8] = np.floor(clicks * rng.random(n, np.float32) / 2) * (topic + _bell(rng, n) > 1.2)
    page[9] = clicks
    page[10] = 20 * _skewed(0.5 * topic + 0.8 * _bell(rng, n)) * (clicks > 0)
    return page


def _web_signal(streams: np.ndarray, page: np.ndarray, idf: np.ndarray) -> np.ndarray:
    """The part of the relevance that the features determine."""
    body, anchor, title, url, whole = range(len(_STREAMS))
    ratio, model = streams[1], streams[21] / idf
    quality = _saturating(page[4], 900) + _saturating(page[7], 30)
    text = 0.9 * model[whole] + 0.8 * model[body] + 0.8 * np.square(ratio[title]) + 0.5 * ratio[url]
    trusted = 0.9 * ratio[title] * quality + 0.8 * (ratio[anchor] > 0.5) * _saturating(page[2], 3)
    clicked = 1.2 * _saturating(page[8], 1) + 0.5 * _saturating(page[9], 8) * _saturating(page[10], 20)
    stuffed = 0.6 * (streams[9, body] > 0.1) * (page[6] < 20)
    deep = 0.15 * (page[0] > 2)
    return text + trusted + clicked - stuffed - deep


def _saturating(x: np.ndarray, half: int) -> np.ndarray:
    return x / (x + half)


def _bell(rng: np.random.Generator, n: int) -> np.ndarray:
    """Draw nearly normal float32 numbers with mean 0 and variance 1, of size 3.47 at most."""
    uniform = rng.random((4, n), np.float32)
    return (uniform[0] + uniform[1] + uniform[2] + uniform[3] - 2) * np.sqrt(np.float32(3))


def _skewed(z: np.ndarray) -> np.ndarray:
    """A positive, heavy-tailed function that is 1 at z = 0, much like exp(1.1 z)."""
    z = np.clip(z, -3.4, 3.4)
    root = (np.float32(3.6) + z) / (np.float32(3.6) - z)
    return root * root


def _standardise(values: np.ndarray) -> np.ndarray:
    values = values - values.mean()
    deviation = values.std()
    return values / deviation if deviation > 0 else values


def _cut(relevance: np.ndarray, shares: np.ndarray) -> np.ndarray:
    ordered = np.append(-np.inf, np.sort(relevance))
    cuts = ordered[np.rint(np.cumsum(shares)[:-1] * len(relevance)).astype(np.int64)]
    return np.searchsorted(cuts, relevance, side="left").astype(np.int64)


def generator_of(random_state: RandomState) -> np.random.Generator:
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(np.iinfo(np.int32).max)
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"random_state={random_state!r}; expected an integer of at least 0, a numpy.random.Generator, a "
            "numpy.random.RandomState or None."
        ) from error


def check_integer(name: str, value: object, least: int) -> None:
    if not is_whole(value, least):
        raise ValueError(f"{name}={value!r}; expected an integer of at least {least}.")


def _check_sizes(rows_per_query: ArrayLike | None, n_queries: int) -> np.ndarray:
    sizes = _array(rows_per_query)
    if sizes.dtype.kind not in "iu" or sizes.shape not in ((), (n_queries,)) or sizes.min() < 1:
        raise ValueError(
            f"rows_per_query={rows_per_query!r}; expected an integer of at least 1, or {n_queries} of them."
        )
    return sizes


def _check_shares(grade_shares: ArrayLike | None, n_grades: int, kind: str) -> np.ndarray:
    if grade_shares is None:
        if kind == "polynomial":
            return np.full(n_grades, 1 / n_grades)
        if n_grades == len(_WEB_SHARES):
            return np.array(_WEB_SHARES)
        shares = 0.5 ** np.arange(n_grades)
        return shares / shares.sum()
    shares = _array(grade_shares, np.float64)
    if shares.shape != (n_grades,) or not (shares >= 0).all() or abs(shares.sum() - 1) > 1e-6:
        raise ValueError(f"grade_shares={grade_shares!r}; expected n_grades={n_grades} shares that sum to 1.")
    return shares


def _array(values: Any, dtype: Any = None) -> np.ndarray:
    """Values as an array, or an empty one, whose shape is refused, if they do not form an array."""
    try:
        return np.asarray(values, dtype)
    except (TypeError, ValueError):
        return np.empty(0)
