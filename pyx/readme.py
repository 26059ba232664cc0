"""The README as a package index shows it, where links within the repository would lead nowhere."""

import re

LINK = re.compile(r"(!?)\[([^\[\]]*)\]\((?!\w+:)([^()#\s]*)(#[^()\s]*)?\)")


def with_addresses(text, urls):
    """Have links to pages of the documentation lead there, and all others to the repository.

    ``urls`` are those of ``pyproject.toml``.
    """

    def linked(found):
        mark, shown, path, heading = found.groups(default="")
        if path.startswith("docs/") and path.endswith(".md"):
            page = path.removeprefix("docs/").removesuffix(".md")
            address = f"{urls['Documentation']}{page}.html"
        else:
            address = f"{urls['Repository']}/{'raw' if mark else 'blob'}/HEAD/{path or 'README.md'}"
        return f"{mark}[{shown}]({address}{heading})"

    return LINK.sub(linked, text)
