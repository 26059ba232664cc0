"""Ranks that communicate through sockets find each other, whoever else calls."""

import contextlib
import os
import socket
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from ranktrees.processes.communicator import RankError
from ranktrees.processes.sockets import SocketCommunicator, callers, limit_waits

KEY = b"k" * 32


@pytest.fixture
def server():
    with socket.create_server(("127.0.0.1", 0), backlog=8) as server:
        yield server


def rank_of_two(rank, server, timeout, key=KEY):
    mine = server if rank == 0 else None
    return SocketCommunicator(rank, 2, key, server.getsockname(), mine, timeout)


def says_nothing(line):
    pass


def hangs_up(line):
    line.close()


def says_half_a_message(line):
    line.sendall(b"\0\0")


def does_not_know_the_key(line):
    line.sendall(b"\0\0\0\x0bno response")


def says_something_else(line):
    line.sendall(b"\0\0\0\x28" + b"x" * 40)


STRANGERS = [says_nothing, hangs_up, says_half_a_message, does_not_know_the_key, says_something_else]


@pytest.mark.parametrize("stranger", STRANGERS)
def test_strangers_hold_nobody_up(server, stranger):
    with socket.create_connection(server.getsockname()) as line:
        stranger(line)
        with ThreadPoolExecutor(2) as pool:
            ranks = list(pool.map(lambda rank: rank_of_two(rank, server, 30), range(2)))
            said = list(pool.map(lambda one: one.allgather(one.rank), ranks))
    for one in ranks:
        one.close()
    assert said == [[0, 1]] * 2


@pytest.fixture
def two_ranks(server):
    with ThreadPoolExecutor(2) as pool:
        ranks = list(pool.map(lambda rank: rank_of_two(rank, server, 30), range(2)))
    for one in ranks:
        one.timeout = 1
        for line in one._connections():
            limit_waits(line, one._wait_limit).close()
    yield ranks
    for one in ranks:
        one.close()


def test_rank_0_that_does_not_listen_is_not_waited_for_for_ever(two_ranks):
    """What is to be sent is more than is on its way at any time."""
    with pytest.raises(RankError, match="rank 0 did not reach 'start' within 1 s"):
        two_ranks[1].allreduce(np.zeros(10_000_000, np.int64))


def test_a_rank_that_stops_within_its_message_is_not_waited_for_for_ever(two_ranks):
    os.write(two_ranks[1]._hub.fileno(), struct.pack("!i", 1_000) + b"some of it")
    with pytest.raises(RankError, match="rank 1 did not reach 'start' within 1 s"):
        two_ranks[0].allgather(0)


@pytest.mark.parametrize("stranger", STRANGERS)
def test_strangers_are_no_ranks(server, stranger):
    with socket.create_connection(server.getsockname()) as line:
        line.settimeout(30)
        stranger(line)
        with pytest.raises(RankError, match=r"rank 1 did not reach 'start' within 0.2 s"):
            rank_of_two(0, server, 0.2)
        with contextlib.suppress(OSError):
            while line.recv(1 << 10):  # until it is hung up on
                pass


@pytest.mark.parametrize(
    ("answer", "patience", "said"),
    [
        (says_nothing, 0.2, r"rank 0 did not reach 'start' within 0.2 s"),
        (says_half_a_message, 0.2, r"rank 0 did not reach 'start' within 0.2 s"),
        (
            says_something_else,
            9,
            r"rank 1 cannot reach rank 0 at 127.0.0.1:\d+: AuthenticationError\('it does not",
        ),
        (hangs_up, 9, r"rank 1 cannot reach rank 0 at 127.0.0.1:\d+: (EOFError|ConnectionReset)"),
    ],
)
def test_a_rank_does_not_wait_for_ever(server, answer, patience, said):
    def serve():
        line = server.accept()[0]
        answer(line)
        return line

    with ThreadPoolExecutor(1) as pool:
        line = pool.submit(serve)
        started = time.monotonic()
        with pytest.raises(RankError, match=said):
            rank_of_two(1, server, patience)
        assert time.monotonic() - started < 10
        line.result().close()


def test_nobody_listens(server):
    server.close()
    with pytest.raises(RankError, match=r"cannot reach rank 0 at 127.0.0.1:9: ConnectionRefusedError"):
        SocketCommunicator(1, 2, KEY, ("127.0.0.1", 9), None, 5)


def test_who_has_another_key_is_told(server):
    with callers(server, KEY) as come, pytest.raises(RankError, match="AuthenticationError"):
        rank_of_two(1, server, 30, b"another key")
    assert come.empty()


def test_ranks_that_are_in_hear_that_another_is_missing(server):
    def come(rank):
        ranks = SocketCommunicator(rank, 3, KEY, server.getsockname(), None if rank else server, 2)
        try:
            ranks.allgather(rank)
        finally:
            ranks.close()

    n_threads = threading.active_count()
    with ThreadPoolExecutor(2) as pool:
        hub, other = (pool.submit(come, rank) for rank in range(2))
        with pytest.raises(RankError, match="rank 2 did not reach 'start'"):
            hub.result(timeout=10)
        with pytest.raises(RankError, match="rank 0 is gone"):
            other.result(timeout=10)
    last = time.monotonic() + 5
    while threading.active_count() > n_threads and time.monotonic() < last:
        time.sleep(0.01)
    assert threading.active_count() <= n_threads  # those of the test before may have been at their end
