"""A connector's configuration, and that no message of the connector holds a secret."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat

from pipeline_runtime.connectors import questions
from pipeline_runtime.connectors.config import ConnectorConfig, made, name_of, secrets_in
from pipeline_runtime.connectors.masked import Masked, MaskedLog, log_without_secrets
from pipeline_runtime.connectors.report import Report
from pipeline_runtime.connectors.sdk import ConnectorError
from pipeline_runtime.connectors.tls import tls_context
from pipeline_runtime.connectors.trial import Taken
from pipeline_runtime.model.connectors import SampleAnswer
from pipeline_runtime.operators.connections import kinds
from pipeline_runtime.operators.mqtt import MqttIn

SECRET = "hunter2-is-secret"
PARAMS = {"connection": "b", "topics": ["a"], "columns": [{"name": "v", "type": "number"}]}
MQTT = kinds()["mqtt"]


def config(**changes: Any) -> ConnectorConfig:
    fields = {
        "kind": "in",
        "deployment": "d",
        "element": "e",
        "topic": "t",
        "connector": MqttIn.connector,
        "operator": name_of(MqttIn),
        "params": PARAMS,
        "connections": {"connection": {"host": "h", "password": SECRET}},
        "kafka_bootstrap": "k",
        "spool": "s",
    }
    return ConnectorConfig.model_validate({**fields, **changes})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"connections": {"connection": {"host": "h", "password": {"is": SECRET}}}},
            "The connection does not fit",
        ),
        ({"params": {**PARAMS, "newer": 1}}, "The element does not fit"),
        ({"connector": "pipeline_runtime.connectors.of_later:Ingester"}, "does not have the connector"),
    ],
)
def test_what_another_version_has_made_is_refused_in_words(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConnectorError, match=words) as refused:
        made(config(**changes))
    assert refused.value.lasting
    assert SECRET not in str(refused.value)


def test_no_error_of_a_connection_quotes_its_fields() -> None:
    with pytest.raises(ValueError, match="password") as refused:
        MQTT.model_validate({"host": "h", "password": {"is": SECRET}})
    assert SECRET not in str(refused.value)


def test_neither_a_report_nor_the_log_holds_a_secret() -> None:
    masked, taken = Masked(secrets_in(MQTT, {"host": "h", "password": SECRET, "private_key": None})), Taken()
    report = Report("e", taken.told, masked)
    report.failing(f"user:{SECRET}@h is refused")
    report.gap(f"{SECRET} was lost")
    try:
        raise ValueError(f"bad address user:{SECRET}@h")
    except ValueError:
        record = logging.LogRecord("n", logging.ERROR, "", 1, "failed", (), sys.exc_info())
    logged = MaskedLog(masked, fmt="%(message)s").format(record)
    assert taken.statuses[0].why == "user:***@h is refused"
    assert taken.notes == ["*** was lost"]
    assert "bad address user:***@h" in logged
    assert SECRET not in logged


def test_a_private_key_with_a_password_is_refused_and_nobody_is_asked_for_it() -> None:
    key, name, now = ec.generate_private_key(ec.SECP256R1()), x509.Name([]), datetime.now(UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + timedelta(days=1))
    fields = {
        "host": "h",
        "tls": True,
        "certificate": made.sign(key, SHA256()).public_bytes(Encoding.PEM).decode(),
        "private_key": key.private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"password")
        ).decode(),
    }
    with pytest.raises(ConnectorError, match="encrypted by a password"):
        tls_context(MQTT.model_validate(fields))  # type: ignore[arg-type]


def test_a_sample_logs_no_secret(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def read(*_: object) -> SampleAnswer:
        logging.getLogger("library").error("password=right")
        return SampleAnswer()

    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    monkeypatch.setattr(questions, "sampled", read)
    config = ConnectorConfig(
        **{"kind": "in", "deployment": "d", "element": "in", "topic": "", "kafka_bootstrap": "", "spool": ""},
        connector=MqttIn.connector,
        operator=name_of(MqttIn),
        params={"connection": "b", "topics": ["t"], "columns": [{"name": "t"}]},
        connections={"connection": {"host": "h", "user": "ann", "password": "right"}},
    )
    assert questions.sample(config.model_dump(mode="json"), log_without_secrets()).why == ""
    assert "password=***" in capsys.readouterr().err
