"""The web's access to chunk services: checkpoints and files in the central one, outputs on a node."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from django.conf import settings

from pipeline_runtime.checkpoint import access
from webapp.problems import BackendAway, Missing

TOKEN_S = 300
# No proxy from the environment (trust_env): services speak to each other directly.
TIMEOUT = httpx.Timeout(30.0, connect=3.0)


def bearer(scope: str) -> str:
    return access.mint(settings.FOGLINE.cluster_key, scope, time.time() + TOKEN_S)


def authorization(scope: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {bearer(scope)}"}


@contextmanager
def _answering(who: str) -> Iterator[None]:
    """Turns a service's silence or refusal into a problem that names the service."""
    try:
        yield
    except httpx.HTTPStatusError as error:
        if error.response.status_code == 404:
            raise Missing(
                f"{who} does not have this checkpoint or file.", next="Reload the page, and try again."
            ) from error
        raise BackendAway(
            f"{who} answered {error.response.status_code}.",
            safe="Running pipelines are not affected.",
            next="Read its log, then try again.",
        ) from error
    except httpx.HTTPError as error:
        raise BackendAway(
            f"{who} cannot be reached: {error or type(error).__name__}.",
            safe="Running pipelines are not affected.",
            next="Check that its process runs, then try again.",
        ) from error


CENTRAL = "The central chunk service"


def checkpoint_summaries(group_id: str) -> list[dict[str, Any]]:
    """Returns the CheckpointSummary of each checkpoint in the central store, newest first."""
    with _answering(CENTRAL):
        response = httpx.get(
            f"{settings.FOGLINE.chunk_url}/groups/{group_id}/checkpoints",
            headers=authorization(access.group_read(group_id)),
            timeout=TIMEOUT,
            trust_env=False,
        )
        response.raise_for_status()
        found: list[dict[str, Any]] = response.json()
    return found


def put_file(sha256: str, parts: Iterable[bytes]) -> None:
    with _answering(CENTRAL):
        httpx.put(
            f"{settings.FOGLINE.chunk_url}/files/{sha256}",
            headers=authorization(access.FILES_WRITE),
            content=parts,
            timeout=httpx.Timeout(120.0, connect=3.0),
            trust_env=False,
        ).raise_for_status()


def open_output(node: str, url: str, group_id: str, element: str) -> tuple[dict[str, str], Iterator[bytes]]:
    """Opens what a sink wrote, on its node. Returns (its length, if it is known, the bytes)."""
    client = httpx.Client(timeout=TIMEOUT, trust_env=False)
    try:
        with _answering(f"The node {node}"):
            request = client.build_request(
                "GET",
                f"{url.rstrip('/')}/groups/{group_id}/output/{element}",
                headers={**authorization(access.group_read(group_id)), "Accept-Encoding": "identity"},
            )
            response = client.send(request, stream=True)
            if response.is_error:
                response.read()
                response.raise_for_status()
    except BaseException:
        client.close()
        raise
    # Not its type and disposition: a node must not decide what a browser does with its bytes.
    length = response.headers.get("content-length", "")
    headers = {"content-length": length} if length.isdecimal() else {}

    def parts() -> Iterator[bytes]:
        try:
            yield from response.iter_bytes()
        finally:
            response.close()
            client.close()

    return headers, parts()
