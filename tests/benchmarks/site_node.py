"""`python -m tests.benchmarks.site_node FILE`: a node whose checkpoint service others reach at another port
than the one on which it listens, by a line that delays and counts; its battery and CPU may be told
(tests/told_load.py). FILE: its Identity, as JSON."""

from __future__ import annotations

import json
import logging
import os
import sys
from pathlib import Path

from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.spark.environment import keep_what_workers_need
from tests.told_load import told_by
from workers.node.identity import Identity
from workers.node.process import NodeProcess


def main() -> int:
    os.umask(0o077)
    fields = json.loads(Path(sys.argv[1]).read_text())
    keep_what_workers_need(os.environ)
    logging.basicConfig(level="INFO", format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for noisy in ("kafka", "httpx", "py4j", "celery.worker.strategy", "celery.app.trace"):
        logging.getLogger(noisy).setLevel("WARNING")
    fields |= {"directory": Path(fields["directory"]), "kafka": KafkaSettings(fields["kafka"])}
    told_by(fields["directory"].parent / "told", fields["name"])
    return NodeProcess(Identity(**fields)).run()


if __name__ == "__main__":
    code = main()
    logging.shutdown()
    os._exit(code)  # threads of Spark and of Celery may still hang in calls that nobody waits for
