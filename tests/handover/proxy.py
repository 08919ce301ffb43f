"""TCP proxies between nodes and the broker, in a process of their own. They delay, cut off and count.

A delay makes the line longer: what comes in at one end goes out at the other half of a round trip later,
however much it is, and opening a connection costs one round trip. `cut` breaks the line: what is sent is held
back, and arrives when the line is whole again if the connection lives that long. `reset` ends all connections
and accepts no new ones.
"""

from __future__ import annotations

import asyncio
import multiprocessing
from collections import deque
from contextlib import suppress
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from typing import Any, Literal

from tests.ports import free_ports

_HOST = "127.0.0.1"
_ANSWER_S = 10.0
_START_S = 90.0  # a new process first imports what its parent has imported
_context = multiprocessing.get_context("spawn")

Break = Literal["cut", "reset"]


@dataclass
class Counts:
    connections: int = 0
    bytes_up: int = 0  # to the broker
    bytes_down: int = 0


@dataclass
class _Line:
    """The line between the port that a node uses and the broker's port behind it."""

    target: int
    delay_s: float = 0.0  # for a round trip
    broken: Break | None = None

    def __post_init__(self) -> None:
        self.counts = Counts()
        self.pipes: set[_Pipe] = set()


class _Pipe(asyncio.Protocol):
    """One direction of one connection: what this side receives goes to `other`."""

    def __init__(self, line: _Line, up: bool) -> None:
        self.line = line
        self.up = up
        self.other: _Pipe | None = None
        self.transport: asyncio.Transport | None = None
        self._held: deque[tuple[float, bytes | None]] = (
            deque()
        )  # (when it is due, the bytes); None stands for the end
        self._not_before = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.line.pipes.add(self)
        if self.up:
            self.line.counts.connections += 1
            self._not_before = asyncio.get_running_loop().time() + self.line.delay_s * 1.5
            asyncio.get_running_loop().create_task(self._connect())

    async def _connect(self) -> None:
        if self.line.broken == "reset":
            self.abort()
            return
        down = _Pipe(self.line, up=False)
        down.other = self
        try:
            await asyncio.get_running_loop().create_connection(lambda: down, _HOST, self.line.target)
        except OSError:
            self.abort()  # the broker is away
            return
        self.other = down
        self.send()

    def data_received(self, data: bytes) -> None:
        if self.up:
            self.line.counts.bytes_up += len(data)
        else:
            self.line.counts.bytes_down += len(data)
        self._hold(data)

    def eof_received(self) -> bool:
        self._hold(None)
        return True

    def connection_lost(self, error: Exception | None) -> None:
        self.line.pipes.discard(self)
        if error is not None:
            self._held.clear()
        self._hold(None)

    def _hold(self, data: bytes | None) -> None:
        now = asyncio.get_running_loop().time()
        self._not_before = max(self._not_before, now + self.line.delay_s / 2)
        self._held.append((self._not_before, data))
        self.send()

    def send(self) -> None:
        """Passes on what is due, unless the line is broken."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        target = self.other.transport if self.other is not None else None
        if target is None or self.line.broken is not None:
            return
        loop = asyncio.get_running_loop()
        while self._held:
            due, data = self._held[0]
            if due - loop.time() > 0.000_05:
                self._timer = loop.call_at(due, self.send)
                return
            self._held.popleft()
            if data is None:
                target.close()
            else:
                target.write(data)

    def abort(self) -> None:
        self._held.clear()
        if self.transport is not None:
            self.transport.abort()


async def _serve(lines: dict[int, _Line], commands: Connection) -> None:
    loop = asyncio.get_running_loop()
    for port, line in lines.items():
        await loop.create_server(lambda line=line: _Pipe(line, up=True), _HOST, port)
    commands.send(True)
    done = asyncio.Event()

    def on_command() -> None:
        try:
            port, what, value = commands.recv()
        except EOFError:
            done.set()
            return
        commands.send(_carry_out(lines[port], what, value))

    loop.add_reader(commands.fileno(), on_command)
    await done.wait()


def _carry_out(line: _Line, what: str, value: Any) -> Any:
    if what == "delay":
        line.delay_s = value
    elif what == "break":
        line.broken = value
        if value == "reset":
            for pipe in list(line.pipes):
                pipe.abort()
        if value is None:
            for pipe in list(line.pipes):
                pipe.send()
    return asdict(line.counts)


def _main(lines: dict[int, int], commands: Connection) -> None:
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve({port: _Line(target) for port, target in lines.items()}, commands))


class Proxy:
    """The line of one node. The node connects to `port`, and the broker listens on `target`."""

    def __init__(self, proxies: Proxies, port: int, target: int) -> None:
        self._proxies = proxies
        self.port = port
        self.target = target

    def delay(self, round_trip_ms: float) -> None:
        self._proxies.ask(self.port, "delay", round_trip_ms / 1000)

    def cut(self, how: Break = "cut") -> None:
        self._proxies.ask(self.port, "break", how)

    def heal(self) -> None:
        self._proxies.ask(self.port, "break", None)

    def counts(self) -> Counts:
        return Counts(**self._proxies.ask(self.port, "counts", None))


class Proxies:
    """One process for as many lines as there are nodes."""

    def __init__(self, names: tuple[str, ...], targets: tuple[int, ...] = ()) -> None:
        """`targets` are the ports behind the lines. Without them, free ports are taken, to be listened on."""
        ports = free_ports(2 * len(names) - len(targets))
        pairs = list(zip(ports[: len(names)], targets or ports[len(names) :], strict=True))
        self.lines = {name: Proxy(self, *pair) for name, pair in zip(names, pairs, strict=True)}
        self._mine, theirs = _context.Pipe()
        self._process = _context.Process(target=_main, args=(dict(pairs), theirs), daemon=True)
        self._process.start()
        theirs.close()
        self._answer(_START_S)

    @property
    def advertised(self) -> dict[int, int]:
        """For the broker: the port to listen on -> the port that its clients are told."""
        return {line.target: line.port for line in self.lines.values()}

    def ask(self, port: int, what: str, value: Any) -> Any:
        self._mine.send((port, what, value))
        return self._answer()

    def close(self) -> None:
        self._mine.close()
        self._process.join(5)
        self._process.kill()

    def _answer(self, timeout_s: float = _ANSWER_S) -> Any:
        if not self._mine.poll(timeout_s):
            raise TimeoutError("the proxies do not answer")
        return self._mine.recv()
