"""Strangers that call a rank, or are called by one: they are not let in, hold nobody up, and break nothing.

    python tests/fuzz/greetings.py [--seconds 3600] [--files N] [--seed 0] [--first 0]

A stranger says random bytes, or what a rank would say, damaged, and may know the language but not the key.
After each stranger that calls, a rank with the key is let in at once. `fuzzing` says the rest.
"""

import contextlib
import pickle
import socket
import struct
import sys
import threading
import time
from multiprocessing import AuthenticationError
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # where this is a script
from fuzz.fuzzing import LIMIT, damaged, main, picked
from ranktrees.processes.sockets import call, callers

KEY = b"k" * 32
PATIENCE = 5.0  # seconds until a rank that has the key must have been let in
WORDS = [
    b"#CHALLENGE#",
    b"#WELCOME#",
    b"#FAILURE#",
    b"{sha256}",
    b"{md5}",
    b"{sha3_256}",
    b"{\xff}",
    b"{}",
    b"",
]
WORDS += [bytes(20), bytes(32), bytes(16), b"x" * 40, b"x" * 300, pickle.dumps(1), pickle.dumps(-1)]
LENGTHS = [-1, -2, 0, 1, 16, 20, 32, 255, 256, 257, 2**31 - 1, -(2**31)]


def message(rng):
    """A message as connections send them: its length, or another one, and its bytes."""
    content = b"".join(picked(rng, WORDS) for _ in range(rng.integers(1, 4)))
    length = len(content) if rng.random() < 0.8 else picked(rng, LENGTHS)
    long = struct.pack("!Q", picked(rng, [0, 1, 2**31, 2**63, 2**64 - 1])) if length == -1 else b""
    return struct.pack("!i", int(length)) + long + content


def speech(rng):
    """What a stranger says in all."""
    said = b"".join(message(rng) for _ in range(rng.integers(4)))
    return damaged(rng, said) if rng.random() < 0.5 else said


def say(rng, line):
    """Say something, echo what is heard or say nothing, and hang up or not."""
    line.settimeout(PATIENCE)
    with contextlib.suppress(OSError):  # it has been hung up on
        if rng.random() < 0.2:
            line.sendall(line.recv(1 << 10))  # the challenge, as if it were the answer
        line.sendall(speech(rng))
        if rng.random() < 0.5:
            line.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def without_failing_threads():
    """Raise what a thread raised."""
    failures, hook = [], threading.excepthook
    threading.excepthook = failures.append
    try:
        yield failures
    finally:
        threading.excepthook = hook


def _calls(rng):
    """A stranger calls, and then a rank."""
    with without_failing_threads() as failures, socket.create_server(("127.0.0.1", 0)) as server:
        greeting = int(rng.integers(1 << 30))
        with callers(server, KEY) as accepted, socket.create_connection(server.getsockname()) as line:
            say(rng, line)
            with call(server.getsockname(), KEY, greeting, time.monotonic() + PATIENCE):
                caller, said = accepted.get(timeout=PATIENCE)
                caller.close()
            assert said == greeting
            assert accepted.empty()
        assert accepted.empty()
        if failures:
            raise failures[0].exc_value
    return "a caller"


def _is_called(rng):
    """A rank calls a stranger."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            with server.accept()[0] as line:
                say(rng, line)

        thread = threading.Thread(target=answer)
        thread.start()
        started = time.monotonic()
        try:
            call(server.getsockname(), KEY, 1, started + 0.05).close()
        except (AuthenticationError, EOFError, OSError):
            pass
        else:
            raise AssertionError("a stranger was taken for rank 0")
        finally:
            thread.join()
        assert time.monotonic() - started < PATIENCE
    return "a hub"


@contextlib.contextmanager
def fuzzer():
    yield lambda rng: (_calls, _is_called)[rng.integers(2)](rng)


if __name__ == "__main__":
    main(fuzzer, __doc__, limit=LIMIT)
