"""Typed counters and names. See docs/reference/glossary.md."""

from typing import NewType

Epoch = NewType("Epoch", int)
"""Counts the owners of a group. At 0 it had no owner yet."""

Seq = NewType("Seq", int)
"""Counts a group's committed batches. At 0 nothing is committed yet."""


OWN_TOPICS = "fl."
"""The names of Fogline's own topics begin with this."""


DEAD = "dead"
"""The output for rows that an element could not process."""
JOURNAL = "journal"
INTAKE = "intake"
"""The topic into which a connector writes what an element reads."""
POSITION = "position"
"""The topic that says how far such a connector has read its system, if it reads each row once."""


GROUP_NUMBER = "_"
"""Stands before a number in a group's id. No name in a document contains it, so no document can name such a
group."""


def numbered_group(group: str, number: int) -> str:
    """Returns the id of the deployment's group number `number` with this id in the document."""
    return group if number == 1 else f"{group}{GROUP_NUMBER}{number}"


def document_group(group: str) -> str:
    """Returns the document's name for the group with this id in a deployment."""
    return group.partition(GROUP_NUMBER)[0]


def stream_topic(deployment: str, element: str, port: str = "out") -> str:
    """Returns the topic of the stream that leaves an element's port."""
    return f"{OWN_TOPICS}{deployment}.{element}.{port}"


def intake_topic(deployment: str, element: str) -> str:
    """Returns the topic into which an element's connector writes."""
    return f"{OWN_TOPICS}{deployment}.{element}.{INTAKE}"


def position_topic(deployment: str, element: str) -> str:
    """Returns the topic that says how far an element's connector has read its system, or delivered to it."""
    return f"{OWN_TOPICS}{deployment}.{element}.{POSITION}"


def position_key(topic: str, partition: int) -> str:
    """Returns the key under which a group's position has this partition."""
    return f"{topic}-{partition}"


def dead_letter_topic(deployment: str, element: str) -> str:
    """Returns the topic of an element's dead letters."""
    return f"{OWN_TOPICS}{deployment}.{element}.{DEAD}"


def letters_id(deployment: str, element: str) -> str:
    """Returns the id under which an element's dead letters are settled. No epoch is named so."""
    return f"{dead_letter_topic(deployment, element)}.settled"


def journal_topic(deployment: str, group: str) -> str:
    """Returns the topic of a group's journal."""
    return f"{OWN_TOPICS}{deployment}.{group}.{JOURNAL}"


def released_topic(deployment: str, group: str) -> str:
    """Returns the topic at which a far successor waits for the RELEASE (decision 8)."""
    return f"{journal_topic(deployment, group)}.released"  # no element has a port of this name


def transactional_id(deployment: str, group: str, epoch: Epoch) -> str:
    """Returns the id under which the owner of that epoch commits."""
    return f"{OWN_TOPICS}{deployment}.{group}.{epoch}"
