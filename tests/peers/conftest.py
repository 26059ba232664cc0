import re

import pytest


def pytest_collection_modifyitems(items):
    """What a file lists as ``MEANT`` has to fail: patterns of names, with the reason. ``ENDLESS`` is not run."""
    for item in items:
        for patterns, options in (
            (item.module.MEANT, {"strict": True}),
            (item.module.ENDLESS, {"run": False}),
        ):
            for pattern, reason in patterns.items():
                if re.fullmatch(pattern, item.name):
                    item.add_marker(pytest.mark.xfail(reason=reason, **options))
