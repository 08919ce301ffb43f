"""Keys of Redis, but for the queues' (see `tasks`) and the channel layer's own."""

from __future__ import annotations

REPORTS_STREAM = "fogline:reports"
REPORT_FIELD = b"report"
"""The one field of an entry of the stream: a NodeReport, as `wire.reports` packs it."""
REPORTS_CURSOR = "fogline:ingest:cursor"
"""The id of the newest entry of the stream that control has taken in."""
CONTROL_STATE = "fogline:control"
"""What control says of itself, as JSON; it expires."""
KEPT_LASTS_S = 10


def kept_answer(question: str) -> str:
    """A list with one KeptAnswer as JSON, for who asked; it lasts for KEPT_LASTS_S."""
    return f"fogline:kept:{question}"


LIVE_GROUP = "live"
"""The channel layer's group of all open dashboards."""


def node_history(node: str) -> str:
    """A list of JSON points, oldest first."""
    return f"fogline:history:node:{node}"


SAMPLES_MAX = 2_880
"""A day, at one each 30 s."""


def node_samples(node: str) -> str:
    """A list of JSON samples of the last day, oldest first: by these policies decide."""
    return f"fogline:samples:node:{node}"


def group_samples(deployment: str, group: str) -> str:
    """A list of JSON samples of the last day, oldest first: policies of the latency are tried on them."""
    return f"fogline:samples:group:{deployment}.{group}"


def element_history(deployment: str, element: str) -> str:
    """A list of JSON points, oldest first."""
    return f"fogline:history:element:{deployment}.{element}"
