"""Properties that are computed once."""

import functools
import sys
from functools import cached_property
from typing import TYPE_CHECKING

__all__ = ["cached_property"]

if not TYPE_CHECKING and sys.version_info < (3, 12):

    class cached_property(functools.cached_property):  # noqa: N801
        """Without the lock of Python 3.11, which is one for all instances, and is held as it is computed.

        A process that is forked by one thread while another one computes would wait for it for ever.
        """

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            return instance.__dict__.setdefault(self.attrname, self.func(instance))
