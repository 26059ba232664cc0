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
        from sklearn.callback import CallbackSupportMixin, with_callbacks
    except ImportError:  # scikit-learn before 1.9

        class CallbackSupportMixin:
            """Nothing to support yet."""

        def with_callbacks(method):
            """Return the method as it is."""
            return method

    EstimatorMixin = object

__all__ = ["CallbackSupportMixin", "EstimatorMixin", "available_if", "validate_params", "with_callbacks"]
