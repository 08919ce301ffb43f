"""The severities of alarms."""

from __future__ import annotations

from enum import StrEnum

HOW_SERIOUS = "how serious its alarms are; routes of alarms choose by it"


class Severity(StrEnum):
    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"
