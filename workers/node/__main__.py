"""`python -m workers.node --name edge-a`, or `FOGLINE_TOKEN=T ... --join URL --name N` on a new machine."""

from __future__ import annotations

import argparse
import logging
import os
import resource
import sys
from contextlib import suppress

from pipeline_runtime.checkpoint.errors import CheckpointError
from pipeline_runtime.settings import Settings, SettingsError
from pipeline_runtime.spark.environment import keep_what_workers_need
from workers.lock import AlreadyRuns
from workers.node.identity import EnrolmentFailed, enrol, enrolled_identity, local_identity


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m workers.node", description=__doc__)
    parser.add_argument("--name", default=os.environ.get("FOGLINE_NODE"), help="this node's name")
    parser.add_argument("--join", metavar="URL", help="enrol at this dashboard first")
    arguments = parser.parse_args()
    token = os.environ.get("FOGLINE_TOKEN", "")  # not an argument: everybody can read those
    if not arguments.name:
        parser.error("--name is needed (or FOGLINE_NODE)")
    if arguments.join and not token:
        parser.error("--join needs FOGLINE_TOKEN, the one-time token that the dashboard gave")
    os.umask(0o077)  # state, checkpoints and credentials are for this user alone
    try:
        settings = Settings.from_env({**os.environ, "FOGLINE_NODE": arguments.name})
    except SettingsError as error:
        print("\n".join(error.faults), file=sys.stderr)
        return 2
    keep_what_workers_need(os.environ)
    logging.basicConfig(
        level=settings.log, format=f"%(asctime)s %(levelname)s {arguments.name} %(name)s: %(message)s"
    )
    for noisy in ("kafka", "httpx", "py4j", "celery.worker.strategy", "celery.app.trace"):
        logging.getLogger(noisy).setLevel("WARNING")
    _allow_many_open_files()
    try:
        if arguments.join:
            enrol(arguments.join, token, arguments.name, settings)
        identity = enrolled_identity(arguments.name, settings) or local_identity(arguments.name, settings)
        # Late, because it loads Spark's and Kafka's code, and a wrong token should be reported at once.
        from workers.node.process import NodeProcess

        try:
            code = NodeProcess(identity).run()
        except AlreadyRuns as error:
            print(error, file=sys.stderr)
            return 1
    except (EnrolmentFailed, CheckpointError) as error:
        print(error, file=sys.stderr)
        return 1
    logging.shutdown()
    sys.stdout.flush()
    # Threads of Spark and Celery may still hang in calls that nobody waits for any more.
    os._exit(code)


def _allow_many_open_files() -> None:
    """Raises the limit as far as the system allows: the usual 1,024 are too few for a node with many
    groups."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # macOS refuses "unlimited"
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


if __name__ == "__main__":
    sys.exit(main())
