"""Formulas as MathML, which browsers draw themselves, with a font of mathematics that the site ships."""

from pathlib import Path

import ziamath
from docutils.nodes import SkipNode
from fontTools import subset
from latex2mathml.converter import convert

FONT = Path(ziamath.__file__).parent / "fonts" / "STIXTwoMath-Regular.ttf"
# Latin, Greek, punctuation, letterlike symbols, arrows, operators, brackets and mathematical letters.
CHARACTERS = [(0x20, 0xFF), (0x300, 0x3FF), (0x2000, 0x23FF), (0x27C0, 0x27EF), (0x1D400, 0x1D7FF)]


def visit_math(translator, node):
    translator.body.append(convert(node.astext()))
    raise SkipNode


def visit_math_block(translator, node):
    translator.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>\n')
    raise SkipNode


def ship_font(app, error):
    if error is None and app.builder.format == "html":
        options = subset.Options(flavor="woff", layout_features="*", notdef_outline=True)
        font = subset.load_font(FONT, options)
        subsetter = subset.Subsetter(options)
        subsetter.populate(unicodes=[each for first, last in CHARACTERS for each in range(first, last + 1)])
        subsetter.subset(font)
        subset.save_font(font, Path(app.outdir, "_static", "mathematics.woff"), options)


def setup(app):
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    app.config.html_math_renderer = "mathml"
    app.connect("build-finished", ship_font)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
