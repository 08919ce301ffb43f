"""Decides where delivery continues if another Kafka cluster has no position of the element. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pipeline_runtime.connectors.sdk import Noted

CHOICE, TOPIC, SERVERS = "lost", "topic", "servers"
"""What is noted beside a position: the choice of the element, and where the rows went."""
_PARAMETER = '"If the cluster has lost the position" of the element'


class Unclear(Exception):
    """Nobody can say where the rows go on. The message says why, and what the user does."""


def begin(noted: Noted | None, here: Mapping[str, str]) -> int:
    """Returns the offset to begin at. Raises Unclear.

    `noted`: how far rows were sent by Fogline's own record. It is None if there is no record.
    `here`: what would be noted now. A choice counts only if the last rows were sent under another one, or to
    another topic or cluster. So it acts once.
    """
    choice = here[CHOICE]
    if noted is None:
        if choice == "again":
            return 0
        raise Unclear(
            "Fogline's own record of it is gone, too. Choose under"
            f" {_PARAMETER} to send all again if that does no harm, and deploy it"
        )
    if noted.end == 0:
        return 0
    choose = f"Choose under {_PARAMETER}"
    is_here = all(noted.mark[each] == here[each] for each in (TOPIC, SERVERS))
    if choice == "stop":
        raise Unclear(
            f"{_sent(noted, is_here=is_here)} {choose} whether to go on behind what was sent, or to send all"
            " again, and deploy it"
        )
    if is_here and choice == noted.mark[CHOICE]:
        raise Unclear(
            f"{_sent(noted, is_here=True)} What is chosen under {_PARAMETER} was chosen before this loss, and"
            " each choice counts once. Choose to stop, and deploy it; then choose again, and deploy it"
        )
    if choice == "again":
        return 0
    if noted.is_past:
        raise Unclear(
            f"Fogline has noted that the first {noted.end:,} rows were sent, and has fewer rows now: its own"
            f" stream was made again. {choose} to send all again, and deploy it"
        )
    return noted.end


def stopped(noted: Noted, here: Mapping[str, str]) -> Noted:
    """Returns the record of an element that has stopped: if that was chosen, what is chosen next counts."""
    return replace(noted, mark={**noted.mark, CHOICE: "stop"}) if here[CHOICE] == "stop" else noted


def _sent(noted: Noted, *, is_here: bool) -> str:
    sent = f"Fogline has noted that the first {noted.end:,} rows were sent"
    if not is_here:
        return (
            f'{sent} to the topic "{noted.mark[TOPIC]}" of {noted.mark[SERVERS]}: the element had it before.'
        )
    return (
        f"{sent}. The topic was deleted and made again, the group was removed, or the cluster has forgotten a"
        " position that was not renewed for long."
    )
