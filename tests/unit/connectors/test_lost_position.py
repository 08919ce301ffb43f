"""Where rows go on in a cluster that has no position of their element."""

from __future__ import annotations

import pytest

from pipeline_runtime.connectors.lost_position import Unclear, begin, stopped
from pipeline_runtime.connectors.sdk import Noted


def mark(lost: str, topic: str = "t", servers: str = "a:1") -> dict[str, str]:
    return {"lost": lost, "topic": topic, "servers": servers}


@pytest.mark.parametrize("lost", ["stop", "behind", "again"])
def test_a_new_element_begins_with_the_first_row(lost: str) -> None:
    assert begin(Noted(), mark(lost)) == 0


@pytest.mark.parametrize(("lost", "at"), [("behind", 7), ("again", 0)])
def test_a_choice_counts_once(lost: str, at: int) -> None:
    lost_position = Noted(7, mark("stop"))
    assert begin(lost_position, mark(lost)) == at
    sent_since = Noted(7, mark(lost))
    with pytest.raises(Unclear, match="was chosen before this loss, and each choice counts once"):
        begin(sent_since, mark(lost))
    assert stopped(sent_since, mark(lost)) == sent_since
    with pytest.raises(Unclear, match=r"first 7 rows were sent.*Choose"):
        begin(sent_since, mark("stop"))
    assert begin(stopped(sent_since, mark("stop")), mark(lost)) == at


@pytest.mark.parametrize("here", [mark("stop", topic="new"), mark("stop", servers="b:1")])
def test_another_topic_or_cluster_is_told_apart_from_a_loss(here: dict[str, str]) -> None:
    noted = Noted(7, mark("again"))
    with pytest.raises(Unclear) as told:
        begin(noted, here)
    assert 'were sent to the topic "t" of a:1: the element had it before' in str(told.value)
    assert "deleted" not in str(told.value)
    assert begin(noted, {**here, "lost": "again"}) == 0


def test_a_record_that_is_gone_stops_the_element_until_all_is_to_be_sent_again() -> None:
    for lost in ("stop", "behind"):
        with pytest.raises(Unclear, match="own record of it is gone, too"):
            begin(None, mark(lost))
    assert begin(None, mark("again")) == 0


def test_nothing_goes_on_behind_the_end_of_a_stream_that_was_made_again() -> None:
    noted = Noted(7, mark("stop"), is_past=True)
    with pytest.raises(Unclear, match=r"its own stream was made again.*send all again"):
        begin(noted, mark("behind"))
    assert begin(noted, mark("again")) == 0
