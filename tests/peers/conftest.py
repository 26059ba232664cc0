import re

import pytest


def pytest_collection_modifyitems(items):
    """What a file lists as ``MEANT`` has to fail: patterns of names, with the reason."""
    for item in items:
        for pattern, reason in item.module.MEANT.items():
            if re.fullmatch(pattern, item.name):
                item.add_marker(pytest.mark.xfail(reason=reason, strict=True))
