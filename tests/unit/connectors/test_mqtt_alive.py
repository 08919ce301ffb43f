"""When a broker is asked for a sign of life, and when it counts as one that hangs."""

from __future__ import annotations

import struct

from pipeline_runtime.connectors.mqtt_alive import ANSWER_S, ASK_S, Alive, Moved

STILL = Moved(received=10, acknowledged=100, under_way=False)


def test_a_broker_that_says_nothing_is_asked_and_hangs_if_it_does_not_answer() -> None:
    alive = Alive(0.0, STILL, 15.0)
    assert [alive.look(at_s, STILL) for at_s in (1.0, ASK_S, ASK_S + ANSWER_S - 0.1)] == [
        "wait",
        "ask",
        "wait",
    ]
    answered = Moved(12, 102, under_way=False)
    assert alive.look(ASK_S + ANSWER_S, answered) == "wait"
    assert alive.look(2 * ASK_S + ANSWER_S, answered) == "ask"
    # What is sent behind the question makes no answer of it.
    later = Moved(12, 9_000, under_way=True)
    assert alive.look(2 * ASK_S + 2 * ANSWER_S, later) == "hangs"


def test_a_large_message_may_take_as_long_as_bytes_of_it_arrive() -> None:
    alive = Alive(0.0, STILL, 15.0)
    for second in range(1, 100):
        assert alive.look(second, Moved(10, 100 + second, under_way=True)) == "wait"
    stands = Moved(10, 199, under_way=True)
    assert alive.look(99 + ASK_S + ANSWER_S - 0.1, stands) == "wait"
    assert alive.look(99 + ASK_S + ANSWER_S, stands) == "hangs"
    assert alive.under_way_s == 99 + ASK_S + ANSWER_S


def test_a_question_that_was_not_sent_is_asked_later() -> None:
    alive = Alive(0.0, STILL, 15.0)
    assert alive.look(ASK_S, STILL) == "ask"
    alive.not_asked()
    for second in range(10):
        assert alive.look(ASK_S + second, Moved(10, 101 + second, under_way=True)) == "wait"
    assert alive.look(ASK_S + 10, Moved(10, 111, under_way=False)) == "ask"


def test_why_it_hangs_says_whether_it_was_asked() -> None:
    asked, stands = Alive(0.0, STILL, 15.0), Alive(0.0, STILL, 15.0)
    assert [asked.look(at_s, STILL) for at_s in (ASK_S, ASK_S + ANSWER_S)] == ["ask", "hangs"]
    assert asked.why == "the broker has not answered for 4 s"
    assert stands.look(ASK_S + ANSWER_S, Moved(10, 100, under_way=True)) == "hangs"
    assert stands.why == "no byte has moved to or from the broker for 6.5 s"


def test_a_question_on_a_slow_line_is_no_message_that_is_under_way() -> None:
    alive, moved = Alive(0.0, STILL, 15.0), STILL
    for asked_s in (ASK_S, 2 * ASK_S + 1, 3 * ASK_S + 2):
        assert alive.look(asked_s, moved) == "ask"
        assert alive.look(asked_s + 0.5, Moved(moved.received, moved.acknowledged, under_way=True)) == "wait"
        moved = Moved(moved.received + 2, moved.acknowledged + 2, under_way=False)
        assert alive.look(asked_s + 1, moved) == "wait"
    assert alive.under_way_s == float("-inf")


def test_a_broker_that_sends_all_the_time_is_asked_so_that_it_hears_something() -> None:
    alive = Alive(0.0, STILL, 15.0)
    looks = [alive.look(second, Moved(10 + second, 100, under_way=False)) for second in range(1, 32)]
    assert [second for second, look in enumerate(looks, 1) if look == "ask"] == [15, 30]


def test_what_the_system_says_of_a_connection_is_read() -> None:
    info = bytearray(256)
    struct.pack_into("=QQ", info, 120, 5, 7)
    assert Moved.read(bytes(info), queued=False) == Moved(7, 5, under_way=False)
    assert Moved.read(bytes(info), queued=True).under_way
    for at in (24, 144):  # segments that are not acknowledged, and bytes that are not sent
        waiting = bytearray(info)
        struct.pack_into("=I", waiting, at, 1)
        assert Moved.read(bytes(waiting), queued=False).under_way
