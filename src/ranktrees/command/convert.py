"""``ranktrees convert``: a model in another format."""

from __future__ import annotations

from argparse import Namespace

from ranktrees.command import models


def run(arguments: Namespace) -> None:
    """Run the command."""
    given = (
        (name, getattr(arguments, name)) for name in ("feature_names", "dtype", "name", "missing_values")
    )
    options = {name: value for name, value in given if value is not None}
    kind = models.format_to_write(arguments.output, arguments.to, options)
    models.DUMPERS[kind](models.load(arguments.model), arguments.output, **options)
    print(f"written to {arguments.output} ({kind})")
