"""Bearer tokens of the chunk services: a scope and an expiry, signed with the cluster's key.

Scopes: `*`, `group:<id>:read`, `group:<id>:write` (which includes read), `files:read`, `files:write` (which
includes read), `probe`. A token is `v1.<scope, base64url>.<expiry, seconds since 1970>.<HMAC-SHA256,
base64url>`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import time

from pipeline_runtime.checkpoint.errors import AccessDenied

_CONTEXT = b"fogline-chunk-access\0"


def group_read(group: str) -> str:
    return f"group:{group}:read"


def group_write(group: str) -> str:
    return f"group:{group}:write"


FILES_READ = "files:read"
FILES_WRITE = "files:write"
PROBE = "probe"
EVERYTHING = "*"


def mint(cluster_key: str, scope: str, expires_at: float) -> str:
    """Returns a token for `scope` until `expires_at` (seconds since 1970)."""
    if not cluster_key:
        raise ValueError("an empty cluster key would let everybody in")
    body = f"v1.{_b64(scope.encode())}.{int(expires_at)}"
    return f"{body}.{_b64(_sign(cluster_key, body))}"


def check(cluster_key: str, token: str, needed: str, now: float | None = None) -> None:
    """Returns when `token` grants the scope `needed`; raises AccessDenied otherwise."""
    body, _, signature = token.rpartition(".")
    # The signature is checked before anything is parsed, so no part of a forged token is looked at.
    # compare_digest takes the same time wherever the first wrong byte is.
    if not cluster_key or not hmac.compare_digest(
        signature.encode(), _b64(_sign(cluster_key, body)).encode()
    ):
        raise _denied("The token is not valid.")
    version, scope_b64, expires_at = body.split(".")
    if version != "v1" or (time.time() if now is None else now) >= int(expires_at):
        raise _denied("The token has expired.")
    scope = base64.urlsafe_b64decode(scope_b64 + "=" * (-len(scope_b64) % 4)).decode()
    if not grants(scope, needed):
        raise _denied(f"The token is for {scope}, not for {needed}.")


def grants(scope: str, needed: str) -> bool:
    if scope in (EVERYTHING, needed):
        return True
    return scope.endswith(":write") and scope.removesuffix("write") + "read" == needed


def _denied(message: str) -> AccessDenied:
    return AccessDenied(message, "Nothing was read or changed.", "Ask the control side for a new token.")


def _sign(cluster_key: str, body: str) -> bytes:
    return hmac.new(cluster_key.encode(), _CONTEXT + body.encode(), hashlib.sha256).digest()


def _b64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
