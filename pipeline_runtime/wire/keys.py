"""Keys in Redis. Queues have theirs in `tasks`, and the channel layer has its own."""

from __future__ import annotations

REPORTS_STREAM = "fogline:reports"
REPORT_FIELD = b"report"
"""The only field of the stream's entries: a NodeReport, packed by `wire.reports`."""
REPORTS_CURSOR = "fogline:ingest:cursor"
"""The id of the newest entry of the stream that control has taken in."""
CONTROL_STATE = "fogline:control"
"""Control's own state as JSON. It expires."""
ANSWER_LASTS_S = 10


def node_answer(question: str) -> str:
    """Returns the key of a list with one KeptAnswer or PreviewAnswer as JSON, for the process that asked. It
    expires after ANSWER_LASTS_S."""
    return f"fogline:answer:{question}"


LIVE_GROUP = "live"
"""The channel layer's group of all open dashboards."""


def node_history(node: str) -> str:
    """Returns the key of a list of JSON points, oldest first."""
    return f"fogline:history:node:{node}"


SAMPLES_MAX = 2_880
"""One day, at one sample every 30 s."""


def node_samples(node: str) -> str:
    """Returns the key of a list of JSON samples of the last day, oldest first. Policies decide by them."""
    return f"fogline:samples:node:{node}"


def group_samples(deployment: str, group: str) -> str:
    """Returns the key of a list of JSON samples of the last day, oldest first. Latency policies are tried out
    on them."""
    return f"fogline:samples:group:{deployment}.{group}"


def element_history(deployment: str, element: str) -> str:
    """Returns the key of a list of JSON points, oldest first."""
    return f"fogline:history:element:{deployment}.{element}"
