"""A session with an OPC UA server (asyncua): connects by user, certificate and security policy."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any

from asyncua import Client, ua
from asyncua.crypto import security_policies
from asyncua.crypto.uacrypto import CertProperties, x509_from_der
from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA1, SHA256
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from pipeline_runtime.connectors.in_words import in_words
from pipeline_runtime.connectors.sdk import CONNECT_S, ConnectorError
from pipeline_runtime.connectors.tls import check_own
from pipeline_runtime.model.connectors import OFFERED_MAX, Offer
from pipeline_runtime.operators.opcua import OpcUaConnection

ANSWER_S = 3.0
"""A request without an answer for so long has failed. A server that hangs is noticed by it."""
WATCH_S = 1.0
GOODBYE_S = 1.0
_SESSION_MS = 30_000
_NAMED_MAX = 200
_MODES = {
    "sign": ua.MessageSecurityMode.Sign,
    "sign and encrypt": ua.MessageSecurityMode.SignAndEncrypt,
}
_AUTHORITY = (
    ua.StatusCodes.BadUserAccessDenied,
    ua.StatusCodes.BadIdentityTokenInvalid,
    ua.StatusCodes.BadIdentityTokenRejected,
)
_TRUST = (
    ua.StatusCodes.BadSecurityChecksFailed,
    ua.StatusCodes.BadCertificateUntrusted,
    ua.StatusCodes.BadCertificateInvalid,
    ua.StatusCodes.BadCertificateUriInvalid,
    ua.StatusCodes.BadCertificateTimeInvalid,
    ua.StatusCodes.BadCertificateUseNotAllowed,
)


class Session:
    """One connection to a server. It is not used again after it was lost."""

    def __init__(self, connection: OpcUaConnection, name: str) -> None:
        # Each loss would be logged with its stack, and is told at the element already.
        logging.getLogger("asyncua").setLevel(logging.CRITICAL)
        self._connection = connection
        self.lost = asyncio.Event()
        self.why = ""
        self.client = Client(connection.url, timeout=ANSWER_S, watchdog_intervall=WATCH_S)
        self.client.name = self.client.description = name
        self.client.application_uri = "urn:fogline"
        self.client.session_timeout = _SESSION_MS
        self.client.connection_lost_callback = self._on_lost
        if connection.user:
            self.client.set_user(connection.user)
            self.client.set_password(connection.password or "")

    async def connect(self) -> None:
        """Raises ConnectorError."""
        try:
            async with asyncio.timeout(CONNECT_S):
                if self._connection.security != "none":
                    await self._secure()
                await self.client.connect()
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError):
                raise
            raise _in_words(error, self._connection) from error

    def lost_error(self) -> ConnectorError:
        why = f" ({self.why})" if self.why else ""
        return ConnectorError(f"The connection to {self._connection.where} was lost{why}.")

    async def close(self) -> None:
        with suppress(Exception):
            await asyncio.wait_for(self.client.disconnect(), GOODBYE_S)

    async def _on_lost(self, error: Exception) -> None:
        self.lost.set()

    async def _secure(self) -> None:
        connection = self._connection
        assert connection.security != "none"
        own, key = _own(connection)
        self.client.application_uri = _application_uri(own) or self.client.application_uri
        policy = getattr(security_policies, f"SecurityPolicy{connection.policy}")
        mode = _MODES[connection.security]
        offered = await self.client.connect_and_get_server_endpoints()
        fitting = [
            each
            for each in offered
            if each.SecurityMode == mode and each.SecurityPolicyUri == policy.URI and each.ServerCertificate
        ]
        if not fitting:
            raise ConnectorError(
                f"{connection.where} does not offer {connection.policy} with {connection.security}. "
                f"It offers: {_listed(offered)}.",
                lasting=True,
            )
        shown = x509_from_der(fitting[0].ServerCertificate)
        _check_server(shown, connection)
        await self.client.set_security(
            policy,
            CertProperties(own.public_bytes(Encoding.PEM), "pem"),
            CertProperties(key, "pem"),
            server_certificate=CertProperties(shown.public_bytes(Encoding.PEM), "pem"),
            mode=mode,
        )


@asynccontextmanager
async def connected(connection: OpcUaConnection, name: str) -> AsyncIterator[Session]:
    """Yields a session, and says goodbye. Raises ConnectorError."""
    session = Session(connection, name)
    await session.connect()
    try:
        yield session
    finally:
        await session.close()


def status_name(status: int) -> str:
    """Returns the name of a status, such as BadSensorFailure."""
    code = status & 0xFFFF_0000
    return "Good" if code == 0 else str(ua.StatusCode(code).name)


def _own(connection: OpcUaConnection) -> tuple[x509.Certificate, bytes]:
    """Returns the own certificate and its key, both checked."""
    key = (connection.private_key or "").encode()
    try:
        own = x509.load_pem_x509_certificate((connection.certificate or "").encode())
        public = load_pem_private_key(key, None).public_key()
    except (ValueError, TypeError) as error:
        raise ConnectorError(
            "The own certificate of the connection, or its private key, is not in PEM, or the key has a "
            "password.",
            lasting=True,
        ) from error
    if public != own.public_key():
        raise ConnectorError(
            "The own certificate of the connection and its private key do not belong together.", lasting=True
        )
    check_own(own)
    return own, key


def _application_uri(certificate: x509.Certificate) -> str | None:
    """Returns the URI of its application: a server refuses a client that says another one."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return None
    return next(iter(names.get_values_for_type(x509.UniformResourceIdentifier)), None)


