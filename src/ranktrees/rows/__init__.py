"""X, y, qid and weights become checked arrays and query offsets. Nothing below sees a qid.

Above this package, a user passes whatever holds rows, labels, weights and query ids. Below it there are only
arrays: rows as they were passed, labels and weights sorted by query, and the offsets at which each query
starts. Every error message names the argument, says what was seen and what is expected, and suggests what to
do.

    X        matrix.py (frames.py, sparse.py, values.py)   --.
    y        labels.py                                     >-- data.py: FitData
    qid      queries.py                                  --'
"""

from ranktrees.rows.batches import Batch, Batches
from ranktrees.rows.data import (
    FitData,
    MissingQueryWarning,
    ValidationRows,
    check_fit,
    check_score,
    check_validation,
)
from ranktrees.rows.feedback import Preferences, pairs_among, preference_accuracy_score
from ranktrees.rows.frames import OrderedLevels, column_of, sorted_levels, warn_of_order
from ranktrees.rows.labels import class_numbers, require_finite_sum
from ranktrees.rows.matrix import (
    category_columns,
    check_columns,
    check_rows,
    compare_columns,
    joined_levels,
    refuse_batches,
)
from ranktrees.rows.queries import (
    carry_queries,
    document_ids,
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
from ranktrees.rows.state import is_fitted, unchanged_on_failure

__all__ = [
    "Batch",
    "Batches",
    "FitData",
    "MissingQueryWarning",
    "OrderedLevels",
    "Preferences",
    "ValidationRows",
    "carry_queries",
    "category_columns",
    "check_columns",
    "check_fit",
    "check_rows",
    "check_score",
    "check_validation",
    "class_numbers",
    "column_of",
    "compare_columns",
    "document_ids",
    "find_queries",
    "find_query_of_rows",
    "hand_queries",
    "ids_of_queries",
    "is_fitted",
    "joined_levels",
    "pairs_among",
    "preference_accuracy_score",
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
