"""Typed counters and names. See docs/reference/glossary.md."""

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


GROUP_NUMBER = "_"
"""In a group's id before a number. No document has it in a name, so none can mean another group by it."""


def numbered_group(group: str, number: int) -> str:
    """The id of a document's group that is the so many-th of this id in its deployment."""
    return group if number == 1 else f"{group}{GROUP_NUMBER}{number}"


def document_group(group: str) -> str:
    """What its document calls the group that has this id in a deployment."""
    return group.partition(GROUP_NUMBER)[0]


def stream_topic(deployment: str, element: str, port: str = "out") -> str:
    return f"{OWN_TOPICS}{deployment}.{element}.{port}"


def dead_letter_topic(deployment: str, element: str) -> str:
    return f"{OWN_TOPICS}{deployment}.{element}.{DEAD}"


def journal_topic(deployment: str, group: str) -> str:
    return f"{OWN_TOPICS}{deployment}.{group}.{JOURNAL}"


def released_topic(deployment: str, group: str) -> str:
    return f"{journal_topic(deployment, group)}.released"  # no element has a port of such a name


def transactional_id(deployment: str, group: str, epoch: Epoch) -> str:
    return f"{OWN_TOPICS}{deployment}.{group}.{epoch}"
