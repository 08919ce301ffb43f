"""A real OPC UA server for the tests, as a process that can be killed, hung and started again.

python -m tests.opcua_servers PORT DIRECTORY USER MANY REFUSED JOURNAL     what the process runs
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import Any

from asyncua import Client, Server, ua
from asyncua.common.callback import CallbackType, ServerItemCallback
from asyncua.crypto.cert_gen import (
    dump_private_key_as_pem,
    generate_private_key,
    generate_self_signed_app_certificate,
)
from asyncua.crypto.permission_rules import User, UserRole
from asyncua.crypto.truststore import TrustStore
from asyncua.crypto.validator import CertificateValidator, CertificateValidatorOptions
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID

from pipeline_runtime.operators.opcua import OpcUaConnection
from tests.killable import KillableServer, keep

PRESS = "ns=2;s=Press"
NOTE = "ns=2;s=Note"


class _Users:
    """Lets one user in, with the password "right"."""

    def __init__(self, name: str) -> None:
        self._name = name

    def get_user(
        self, _: Any, username: Any = None, password: Any = None, certificate: Any = None
    ) -> User | None:
        known = (username, password) == (self._name, "right")
        return User(role=UserRole.Admin, name=username) if known else None


def _refuse(server: Server, refused: ua.NodeId) -> None:
    view: Any = server.iserver.view_service
    browse = view._browse

    def browsed(asked: ua.BrowseDescription) -> Any:
        if asked.NodeId != refused:
            return browse(asked)
        return ua.BrowseResult(StatusCode_=ua.StatusCode(ua.StatusCodes.BadUserAccessDenied))

    view._browse = browsed


def _keep(journal: str, written: ServerItemCallback, _: object) -> None:
    for each in written.request_params.NodesToWrite:
        if each.NodeId == ua.NodeId.from_string(f"{PRESS}.Strokes"):
            keep(journal, each.Value.Value.Value)


async def main(port: int, directory: str, user: str, many: int, refused: str, journal: str) -> None:
    """Has an object Press with Temperature (°C), Strokes and Running, and so many more values in a folder,
    and a text Note. Everybody may write them. With a certificate in the directory it lets nobody in without
    signing and encrypting, and only those whose certificate is in the directory "trusted" there. It tells
    nobody what lies below the node `refused`. Each value of Strokes that is written becomes a line of the
    file `journal`."""
    server = Server(user_manager=_Users(user) if user else None)
    await server.init()
    if refused:
        _refuse(server, ua.NodeId.from_string(refused))
    server.set_endpoint(f"opc.tcp://127.0.0.1:{port}/press")
    if directory:
        await server.load_certificate(str(Path(directory, "certificate.pem")))
        await server.load_private_key(str(Path(directory, "key.pem")))
        server.set_security_policy(
            [ua.SecurityPolicyType.Basic256Sha256_SignAndEncrypt, ua.SecurityPolicyType.Basic256Sha256_Sign]
        )
        trusted = TrustStore([Path(directory, "trusted")], [])
        await trusted.load()
        options = CertificateValidatorOptions.TRUSTED_VALIDATION | CertificateValidatorOptions.PEER_CLIENT
        server.set_certificate_validator(CertificateValidator(options, trusted))
    await server.register_namespace("urn:press")
    press = await server.nodes.objects.add_object(ua.NodeId.from_string(PRESS), "2:Press")
    for name, value in (("Temperature", 21.5), ("Strokes", 0), ("Running", True)):
        node = await press.add_variable(ua.NodeId.from_string(f"{PRESS}.{name}"), f"2:{name}", value)
        await node.set_writable()
        if name == "Temperature":
            unit = ua.EUInformation(DisplayName=ua.LocalizedText("°C"))
            await node.add_property(ua.NodeId.from_string(f"{PRESS}.Unit"), "0:EngineeringUnits", unit)
    note = await server.nodes.objects.add_variable(ua.NodeId.from_string(NOTE), "2:Note", "")
    await note.set_writable()
    if many:
        folder = await press.add_folder(ua.NodeId.from_string(f"{PRESS}.Many"), "2:Many")
        for number in range(many):
            place = ua.NodeId.from_string(f"{PRESS}.Many.{number}")
            await folder.add_variable(place, f"2:Value {number}", number)
    if journal:
        server.subscribe_server_callback(CallbackType.PostWrite, partial(_keep, journal))
    async with server:
        await asyncio.Event().wait()


@cache
def certificate(name: str, days: int = 365, names: int = 1) -> tuple[str, str]:
    """Returns a certificate of its own signature, and its key, both in PEM. `days`: how long it is valid; 0:
    it has expired. `names`: of so many computers."""
    key = generate_private_key()
    made = generate_self_signed_app_certificate(
        key,
        name,
        {},
        [x509.UniformResourceIdentifier(f"urn:{name}"), *[x509.DNSName("localhost")] * names],
        [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH],
        days,
    )
    return made.public_bytes(Encoding.PEM).decode(), dump_private_key_as_pem(key).decode()


class OpcUaServer(KillableServer):
    """Its values begin as `main` says, also after a restart. `secure`: it has a certificate in this
    directory, or `own`, and trusts those of `trusted`, in PEM. `many`: how many more
    values it has. `refused`: the node of which it does not tell what lies below. `journal`: the file for what
    is written to Strokes."""

    def __init__(
        self,
        secure: Path | None = None,
        user: str = "",
        *,
        own: tuple[str, str] | None = None,
        trusted: Sequence[str] = (),
        many: int = 0,
        refused: str = "",
        journal: Path | None = None,
    ) -> None:
        directory, kept = ("" if each is None else str(each) for each in (secure, journal))
        super().__init__(
            "the OPC UA server", "tests.opcua_servers", directory, user, str(many), refused, kept
        )
        if secure is not None:
            shown, key = own or certificate("server")
            secure.mkdir(exist_ok=True)
            Path(secure, "certificate.pem").write_text(shown)
            Path(secure, "key.pem").write_text(key)
            Path(secure, "trusted").mkdir(exist_ok=True)
            for number, each in enumerate(trusted):
                Path(secure, "trusted", f"{number}.pem").write_text(each)

    def connection(self, **fields: Any) -> OpcUaConnection:
        return OpcUaConnection.model_validate(
            {"host": "127.0.0.1", "port": self.port, "endpoint": "/press", **fields}
        )

    def write(
        self, name: str, *values: float | bool | str, time: datetime | None = None, status: int = 0
    ) -> None:
        """Sets a value of the press, or the note, one after the other."""
        # Playwright has a loop in the thread of a test.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, self._write(name, values, time, status)).result()

    async def _write(self, name: str, values: Sequence[Any], time: datetime | None, status: int) -> None:
        async with Client(f"opc.tcp://127.0.0.1:{self.port}/press") as client:
            node = client.get_node(NOTE if name == "Note" else f"{PRESS}.{name}")
            for value in values:
                kind = ua.VariantType.Int64 if name == "Strokes" else None
                await node.write_value(
                    ua.DataValue(ua.Variant(value, kind), ua.StatusCode(status), SourceTimestamp=time)
                )


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), *sys.argv[2:4], int(sys.argv[4]), *sys.argv[5:7]))
