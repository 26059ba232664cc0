"""Objects as messages, of which big arrays are sent to a rank only once.

A driver packs what a rank is to do:

    value --cloudpickle--> | pickle | token of array 0 | token of array 1 | ... |
                           and the bytes of each array that the rank does not have

and the rank answers with | kind | pickle | text |.
"""

import pickle
from collections import OrderedDict
from dataclasses import dataclass
from hashlib import blake2b

import cloudpickle
import numpy as np

BIG = 1 << 20

DONE, FAILED, BUSY, ENDED = range(4)  # a result, an error; it still works, and: the ranks cannot go on


@dataclass
class Parcel:
    """An object, packed: the pickle without its big arrays, and these by tokens of their contents."""

    pickle: bytes
    arrays: dict[bytes, memoryview]
    tokens: list[bytes]


class Packer:
    """Packs objects. While one lives, it looks into an array once."""

    def __init__(self):
        self._tokens = {}

    def pack(self, value):
        """``value`` as a Parcel."""
        arrays, tokens = {}, []

        def belongs_inside(buffer):
            raw = buffer.raw()
            if raw.nbytes >= BIG:
                tokens.append(self._token(raw))
                arrays[tokens[-1]] = raw
            return raw.nbytes < BIG

        return Parcel(cloudpickle.dumps(value, 5, belongs_inside), arrays, tokens)

    def _token(self, raw):
        place = (np.frombuffer(raw, np.uint8).ctypes.data, raw.nbytes)
        if place not in self._tokens:
            self._tokens[place] = (blake2b(raw, digest_size=16).digest(), raw)  # held: the place stays taken
        return self._tokens[place][0]


class Sender:
    """The driver's end: knows which arrays the rank has, and which it is to forget.

    Parameters
    ----------
    connection : multiprocessing.connection.Connection
    cache_bytes : int
        How much the rank may keep besides the arrays of the last parcel.
    """

    def __init__(self, connection, cache_bytes):
        self._connection, self._cache_bytes = connection, cache_bytes
        self._held = OrderedDict()  # how many bytes; the longest unused first

    def send(self, label, parcel):
        """Send what the rank does not have."""
        new = [token for token in parcel.arrays if token not in self._held]
        for token, array in parcel.arrays.items():
            self._held[token] = array.nbytes
            self._held.move_to_end(token)
        forget = []
        for token in list(self._held):
            if sum(self._held.values()) > self._cache_bytes and token not in parcel.arrays:
                del self._held[token]
                forget.append(token)
        self._connection.send((label, parcel.pickle, parcel.tokens, new, forget))
        for token in new:
            self._connection.send_bytes(parcel.arrays[token])


class Receiver:
    """The rank's end."""

    def __init__(self, connection):
        self._connection = connection
        self._held = {}

    def receive(self):
        """The label of the next parcel and what it takes to unpack it: arrays are shared and read-only."""
        label, data, tokens, new, forget = self._connection.recv()
        for token in forget:
            del self._held[token]
        for token in new:
            self._held[token] = self._connection.recv_bytes()
        return label, data, [self._held[token] for token in tokens]


def unpack(data, arrays):
    """The object."""
    return pickle.loads(data, buffers=arrays)
