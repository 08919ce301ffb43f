"""Sends rows to an HTTP server (httpx)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from time import monotonic
from typing import Any

import httpx

from pipeline_runtime.connectors.in_words import in_words
from pipeline_runtime.connectors.sdk import (
    CONNECT_S,
    Batch,
    ConnectorError,
    Deliverer,
    Place,
    Refused,
)
from pipeline_runtime.connectors.sent import Sent
from pipeline_runtime.connectors.tls import tls_context
from pipeline_runtime.operators.http import HttpConnection, HttpOutParams
from pipeline_runtime.operators.schema_registry import SchemaRegistryConnection

ANSWER_BYTES_MAX = 65_536
"""How much of an answer is read."""
QUOTED = 200
WAIT_S_MAX = 300.0
"""The longest that a Retry-After is kept to."""
AGAIN = frozenset({408, 425, 429})
_CLOSED = ("Server disconnected", "peer closed")
"""How the library's words begin when the connection was closed, and not when what came is no HTTP."""
MENDED_BY_A_PERSON = frozenset({401, 403, 404, 405, 407})


@dataclass(frozen=True)
class Answer:
    status: int
    content: bytes
    headers: Mapping[str, str]
    whole: bool = True  # it ended within the bytes and the time that were allowed

    @property
    def text(self) -> str:
        return self.content.decode(errors="replace")


class Server:
    """An HTTP server. Raises ConnectorError if it does not answer."""

    def __init__(self, connection: HttpConnection | SchemaRegistryConnection, timeout_s: float) -> None:
        self._where, self._timeout_s = connection.where, timeout_s
        try:
            self._client = httpx.Client(
                base_url=connection.base_url,
                headers={"User-Agent": "Fogline", **connection.headers},
                timeout=httpx.Timeout(timeout_s, connect=CONNECT_S),
                verify=tls_context(connection) if connection.tls else False,
                follow_redirects=False,
                trust_env=False,  # neither proxies nor passwords of who runs the node
            )
        except OSError as error:
            raise in_words(error, self._where) from error
        except httpx.InvalidURL as error:
            raise _no_address(self._where) from error

    def ask(
        self,
        method: str,
        path: str,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        bytes_max: int = ANSWER_BYTES_MAX,
    ) -> Answer:
        until_s = monotonic() + 2 * self._timeout_s
        found = bytearray()
        try:
            with self._client.stream(method, path, content=content, headers=headers) as response:
                if "," in response.headers.get("Content-Encoding", ""):
                    # A few bytes that are packed twice become more than the memory holds, before they are
                    # counted.
                    raise ConnectorError(f"{self._where} packs its answer twice, which is not read.")
                whole = True
                for part in response.iter_bytes():  # without a size: it would wait for so much
                    found += part
                    whole = len(found) <= bytes_max and monotonic() <= until_s
                    if not whole:
                        break
                return Answer(response.status_code, bytes(found[:bytes_max]), response.headers, whole)
        except httpx.TimeoutException as error:
            if isinstance(error, httpx.ConnectTimeout):
                raise in_words(TimeoutError(), self._where) from error
            raise ConnectorError(f"{self._where} does not answer within {self._timeout_s:.0f} s.") from error
        except httpx.LocalProtocolError:
            # Its words quote the header, and so the secret in it.
            raise ConnectorError(
                f"{self._where} cannot be asked: the token or the header of the connection has characters "
                "that no header can have. Write them again.",
                lasting=True,
            ) from None
        except httpx.RemoteProtocolError as error:
            if str(error).startswith(_CLOSED):
                raise in_words(ConnectionError(), self._where) from error
            raise ConnectorError(f"{self._where} does not speak HTTP. Check the port, and TLS.") from error
        except httpx.InvalidURL as error:
            raise ConnectorError(
                f"{self._where} cannot be asked for this path: {error}.", lasting=True
            ) from error
        except httpx.HTTPError as error:
            raise in_words(_cause(error), self._where) from error
        except (ValueError, OverflowError) as error:  # a host or a port that nobody can have
            raise _no_address(self._where) from error

    def close(self) -> None:
        with suppress(Exception):
            self._client.close()


def _no_address(where: str) -> ConnectorError:
    return ConnectorError(f"{where} is no address. An admin corrects it under Connections.", lasting=True)


