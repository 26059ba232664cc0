"""Tests of other packages, as they are installed, with what is ours in the place of what is theirs."""

import types

import pytest


def taken(module, arguments, values):
    """The tests of a module that are parametrized by one of some arguments, with values of ours for these."""
    tests = {}
    for name, test in vars(module).items():
        marks = getattr(test, "pytestmark", ()) if name.startswith("test_") else ()
        ours = [mark.name == "parametrize" and mark.args[0] in arguments for mark in marks]
        if any(ours):
            own = types.FunctionType(test.__code__, test.__globals__, name, closure=test.__closure__)
            own.__dict__.update(test.__dict__)
            own.pytestmark = [
                pytest.mark.parametrize(mark.args[0], values).mark if is_ours else mark
                for mark, is_ours in zip(marks, ours, strict=True)
            ]
            tests[name] = own
    return tests
