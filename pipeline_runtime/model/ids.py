"""Typed counters and names. See docs/glossary.md."""

from typing import NewType

Epoch = NewType("Epoch", int)
"""Counts the owners of a group. 0: nobody has owned it yet."""

Seq = NewType("Seq", int)
"""Counts a group's committed batches. 0: nothing is committed yet."""


OWN_TOPICS = "fl."
"""What the names of Fogline's own topics begin with."""


DEAD = "dead"
"""Beside its outputs, the rows that an element could not process."""
JOURNAL = "journal"


def stream_topic(deployment: str, element: str, port: str = "out") -> str:
    return f"{OWN_TOPICS}{deployment}.{element}.{port}"


def dead_letter_topic(deployment: str, element: str) -> str:
    return f"{OWN_TOPICS}{deployment}.{element}.{DEAD}"


def journal_topic(deployment: str, group: str) -> str:
    return f"{OWN_TOPICS}{deployment}.{group}.{JOURNAL}"


def transactional_id(deployment: str, group: str, epoch: Epoch) -> str:
    return f"{OWN_TOPICS}{deployment}.{group}.{epoch}"
