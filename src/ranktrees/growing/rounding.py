"""Gradients to integers, once a round: every sum of them is exact, hence the same in any order."""

import math

import numpy as np

from ranktrees._core import rounding
from ranktrees.parallel import threads_for
from ranktrees.sharing import ALL

DIVERGED = (
    "The gradients of the loss have left the range of floating point: the scores have diverged. Scale "
    "y and sample_weight to a smaller range, or, in boosting, lower learning_rate."
)

EXACT = 53  # bits: of more, a double does not hold a sum
MOST_STEPS = 2**63 - 1

# The largest hessian counts as at least so many mean ones: where all are the same, few are drawn for theirs.
MEAN_HESSIANS = 8


def refuse_infinite(*numbers):
    """Raise a ValueError that says that the scores have diverged, unless all numbers are finite."""
    if not all(np.isfinite(each).all() for each in numbers):
        raise ValueError(DIVERGED)


class RoundedRows:
    """The gradients of one round as integers, and what one integer step is worth.

    ``sums[i]`` holds the gradient and the hessian of ``order[i]`` in one integer, so that one
    addition adds both, in any order: over threads, over shards, and for ``parent - child``. Where all
    hessians are the same, a row's is one step, and the gradients keep all bits that the number of rows
    leaves. Otherwise both halves have 32: a mean gradient of 200,000 rows has thousands of steps, one of
    10 million rows a hundred. That is enough to find splits by. The values of the leaves are computed from
    the gradients themselves.

    Attributes
    ----------
    order : ndarray of uint32, shape (n_rows,)
        The rows of the tree; of fewer rows, the first of them. They rise, but for quiet ones set apart, which
        come last and rise, too.
    sums : ndarray of int64, shape (n_rows,)
        In this order. Of quiet rows set apart there are none: that memory is never touched.
    n_loud : int
        The number of this rank's rows but for quiet ones set apart.
    bits : int
        Of the hessian, the lower part.
    same : bool
        Whether all hessians are the same, and kept; then the hessian of a sum is its number of rows.
    sampled : bool
        Whether all hessians are the same, and rows are sampled; then the hessian of a sum estimates that.
    gradient_unit, hessian_unit : float
        What one step is worth.
    largest_hessian : float
        Of all rows of all ranks.
    total : tuple of two int
        The sums over the tree's rows, of all ranks.
    count : int
        The number of these rows.
    """

    def __init__(self, n_rows, share=ALL):
        self.share = share
        self.n_rows_of_all = n_rows if share.communicator.alone else share.n_rows
        if self.n_rows_of_all >= 1 << 30:
            raise ValueError(f"X has {self.n_rows_of_all} rows; at most 2**30 - 1 can be trained on.")
        self.order, self.sums = np.empty(n_rows, np.uint32), np.empty(n_rows, np.int64)
        self._first_scales = 0.0, 0.0
        self.loud = np.empty(rounding.words_for(n_rows), np.uint64)

    def round(self, gradients, hessians, n_threads, drawn=None, sampling=None, key=(0, 0), apart=False):
        """Round float64 gradients and hessians (>= 0) of all rows, and keep those of the tree's rows.

        Parameters
        ----------
        gradients, hessians : ndarray of float64, shape (n_rows,)
            There may be one hessian only, that of all rows.
        n_threads : int
        drawn : ndarray of uint32, default=None
            The rows of the tree, rising; None is all.
        sampling : float, default=None
            Keep a sample of the rows. Each that is drawn stands for others like it: its gradient and hessian
            are divided by its odds, which are those of its gradient to a ``sampling``-th of the largest, or
            of its hessian to a ``sampling``-th of the largest or of 8 mean ones, what is more. Nothing is
            left of the other rows.
        key : (int, int), default=(0, 0)
            Of these draws: the fit's seed, and a stream of the round.
        apart : bool, default=False
            Whether quiet rows, of which nothing is left, are set apart: they tell nothing of where to split.
            Where they are few it does not pay, and all stay together.

        Raises
        ------
        ValueError
            If they are not finite.
        """
        n_rows = self.n_rows_of_all
        n_threads = threads_for(n_threads, len(gradients))
        seen = self._look_over(gradients, hessians, n_threads)
        largest_gradient, largest_hessian, same, gradient_steps, hessian_steps = seen
        self.largest_hessian = largest_hessian
        odds = min(1.0, sampling or 1.0)  # of the largest, which may stand for more
        if not (
            math.isfinite(largest_gradient / odds) and math.isfinite(MEAN_HESSIANS * largest_hessian / odds)
        ):
            raise ValueError(DIVERGED)
        same = same and largest_hessian > 0
        self.same, self.sampled = same and sampling is None, same and sampling is not None
        self.bits = n_rows.bit_length() if self.same else 32
        room = min(63 - self.bits, EXACT)
        first_scales = tuple(map(rounding.first_scale, (largest_gradient, largest_hessian)))
        if first_scales != self._first_scales:
            self._first_scales = first_scales
            *_, gradient_steps, hessian_steps = self._look_over(gradients, hessians, n_threads)
        gradient_scale, sure_gradient = rounding.scale_of(
            largest_gradient, gradient_steps, n_rows, room, sampling
        )
        hessian_scale, sure_hessian = 1.0, math.nan
        if not self.same:
            hessian_scale, sure_hessian = rounding.scale_of(
                largest_hessian, hessian_steps, n_rows, 32, sampling, MEAN_HESSIANS
            )
        self.gradient_unit = 1.0 / gradient_scale
        largest_gradient = largest_gradient if sampling is None else max(largest_gradient, sure_gradient)
        self.hessian_unit = float(largest_hessian) if self.same else 1.0 / hessian_scale
        largest_sum = n_rows * largest_gradient
        if not math.isfinite(largest_sum * (largest_sum / self.hessian_unit)):
            raise ValueError(DIVERGED)
        n_drawn = len(gradients) if drawn is None else len(drawn)
        *total, self.n_loud = rounding.round_rows(
            drawn,
            gradients,
            None if same else hessians,
            1.0 if self.same else largest_hessian,
            gradient_scale,
            hessian_scale,
            self.bits,
            sure_gradient,
            sure_hessian,
            *key,
            self.share.row_numbers,
            self.loud if apart and not self.same else None,
            self.order[:n_drawn],
            self.sums,
            n_threads,
        )
        *total, self.count = self.share.communicator.sums(*total, n_drawn)
        self.total = tuple(total)
        return self

    def _look_over(self, gradients, hessians, n_threads):
        """What `rounding.look_over` says of the rows of all ranks, on the scales of the last round.

        They are seldom others in this one.
        """
        own = rounding.look_over(gradients, self._first_scales[0], hessians, self._first_scales[1], n_threads)
        gradient, hessian, same, gradient_steps, hessian_steps = own
        if len(hessians) != len(gradients):  # there are more where the last round's scale is too fine for it
            hessian_steps = min(hessian_steps * len(gradients), MOST_STEPS)
        if self.share.communicator.alone:
            return gradient, hessian, same, gradient_steps, hessian_steps
        least = hessian if same else -1.0
        if not len(gradients):
            hessian, least = 0.0, math.inf
        ends = np.array([math.inf if math.isnan(end) else end for end in (gradient, hessian, least)])
        told = self.share.communicator.stack(
            np.concatenate([ends.view(np.int64), np.array([gradient_steps, hessian_steps], np.int64)])
        )
        ends, steps = told[:, :3].copy().view(np.float64), told[:, 3:].sum(axis=0).tolist()
        gradient, hessian, _ = ends.max(axis=0).tolist()
        return gradient, hessian, ends[:, 2].min() == hessian, *steps
