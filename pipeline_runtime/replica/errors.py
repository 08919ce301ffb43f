"""Explains a replica's failure to the person in front of the dashboard."""

from __future__ import annotations

import re

from pipeline_runtime.model.desired import ReplicaError

_CODES = {  # what is raised in a batch -> its code; the first that fits counts
    "LocalStateDamaged": "state-damaged",
    "JournalTrimmed": "journal-trimmed",
    "JournalBroken": "journal-damaged",
    "JournalDamaged": "journal-damaged",
    "RewindUndone": "rewind-undone",
    "NotDeterministic": "not-deterministic",
    "RangeGone": "rows-gone",
    "RangeUnreadable": "rows-unreadable",
    "InputTopicDiffers": "topic-partitions-differ",
    "KeysShared": "keys-in-several-partitions",
    "RecordsRefused": "records-refused",
    "CsvSinkDamaged": "output-file-changed",
    "BatchTooLong": "batch-too-long",
    "SchemaRegistryError": "schema-registry",
}
_DAMAGED = ("state-damaged", "journal-trimmed", "state-outdated")
_PYTHON_ERROR = re.compile(
    rf"^(\w+(?:\.\w+)*(?:Error|Exception|Damaged)|(?:\w+\.)*(?:{'|'.join(_CODES)})): (.+)$", re.MULTILINE
)
# Spark gives a Python process 10 s to answer: only a machine without any time to spare takes longer.
_STARVED = "Python worker failed to connect back"


class RewindUndone(RuntimeError):
    """The replica was told to go on from a seq that another rewind has made void."""


def text_of(error: BaseException) -> str:
    """Returns the error's text, or says that it is gone.

    Py4J's errors ask Java for their text. Java may have ended, which is why they were raised.
    """
    try:
        return str(error) or type(error).__name__
    except Exception as unknown:
        return f"{type(error).__name__}, whose text is gone with Spark's Java process ({unknown})"


def explain(error: BaseException, trace: str, at_ms: int, *, follows: bool = False) -> ReplicaError:
    """Says what an error in a batch means to people. `follows`: it was a batch that was committed before.

    Spark wraps what an operator raised in its own text: the innermost Python error says more.
    """
    text = text_of(error)
    inner = [match for match in _PYTHON_ERROR.findall(text) if not match[0].startswith("pyspark")]
    message = _in_words(*inner[-1]) if inner else text.splitlines()[0][:500]
    code = _code_of(error, text)
    if code == "rows-gone" and follows:
        code = "state-outdated"
    if code == "node-starved":
        message = "The node had no time to start a Python process for the element within 10 s."
    return ReplicaError.of(
        code,
        message,
        at_ms,
        traceback=trace[-8000:],
        damaged=code in _DAMAGED,
        ways=getattr(error, "ways", ()),
    )


def _in_words(name: str, text: str) -> str:
    """Returns what an error says. Those of Fogline's own need no name: their text is for people."""
    return text if name.rpartition(".")[2] in _CODES else f"{name}: {text}"


def _code_of(error: BaseException, text: str) -> str:
    """Returns the code of an error. Spark hands on only the text of errors in its threads, so a name in the
    text counts as well."""
    raised = {each.__name__ for each in type(error).__mro__}
    if _STARVED in text:
        return "node-starved"
    for name, code in _CODES.items():
        if name in raised or f"{name}: " in text:
            return code
    return "operator-failed"


def replaced(reason: str, at_ms: int) -> ReplicaError:
    """Says of an owner that another one has taken over, and why."""
    return ReplicaError.of("owner-replaced", f"{reason}.", at_ms)
