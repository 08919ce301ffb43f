"""What a failure of a replica means to the person in front of the dashboard."""

from __future__ import annotations

import re

from pipeline_runtime.model.desired import ReplicaError

SAFE = "Everything up to the last committed batch is kept; the batch that failed left nothing behind."
_PYTHON_ERROR = re.compile(
    r"^(\w+(?:\.\w+)*(?:Error|Exception|Damaged|Gone|Deterministic)): (.+)$", re.MULTILINE
)


def explain(error: BaseException, trace: str, at_ms: int) -> ReplicaError:
    """Spark wraps what an operator raised in its own text: the innermost Python error says more."""
    text = str(error) or type(error).__name__
    inner = [match for match in _PYTHON_ERROR.findall(text) if not match[0].startswith("pyspark")]
    message = f"{inner[-1][0]}: {inner[-1][1]}" if inner else text.splitlines()[0][:500]
    return ReplicaError(
        message=message,
        safe=SAFE,
        next="Look at the traceback, correct the element's parameters or its data, and deploy again.",
        traceback=trace[-8000:],
        at_ms=at_ms,
    )
