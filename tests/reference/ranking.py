"""Twins of the ranking kernels: textbook sums over rows in rank order, for every order of tied rows."""

import itertools
import math

import numpy as np

GAINS = {"exp2": lambda label: 2.0**label - 1.0, "linear": float}
DISCOUNTS = {"log2": lambda rank: 1 / math.log2(1 + rank), "letor": lambda rank: 1 / math.log2(max(rank, 2))}


def dcg(labels, at, gain="exp2", discount="log2"):
    return sum(GAINS[gain](label) * DISCOUNTS[discount](rank) for rank, label in enumerate(labels[:at], 1))


def ndcg(labels, at, gain="exp2", discount="log2"):
    best = dcg(sorted(labels, reverse=True), at, gain, discount)
    return dcg(labels, at, gain, discount) / best if best else math.nan


def err(labels, at, max_grade=4):
    total, survive = 0.0, 1.0
    for rank, label in enumerate(labels[:at], 1):
        stop = (2**label - 1) / 2**max_grade
        total += survive * stop / rank
        survive *= 1 - stop
    return total


def ap(labels, at, rel=1):
    hits = [label >= rel for label in labels]
    if not any(hits):
        return math.nan
    found = (sum(hits[:rank]) / rank for rank, hit in enumerate(hits[:at], 1) if hit)
    return sum(found) / sum(hits)


def rr(labels, at, rel=1):
    return next((1 / rank for rank, label in enumerate(labels[:at], 1) if label >= rel), 0.0)


def success(labels, at, rel=1):
    return float(any(label >= rel for label in labels[:at]))


def r_precision(labels, at, rel=1):
    return r(labels, sum(label >= rel for label in labels), rel)


def rbp(labels, at, p=0.8, rel=1):
    return sum((1 - p) * p**place for place, label in enumerate(labels[:at]) if label >= rel)


def p(labels, at, rel=1):
    return sum(label >= rel for label in labels[:at]) / (at or len(labels))


def r(labels, at, rel=1):
    hits = [label >= rel for label in labels]
    return sum(hits[:at]) / sum(hits) if any(hits) else math.nan


def pauc(labels, at, rel=1):
    hits = [label >= rel for label in labels]
    above = [sum(hits[:rank]) for rank, hit in enumerate(hits) if not hit]  # one number per irrelevant row
    low, high = at or (0, len(above))
    return np.mean(above[low:high]) / sum(hits) if any(hits) and above[low:high] else math.nan


def auc(labels, at, rel=1):
    return pauc(labels, None, rel)


def pooled_auc(labels, scores, weights, rel, low=0.0, high=1.0):
    """The area under the ROC curve between two false-positive rates, threshold by threshold."""
    kinds = [label >= rel for label in labels]
    n_hits = sum(weight for kind, weight in zip(kinds, weights, strict=True) if kind)
    n_misses = sum(weight for kind, weight in zip(kinds, weights, strict=True) if not kind)
    if not n_hits or not n_misses:
        return math.nan
    area = false = true = 0.0
    for threshold in sorted(set(scores), reverse=True):
        tie = [row for row, score in enumerate(scores) if score == threshold]
        dx = sum(weights[row] for row in tie if not kinds[row]) / n_misses
        dy = sum(weights[row] for row in tie if kinds[row]) / n_hits
        left, right = max(false, low), min(false + dx, high)
        if left < right:
            heights = [true + dy * (x - false) / dx for x in (left, right)]
            area += (right - left) * sum(heights) / 2
        false, true = false + dx, true + dy
    return area


def share_of_pairs(labels, scores, weights, rel):
    """The share of pairs of a relevant and an irrelevant row in the right order; a tie is half of one."""
    right = total = 0.0
    for i, j in itertools.permutations(range(len(labels)), 2):
        if labels[i] >= rel > labels[j]:
            pair = weights[i] * weights[j]
            total += pair
            right += pair * ((scores[i] > scores[j]) + (scores[i] == scores[j]) / 2)
    return right / total if total else math.nan


def balanced_error_rate(labels, scores, weights, rel, threshold):
    rows = list(zip(labels, scores, weights, strict=True))
    false_positives = sum(w for y, s, w in rows if y < rel and s > threshold)
    false_negatives = sum(w for y, s, w in rows if y >= rel and s <= threshold)
    n_minus, n_plus = sum(w for y, _, w in rows if y < rel), sum(w for y, _, w in rows if y >= rel)
    if not n_minus or not n_plus:
        return math.nan
    return false_positives / (2 * n_minus) + false_negatives / (2 * n_plus)


def pair_accuracy(labels, at):
    pairs = [(a, b) for a, b in itertools.combinations(labels, 2) if a != b]
    return sum(a > b for a, b in pairs) / len(pairs) if pairs else math.nan


def orders(scores):
    """All orders of the rows by descending score."""
    rows = sorted(range(len(scores)), key=lambda row: -scores[row])
    ties = (list(tie) for _, tie in itertools.groupby(rows, key=lambda row: scores[row]))
    for order in itertools.product(*(itertools.permutations(tie) for tie in ties)):
        yield list(itertools.chain.from_iterable(order))


def evaluate(formula, labels, scores, ties, at=None, **parameters):
    """The value of one query under a rule for ties."""
    rows = range(len(scores))
    if ties == "input":
        tried = [sorted(rows, key=lambda row: (-scores[row], row))]
    elif ties == "reverse":
        tried = [sorted(rows, key=lambda row: (-scores[row], -row))]
    else:
        tried = list(orders(scores))
    values = [formula([labels[row] for row in order], at, **parameters) for order in tried]
    return min(values) if ties == "worst" else math.fsum(values) / len(values)


def ideal_dcg(gains, discounts):
    """The DCG of the gains in descending order, over as many ranks as there are discounts."""
    best = np.sort(gains)[::-1][: len(discounts)]
    return float(best @ discounts[: len(best)])


def err_of_tie(stopping):
    """ERR of one tie, by recursion over the set of rows still to come: exact, in exponential time."""
    if not stopping:
        return 0.0

    def value(rows, rank):
        return sum(
            stopping[row] / rank + (1 - stopping[row]) * value(rows - {row}, rank + 1) for row in rows
        ) / max(len(rows), 1)

    return value(frozenset(range(len(stopping))), 1)
