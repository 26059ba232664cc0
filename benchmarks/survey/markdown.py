"""Tables as Markdown, and paired tests of what the thesis found."""

import re

import numpy as np

from .sets import NAMES

MEASURES = {"RMSE": "rmse", "ERR": "err", "NDCG": "ndcg.survey@10"}


def number(value, digits=4):
    """.6642; one digit less before the point where there is none to show."""
    text = f"{value:.{digits}f}"
    return text.removeprefix("0") if value >= 0 else "-" + text[1:].removeprefix("0")


def signed(value, digits=4):
    return ("+" if value >= 0 else "-") + number(abs(value), digits)


def table(head, rows):
    """A Markdown table; cells are strings."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def best_bold(columns):
    """Cells of columns of numbers, the highest of each in bold."""
    return [_bold(values, max) for values in columns]


def _bold(values, best):
    cells = [number(value) for value in values]
    place = best(range(len(values)), key=values.__getitem__)
    cells[place] = f"**{cells[place]}**"
    return cells


def two_parts(lab, name, contenders, corner, against=None, more=None):
    """RMSE, ERR and NDCG of validation and test queries, a row for each contender.

    With ``against``, there is also the paired difference to it, by NDCG of test queries. ``more`` are further
    columns, of strings.
    """
    measured = {
        label: [lab.measured(name, one, measure) for one in contenders] for label, measure in MEASURES.items()
    }
    columns = [
        _bold([float(np.mean(one[part])) for one in measured[label]], min if label == "RMSE" else max)
        for part in range(2)
        for label in MEASURES
    ]
    head = [corner, *(more or {}), *(f"{part} {label}" for part in ("val.", "test") for label in MEASURES)]
    columns = [*(more or {}).values(), *columns]
    if against is not None:
        head.append(f"NDCG above {against.name}")
        columns.append(
            [
                "" if one is against else difference(lab.test([name], one, against, MEASURES["NDCG"]))
                for one in contenders
            ]
        )
    return table(head, [[one.name, *cells] for one, *cells in zip(contenders, *columns, strict=True)])


def findings(lab, claims, names):
    """Does it hold here? For each (claim, better, worse): paired differences by NDCG, and over all by ERR."""
    rows = []
    for claim, *pair in claims:
        tests = [lab.test([name], *pair, MEASURES["NDCG"]) for name in names]
        overall = lab.test(names, *pair, MEASURES["NDCG"])
        cells = [*tests, overall] if len(names) > 1 else tests
        by_err = lab.test(names, *pair, MEASURES["ERR"])
        rows.append([claim, *map(difference, cells), verdict(tests, overall), difference(by_err)])
    heads = [NAMES[name] for name in names] + ["all queries"] * (len(names) > 1)
    return table(["finding, by NDCG", *heads, "holds here", "by ERR"], rows)


def difference(test):
    """A paired test as a cell: the mean difference, and t."""
    mean, t = test
    return f"{signed(mean)} ({t:+.1f})"


def verdict(tests, together):
    """In words, from the t statistics of the sets and of all of them."""
    sure = [t for _, t in tests if abs(t) > 2]
    if any(t > 0 for t in sure) and any(t < 0 for t in sure):
        return "on some sets, the opposite on others"
    _, t = together
    if t > 2:
        return "yes"
    if t < -2:
        return "no: the opposite"
    if sure:
        return "on one set" if sure[0] > 0 and len(sure) == 1 else "on some sets" if sure[0] > 0 else "no"
    return "inconclusive"


def put(page, name, text):
    """The page with the text between the marks of the table, where it has them."""
    pattern = re.compile(rf"^% {re.escape(name)}\n.*?^% end$", re.DOTALL | re.MULTILINE)
    return pattern.sub(lambda _: f"% {name}\n\n{text}\n\n% end", page)


def show(tables, names, lab, page=None):
    """Print tables, each as it is made; put them into a page, too, if there is one."""
    for name in names:
        text = "\n\n".join(tables[name](lab))
        print(f"## {name}\n\n{tables[name].__doc__}\n\n{text}\n", flush=True)
        if page is not None:
            page.write_text(put(page.read_text(), name, text))
