"""What is said of a server's certificate before Fogline logs in."""

from __future__ import annotations

import pytest
from cryptography import x509

from pipeline_runtime.connectors.opcua_session import _check_server
from pipeline_runtime.connectors.sdk import ConnectorError
from pipeline_runtime.operators.opcua import OpcUaConnection
from tests.opcua_servers import certificate


def test_a_certificate_that_no_connection_can_hold_is_not_offered() -> None:
    shown = x509.load_pem_x509_certificate(certificate("large", names=3_000)[0].encode())
    own, key = certificate("fogline")
    secure = {"security": "sign", "certificate": own, "private_key": key}
    connection = OpcUaConnection.model_validate({"host": "press", "port": 4840, **secure})
    with pytest.raises(
        ConnectorError, match=r"certificate of 4\d,\d{3} characters .* 20,000 at most"
    ) as said:
        _check_server(shown, connection)
    assert (said.value.lasting, said.value.offer) == (True, None)
