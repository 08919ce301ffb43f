"""An ingester whose library never returns, for tests of a real process."""

from __future__ import annotations

import threading
from typing import Any

from pipeline_runtime.connectors.sdk import Ingester, Intake, Record


class HangingIngester(Ingester[Any, Any]):
    system_waits = True

    def run(self, intake: Intake, stop: threading.Event) -> None:
        intake.connected()
        intake.put([Record(b'{"value": {"v": 1}}')])
        intake.gap("it hangs", 2)
        threading.Event().wait()
