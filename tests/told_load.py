"""A node whose battery and CPU are what files say, so that policies can be tried on what they go by."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import psutil

KINDS = ("battery", "cpu")


class Battery(NamedTuple):
    """As psutil's."""

    percent: float
    power_plugged: bool


def told_by(directory: Path, node: str) -> None:
    """In this process, which runs the node: its machine has the battery and the CPU (0..1) that the files
    `<node>.battery` and `<node>.cpu` say; without them, what it really has."""
    files = {kind: directory / f"{node}.{kind}" for kind in KINDS}
    battery, cpu = getattr(psutil, "sensors_battery", lambda: None), psutil.cpu_percent
    psutil.sensors_battery = lambda: _battery(files["battery"], battery)
    psutil.cpu_percent = lambda interval=None: _cpu(files["cpu"], cpu)


def tell(directory: Path, name: str, text: str) -> None:
    """Whole or not at all: nodes read it at any moment. `name`: as `edge-a.battery`."""
    directory.mkdir(exist_ok=True)
    draft = directory / f"{name}.new"
    draft.write_text(text)
    draft.replace(directory / name)


def said(file: Path) -> str:
    return file.read_text() if file.exists() else ""


def _battery(file: Path, measured: Callable[[], Battery | None]) -> Battery | None:
    told = said(file)
    return Battery(float(told) * 100, power_plugged=False) if told else measured()


def _cpu(file: Path, measured: Callable[[], float]) -> float:
    told = said(file)
    return float(told) * 100 if told else measured()
