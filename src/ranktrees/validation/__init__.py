"""Turn X, y, qid and weights into checked arrays and query offsets. No other package sees a qid.

Above this package, a user passes whatever holds rows, labels, weights and query ids. Below it there are only
arrays: rows as they were passed, labels and weights sorted by query, and the offsets at which each query
starts. Every error message names the argument, says what was seen and what is expected, and suggests what to
do.

    X        rows.py (frames.py, sparse.py, values.py)   --.
    y        labels.py                                     >-- data.py: FitData
    qid      queries.py                                  --'
"""

from ranktrees.validation.data import (
    FitData,
    MissingQueryWarning,
    ValidationRows,
    check_fit,
    check_score,
    check_validation,
)
from ranktrees.validation.frames import sorted_levels, warn_of_order
from ranktrees.validation.labels import class_numbers, require_finite_sum
from ranktrees.validation.queries import (
    carry_queries,
    find_queries,
    find_query_of_rows,
    hand_queries,
    ids_of_queries,
    qid_of,
    query_of_rows,
    query_offsets,
    sizes_to_qid,
    wants_queries_together,
)
from ranktrees.validation.rows import (
    category_columns,
    check_columns,
    check_rows,
    compare_columns,
    joined_levels,
    refuse_batches,
)
from ranktrees.validation.state import is_fitted, unchanged_on_failure

__all__ = [
    "FitData",
    "MissingQueryWarning",
    "ValidationRows",
    "carry_queries",
    "category_columns",
    "check_columns",
    "check_fit",
    "check_rows",
    "check_score",
    "check_validation",
    "class_numbers",
    "compare_columns",
    "find_queries",
    "find_query_of_rows",
    "hand_queries",
    "ids_of_queries",
    "is_fitted",
    "joined_levels",
    "qid_of",
    "query_of_rows",
    "query_offsets",
    "refuse_batches",
    "require_finite_sum",
    "sizes_to_qid",
    "sorted_levels",
    "unchanged_on_failure",
    "wants_queries_together",
    "warn_of_order",
]
