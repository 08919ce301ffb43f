"""`python -m workers.supervisor` runs all of Fogline on this machine, until Ctrl-C."""

from __future__ import annotations

import json
import os
import sys

from pipeline_runtime.settings import Settings, SettingsError
from workers.supervisor import preflight, table
from workers.supervisor.console import Console
from workers.supervisor.guard import AlreadyRunning, guarded, lock
from workers.supervisor.supervision import Supervision


def main() -> int:
    os.umask(0o077)  # sessions, checkpoints and logs are for this user alone; all children inherit this
    try:
        settings = Settings.from_env()
        lock(settings.data)
    except SettingsError as error:
        return _refuse([preflight.told("settings-refused", fault) for fault in error.faults])
    except AlreadyRunning as error:
        return _refuse([preflight.told("already-running", str(error))])
    except OSError as error:
        text = f"The data directory cannot be used: {error}. Set FOGLINE_DATA to another one."
        return _refuse([preflight.told("settings-refused", text)])
    found = preflight.faults(settings)
    if found:
        return _refuse(found)
    for warning in preflight.warnings(settings):
        print(warning, file=sys.stderr)
    return guarded(lambda: _supervise(settings))


def _supervise(settings: Settings) -> int:
    login: list[str] = []
    stages = table.stages(settings, login.append)
    console = Console(settings.logs, table.names(stages))
    try:
        return Supervision(stages, console, table.PROJECT, lambda: _greet(settings, login, console)).run()
    finally:
        console.close()


def _greet(settings: Settings, login: list[str], console: Console) -> None:
    console.say("")
    console.say(f"Fogline runs at {settings.web_url}")
    account = json.loads(login[0].strip().splitlines()[-1])
    if account["created"]:
        console.secret(f"Sign in as {account['username']} with {account['password']} (shown only once)")
    elif account["password"]:
        console.say(
            f"Sign in as {account['username']}. The first password is in {settings.data / 'admin.json'}"
        )
    console.say(f"Data and logs: {settings.data}   Stop: Ctrl-C")


def _refuse(reasons: tuple[str, ...] | list[str]) -> int:
    print("Fogline was not started:", file=sys.stderr)
    for reason in reasons:
        print(f"  - {reason}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
