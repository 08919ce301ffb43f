"""A real Kafka that asks for a login and TLS, for the tests of other clusters."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from kafka import KafkaAdminClient
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ResourcePattern,
    ResourceType,
    UserScramCredentialUpsertion,
)

from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.operators.other_kafka import KafkaConnection
from tests.ports import free_block
from workers.supervisor.services import Kafka

USER, PASSWORD = "ann", "right"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


class Authority:
    """Signs certificates of 127.0.0.1."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Plant")])
        now = datetime.now(UTC)
        self._certificate = (
            _begun(self._name, self._name, self._key, now - timedelta(days=1), now + timedelta(days=9))
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self._key, SHA256())
        )
        self.pem = self._certificate.public_bytes(Encoding.PEM).decode()

    def signed(self, ends: timedelta = timedelta(days=5)) -> tuple[str, str]:
        """Returns a certificate that ends so long after now, and its key, both in PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
        now = datetime.now(UTC)
        certificate = (
            _begun(name, self._name, key, now - timedelta(days=2), now + ends)
            .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), False)
            .sign(self._key, SHA256())
        )
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        return certificate.public_bytes(Encoding.PEM).decode(), pem


def _begun(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    begin: datetime,
    end: datetime,
) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer)
    builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
    return builder.not_valid_before(begin).not_valid_after(end)


class SecureKafka(Kafka):
    """Lets "ann" in by SCRAM or PLAIN, encrypted, at `secure_port`. The certificate at
    `expired_port` has expired. At `mutual_port` it lets those in whose certificate its authority has signed.
    At `port` it lets everybody in, who may do all. Others may do all with a topic that has no rule."""

    def __init__(self, directory: Path) -> None:
        first = free_block(5)
        super().__init__(directory, first, first + 1, heap_mb=256)
        self.secure_port, self.expired_port, self.mutual_port = first + 2, first + 3, first + 4
        self.authority = Authority()

    @property
    def open(self) -> KafkaSettings:
        """For what the tests themselves do."""
        return KafkaSettings(self.bootstrap)

    def connection(self, **changed: object) -> KafkaConnection:
        fields = {
            "servers": f"127.0.0.1:{self.secure_port}",
            "login": "SCRAM-SHA-512",
            "user": USER,
            "password": PASSWORD,
            "tls": True,
            "ca": self.authority.pem,
        }
        return KafkaConnection.model_validate({**fields, **changed})

    def hide(self, topic: str) -> None:
        """Lets the user see that the topic is there, and not read it."""
        admin = KafkaAdminClient(bootstrap_servers=self.bootstrap)
        sees = ACL(
            f"User:{USER}",
            "*",
            ACLOperation.DESCRIBE,
            ACLPermissionType.ALLOW,
            ResourcePattern(ResourceType.TOPIC, topic),
        )
        try:
            assert not admin.create_acls([sees])["failed"]
        finally:
            admin.close()

    def prepare(self) -> None:
        super().prepare()
        with (self.directory / "server.properties").open("a") as file:  # the last line of a name counts
            file.writelines(f"{line}\n" for line in self._lines())

    def start(self) -> None:
        super().start()
        admin = KafkaAdminClient(bootstrap_servers=self.bootstrap)
        try:
            kinds = ("SCRAM-SHA-256", "SCRAM-SHA-512")
            for kind in kinds:  # Kafka takes one of a user at a time
                user = UserScramCredentialUpsertion(USER, kind, PASSWORD)
                assert admin.alter_user_scram_credentials([user]) == {USER: None}
        finally:
            admin.close()

    def _lines(self) -> Sequence[str]:
        ports = {
            "PLAINTEXT": self.port,
            "SECURE": self.secure_port,
            "EXPIRED": self.expired_port,
            "MUTUAL": self.mutual_port,
        }
        told = ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items())
        lines = [
            f"listeners={told},CONTROLLER://127.0.0.1:{self.controller_port}",
            f"advertised.listeners={told}",
            "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURE:SASL_SSL,"
            "EXPIRED:SASL_SSL,MUTUAL:SSL",
            "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "allow.everyone.if.no.acl.found=true",
            "super.users=User:ANONYMOUS",
        ]
        valid, expired = timedelta(days=5), -timedelta(days=1)
        for name, ends in (("secure", valid), ("expired", expired), ("mutual", valid)):
            store = self.directory / f"{name}.pem"
            if not store.exists():
                store.write_text("".join(reversed(self.authority.signed(ends))))
            begin = f"listener.name.{name}"
            lines += [
                f"{begin}.ssl.keystore.type=PEM",
                f"{begin}.ssl.keystore.location={store}",
            ]
            if name == "mutual":
                trusted = self.directory / "trusted.pem"
                trusted.write_text(self.authority.pem)
                lines += [
                    f"{begin}.ssl.client.auth=required",
                    f"{begin}.ssl.truststore.type=PEM",
                    f"{begin}.ssl.truststore.location={trusted}",
                ]
                continue
            lines += [
                f"{begin}.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
                f"{begin}.scram-sha-256.sasl.jaas.config={_SCRAM}",
                f"{begin}.scram-sha-512.sasl.jaas.config={_SCRAM}",
                f'{begin}.plain.sasl.jaas.config={_PLAIN} user_{USER}="{PASSWORD}";',
            ]
        return lines
