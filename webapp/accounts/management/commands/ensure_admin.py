"""Creates the first admin account, with a generated password, when there is no account yet."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import transaction

from webapp.accounts.models import User
from webapp.audit.records import audit


class Command(BaseCommand):
    help = (
        "Create the account `admin` when there is none; keeps its first password in FOGLINE_DATA/admin.json "
        "(mode 600) until it is changed, and prints {username, password, created} as JSON."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        path = settings.FOGLINE.data / "admin.json"
        with transaction.atomic():
            created = not User.objects.exists()
            if created:
                login = {"username": "admin", "password": secrets.token_urlsafe(12)}
                admin = User.objects.create_superuser(**login)
                audit(None, "user.create", admin.username, role=admin.role)
                descriptor = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
                with os.fdopen(descriptor, "w") as file:
                    json.dump(login, file)
        known: dict[str, Any] = {"username": "admin", "password": None}
        with contextlib.suppress(OSError, ValueError):  # its reader removed it
            known |= json.loads(path.read_text())
        user = User.objects.filter(username=known["username"]).first()
        if user is None or not known["password"] or not user.check_password(known["password"]):
            known["password"] = None  # the password was changed since, so only its owner knows it
        self.stdout.write(json.dumps({**known, "created": created}))
