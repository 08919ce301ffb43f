"""Reads the alarms that the rows of an alert element raise or clear. Pure.

Rows of `hysteresis-alarm`, `silence-alarm` and every operator of the category alert whose output has a column
`alarm` say `raised` or `cleared`. Each row of `threshold-alert`, and of any other operator of the category,
raises an alarm: that has no row that ends it. A row's `alert_severity` says how serious its alarm is. In a
row without one, the element's parameter `severity` does.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Any

from webapp.alarms.state import SEVERITIES, Clear, Raise, Severity

QUIET = timedelta(minutes=5)
"""An alarm that no row ends is cleared when no row has raised it for so long."""
VALUES_MAX = 12
TEXT_MAX = 200
KEY_MAX = 200
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?Z")
"""A time as a row has it. A message says it to the second."""
OWN = ("alert_column", "alert_value", "alert_limit", "alert_severity", "alert_message")


def severity_of(said: Any, otherwise: Severity = "warning") -> Severity:
    """Returns the severity that a parameter or a row says, or `otherwise` if it says none."""
    return next((each for each in SEVERITIES if each == said), otherwise)


def said(
    row: Mapping[str, Any], title: str, key: str, at: Any, *, ends: bool, severity: Severity = "warning"
) -> Raise | Clear | None:
    """Returns what a row of the element called `title` says, or None if it says nothing about an alarm.

    `ends`: its output has a column `alarm`. `severity`: of the element's alarms, unless the row says another.
    """
    values = shown(row)
    measured = (_cut(row["alert_column"], 80), "limit") if isinstance(row.get("alert_column"), str) else ()
    severity = severity_of(row.get("alert_severity"), severity)
    if ends:
        match row.get("alarm"):
            case "raised":
                return Raise(at, severity, _message(title, key, values, measured), values)
            case "cleared":
                return Clear(at, _message(title, key, values, measured), values)
        return None
    text = row.get("alert_message")
    message = text if isinstance(text, str) and text else _message(title, key, values, measured)
    of_key = f" ({key})" if key and key not in message else ""
    return Raise(at, severity, _cut(f"{message}{of_key}", 500), values)


def shown(row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the row's values that an alarm keeps: the first ones, without what says only what is raised."""
    found: dict[str, Any] = {}
    if isinstance(row.get("alert_column"), str):
        found[_cut(row["alert_column"], 80)] = _plain(row.get("alert_value"))
        found["limit"] = _plain(row.get("alert_limit"))
    for name, value in row.items():
        if len(found) >= VALUES_MAX:
            break
        if name not in OWN and name != "alarm" and not name.startswith("_"):
            found.setdefault(_cut(name, 80), _plain(value))
    return found


def _message(title: str, key: str, values: Mapping[str, Any], measured: Collection[str]) -> str:
    # The key stands before them. Another value, or the measured one, may be the same text.
    of_key = next((name for name in values if name not in measured and str(values[name]) == key), None)
    told = [(name, value) for name, value in values.items() if value is not None and name != of_key]
    first = ", ".join(f"{name} {_said(value)}" for name, value in told[:4])
    about = f"{title}, {key}" if key else title
    return _cut(f"{about}: {first}" if first else about, 500)


def _said(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    time = _TIME.fullmatch(value) if isinstance(value, str) else None
    return f"{time[1]} {time[2]} UTC" if time else str(value)


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    return _cut(value if isinstance(value, str) else str(value), TEXT_MAX)


def plain_key(key: str) -> str:
    """Returns a row's key as an alarm has it. A long one ends with what tells it from others like it."""
    if len(key) <= KEY_MAX:
        return _cut(key, KEY_MAX)
    return _cut(key, KEY_MAX - 8) + hashlib.sha256(key.encode(errors="replace")).hexdigest()[:8]


def _cut(text: str, most: int) -> str:
    """Returns the text, as long as allowed, without what a database does not take."""
    text = text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()
    return text if len(text) <= most else text[: most - 1] + "…"
