"""Learning to rank with boosted trees and forests, as scikit-learn estimators."""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

import ranktrees.support.parallel  # noqa: F401  # before another library loads OpenMP
from ranktrees.support.version import __version__ as __version__

if TYPE_CHECKING:  # a type checker would believe that every name exists
    from ranktrees.public import *  # noqa: F403
else:

    def __getattr__(name):
        """Load what is asked for. All of it takes seconds, which the help of the command line does not."""
        if name.startswith("__") and name != "__all__":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
        if find_spec(f"{__name__}.{name}") is not None:
            return import_module(f"{__name__}.{name}")
        public = import_module(f"{__name__}.public")
        globals().update({"__all__": public.__all__} | {each: vars(public)[each] for each in public.__all__})
        if name not in globals():
            import_module(f"{__name__}.estimators.parameters").look_up_in_package(name)
        return globals()[name]

    def __dir__():
        return sorted({*globals(), *__getattr__("__all__")})
