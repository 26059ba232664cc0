"""Early exit and ranking row by row, with nothing but lists and sorts."""

from fractions import Fraction


def best_first(rows, scores):
    return sorted(rows, key=lambda row: (-scores[row], row))


def trees_of_rows(after, qid, points, *, drop=None, threshold=None, keep_at_least=0):
    """How many trees each row passes; ``after[t][row]`` is its score after t trees.

    ``drop`` or ``threshold`` has one number for each point.
    """
    n_trees = len(after) - 1
    trees = [n_trees] * len(qid)
    rows_in = set(range(len(qid)))
    for i, point in enumerate(points):
        if point >= n_trees:
            break
        for query in set(qid):
            rows = best_first([row for row in rows_in if qid[row] == query], after[point])
            if drop is not None:
                n_leaving = int(Fraction(str(drop[i])) * len(rows))
                n_leaving = min(n_leaving, len(rows) - max(1, keep_at_least))
                leaving = rows[len(rows) - max(0, n_leaving) :]
            else:
                leaving = [row for row in rows[keep_at_least:] if after[point][row] < threshold[i]]
            for row in leaving:
                trees[row] = point
            rows_in -= set(leaving)
    return trees


def rank(qid, scores, trees, k):
    """(query, row, rank, score) of the best k rows of each query."""
    table = []
    for query in dict.fromkeys(qid):
        rows = [row for row in range(len(qid)) if qid[row] == query]
        rows.sort(key=lambda row: (-trees[row], -scores[row], row))
        table += [(query, row, place + 1, scores[row]) for place, row in enumerate(rows[:k])]
    return table
