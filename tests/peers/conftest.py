import re
from pathlib import Path

import pytest


def pytest_collection_modifyitems(items):
    """What a file lists as ``MEANT``, by patterns, has to fail; what it lists as ``ENDLESS`` is not run."""
    for item in (each for each in items if each.path.parent == Path(__file__).parent):
        listed = (item.module.MEANT, {"strict": True}), (item.module.ENDLESS, {"run": False})
        for patterns, options in listed:
            for pattern, reason in patterns.items():
                if re.fullmatch(pattern, item.name):
                    item.add_marker(pytest.mark.xfail(reason=reason, **options))
