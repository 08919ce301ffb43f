"""Copies checkpoints between a StateDatabase and a chunk service. It sends only chunks that the receiver
lacks."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from pipeline_runtime.checkpoint.chunks import CHUNK_BYTES
from pipeline_runtime.checkpoint.client import ChunkClient
from pipeline_runtime.checkpoint.database import StateDatabase
from pipeline_runtime.checkpoint.errors import (
    AccessDenied,
    CheckpointDamaged,
    CheckpointError,
    CheckpointMissing,
    ChunkMissing,
    ChunksMissing,
    ServiceUnavailable,
)
from pipeline_runtime.checkpoint.files import Progress
from pipeline_runtime.checkpoint.manifest import CheckpointSummary, Manifest
from pipeline_runtime.checkpoint.store import materialize
from pipeline_runtime.model.ids import Seq

_log = logging.getLogger(__name__)

# Many of Spark's files have a few hundred bytes, so one request carries many of them.
BUNDLE_BYTES = 4 << 20
BUNDLE_CHUNKS = 256
PARALLEL = 4
_PUSH_ROUNDS = 5


HERE = "this node"


@dataclass(frozen=True)
class Fetched:
    manifest: Manifest
    bytes_fetched: int  # encoded, as they travelled
    damaged: tuple[Seq, ...] = ()  # newer checkpoints that could not be used
    place: str = HERE  # the place from which the checkpoint came


def fetch_from_any(
    clients: Sequence[ChunkClient],
    group: str,
    seq: Seq | None,
    directory: Path,
    database: StateDatabase,
    progress: Progress | None = None,
) -> Fetched:
    """Fetches checkpoint `seq` into `database`, and writes its files into `directory`. If `seq` is None, it
    fetches the newest checkpoint that any place has.

    It asks all places, and `database` itself, for their checkpoints. Then it fetches the newest one from the
    first place that has it. If that copy is damaged or incomplete, or if the transfer breaks off, it tries
    the next place. If no place has a whole copy, it tries the next older checkpoint, and `Fetched.damaged`
    names the newer one. It fetches only chunks that `database` lacks. So a second call continues a transfer
    that broke off. `progress(bytes_done, bytes_total)` counts the raw bytes of the chunks that were missing.

    Raises CheckpointMissing (no place has a whole one), AccessDenied, ServiceUnavailable.
    """
    offers, unreachable = _offers(clients, group, database)
    damaged: list[Seq] = []
    for found in sorted(offers, key=lambda seq: -seq):
        if seq is not None and found > seq:
            continue
        if seq is not None and found < seq and not damaged:
            break  # no place has the requested checkpoint
        for client in offers[found]:
            try:
                fetched = _bring(client, group, found, directory, database, progress)
            except (ServiceUnavailable, AccessDenied) as error:
                _log.warning("checkpoint %s of %s did not arrive: %s", found, group, error)
                unreachable = error
                continue
            if fetched is not None:
                return replace(fetched, damaged=tuple(damaged))
        damaged.append(found)
    if unreachable is not None:
        raise unreachable  # the place that did not answer may have a whole checkpoint: a later try may help
    what = "No checkpoint" if seq is None else f"Checkpoint {seq}"
    raise CheckpointMissing(
        f"{what} of {group} is not at {', '.join(client.url for client in clients)} in a usable form"
        + (f" ({len(damaged)} are damaged)." if damaged else "."),
        "Nothing was changed.",
        "Choose another place or another checkpoint.",
    )


def _bring(
    client: ChunkClient | None,
    group: str,
    seq: Seq,
    directory: Path,
    database: StateDatabase,
    progress: Progress | None,
) -> Fetched | None:
    """Fetches a checkpoint from one place. `client` is None for `database` itself. Returns None if the
    checkpoint is damaged or incomplete there."""
    bytes_fetched = 0
    with database.holding(group):
        # There is a second try: `database` forgets a damaged chunk, and the second try fetches it again.
        for _ in range(2):
            try:
                manifest = (client or database).manifest(group, seq)
                if client is not None:
                    bytes_fetched += _pull(client, manifest, database, progress)
                    database.put_manifest(manifest)
                materialize(manifest, lambda sha: database.get_chunk(group, sha), directory)
                return Fetched(manifest, bytes_fetched, place=client.url if client is not None else HERE)
            except (CheckpointDamaged, CheckpointMissing, ChunkMissing, ChunksMissing) as error:
                _log.warning("checkpoint %s of %s cannot be used: %s", seq, group, error)
    return None


def _offers(
    clients: Sequence[ChunkClient], group: str, database: StateDatabase
) -> tuple[dict[Seq, list[ChunkClient | None]], CheckpointError | None]:
    """Returns a map from each seq to the places that have it. None stands for this node, which comes first.
    Also returns the error of a place that did not answer, or None. A node whose clock is wrong refuses
    tokens. It asks all places at the same time."""
    offers: dict[Seq, list[ChunkClient | None]] = {}
    found: list[tuple[ChunkClient | None, Sequence[CheckpointSummary]]] = []
    found.append((None, database.manifests(group)))
    unreachable: CheckpointError | None = None
    with ThreadPoolExecutor(len(clients), thread_name_prefix="ask") as pool:
        for client, answer in zip(
            clients, [pool.submit(client.checkpoints, group) for client in clients], strict=True
        ):
            try:
                found.append((client, answer.result()))
            except (ServiceUnavailable, AccessDenied) as error:
                unreachable = error
    first = next((summaries for place, summaries in found if place is clients[0]), ())
    for place, summaries in found:
        for summary in summaries:
            if place is clients[0] or not _undone(summary, first):
                offers.setdefault(summary.seq, []).append(place)
    return offers, unreachable


def _undone(summary: CheckpointSummary, known: Iterable[CheckpointSummary]) -> bool:
    """Returns whether a rewind has undone this checkpoint, although its place still lists it. That is so if a
    checkpoint of a later epoch has a lower seq."""
    return any(other.epoch > summary.epoch and other.seq < summary.seq for other in known)


def push_checkpoint(
    client: ChunkClient,
    manifest: Manifest,
    database: StateDatabase,
    throttle: Callable[[int], None] = lambda _: None,
    bundle_bytes: int = BUNDLE_BYTES,
) -> int:
    """Sends a checkpoint, and returns how many encoded bytes it sent. Calls `throttle` with each bundle's
    size.

    It asks the service which chunks are missing, and sends these. Then it sends the manifest. The checkpoint
    exists at the service when the manifest is there. If the service has pruned chunks meanwhile, this begins
    again.
    """
    group = manifest.group
    bytes_sent = 0
    with database.pinning(manifest):
        missing: Iterable[str] = client.missing(group, sorted(manifest.chunks))
        for round_ in range(_PUSH_ROUNDS):
            for bundle in _bundles(manifest, missing, bundle_bytes):
                encoded = [(sha, database.get_encoded(group, sha)) for sha in bundle]
                size = sum(len(body) for _, body in encoded)
                throttle(size)
                client.put_chunks(group, encoded)
                bytes_sent += size
            try:
                client.put_manifest(manifest)
                break
            except ChunksMissing as error:
                if round_ + 1 == _PUSH_ROUNDS:
                    raise
                missing = error.shas
    return bytes_sent


def _pull(client: ChunkClient, manifest: Manifest, database: StateDatabase, progress: Progress | None) -> int:
    """Fetches the chunks that `database` lacks, and returns how many encoded bytes these have. Raises
    CheckpointDamaged and ChunkMissing."""
    group = manifest.group
    missing = database.missing(group, sorted(manifest.chunks))
    sizes = _sizes(manifest)
    total = sum(sizes[sha] for sha in missing)
    done = fetched = 0
    lock = threading.Lock()

    def keep(sha: str, encoded: bytes) -> None:
        nonlocal done, fetched
        if sha not in sizes:
            return
        database.put_encoded(group, sha, encoded)
        with lock:
            done += sizes[sha]
            fetched += len(encoded)
            if progress:
                progress(done, total)

    if progress:
        progress(0, total)
    with ThreadPoolExecutor(PARALLEL, thread_name_prefix="fetch") as pool:
        fetches = [
            pool.submit(client.fetch_chunks, group, bundle, keep)
            for bundle in _bundles(manifest, missing, BUNDLE_BYTES)
        ]
        try:
            for future in fetches:
                future.result()
        except BaseException:
            for future in fetches:
                future.cancel()
            raise
    still_missing = database.missing(group, missing)
    if still_missing:
        raise ChunkMissing(
            f"{client.url} lacks {len(still_missing)} chunks of checkpoint {manifest.seq} of {group}.",
            "The chunks that have arrived are kept, and other checkpoints are not affected.",
            "The next older checkpoint is used instead.",
        )
    return fetched


def _sizes(manifest: Manifest) -> dict[str, int]:
    """Returns the raw bytes of each chunk."""
    return {
        sha: min(CHUNK_BYTES, file.size - index * CHUNK_BYTES)
        for file in manifest.files
        for index, sha in enumerate(file.chunks)
    }


def _bundles(manifest: Manifest, shas: Iterable[str], bundle_bytes: int) -> Iterator[list[str]]:
    sizes = _sizes(manifest)
    bundle: list[str] = []
    size = 0
    for sha in shas:
        if bundle and (size + sizes[sha] > bundle_bytes or len(bundle) == BUNDLE_CHUNKS):
            yield bundle
            bundle, size = [], 0
        bundle.append(sha)
        size += sizes[sha]
    if bundle:
        yield bundle
