"""A table drawn: the directive ``drawn-table``, above a table, draws columns of it and folds the table below.

The numbers are those of the cells, so a page says each of them once.
"""

import io
import re
from html import escape

import matplotlib as mpl
from docutils import nodes
from docutils.parsers.rst import directives
from matplotlib.figure import Figure
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxDirective

# A number and what else its cell says of it: "1.2", "1.04e+04", ".0073 (t = 2.1)", "12,000", "246, 240", "-".
_NUMBER = re.compile(r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?(?:e[-+]?\d+)?")
OURS, THEIRS = "#2a6fbb", "#9aa5b1"


class Drawn(nodes.Element):
    """Stands above the table that it draws."""


class DrawnTable(SphinxDirective):
    """Draw columns of the next table: a panel for each, a bar or a dot for each row."""

    required_arguments = 1  # the caption
    final_argument_whitespace = True
    option_spec = {  # noqa: RUF012
        "columns": directives.positive_int_list,  # the first column is 0, and names the rows
        "dots": directives.flag,  # on an axis that does not begin at 0
        "log": directives.flag,
        "transposed": directives.flag,  # what the table has in a column is a row of the drawing
    }

    def run(self):
        return [Drawn(caption=self.arguments[0], **self.options)]


def number_of(cell):
    """Return the number that a cell begins with, or None."""
    found = _NUMBER.match(cell.strip())
    return float(found[0].replace(",", "")) if found and re.search(r"\d", found[0]) else None


def read(table):
    """Return the lines of a table as text, and which of them are bold, which is how a table marks ours."""
    rows = [[entry.astext() for entry in row.findall(nodes.entry)] for row in table.findall(nodes.row)]
    bold = [any(row.children[0].findall(nodes.strong)) for row in table.findall(nodes.row)]
    return rows, bold


def draw(rows, bold, columns, *, dots=False, log=False, salt=""):
    """Return a drawing as SVG."""
    head, *rows = rows
    values = [[number_of(row[column]) for row in rows] for column in columns]
    used = [k for k in range(len(rows)) if any(column[k] is not None for column in values)]
    ours = [bold[k + 1] or "ranktrees" in rows[k][0] for k in used]
    with mpl.rc_context({"svg.hashsalt": salt, "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(9, 0.75 + 0.27 * len(used)), layout="constrained")
        panels = figure.subplots(1, len(columns), sharey=True, squeeze=False)[0]
        for axes, column, numbers in zip(panels, columns, values, strict=True):
            title = head[column]
            axes.set_title(
                title if len(title) < 90 / len(columns) else title.replace(", ", ",\n").replace(": ", ":\n")
            )
            there = [(place, numbers[k]) for place, k in enumerate(used) if numbers[k] is not None]
            colors = [OURS if ours[place] else THEIRS for place, _ in there]
            places, shown = zip(*there, strict=True)
            if dots:
                axes.scatter(shown, places, c=colors, s=36, zorder=2)
                axes.grid(axis="x", alpha=0.3)
                axes.margins(x=0.15)
            else:
                axes.barh(places, shown, color=colors, height=0.7, log=log)
                for place, value in there:
                    text = _NUMBER.match(rows[used[place]][column])[0]
                    text = f"{value:,.0f}" if "e" in text else text
                    axes.annotate(
                        text, (value, place), (3, 0), textcoords="offset points", va="center", fontsize=8
                    )
                axes.margins(x=0.2)
                axes.set_xticks([], [])
                axes.xaxis.set_minor_locator(mpl.ticker.NullLocator())
            axes.spines[["top", "right"] + ([] if dots else ["bottom"])].set_visible(False)
        panels[0].set_yticks(range(len(used)), [rows[k][0] for k in used])
        panels[0].set_ylim(len(used) - 0.4, -0.6)
        file = io.StringIO()
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    svg = file.getvalue()
    svg = re.sub(r'width="[\d.]+pt" height="[\d.]+pt"', "", svg[svg.index("<svg") :], count=1)
    return re.sub(
        r"#000000|(?<=fill: )black", "currentColor", svg
    )  # as the text around it, on dark pages too


class DrawTables(SphinxTransform):
    default_priority = 500

    def apply(self):
        for number, drawn in enumerate(list(self.document.findall(Drawn))):
            table = drawn.next_node(nodes.table, siblings=True, descend=False)
            if table is None:
                raise ValueError(f"{self.env.docname}: no table follows {drawn['caption']!r}; put it below.")
            rows, bold = read(table)
            if "transposed" in drawn:
                rows = [list(line) for line in zip(*rows, strict=True)]
                bold = [False] * len(rows)
            columns = drawn.get("columns") or range(1, len(rows[0]))
            salt = f"{self.env.docname}-{number}"
            svg = draw(rows, bold, columns, dots="dots" in drawn, log="log" in drawn, salt=salt)
            caption = escape(drawn["caption"])
            picture = f'<figure class="drawn" role="img" aria-label="{caption}"><div>{svg}</div>'
            picture += f"<figcaption>{caption}</figcaption></figure><details><summary>The numbers</summary>"
            drawn.replace_self(nodes.raw("", picture, format="html"))
            place = table.parent.index(table)
            table.parent.insert(place + 1, nodes.raw("", "</details>", format="html"))


def setup(app):
    app.add_directive("drawn-table", DrawnTable)
    app.add_transform(DrawTables)
    return {"parallel_read_safe": True}
