"""A real Modbus device for the tests, as a process that can be killed, hung and started again.

python -m tests.modbus_devices PORT     what the process runs: pymodbus's own server
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from typing import Any

from pymodbus.client import ModbusTcpClient
from pymodbus.server import StartTcpServer
from pymodbus.simulator import DataType, SimData, SimDevice

from pipeline_runtime.operators.modbus import ModbusConnection
from tests.ports import free_ports
from tests.waiting import wait_until


def main(port: int) -> None:
    """Holding registers 0 to 199 (n holds 1000 + n), input registers 0 to 9, and 16 coils and discrete inputs
    (the even ones are on). All else is an illegal address."""
    bits = [SimData(0, values=[at % 2 == 0 for at in range(16)], datatype=DataType.BITS)]
    holding = [SimData(0, values=[1000 + at for at in range(200)], datatype=DataType.REGISTERS)]
    inputs = [SimData(0, values=[0xFFFE, *range(1, 10)], datatype=DataType.REGISTERS)]
    StartTcpServer(SimDevice(1, (bits, bits, holding, inputs)), address=("127.0.0.1", port))


class Device:
    """A device with the unit id 1. Its registers begin as `main` says, also after a restart."""

    def __init__(self) -> None:
        [self.port] = free_ports(1)
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Device:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.modbus_devices", str(self.port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_until(self._answers, "the Modbus device to listen")

    def kill(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)
            self._process.kill()
            self._process.wait()

    def hang(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def connection(self, **fields: Any) -> ModbusConnection:
        return ModbusConnection.model_validate({"host": "127.0.0.1", "port": self.port, **fields})

    def write(self, address: int, *words: int) -> None:
        """Sets holding registers."""
        client = ModbusTcpClient("127.0.0.1", port=self.port)
        assert not client.write_registers(address, list(words)).isError()
        client.close()

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, "the Modbus device has ended"
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


if __name__ == "__main__":
    main(int(sys.argv[1]))
