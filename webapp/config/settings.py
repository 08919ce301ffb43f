"""Django's settings, derived from Fogline's own (pipeline_runtime.settings)."""

from __future__ import annotations

import os
from pathlib import Path

import dj_database_url

BASE_DIR = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("FOGLINE_DATA") or BASE_DIR / ".fogline").resolve()
DATA.mkdir(parents=True, exist_ok=True)
SECRET_KEY = os.environ.get("FOGLINE_SECRET_KEY") or "insecure-until-settings"
REDIS_URL = (
    os.environ.get("REDIS_URL") or f"redis://127.0.0.1:{os.environ.get('FOGLINE_REDIS_PORT', '16379')}/0"
)
DEBUG = os.environ.get("FOGLINE_DEBUG") == "1"
ALLOWED_HOSTS = ["127.0.0.1", "localhost", "[::1]"]

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
    "csp",
    "webapp.accounts",
    "webapp.nodes",
    "webapp.pipelines",
    "webapp.handovers",
    "webapp.monitoring",
    "webapp.api",
]
MIDDLEWARE: list[str] = []
ROOT_URLCONF = "webapp.config.urls"
ASGI_APPLICATION = "webapp.config.asgi.application"
AUTH_USER_MODEL = "accounts.User"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
TIME_ZONE = "UTC"
USE_TZ = True

DATABASES = {
    "default": dj_database_url.parse(
        os.environ.get("DATABASE_URL") or f"sqlite:///{DATA / 'fogline.sqlite3'}"
    )
}
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    # Web, control and the management commands all write: WAL lets them read meanwhile, IMMEDIATE
    # makes a writer wait for the lock at BEGIN instead of failing in the middle.
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    }
CHANNEL_LAYERS = {
    "default": {"BACKEND": "channels_redis.core.RedisChannelLayer", "CONFIG": {"hosts": [REDIS_URL]}}
}
