"""What a failure of a replica means to the person in front of the dashboard."""

from __future__ import annotations

import re

from pipeline_runtime.journal.reader import JournalTrimmed
from pipeline_runtime.model.desired import ReplicaError
from pipeline_runtime.replica.local_state import LocalStateDamaged

SAFE = "Everything up to the last committed batch is kept; the batch that failed left nothing behind."
_PYTHON_ERROR = re.compile(
    r"^(\w+(?:\.\w+)*(?:Error|Exception|Damaged|Gone|Deterministic)): (.+)$", re.MULTILINE
)
# Spark gives a Python process 10 s to answer: only a machine without any time to spare takes longer.
_STARVED = "Python worker failed to connect back"


class RewindUndone(RuntimeError):
    """Told to go on from a seq that another rewind has made void."""


def text_of(error: BaseException) -> str:
    """Py4J's errors ask Java for their text, which may have ended: that is why they were raised."""
    try:
        return str(error) or type(error).__name__
    except Exception as unknown:
        return f"{type(error).__name__}, whose text is gone with Spark's Java process ({unknown})"


def explain(error: BaseException, trace: str, at_ms: int) -> ReplicaError:
    """Spark wraps what an operator raised in its own text: the innermost Python error says more."""
    text = text_of(error)
    inner = [match for match in _PYTHON_ERROR.findall(text) if not match[0].startswith("pyspark")]
    message = f"{inner[-1][0]}: {inner[-1][1]}" if inner else text.splitlines()[0][:500]
    next_step = "Look at the traceback, correct the element's parameters or its data, and deploy again."
    if _STARVED in text:
        message = "The node had no time to start a Python process for the element within 10 s."
        next_step = (
            "The node starts the element again by itself. If this comes again, the machine has too little"
            " CPU or memory: move elements to another node."
        )
    if isinstance(error, RewindUndone):
        next_step = "Rewind to another checkpoint of the list, or restore the newest one."
    return ReplicaError(
        message=message,
        safe=SAFE,
        next=next_step,
        traceback=trace[-8000:],
        at_ms=at_ms,
        # Spark hands on only the text of what was raised in its threads.
        damaged=isinstance(error, LocalStateDamaged | JournalTrimmed)
        or f"{LocalStateDamaged.__name__}: " in text,
    )


def replaced(reason: str, at_ms: int) -> ReplicaError:
    """What an owner says that is none any more."""
    return ReplicaError(
        message=f"{reason}.",
        safe="Nothing was written twice: what it had not committed is processed by the new owner.",
        next="Nothing. It starts again only when it is asked to.",
        at_ms=at_ms,
    )
