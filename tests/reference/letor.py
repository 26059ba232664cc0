"""Read LETOR files line by line, with Python's float and int."""

import re

import numpy as np

NUMBER = re.compile(rb"[+-]?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]+)?|nan|inf(inity)?)", re.IGNORECASE)
INTEGER = re.compile(rb"[+-]?[0-9]{1,1000}")
QUERY = re.compile(rb"[^\s#:\0]{1,1000}")


class MalformedLineError(Exception):
    """Holds the number of the line."""


def number_of(text, dtype=np.float64):
    if not NUMBER.fullmatch(text):
        raise ValueError
    with np.errstate(over="ignore"):
        value = dtype(float(text))
    if np.isinf(value) and b"i" not in text.lower():
        raise ValueError
    return value


def read_line(line, n_features, dtype, missing):
    """(label, query, values by feature, id), or None if the line is blank."""
    text, _, comment = line.partition(b"#")
    tokens = text.split()
    if not tokens:
        return None
    label = number_of(tokens[0])
    if not np.isfinite(label) or len(tokens) < 2 or not tokens[1].startswith(b"qid:"):
        raise ValueError
    query, values = tokens[1].removeprefix(b"qid:"), {}
    if not QUERY.fullmatch(query):
        raise ValueError
    for token in tokens[2:]:
        feature, colon, value = token.partition(b":")
        if (
            not colon
            or not INTEGER.fullmatch(feature)
            or not max(values, default=0) < int(feature) <= n_features
        ):
            raise ValueError
        values[int(feature)] = dtype(np.nan) if value in missing else number_of(value, dtype)
    return label, query, values, comment.strip()


def read_letor(content, n_features=2**31 - 1, dtype=np.float32, missing=()):
    """The rows of a file, as `read_line` returns them."""
    rows = []
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        try:
            rows.append(read_line(line, n_features, dtype, missing))
        except ValueError:
            raise MalformedLineError(number) from None
    return [row for row in rows if row is not None]


def dense(rows, n_features, dtype, absent):
    X = np.full((len(rows), n_features), absent, dtype)
    for x, (_, _, values, _) in zip(X, rows, strict=True):
        for feature, value in values.items():
            x[feature - 1] = value
    return X


def queries(rows):
    """As int64 if all of them are integers of 64 bits, else as str."""
    texts = [query for _, query, _, _ in rows]
    if all(INTEGER.fullmatch(text) and abs(int(text)) < 2**63 for text in texts):
        return np.array([int(text) for text in texts], np.int64)
    return np.array([text.decode("utf-8", "surrogateescape") for text in texts])
