"""Tests which messages a broker has passed on, and which it has dropped."""

from __future__ import annotations

from pipeline_runtime.connectors.passed_on import PassedOn


def test_all_has_come_back() -> None:
    passed_on = PassedOn()
    assert passed_on.wait(0)
    for number, payload in enumerate((b"a", b"a", b"b")):
        passed_on.sends("t", payload, number)
    passed_on.sends("u", b"c", 3)
    for topic, payload in (("t", b"a"), ("u", b"c"), ("t", b"a")):
        assert not passed_on.wait(0)
        passed_on.take(topic, payload)
    assert (passed_on.missing(), passed_on.unheard()) == (["t"], [])
    passed_on.take("t", b"b")
    assert passed_on.wait(0)
    assert (passed_on.dropped(), passed_on.missing(), passed_on.has_other) == ([], [], False)


def test_what_a_later_message_of_its_topic_overtakes_was_dropped() -> None:
    passed_on = PassedOn()
    for number, (topic, payload) in enumerate((("t", b"a"), ("u", b"b"), ("t", b"c"), ("t", b"d"))):
        passed_on.sends(topic, payload, number)
    passed_on.sends("u", b"e", None)
    passed_on.sends("u", b"f", 4)
    assert passed_on.waiting_bytes == 6
    passed_on.take("t", b"d")
    assert passed_on.waiting_bytes == 3
    assert not passed_on.wait(0)  # of the other topic nothing is known
    assert passed_on.unheard() == ["u"]
    passed_on.take("u", b"b")
    passed_on.take("u", b"f")
    assert passed_on.wait(0)
    assert passed_on.dropped() == [0, 2]  # what has no number is not named
    assert passed_on.dropped() == []


def test_a_message_that_was_not_sent_is_of_another_client() -> None:
    passed_on = PassedOn()
    passed_on.sends("t", b"a", 0)
    passed_on.take("t", b"of an earlier owner")
    passed_on.take("t", b"a")
    passed_on.take("t", b"a")  # over two bridges
    assert not passed_on.has_other
    passed_on.take("t", b"b")
    assert passed_on.has_other


def test_what_comes_back_late_is_of_no_other_client() -> None:
    passed_on = PassedOn()
    for number, payload in enumerate((b"a", b"b", b"c")):
        passed_on.sends("t", payload, number)
    passed_on.take("t", b"b")
    passed_on.take("t", b"a")
    assert passed_on.dropped() == [0]
    passed_on.begin()
    assert passed_on.wait(0)
    assert (passed_on.waiting_bytes, passed_on.missing()) == (0, [])
    passed_on.sends("t", b"d", 3)
    passed_on.take("t", b"d")
    passed_on.take("t", b"c")
    assert not passed_on.has_other
    passed_on.take("t", b"e")
    assert passed_on.has_other
    passed_on.begin()
    assert not passed_on.has_other
