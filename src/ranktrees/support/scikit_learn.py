"""What the library decorates with and mixes in from scikit-learn, with types, which scikit-learn has not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias, TypeVar

    from sklearn.base import BaseEstimator

    Decorated = TypeVar("Decorated")
    EstimatorMixin: TypeAlias = BaseEstimator  # a mixin may take for granted what all estimators have

    class CallbackSupportMixin: ...

    def with_callbacks(method: Decorated) -> Decorated: ...

    def available_if(check: Callable[[Any], bool]) -> Callable[[Decorated], Decorated]: ...

    def validate_params(
        constraints: dict[str, list[Any]], *, prefer_skip_nested_validation: bool
    ) -> Callable[[Decorated], Decorated]: ...

else:
    from sklearn.utils._param_validation import validate_params
    from sklearn.utils.metaestimators import available_if

    try:
        from sklearn.callback import CallbackSupportMixin as OwnMixin
        from sklearn.callback import FitCallback, with_callbacks

        class CallbackSupportMixin(OwnMixin):
            """scikit-learn's own, with a message that says what a callback is."""

            def set_callbacks(self, *callbacks):
                """Set callbacks for the estimator, as scikit-learn does."""
                for each in callbacks:
                    if isinstance(each, type) or not isinstance(each, FitCallback):
                        raise TypeError(
                            f"callbacks must be instances following the FitCallback protocol, got {each!r}; "
                            "expected objects with methods setup, on_fit_task_begin, on_fit_task_end and "
                            "teardown, each an argument of its own: put the code of a function into "
                            "on_fit_task_end, which returns True to stop."
                        )
                return super().set_callbacks(*callbacks)

    except ImportError:  # scikit-learn before 1.9

        class CallbackSupportMixin:
            """Nothing to support yet."""

        def with_callbacks(method):
            """Return the method as it is."""
            return method

    EstimatorMixin = object

__all__ = ["CallbackSupportMixin", "EstimatorMixin", "available_if", "validate_params", "with_callbacks"]
