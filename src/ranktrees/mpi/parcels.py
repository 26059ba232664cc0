"""Objects as messages whose big arrays are sent to a rank only once.

A driver packs what a rank is to do:

    value --cloudpickle--> | pickle | array 0 | array 1 | ... |

It sends this with a token of the present contents of each array, and with the bytes of those arrays that the
rank does not have. The rank answers with | kind | pickle | text |.
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import cloudpickle
from xxhash import xxh3_128_digest

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

BIG = 1 << 20

DONE, FAILED, BUSY, ENDED = range(4)  # a result, an error, a sign of life, and: the ranks cannot go on


@dataclass
class Parcel:
    """A packed object: the pickle, and its big arrays, which are kept outside the pickle."""

    pickle: bytes
    arrays: list[memoryview]


def pack(value: Any) -> Parcel:
    """Pack ``value`` into a Parcel."""
    arrays = []

    def belongs_inside(buffer: Any) -> bool:
        raw = buffer.raw()
        if raw.nbytes >= BIG:
            arrays.append(raw)
        return raw.nbytes < BIG

    return Parcel(cloudpickle.dumps(value, 5, belongs_inside), arrays)


def token_of(array: Any) -> bytes:
    """Return a token that identifies the contents of an array."""
    return xxh3_128_digest(array)


class Sender:
    """The driver's end of a connection, which knows which arrays the rank has and which it is to forget.

    Parameters
    ----------
    connection : multiprocessing.connection.Connection
        The connection to the rank.
    cache_bytes : int
        The number of bytes of arrays that the rank keeps; it always keeps the arrays of the last parcel.
    """

    def __init__(self, connection: Connection, cache_bytes: int) -> None:
        self._connection, self._cache_bytes = connection, cache_bytes
        self._held: OrderedDict[bytes, int] = (
            OrderedDict()
        )  # the number of bytes by token, the least recently used first
        self._forget: list[bytes] = []

    def send(self, label: str, parcel: Parcel) -> None:
        """Send a parcel, with only those arrays that the rank does not have."""
        tokens = [token_of(array) for array in parcel.arrays]
        arrays = dict(zip(tokens, parcel.arrays, strict=True))
        new = [token for token in arrays if token not in self._held]
        for token, array in arrays.items():
            self._held[token] = array.nbytes
            self._held.move_to_end(token)
        n_bytes = sum(self._held.values())
        for token in list(self._held):
            if n_bytes > self._cache_bytes and token not in arrays:
                n_bytes -= self._held.pop(token)
                self._forget.append(token)
        self._connection.send((label, parcel.pickle, tokens, new, self._forget))
        self._forget = []
        for token in new:
            self._connection.send_bytes(arrays[token])
            if not arrays[token].readonly and token_of(arrays[token]) != token:  # changed in the meantime
                del self._held[token]
                self._forget.append(token)


class Receiver:
    """The rank's end of a connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._held: dict[bytes, Any] = {}

    def receive(self) -> tuple[str, bytes, list[Any]]:
        """Return the label, pickle and arrays of the next parcel. Arrays are shared and read-only."""
        label, data, tokens, new, forget = self._connection.recv()
        for token in forget:
            del self._held[token]
        for token in new:
            self._held[token] = self._connection.recv_bytes()
        return label, data, [self._held[token] for token in tokens]


def unpack(data: bytes, arrays: Sequence[Any]) -> Any:
    """Return the object of a parcel."""
    return pickle.loads(data, buffers=arrays)