def _cause(error: BaseException) -> BaseException:
    """Returns the error of the socket or of TLS behind it, or that the connection was closed."""
    at: BaseException | None = error
    while at is not None:
        if isinstance(at, OSError):
            return at
        at = at.__cause__ or at.__context__
    if isinstance(error, httpx.ReadError | httpx.WriteError):
        return ConnectionError()
    return error


class HttpDeliverer(Deliverer[HttpOutParams, HttpConnection]):
    """What it has sent, it does not send again as long as its process lives, also after an error in the
    middle of a batch."""

    def __init__(self, place: Place[HttpOutParams, HttpConnection]) -> None:
        super().__init__(place)
        self.batch_rows = place.params.rows_max if place.params.body == "rows" else 100
        self.patience_s = CONNECT_S + 3 * place.params.timeout_s  # as `Server.ask` allows
        self._server: Server | None = None
        self._sent = Sent()

    def open(self, epoch: int) -> None:
        """Opens nothing yet: the first request does."""
        self._server = Server(self.place.connection, self.place.params.timeout_s)

    def deliver(self, batch: Batch) -> Sequence[Refused]:
        places = self._sent.missing(batch)
        if self.place.params.body == "row":
            for place in places:
                self._send(batch, [place])
        elif places:
            self._send(batch, places)
        return self._sent.refused(batch)

    def settle(self) -> None:
        self._sent.settle()

    def close(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.close()

    def _send(self, batch: Batch, places: Sequence[int]) -> None:
        """Sends the rows at these places, in order. Raises ConnectorError."""
        assert self._server is not None
        params, offsets = self.place.params, [batch.offsets[place] for place in places]
        rows = [self._row(batch.rows[place], batch.offsets[place]) for place in places]
        self.goes_on()
        answer = self._server.ask(
            params.method,
            params.path,
            json.dumps(rows[0] if params.body == "row" else rows).encode(),
            {"Content-Type": "application/json", "Idempotency-Key": self._key(offsets)},
        )
        why = why_not(answer, self.place.connection.where, datetime.now(UTC))
        if isinstance(why, ConnectorError):
            raise why
        if why and len(places) > 1:
            half = len(places) // 2
            self._send(batch, places[:half])
            self._send(batch, places[half:])
            return
        self._sent.note(offsets[-1], why)

    def _row(self, row: Mapping[str, Any], offset: int) -> Mapping[str, Any]:
        return row if self.place.params.id_field is None else {**row, self.place.params.id_field: offset}

    def _key(self, offsets: Sequence[int]) -> str:
        through = "" if self.place.params.body == "row" else f"-{offsets[-1]}"
        return f"{self.place.deployment}.{self.place.element}.0.{offsets[0]}{through}"


def why_not(answer: Answer, where: str, now: datetime) -> ConnectorError | str:
    """Returns why the rows are to be sent again (an error), or never (a text), or an empty text."""
    status = answer.status
    said = f" It says: {' '.join(answer.text[:QUOTED].split())}" if answer.text.strip() else ""
    if 200 <= status < 300:
        return ""
    if 300 <= status < 400:
        to = answer.headers.get("location", "another place")[:QUOTED]
        return ConnectorError(
            f"{where} answers {status}: the rows belong to {to}. Fogline does not follow; change the "
            "connection or the path.",
            lasting=True,
        )
    if status in MENDED_BY_A_PERSON:
        return ConnectorError(
            f"{where} answers {status}. Check the token of the connection, the path and the method.{said}",
            lasting=True,
        )
    if status in AGAIN or status >= 500:
        wait_s = retry_after_s(answer.headers.get("retry-after", ""), now)
        return ConnectorError(
            f"{where} answers {status}, so the rows are sent again.{said}", wait_s=min(WAIT_S_MAX, wait_s)
        )
    return f"the server answers {status}: {answer.text[:QUOTED]}"


def retry_after_s(text: str, now: datetime) -> float:
    """Returns the seconds of a Retry-After, or 0 if there is none that can be read."""
    if text.strip().isdigit():
        return float(text[:9])
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return 0.0
    return max(0.0, (moment.replace(tzinfo=moment.tzinfo or UTC) - now).total_seconds())
