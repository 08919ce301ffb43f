"""Measures the load of this machine, and the memory and CPU that the node takes."""

from __future__ import annotations

from pathlib import Path
from time import monotonic

import psutil

from pipeline_runtime.model.desired import NodeLoad

TREE_INTERVAL_S = 5.0
"""To walk all processes costs some milliseconds, so it is done less often than reports are sent."""

CPU_INTERVAL_S = 0.1
"""The shortest time of which a share of the CPU is told."""


class LoadMeter:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._process = psutil.Process()
        self._tree_bytes, self._java_bytes = 0, 0
        self._tree_at_s = float("-inf")
        self._tree_cpu_s: float | None = None  # taken by the processes that the last walk found
        self._cpu_s = 0.0
        psutil.cpu_percent(None)  # the first call only sets the start of the interval
        self._cpu_from_s = monotonic()

    def measure(self) -> NodeLoad:
        memory = psutil.virtual_memory()
        disk = psutil.disk_usage(str(self._directory))
        battery = self._battery()
        self._look_at_tree()
        return NodeLoad(
            cpu_ratio=self._cpu_ratio(),
            memory_bytes=self._tree_bytes,
            java_bytes=self._java_bytes,
            memory_total_bytes=memory.total,
            memory_ratio=memory.percent / 100,
            disk_free_bytes=disk.free,
            disk_ratio=disk.percent / 100,
            battery_ratio=battery[0],
            on_battery=battery[1],
        )

    def _cpu_ratio(self) -> float:
        """Since the last call, or of the shortest time: what the kernel counts in less is 0 or 100 %."""
        short = monotonic() - self._cpu_from_s < CPU_INTERVAL_S
        percent = psutil.cpu_percent(CPU_INTERVAL_S if short else None)
        self._cpu_from_s = monotonic()
        return min(1.0, max(0.0, percent / 100))

    @property
    def cpu_time(self) -> tuple[float, float]:
        """When the processes were last walked (monotonic), and the CPU seconds since the first walk.

        The seconds never fall, whichever process ends.
        """
        return self._tree_at_s, self._cpu_s

    def _look_at_tree(self) -> None:
        """Measures the resident bytes and the CPU of the agent, its JVM and the Python workers."""
        if monotonic() - self._tree_at_s < TREE_INTERVAL_S:
            return
        java, python, cpu_s = 0, 0, 0.0
        for process in [self._process, *self._process.children(recursive=True)]:
            try:
                # The time of children that have ended and were waited for goes over to the parent.
                times = process.cpu_times()
                cpu_s += times.user + times.system + times.children_user + times.children_system
                # Shared memory is counted in parts for Python. For Java that would hold it up for some 20 ms.
                if process.name() == "java":
                    java += process.memory_info().rss
                else:
                    python += process.memory_full_info().pss
            except psutil.Error:
                continue  # it ended meanwhile
        self._tree_bytes, self._java_bytes, self._tree_at_s = java + python, java, monotonic()
        if self._tree_cpu_s is not None:
            # It is less if a process has ended without its parent having waited for it.
            self._cpu_s += max(0.0, cpu_s - self._tree_cpu_s)
        self._tree_cpu_s = cpu_s

    @staticmethod
    def _battery() -> tuple[float | None, bool | None]:
        try:
            battery = psutil.sensors_battery()
        except (AttributeError, OSError):
            return None, None  # a machine without such sensors
        if battery is None:
            return None, None
        return battery.percent / 100, not battery.power_plugged
