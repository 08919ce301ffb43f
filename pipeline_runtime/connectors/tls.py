"""TLS of connections."""

from __future__ import annotations

import ssl
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509

from pipeline_runtime.connectors.sdk import ConnectorError
from pipeline_runtime.operators.connections import TlsFields
from pipeline_runtime.operators.schema_registry import SchemaRegistryConnection


def tls_context(connection: TlsFields | SchemaRegistryConnection) -> ssl.SSLContext:
    """Returns the context of a connection that is encrypted. Raises ssl.SSLError, ConnectorError."""
    try:
        context = ssl.create_default_context(cadata=connection.ca or None)
    except ssl.SSLError as error:
        raise ConnectorError(
            "The certificate authority of the connection is no certificate in PEM.", lasting=True
        ) from error
    if connection.certificate and connection.private_key:
        # ssl reads files alone.
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory, "client.pem")
            path.touch(0o600)
            path.write_text(f"{connection.certificate}\n{connection.private_key}\n")
            try:
                # Without a password OpenSSL would ask for one at the terminal.
                context.load_cert_chain(path, password="")
            except ssl.SSLError as error:
                raise ConnectorError(
                    "The own certificate of the connection and its private key do not belong together, are "
                    "not in PEM, or the key is encrypted by a password. Give a key without one.",
                    lasting=True,
                ) from error
        check_own(x509.load_pem_x509_certificate(connection.certificate.encode()))
    return context


def check_own(certificate: x509.Certificate) -> None:
    """Raises ConnectorError if the own certificate is not valid now."""
    now = datetime.now(UTC)
    if certificate.not_valid_after_utc < now:
        raise ConnectorError(
            "The own certificate of the connection has expired. Make a new one.", lasting=True
        )
    if certificate.not_valid_before_utc > now:
        begin = certificate.not_valid_before_utc.isoformat()
        raise ConnectorError(
            f"The own certificate of the connection is not valid before {begin}. Check this node's clock."
        )
