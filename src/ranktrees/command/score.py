"""``ranktrees score``: the scores of the rows of a file."""

from __future__ import annotations

import sys
from argparse import Namespace

from ranktrees.command import data, models
from ranktrees.support.files import replace_file


def run(arguments: Namespace) -> None:
    """Run the command."""
    model = models.load(arguments.model)
    scores = model.predict(data.load(arguments.rows, arguments, model, needed=()).X)
    lines = "".join(f"{score!r}\n" for score in scores.tolist())
    if arguments.output is None:
        sys.stdout.write(lines)
    else:
        replace_file(arguments.output, lines.encode(), "the scores")
