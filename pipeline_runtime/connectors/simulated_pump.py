"""The simulated pump: a Modbus TCP device (pymodbus)."""

from __future__ import annotations

from collections.abc import Callable
from time import time
from typing import Any

from pymodbus.constants import ExcCodes
from pymodbus.server import ModbusTcpServer
from pymodbus.simulator import DataType, SimData, SimDevice

from pipeline_runtime.connectors.simulated import LOOPBACK
from pipeline_runtime.model.simulated import PUMP_SCALES, pump_at

_REGISTERS = 16
_READS_REGISTERS = (3, 4)


async def serve(port: int, ready: Callable[[], None]) -> None:
    """Is the unit 1, whose registers are measured when they are read. It takes no writes."""

    async def measure(
        function: int, _: int, __: int, ___: int, registers: list[int], written: list[Any] | None
    ) -> ExcCodes | None:
        if written is not None:
            return ExcCodes.ILLEGAL_FUNCTION
        if function in _READS_REGISTERS:
            values = pump_at(time())
            registers[: len(PUMP_SCALES)] = [round(values[name] / by) for name, by in PUMP_SCALES.items()]
        return None

    measured = [SimData(0, values=[0] * _REGISTERS, datatype=DataType.REGISTERS)]
    bits = [SimData(0, values=[True] * 16, datatype=DataType.BITS)]
    server = ModbusTcpServer(
        SimDevice(1, (bits, bits, measured, measured), action=measure), address=(LOOPBACK, port)
    )
    try:
        await server.serve_forever(background=True)
    except RuntimeError as error:  # so it says that the port is taken
        raise OSError(str(error)) from error
    ready()
    await server.serving
