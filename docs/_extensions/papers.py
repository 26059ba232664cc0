"""Titles of papers become links to them, wherever they stand in italics: in docstrings and on pages."""

from docutils import nodes
from dois import doi_of
from sphinx.transforms import SphinxTransform


class LinkTitles(SphinxTransform):
    default_priority = 700

    def apply(self):
        for node in list(self.document.findall(nodes.emphasis)):
            doi = doi_of(node.astext())
            if doi and not isinstance(node.parent, nodes.reference):
                link = nodes.reference("", "", refuri=f"https://doi.org/{doi}", internal=False)
                node.replace_self(link)
                link += node


def setup(app):
    app.add_transform(LinkTitles)
    return {"parallel_read_safe": True}
