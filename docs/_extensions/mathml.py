"""Formulas as MathML, which browsers draw themselves: pages need no script, and no fonts from elsewhere."""

from docutils.nodes import SkipNode
from latex2mathml.converter import convert


def visit_math(translator, node):
    translator.body.append(convert(node.astext()))
    raise SkipNode


def visit_math_block(translator, node):
    translator.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>\n')
    raise SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
