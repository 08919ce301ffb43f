"""A real Modbus device for the tests, as a process that can be killed, hung and started again.

python -m tests.modbus_devices PORT [JOURNAL]     what the process runs: pymodbus's own server
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from time import time
from typing import Any

from pymodbus.client import ModbusTcpClient
from pymodbus.server import StartTcpServer
from pymodbus.simulator import DataType, SimData, SimDevice

from pipeline_runtime.operators.modbus import ModbusConnection
from tests.killable import KillableServer, keep

CLOCK, KEPT = 190, 192
"""Each is the first one of two holding registers, for a number of 32 bits."""
CLOCK_S = 0.5


def main(port: int, journal: str | None) -> None:
    """Holding registers 0 to 199 (n holds 1000 + n), input registers 0 to 9, and 16 coils and discrete inputs
    (the even ones are on). All else is an illegal address.

    With a `journal`, CLOCK holds how often CLOCK_S has passed since 1970, and each number that is written to
    KEPT becomes a line of that file."""

    async def clocked(
        _function: int,
        start: int,
        _address: int,
        _count: int,
        registers: list[int],
        values: Sequence[int] | None,
    ) -> None:
        number = int(time() / CLOCK_S)
        if start <= CLOCK < start + len(registers) - 1:
            registers[CLOCK - start : CLOCK - start + 2] = number >> 16, number & 0xFFFF
        if values is not None and journal is not None:
            keep(journal, values[0] << 16 | values[1])

    bits = [SimData(0, values=[at % 2 == 0 for at in range(16)], datatype=DataType.BITS)]
    holding = [SimData(0, values=[1000 + at for at in range(200)], datatype=DataType.REGISTERS)]
    inputs = [SimData(0, values=[0xFFFE, *range(1, 10)], datatype=DataType.REGISTERS)]
    device = SimDevice(1, (bits, bits, holding, inputs), action=None if journal is None else clocked)
    StartTcpServer(device, address=("127.0.0.1", port))


class Device(KillableServer):
    """A device with the unit id 1. Its registers begin as `main` says, also after a restart. `journal`: the
    file for what is written to it."""

    def __init__(self, journal: Path | None = None) -> None:
        super().__init__(
            "the Modbus device", "tests.modbus_devices", *([] if journal is None else [str(journal)])
        )

    def connection(self, **fields: Any) -> ModbusConnection:
        return ModbusConnection.model_validate({"host": "127.0.0.1", "port": self.port, **fields})

    def write(self, address: int, *words: int) -> None:
        """Sets holding registers."""
        client = ModbusTcpClient("127.0.0.1", port=self.port)
        assert not client.write_registers(address, list(words)).isError()
        client.close()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None)
