"""Finds which files in Spark's checkpoint a restart at batch N needs. Reads files only, without Spark.

Layout (PySpark 4.3, RocksDB store, changelog checkpointing, checkpoint format 2), checked by
tests/contract/checkpoint/test_spark_files.py:

    metadata, sources/…                         written once
    offsets/N, commits/N                        batch N's plan; batch N is done
    ends/N                                      the replica's: where batch N ended; before commits/N
    state/<operator>/<partition>[/<store>]/
        <V>_<id>.changelog                      what batch V-1 changed
        <V>_<id>.zip                            a snapshot of version V; names its SST files
        SSTs/<n>-<id>.sst                       shared between snapshots
    state/<operator>/_metadata/…, _stateSchema/…   written once

Batch N makes version N+1. commits/N names the id of each store's version N+1. Spark and the replica write
each file under a temporary name and rename it then. So a file that has its final name is whole.

Spark plans a batch before the replica has decided where the batch ends. So Spark's offsets only number the
batches. If a batch is stopped before its end is decided, Spark has `commits/N`, but there is no `ends/N`.
Such a batch is not committed.
"""

from __future__ import annotations

import json
import os
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LOGS = ("commits", "ends", "offsets")
TOKEN = "token"  # noqa: S105 - no secret
"""The key of a batch's number in Spark's offsets. `ends/` and the journal say where that batch ended."""

_VERSIONED = re.compile(r"(?P<version>\d+)(?:_(?P<id>[^.]+))?\.(?P<kind>changelog|zip|delta|snapshot)")


_UNIQUE = re.compile(
    r"spark/state/.*[_-][0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.(changelog|zip|sst)", re.DOTALL
)


def is_unique(path: str) -> bool:
    """Returns whether a state file never changes, because its name has a random id."""
    return _UNIQUE.fullmatch(path) is not None


def is_temporary(name: str) -> bool:
    """Returns whether a file is never part of a checkpoint: a hidden file (a checksum, or a file being
    written) or *.tmp."""
    return name.startswith(".") or name.endswith((".tmp", "~"))


def batches(log: Path) -> list[int]:
    """Returns the batch ids in `offsets/`, `commits/` or `ends/`, rising, or [] when there is no such
    directory."""
    try:
        return sorted(int(name) for name in os.listdir(log) if name.isdigit())
    except FileNotFoundError:
        return []


def newest_done(spark: Path) -> tuple[int, dict[str, Any]] | None:
    """Returns the newest batch that counts, and where it ended: `{"seq", "ends", "batch_time"}`. Returns None
    if no batch counts yet. Raises ValueError if its notes cannot be read."""
    for batch in reversed(batches(spark / "commits")):
        end = _end(spark, batch)
        if end is not None:
            return batch, end
    return None


def _end(spark: Path, batch: int) -> dict[str, Any] | None:
    name = f"ends/{batch}"
    try:
        text = (spark / name).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{name} cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise ValueError(f"{name} cannot be read: it is no object")
    return complete_end(found, name)


def complete_end(end: dict[str, Any], name: str) -> dict[str, Any]:
    """Returns where a batch ended, as the file `name` says. Raises ValueError if something is missing."""
    for key, kind in (("seq", int), ("ends", dict), ("batch_time", int)):
        if not isinstance(end.get(key), kind):
            raise ValueError(f"{name} cannot be read: it has no {key}")
    return end


def state_ids(commits_file: Path) -> frozenset[str]:
    """Returns the ids of the store versions that this batch left. Empty for stateless queries and format
    1."""
    lines = commits_file.read_text(encoding="utf-8").splitlines()
    body = json.loads(lines[1]) if len(lines) > 1 else {}
    ids: set[str] = set()
    for partitions in (body.get("stateUniqueIds") or {}).values():
        for stores in partitions:
            ids.update(stores)
    return frozenset(ids)


def store_directories(state: Path) -> Iterator[Path]:
    """Yields the directories that hold versioned files."""
    for directory, _, names in os.walk(state):
        if any(_VERSIONED.fullmatch(name) for name in names):
            yield Path(directory)


def needed_versions(names: list[str], version: int, confirmed: frozenset[str]) -> list[str]:
    """Returns the versioned files of one store that Spark may read to load `version`.

    The first of them is the newest snapshot that surely belongs to the history of `version`. A snapshot that
    an interrupted batch left does not belong to it. So only a snapshot counts whose id a commit names
    (`confirmed`). Without such a snapshot, all older files are returned. Raises FileNotFoundError if Spark
    has already deleted some of them.
    """
    parsed = [(name, match) for name in names if (match := _VERSIONED.fullmatch(name))]
    snapshots = [
        int(match["version"])
        for _, match in parsed
        if match["kind"] == "zip" and match["id"] in confirmed and int(match["version"]) <= version
    ]
    oldest = max(snapshots, default=0)
    until = [match for _, match in parsed if int(match["version"]) <= version]
    if until and not any(match["kind"] == "zip" or int(match["version"]) == 1 for match in until):
        raise FileNotFoundError("the snapshot that this state goes on from is being purged")
    needed = {
        name: int(match["version"]) for name, match in parsed if oldest <= int(match["version"]) <= version
    }
    if oldest and not set(range(oldest, version + 1)) <= set(needed.values()):
        raise FileNotFoundError(f"state versions after {oldest} are being purged")
    return list(needed)


def sst_names(snapshot: Path) -> frozenset[str] | None:
    """Returns the SST files that a snapshot names, or None when it does not say (then all are kept)."""
    try:
        with zipfile.ZipFile(snapshot) as archive:
            _, _, body = archive.read("metadata").decode("utf-8").partition("\n")
        content = json.loads(body)
        return frozenset(entry["dfsSstFileName"] for entry in content.get("sstFiles", []))
    except (KeyError, ValueError, zipfile.BadZipFile):
        return None


def is_versioned(name: str) -> bool:
    return _VERSIONED.fullmatch(name) is not None


def version_ids(names: list[str], version: int) -> frozenset[str]:
    """Returns the ids of the files that hold `version` itself."""
    return frozenset(
        match["id"]
        for name in names
        if (match := _VERSIONED.fullmatch(name)) and int(match["version"]) == version and match["id"]
    )
