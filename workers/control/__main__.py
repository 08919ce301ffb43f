"""`python -m workers.control`: the control side's one process."""

from __future__ import annotations

import logging
import os
import sys

from pipeline_runtime.checkpoint.errors import CheckpointError
from pipeline_runtime.settings import Settings, SettingsError
from workers.lock import AlreadyRuns

_CONNECTED_S = 60


def main() -> int:
    os.umask(0o077)  # checkpoints are for this user alone
    try:
        settings = Settings.from_env()
    except SettingsError as error:
        print("\n".join(error.faults), file=sys.stderr)
        return 2
    logging.basicConfig(level=settings.log, format="%(asctime)s %(levelname)s control %(name)s: %(message)s")
    for noisy in ("kafka", "httpx", "celery.worker.strategy", "celery.app.trace"):
        logging.getLogger(noisy).setLevel("WARNING")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.config.settings")
    import django

    django.setup(set_prefix=False)
    from django.db import connections

    # Its threads look several times a second. By default, each look would connect to the database again.
    for database in connections.settings.values():
        database |= {"CONN_MAX_AGE": _CONNECTED_S, "CONN_HEALTH_CHECKS": True}
    from workers.control.process import ControlProcess

    try:
        code = ControlProcess(settings).run()
    except (AlreadyRuns, CheckpointError) as error:
        print(error, file=sys.stderr)
        return 1
    logging.shutdown()
    sys.stdout.flush()
    os._exit(code)  # threads of Celery may still wait for a broker that is away


if __name__ == "__main__":
    sys.exit(main())
