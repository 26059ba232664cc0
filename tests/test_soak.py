"""Each operation of ``scripts/soak`` once; hours of them are run by the command."""

import numpy as np
import pytest
import soak


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("operation", soak.OPERATIONS, ids=lambda operation: operation.__name__)
def test_an_operation_leaves_the_same_bytes_and_nothing_else(operation, monkeypatch):
    monkeypatch.setattr(soak, "WAYS", [soak.by_process, soak.by_sockets])
    tally = soak.Tally()
    with soak.own_temporary_folder() as temporary:
        soak.operate(operation, np.random.default_rng(0), tally, temporary)
    assert tally.n_compared > 0
