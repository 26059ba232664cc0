"""What ranks say when they meet: whether they are at the same place, and their short messages."""

import numpy as np
import pytest

from ranktrees._core.meeting import Meeting

GOING, N_BYTES = 0, 256


def meet(meetings):
    """What an exchange does: each hears all."""
    for meeting in meetings:
        meeting.all[:] = [other.own for other in meetings]


def meetings_at(step, n_ranks=3):
    meetings = [Meeting(n_ranks, N_BYTES) for _ in range(n_ranks)]
    for meeting in meetings:
        meeting.at(step)
    return meetings


def test_all_hear_the_arrays_of_all():
    meetings = meetings_at(b"tree 1")
    arrays = [np.arange(6.0).reshape(2, 3) + 10 * rank for rank in range(3)]
    for meeting, array in zip(meetings, arrays, strict=True):
        meeting.say(GOING, 1, array.size, array)
    meet(meetings)
    for meeting in meetings:
        assert meeting.agree()
        assert np.array_equal(meeting.stack(arrays[0]), arrays)
        assert meeting.stack(arrays[0]).dtype == np.float64


def test_messages_may_be_of_any_length():
    meetings = meetings_at(b"tree 1")
    longest = b"c" * meetings[0].room
    for meeting, message in zip(meetings, (b"", b"ab", longest), strict=True):
        meeting.say(GOING, 0, 0, message)
    meet(meetings)
    assert meetings[1].agree()
    assert meetings[1].n_bytes().tolist() == [0, 2, len(longest)]
    assert [bytes(text) for text in meetings[1].messages(meetings[1].n_bytes())] == [b"", b"ab", longest]


def test_of_a_long_message_only_its_length_is_told():
    meeting = Meeting(1, N_BYTES)
    meeting.say(GOING, 0, 0, b"a")
    before = meeting.own[-meeting.room :].copy()
    meeting.say(GOING, 0, 0, b"b" * (meeting.room + 1))
    meet([meeting])
    assert meeting.n_bytes().tolist() == [meeting.room + 1]
    assert np.array_equal(meeting.own[-meeting.room :], before)


@pytest.mark.parametrize("differs", ["state", "call", "size", "number", "step"])
def test_ranks_that_are_elsewhere_do_not_agree(differs):
    meetings = meetings_at(b"tree 1")
    said = [{"state": 0, "call": 3, "size": 5, "message": b""} for _ in meetings]
    if differs == "step":
        meetings[2].at(b"tree 2")
    elif differs == "number":
        meetings[2].say(**said[2])
    else:
        said[2][differs] += 1
    for meeting, what in zip(meetings, said, strict=True):
        meeting.say(**what)
    meet(meetings)
    assert not any(meeting.agree() for meeting in meetings)
    numbers = [1, 1, 1 + (differs == "number")]
    calls, sizes = [3, 3, said[2]["call"]], [5, 5, said[2]["size"]]
    steps = ["tree 1", "tree 1", "tree 2" if differs == "step" else "tree 1"]
    assert meetings[0].places() == list(zip(numbers, calls, sizes, steps, strict=True))
    assert meetings[0].states().tolist() == [0, 0, said[2]["state"]]


def test_a_shorter_step_leaves_nothing_of_the_one_before():
    meeting = Meeting(1, N_BYTES)
    meeting.at(b"x" * 300)
    meeting.say(GOING, 0, 0, b"")
    meet([meeting])
    assert meeting.places() == [(1, 0, 0, "x" * 88)]
    meeting.at(b"end")
    meeting.say(GOING, 0, 0, b"")
    meet([meeting])
    assert meeting.places() == [(2, 0, 0, "end")]


def test_arrays_must_be_contiguous():
    with pytest.raises((BufferError, ValueError), match="contiguous"):
        Meeting(1, N_BYTES).say(GOING, 1, 4, np.zeros((4, 4))[:, 0])
