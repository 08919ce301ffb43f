"""The simulated press: an OPC UA server (asyncua)."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from time import time

from asyncua import Server, ua

from pipeline_runtime.connectors.simulated import LOOPBACK
from pipeline_runtime.model.simulated import PRESS_UNITS, press_at

EVERY_S = 0.5
"""How often it measures."""
_NAMESPACE = 2


async def serve(port: int, ready: Callable[[], None]) -> None:
    """Has an object Press with its values, and a unit at each value that has one."""
    logging.getLogger("asyncua").setLevel(logging.CRITICAL)
    server = Server()
    gc.disable()  # init makes 7,000 nodes that stay: looking for garbage meanwhile takes a third of its time
    await server.init()
    gc.enable()
    server.allow_remote_admin(False)  # else a client that calls itself admin may write
    server.set_endpoint(f"opc.tcp://{LOOPBACK}:{port}")
    server.set_security_policy([ua.SecurityPolicyType.NoSecurity])
    await server.register_namespace("urn:fogline:simulated")
    press = await server.nodes.objects.add_object(ua.NodeId("Press", _NAMESPACE), f"{_NAMESPACE}:Press")
    nodes: dict[str, ua.NodeId] = {}
    for name, value in press_at(time()).items():
        nodes[name] = ua.NodeId(f"Press.{name}", _NAMESPACE)
        node = await press.add_variable(nodes[name], f"{_NAMESPACE}:{name}", value)
        if unit := PRESS_UNITS[name]:
            told = ua.EUInformation(DisplayName=ua.LocalizedText(unit))
            place = ua.NodeId(f"Press.{name}.Unit", _NAMESPACE)
            await node.add_property(place, "0:EngineeringUnits", told)
    async with server:
        ready()
        while True:
            now = time()
            at = datetime.fromtimestamp(now - now % EVERY_S, UTC)
            for name, value in press_at(at.timestamp()).items():
                data = ua.DataValue(ua.Variant(value), SourceTimestamp=at)
                await server.write_attribute_value(nodes[name], data)
            await asyncio.sleep(EVERY_S - time() % EVERY_S)
