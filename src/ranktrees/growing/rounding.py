"""Turn gradients into integers, once per round. Every sum of integers is exact, in any order."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ranktrees._core.growing import rounding
from ranktrees.processes.sharing import ALL_ROWS
from ranktrees.support.divergence import DIVERGED
from ranktrees.support.parallel import threads_for

if TYPE_CHECKING:
    from ranktrees.processes.sharing import Share

MOST_ROWS = 2**30 - 1  # of all ranks

ROWS_OF_A_PART = 1 << 16

EXACT = 53  # bits: a double does not hold a sum of more bits exactly
MOST_STEPS = 2**63 - 1

# For sampling, the largest hessian counts as at least this many mean hessians. If all hessians are the same,
# few rows are therefore drawn for their hessian.
MEAN_HESSIANS = 8

# What a rank has seen of the gradients and hessians of its rows: their ends, and their sums in steps.
SEEN = np.dtype(
    [
        ("gradient", np.float64),
        ("hessian", np.float64),
        ("least_hessian", np.float64),
        ("gradient_steps", np.int64),
        ("hessian_steps", np.int64),
    ]
)


def refuse_more_rows(n_rows: int) -> None:
    """Raise a ValueError if there are more rows, on all ranks, than can be learned from."""
    if n_rows > MOST_ROWS:
        raise ValueError(
            f"X has {n_rows} rows to learn from; expected at most {MOST_ROWS}: pass a sample of the queries."
        )


class RoundedRows:
    """The gradients of one round as integers, and the size of one integer step.

    ``sums[i]`` holds the gradient and the hessian of ``order[i]`` in one integer, so that one addition adds
    both, in any order: over threads, over shards, and for ``parent - child``. If all hessians are the same,
    the hessian of a row is one step, and the gradients have all bits that the number of rows leaves.
    Otherwise both halves have 32 bits: with 200,000 rows, a mean gradient has thousands of steps, with 10
    million rows, a hundred. That is enough to search for splits. The values of the leaves are computed from
    the gradients themselves. There are at most `MOST_ROWS` rows.

    Attributes
    ----------
    order : ndarray of uint32, shape (n_rows,)
        The rows of the tree. If there are fewer than n_rows, only the first entries are used. The rows are in
        ascending order. Quiet rows that are set apart come last, also in ascending order.
    sums : ndarray of int64, shape (n_rows,)
        The sums in this order. Quiet rows that are set apart have none: that memory is never touched.
    n_rows : int
        The number of the rows of the tree that are on this rank.
    n_loud : int
        The number of these rows, without quiet rows that are set apart.
    bits : int
        The number of bits of the hessian, the lower part.
    same : bool
        Whether all hessians are the same, and all rows are kept. Then the hessian of a sum is its number of
        rows.
    sampled : bool
        Whether all hessians are the same, and rows are sampled. Then the hessian of a sum estimates its
        number of rows.
    gradient_unit, hessian_unit : float
        The size of one step.
    largest_hessian : float
        The largest hessian over all rows of all ranks.
    total : tuple of two int
        The sums over the rows of the tree, of all ranks.
    count : int
        The number of the rows of the tree, of all ranks.
    """

    def __init__(self, n_rows: int, share: Share = ALL_ROWS) -> None:
        self.share = share
        self.n_rows_of_all = n_rows if share.communicator.alone else share.n_rows
        self.order, self.sums = np.empty(n_rows, np.uint32), np.empty(n_rows, np.int64)
        self._first_scales = 0.0, 0.0
        self._rounder = rounding.Rounder(self.order, self.sums, share.row_numbers)

    def round(
        self,
        gradients: np.ndarray,
        hessians: np.ndarray,
        n_threads: int,
        drawn: np.ndarray | None = None,
        sampling: float | None = None,
        key: tuple[int, int] = (0, 0),
        apart: bool = False,
    ) -> Self:
        """Round float64 gradients and hessians (>= 0) of all rows, and keep those of the tree's rows.

        Parameters
        ----------
        gradients, hessians : ndarray of float64, shape (n_rows,)
            A single hessian is that of all rows.
        n_threads : int
        drawn : ndarray of uint32, default=None
            The rows of the tree, in ascending order. If None, all rows.
        sampling : float, default=None
            If given, keep a sample of the rows. A row that is drawn stands for others like it: its gradient
            and hessian are divided by its probability. This is the larger of two ratios, at most 1: that of
            its gradient to a ``sampling``-th of the largest gradient, and that of its hessian to a
            ``sampling``-th of the largest hessian or of 8 mean ones, whichever is more. Of the other rows
            nothing is left.
        key : (int, int), default=(0, 0)
            The key of these draws: the seed of the fit, and a stream of the round.
        apart : bool, default=False
            Whether quiet rows, of which nothing is left, are set apart, as they do not say where to split. If
            they are few, this does not pay, and all rows stay together.

        Raises
        ------
        ValueError
            If the gradients or hessians are not finite.
        """
        n_rows = self.n_rows_of_all
        n_threads = threads_for(n_threads, len(gradients))
        seen = self._look_over(gradients, hessians, n_threads)
        largest_gradient, largest_hessian, same, gradient_steps, hessian_steps = seen
        self.largest_hessian = largest_hessian
        probability = min(1.0, sampling or 1.0)  # that the largest is drawn, and stands for others, too
        largest = largest_gradient / probability, MEAN_HESSIANS * largest_hessian / probability
        if not all(map(math.isfinite, largest)):
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
        self._rounder.begin(gradient_scale, hessian_scale, self.bits)
        if sampling is not None:
            self._rounder.sample(sure_gradient, sure_hessian, *key)
        if same:
            hessians = np.array([1.0 if self.same else largest_hessian])
        apart = apart and not self.same
        *total, self.n_loud = self._rounder.round(gradients, hessians, drawn, apart, n_threads)
        self.n_rows = len(gradients) if drawn is None else len(drawn)
        *total, self.count = self.share.communicator.sums(*total, self.n_rows)
        self.total = tuple(total)
        return self

    def variance(self) -> float:
        """Return the sum of the squares of the rows' gradients over that of their hessians, of all ranks.

        Where gradients depend on nothing, G^2 / H of any rows is this on average. The squares are those of
        fewer bits, so that their sum is exact.
        """
        communicator = self.share.communicator
        parts = [
            self.sums[first : min(first + ROWS_OF_A_PART, self.n_loud)]
            for first in range(0, self.n_loud, ROWS_OF_A_PART)
        ]
        highest = max((int(np.abs(part >> self.bits).max()) for part in parts), default=0)
        largest = int(communicator.allreduce(np.array([highest]), "max")[0])
        spare = max(0, largest.bit_length() - (62 - self.n_rows_of_all.bit_length()) // 2)
        fewer = (part >> (self.bits + spare) for part in parts)
        (squares,) = communicator.sums(sum(int(np.dot(part, part)) for part in fewer))
        unit, hessians = math.ldexp(self.gradient_unit, spare), self.total[1] * self.hessian_unit
        return squares * unit * (unit / hessians) if hessians else 0.0

    def _look_over(self, gradients: np.ndarray, hessians: np.ndarray, n_threads: int) -> tuple[Any, ...]:
        """Run `rounding.look_over` over the rows of all ranks, on the scales of the last round.

        The scales of this round are seldom different.
        """
        seen = rounding.look_over(
            gradients, self._first_scales[0], hessians, self._first_scales[1], n_threads
        )
        gradient, hessian, same, gradient_steps, hessian_steps = seen
        if len(hessians) != len(gradients):  # above MOST_STEPS if the scale of the last round is too fine
            hessian_steps = min(hessian_steps * len(gradients), MOST_STEPS)
        if self.share.communicator.alone:
            return gradient, hessian, same, gradient_steps, hessian_steps
        least = hessian if same else -1.0
        if not len(gradients):
            hessian, least = 0.0, math.inf
        ends = (math.inf if math.isnan(end) else end for end in (gradient, hessian, least))
        of_all = self.share.communicator.stack(np.array((*ends, gradient_steps, hessian_steps), SEEN))
        gradient, hessian = (of_all[end].max().item() for end in ("gradient", "hessian"))
        steps = (of_all[steps].sum().item() for steps in ("gradient_steps", "hessian_steps"))
        return gradient, hessian, of_all["least_hessian"].min() == hessian, *steps
