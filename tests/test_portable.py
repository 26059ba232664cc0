"""The exponential and the logarithm of portable.h, through kernels that use them."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktrees._core.measures import ranking
from ranktrees._core.objectives import losses


def exponentials(x):
    x = np.array(x, float, ndmin=1)
    out = np.empty_like(x)
    losses.exponentials(x, out)
    return out


def discounts(n):
    out = np.empty(n)
    ranking.log2_discounts(out)
    return out


def ulps(found, exact):
    """How far a float is from a Decimal, in units of the float's last place."""
    return abs(float((Decimal(found) - exact) / Decimal(math.ulp(found))))


def exact_exp(x):
    with localcontext() as context:
        context.prec = 40
        return Decimal(x).exp()


def exact_log2(x):
    with localcontext() as context:
        context.prec = 40
        return Decimal(x).ln() / Decimal(2).ln()


def points(low, high, n=1500):
    rng = np.random.default_rng(0)
    return np.concatenate([rng.uniform(low, high, n), rng.uniform(-1, 1, n), rng.normal(size=n) * 1e-9])


def test_exp_is_within_one_unit_in_the_last_place():
    x = points(-700, 700)
    errors = [
        ulps(found, exact_exp(value))
        for value, found in zip(x.tolist(), exponentials(x).tolist(), strict=True)
    ]
    assert max(errors) < 1
    assert np.mean(errors) < 0.3


def test_exp_near_the_edges_of_its_reduction():
    halves = (np.arange(-1000, 1000) + 0.5) * math.log(2)
    x = np.concatenate([halves, np.nextafter(halves, np.inf), np.nextafter(halves, -np.inf)])
    errors = [
        ulps(found, exact_exp(value))
        for value, found in zip(x.tolist(), exponentials(x).tolist(), strict=True)
    ]
    assert max(errors) < 1.1


def test_exp_of_odd_numbers():
    assert exponentials([0.0, -0.0, 5e-324, -1e-300]).tolist() == [1.0] * 4
    high, low = exponentials([700.0, -700.0])
    assert exponentials([700.1, 1e300, np.inf]).tolist() == [high] * 3
    assert exponentials([-700.1, -1e300, -np.inf]).tolist() == [low] * 3
    assert np.isfinite(high)
    assert low > 0
    assert np.isnan(exponentials(np.nan)[0])


@given(st.floats(-800, 800))
def test_exp_rises(x):
    below, here, above = exponentials([np.nextafter(x, -np.inf), x, np.nextafter(x, np.inf)])
    assert below <= here * (1 + 2**-52)
    assert here <= above * (1 + 2**-52)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 17, 1001])
def test_exp_does_not_depend_on_its_neighbours(n):
    """The last few of an array go through other instructions than the rest; not to other bits."""
    x = np.random.default_rng(0).uniform(-30, 30, n)
    assert exponentials(x).tolist() == [exponentials(value)[0] for value in x]


def test_log2_of_ranks():
    """1 / log2: one rounding more than the logarithm's own."""
    found = discounts(5000)
    errors = [ulps(value, 1 / exact_log2(rank)) for rank, value in enumerate(found.tolist(), start=2)]
    assert max(errors) < 2
    assert np.mean(errors) < 0.6


def test_log2_is_exact_for_powers_of_two():
    found = discounts(2**16)
    for power in range(1, 17):
        assert found[2**power - 2] == 1 / power


def test_natural_log():
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [np.exp(rng.uniform(-700, 700, 1500)), rng.uniform(0.5, 2, 1500), 1 + rng.normal(size=500) * 1e-9]
    )
    for value in x.tolist():
        with localcontext() as context:
            context.prec = 40
            exact = Decimal(value).ln()
        assert ulps(losses.natural_log(value), exact) < 3.5
    assert losses.natural_log(1.0) == 0
    assert losses.natural_log(2.2250738585072014e-308) == pytest.approx(-708.3964185322641, rel=1e-15)


def test_sigmoid():
    x = points(-700, 700, 500)
    found = np.empty_like(x)
    losses.sigmoids(x, found)
    for value, probability in zip(x.tolist(), found.tolist(), strict=True):
        with localcontext() as context:
            context.prec = 40
            exact = 1 / (1 + (-Decimal(value)).exp())
        assert ulps(probability, exact) < 3
    assert (found >= 0).all()
    assert (found <= 1).all()
