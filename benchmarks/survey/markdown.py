"""Tables as Markdown, and paired tests of what the survey found."""

import re

from .lab import CHOSEN_BY
from .sets import NAMES


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
    shown = []
    for values in columns:
        cells = [number(value) for value in values]
        best = max(range(len(values)), key=values.__getitem__)
        cells[best] = f"**{cells[best]}**"
        shown.append(cells)
    return shown


def means(meeting, contenders, measures, names=None, corner=""):
    """A row for each contender, a column for each set and measure: the means over test queries."""
    names = meeting.names if names is None else names
    heads = [
        NAMES[name] if len(measures) == 1 else f"{NAMES[name]} {label}"
        for name in names
        for label, _ in measures
    ]
    columns = [
        [meeting.mean(name, contender, measure) for contender in contenders]
        for name in names
        for _, measure in measures
    ]
    cells = zip(*best_bold(columns), strict=True)
    rows = [[contender, *line] for contender, line in zip(contenders, cells, strict=True)]
    return table([corner, *heads], rows)


def findings(meeting, claims, measure=CHOSEN_BY, together=True):
    """Does it hold here? For each (claim, better, worse): the paired differences, set by set and over all.

    Not ``together`` where sets have the same test queries.
    """
    rows = []
    for claim, better, worse in claims:
        tests = [meeting.test([name], better, worse, measure) for name in meeting.names]
        row = [claim, *map(difference, tests)]
        if together:
            overall = meeting.test(meeting.names, better, worse, measure)
            row += [difference(overall), verdict(tests, overall)]
        rows.append(row)
    head = ["finding", *(NAMES[name] for name in meeting.names)]
    return table([*head, "all queries", "holds here"] if together else head, rows)


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