def _check_server(shown: x509.Certificate, connection: OpcUaConnection) -> None:
    if shown.not_valid_after_utc < datetime.now(UTC):
        raise ConnectorError(
            f"The certificate of {connection.where} has expired. Its administrator has to renew it.",
            lasting=True,
        )
    where, pem = connection.where, shown.public_bytes(Encoding.PEM).decode()
    if len(pem) > OFFERED_MAX:
        raise ConnectorError(
            f"{where} shows a certificate of {len(pem):,} characters (PEM), and a connection holds "
            f"{OFFERED_MAX:,} at most. Its administrator has to give it a smaller one.",
            lasting=True,
        )
    offer = Offer(field="server_certificate", value=pem, title="Accept this certificate")
    if not connection.server_certificate:
        raise ConnectorError(
            f"{where} is not verified yet, so Fogline does not log in there: the connection has no server's "
            f"certificate. {_described(shown)} An admin compares the thumbprint with the server's own, and "
            "accepts the certificate at Test connection.",
            lasting=True,
            offer=offer,
        )
    try:
        expected = x509.load_pem_x509_certificate(connection.server_certificate.encode())
    except ValueError as error:
        raise ConnectorError(
            "The server's certificate in the connection is no certificate in PEM.", lasting=True
        ) from error
    if expected != shown:
        raise ConnectorError(
            f"{where} shows another certificate than the one in the connection. {_described(shown)} Ask its "
            "administrator whether it has a new one. If so, an admin accepts it at Test connection.",
            lasting=True,
            offer=offer,
        )


def _described(shown: x509.Certificate) -> str:
    """Returns what tells people one certificate from others. Servers show the thumbprint of OPC UA, which is
    made by SHA-1, or one by SHA-256."""
    by = (SHA1(), SHA256())  # noqa: S303
    sha_1, sha_256 = (shown.fingerprint(each).hex(":").upper() for each in by)
    until = f"{shown.not_valid_after_utc:%-d %B %Y}"
    return (
        f"It shows the certificate of {shown.subject.rfc4514_string()[:_NAMED_MAX]}, valid until {until}. "
        f"Its thumbprint is {sha_1} (SHA-1), or {sha_256} (SHA-256)."
    )


def _listed(offered: list[ua.EndpointDescription]) -> str:
    names = {ua.MessageSecurityMode.None_: "none", **{mode: words for words, mode in _MODES.items()}}
    found = {
        "none"
        if each.SecurityMode == ua.MessageSecurityMode.None_
        else f"{str(each.SecurityPolicyUri).rpartition('#')[2]} with {names.get(each.SecurityMode, '?')}"
        for each in offered
    }
    return ", ".join(sorted(found)) or "nothing"


def _in_words(error: BaseException, connection: OpcUaConnection) -> ConnectorError:
    where = connection.where
    # The library wraps what has happened.
    inner: Any = error.__cause__ if type(error) is ua.UaError and error.__cause__ else error
    code = getattr(inner, "code", None)
    if code in _AUTHORITY:
        who = f"the user {connection.user}" if connection.user else "a client without a user name"
        return ConnectorError(
            f"{where} does not let {who} in. Check the user name and the password.", lasting=True
        )
    if code in _TRUST:
        return ConnectorError(
            f"{where} does not accept the certificate of this connection ({status_name(code)}). Its "
            "administrator has to trust it.",
            lasting=True,
        )
    if isinstance(inner, ua.UaStatusCodeError):
        return ConnectorError(f"{where} refuses the connection: {inner}.")
    if isinstance(inner, ua.UaError) and "No matching endpoints" in str(inner):
        return ConnectorError(
            f"{where} does not let anybody in without signing. Choose another security.", lasting=True
        )
    if isinstance(inner, TimeoutError):
        return ConnectorError(f"{where} does not answer in time. Is it an OPC UA server, and is it up?")
    return in_words(inner, where)
