"""Meetings of ranks: whether all are at the same place, and their short messages."""

import numpy as np
import pytest

from ranktrees._core.processes.meeting import Meeting

GOING, N_BYTES = 0, 256


def meetings_of(n_ranks):
    return [Meeting(n_ranks, N_BYTES) for _ in range(n_ranks)]


@pytest.fixture
def meetings():
    """Of three ranks."""
    meetings = meetings_of(3)
    for meeting in meetings:
        meeting.at(b"tree 1")
    return meetings


def meet(meetings):
    """What an exchange does: each hears all."""
    for meeting in meetings:
        meeting.all[:] = [other.own for other in meetings]


def test_all_hear_the_arrays_of_all(meetings):
    arrays = [np.arange(6.0).reshape(2, 3) + 10 * rank for rank in range(3)]
    for meeting, array in zip(meetings, arrays, strict=True):
        meeting.say(GOING, 1, array.size, array)
    meet(meetings)
    for meeting in meetings:
        assert meeting.agree()
        assert np.array_equal(meeting.stack(arrays[0]), arrays)
        assert meeting.stack(arrays[0]).dtype == np.float64


def test_messages_may_be_of_any_length(meetings):
    longest = b"c" * meetings[0].room
    for meeting, message in zip(meetings, (b"", b"ab", longest), strict=True):
        meeting.say(GOING, 0, 0, message)
    meet(meetings)
    assert meetings[1].agree()
    assert meetings[1].n_bytes().tolist() == [0, 2, len(longest)]
    assert meetings[1].messages(meetings[1].n_bytes()) == [b"", b"ab", longest]


def test_of_a_long_message_only_its_length_is_told():
    (meeting,) = meetings_of(1)
    for message in (b"a", b"a", b"b" * (meeting.room + 1)):
        meeting.say(GOING, 0, 0, message)
    meet([meeting])
    assert meeting.n_bytes().tolist() == [meeting.room + 1]
    assert meeting.messages([1]) == [b"a"]


@pytest.mark.parametrize("differs", ["state", "call", "size", "step"])
def test_ranks_that_are_elsewhere_do_not_agree(meetings, differs):
    said = [{"state": 0, "call": 3, "size": 5, "message": b""} for _ in meetings]
    if differs == "step":
        meetings[2].at(b"tree 2")
    else:
        said[2][differs] += 1
    for meeting, what in zip(meetings, said, strict=True):
        meeting.say(**what)
    meet(meetings)
    assert not any(meeting.agree() for meeting in meetings)
    calls, sizes = [3, 3, said[2]["call"]], [5, 5, said[2]["size"]]
    steps = ["tree 1", "tree 1", "tree 2" if differs == "step" else "tree 1"]
    assert meetings[0].places() == list(zip([1, 1, 1], calls, sizes, steps, strict=True))
    assert meetings[0].states().tolist() == [0, 0, said[2]["state"]]


def test_messages_of_another_meeting_do_not_agree():
    meetings = meetings_of(2)
    meetings[1].say(GOING, 3, 5, b"")
    for meeting in meetings:
        meeting.say(GOING, 3, 5, b"")
    meet(meetings)
    assert not meetings[0].agree()
    assert meetings[0].places() == [(1, 3, 5, ""), (2, 3, 5, "")]


def test_sums_of_arrays(meetings):
    arrays = [np.array([[1, -2], [3, 2**60]]) * (rank + 1) for rank in range(3)]
    for meeting, array in zip(meetings, arrays, strict=True):
        meeting.say(GOING, 1, array.size, array)
    meet(meetings)
    for meeting, array in zip(meetings, arrays, strict=True):
        part = np.full(2, 99)
        meeting.add_up(part, 1)
        meeting.add_up(array)
        assert array.tolist() == [[6, -12], [18, 6 * 2**60]]
        assert part.tolist() == [-12, 18]


def test_sums_are_not_written_to_what_is_read_only():
    (meeting,) = meetings_of(1)
    array = np.zeros(3, np.int64)
    array.flags.writeable = False
    meeting.say(GOING, 1, 3, array)
    with pytest.raises((BufferError, ValueError), match=r"read-only|not writable"):
        meeting.add_up(array)


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
