"""Rows to the JSON text of a record, inside Spark."""

from __future__ import annotations

JSON_OPTIONS = {"ignoreNullFields": "false", "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}
