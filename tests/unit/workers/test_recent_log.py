"""The log that a node shows: the newest lines, within limits, without secrets."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from pipeline_runtime.model.node_log import LINES_MAX, LogAnswer, LogQuestion
from workers.node.recent_log import ANSWER_CHARS_MAX, LINES_KEPT, RecentLog

log = logging.getLogger("tests.recent_log")


@pytest.fixture
def recent() -> Iterator[RecentLog]:
    handler = RecentLog(secrets=("cluster-key", ""))
    log.addHandler(handler)
    log.setLevel("DEBUG")
    yield handler
    log.removeHandler(handler)


def asked(recent: RecentLog, limit: int = LINES_MAX, **question: Any) -> LogAnswer:
    return recent.answer(LogQuestion(id="0" * 32, limit=limit, **question))


def texts(answer: LogAnswer) -> list[str]:
    return [line.text for line in answer.lines]


def test_the_newest_lines_come_oldest_first(recent: RecentLog) -> None:
    for number in range(5):
        log.info("line %d", number)
    answer = asked(recent, limit=2)
    assert (texts(answer), answer.matching) == (["line 3", "line 4"], 5)


def test_a_level_leaves_out_what_is_less_severe(recent: RecentLog) -> None:
    for level in ("debug", "info", "warning", "error", "critical"):
        getattr(log, level)(level)
    assert texts(asked(recent, level="WARNING")) == ["warning", "error", "critical"]


def test_a_search_finds_text_and_loggers_in_any_case(recent: RecentLog) -> None:
    log.info("Grün is the STANDBY")
    log.info("another")
    assert texts(asked(recent, search="grün is the standby")) == ["Grün is the STANDBY"]
    assert len(asked(recent, search="RECENT_LOG").lines) == 2


def test_the_lines_of_a_group_are_not_those_of_a_group_whose_name_begins_like_it(recent: RecentLog) -> None:
    for text in ("d.power: claims", "d.power-2: claims", "d.powers: claims", "xd.power: claims"):
        log.info(text)
    log.info("the topic fl.d.power.journal waits")
    assert texts(asked(recent, group="d.power")) == ["d.power: claims", "the topic fl.d.power.journal waits"]


def test_secrets_and_passwords_of_addresses_are_left_out(recent: RecentLog) -> None:
    address, key = "redis://:hidden@there:6379/0", "cluster-key"
    try:
        raise OSError(f"{address} does not take {key}")
    except OSError:
        log.exception("%s and http://me:hidden@there", address)
    (text,) = texts(asked(recent))
    assert "redis://:***@there:6379/0 does not take ***" in text
    assert "hidden" not in text


def test_a_traceback_belongs_to_its_line_and_keeps_its_end(recent: RecentLog) -> None:
    try:
        raise ValueError("x" * 20_000 + " the end")
    except ValueError:
        log.exception("d.power: failed")
    (text,) = texts(asked(recent, group="d.power"))
    assert text.startswith("d.power: failed\nTraceback")
    assert text.endswith("the end")
    assert len(text) < 5000


def test_old_lines_go_and_the_answer_says_since_when_lines_are_kept(recent: RecentLog) -> None:
    for number in range(LINES_KEPT + 10):
        log.info("%d", number)
    answer = asked(recent)
    assert answer.matching == LINES_KEPT
    assert len(answer.lines) == LINES_MAX
    assert texts(answer)[-1] == str(LINES_KEPT + 9)


def test_an_answer_is_bounded(recent: RecentLog) -> None:
    for _ in range(LINES_MAX):
        log.info("x" * 3000)
    assert 0 < sum(map(len, texts(asked(recent)))) <= ANSWER_CHARS_MAX
