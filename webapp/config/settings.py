"""Django's settings, derived from Fogline's own (pipeline_runtime.settings)."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Any
from wsgiref.headers import Headers

import dj_database_url
from csp.constants import NONCE, NONE, SELF
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from pipeline_runtime import __version__ as VERSION
from pipeline_runtime.settings import Settings

FOGLINE = Settings.from_env()
FOGLINE_VERSION = VERSION
BASE_DIR = Path(__file__).resolve().parents[2]
HTTPS = FOGLINE.https
METRICS_TOKEN = FOGLINE.metrics_token
UPLOAD_BYTES_MAX = FOGLINE.upload_bytes_max

SECRET_KEY = FOGLINE.secret_key
DEBUG = False
ALLOWED_HOSTS = [
    "127.0.0.1",
    "localhost",
    "[::1]",
    socket.gethostname(),
    *FOGLINE.allowed_hosts,
]
if FOGLINE.host not in ("0.0.0.0", "::", *ALLOWED_HOSTS):
    ALLOWED_HOSTS.append(FOGLINE.host)

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
    "csp",
    "webapp.audit",
    "webapp.accounts",
    "webapp.nodes",
    "webapp.pipelines",
    "webapp.placements",
    "webapp.handovers",
    "webapp.operations",
    "webapp.policies",
    "webapp.alarms",
    "webapp.monitoring",
    "webapp.walls",
    "webapp.connections",
    "webapp.api",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "servestatic.middleware.ServeStaticMiddleware",
    "webapp.config.compression.ApiCompressionMiddleware",
    "csp.middleware.CSPMiddleware",
    "webapp.api.problem_middleware.ProblemMiddleware",
    "webapp.config.plain_requests.PlainRequestMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "webapp.config.urls"
ASGI_APPLICATION = "webapp.config.asgi.application"
AUTH_USER_MODEL = "accounts.User"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
TIME_ZONE = "UTC"
USE_TZ = True
LANGUAGE_CODE = "en"
USE_I18N = False

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "csp.context_processors.nonce",
                "webapp.pages.views.shell",
            ],
            "libraries": {"vite": "webapp.pages.vite"},
        },
    }
]

# --- data ---------------------------------------------------------------------------------------
DATABASES = {"default": dj_database_url.parse(FOGLINE.database_url)}
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    # Web, control and the management commands all write. WAL lets them read meanwhile. IMMEDIATE makes a
    # writer wait for the lock at BEGIN instead of failing in the middle.
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    }
    # A file and not memory, so that tests meet the same locking as Fogline.
    DATABASES["default"]["TEST"] = {"NAME": FOGLINE.data / "test.sqlite3"}


def channel_layers(redis_url: str) -> dict[str, dict[str, Any]]:
    # The layer blocks in Redis for 5 s at a time, which is also redis-py's default time-out. With that, every
    # websocket without messages for 5 s would be dropped.
    host = {
        "address": redis_url,
        "socket_timeout": 20,
        "socket_connect_timeout": 3,
        "socket_keepalive": True,
        # By default it waits for seconds while Redis is away, and each action waits with it.
        "retry": Retry(NoBackoff(), 1),
    }
    # A websocket that does not keep up loses announcements beyond `capacity`; it also looks by itself.
    config = {"hosts": [host], "capacity": 1000, "expiry": 30}
    return {"default": {"BACKEND": "channels_redis.core.RedisChannelLayer", "CONFIG": config}}


CHANNEL_LAYERS = channel_layers(FOGLINE.redis_url)

# --- accounts -----------------------------------------------------------------------------------
LOGIN_URL = "/accounts/login/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/accounts/login/"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
AUTH_PASSWORD_VALIDATORS[1]["OPTIONS"] = {"min_length": 10}  # type: ignore[assignment]
LOGIN_FAILURES_MAX = 5  # per user name and address
LOGIN_FAILURES_PER_ADDRESS_MAX = 30
LOGIN_LOCK_S = 300
# Cookies ignore ports, so two copies side by side would sign each other out.
SESSION_COOKIE_NAME = f"fogline_session_{FOGLINE.port}"
CSRF_COOKIE_NAME = f"fogline_csrf_{FOGLINE.port}"
SESSION_COOKIE_AGE = 12 * 3600
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = True

# --- security -----------------------------------------------------------------------------------
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
if HTTPS:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_HSTS_SECONDS = 30 * 24 * 3600
    CSRF_TRUSTED_ORIGINS = [f"https://{host}" for host in ALLOWED_HOSTS]
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CSRF_FAILURE_VIEW = "webapp.pages.views.csrf_failure"
FILE_UPLOAD_HANDLERS = ["webapp.pipelines.upload_handler.HashingHandler"]
FILE_UPLOAD_TEMP_DIR = FOGLINE.data  # the system's directory for temporary files is often in memory
DATA_UPLOAD_MAX_MEMORY_SIZE = 4 << 20  # a JSON body; files are streamed to disk
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "script-src": [SELF, NONCE],
        "style-src": [SELF, NONCE],
        "img-src": [SELF, "data:", "blob:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "worker-src": [SELF, "blob:"],
        "object-src": [NONE],
        "base-uri": [NONE],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}

# --- static files -------------------------------------------------------------------------------
STATIC_URL = "/static/"
VITE_MANIFEST = BASE_DIR / "static" / "dist" / ".vite" / "manifest.json"
STATICFILES_DIRS = [BASE_DIR / "static" / "dist"] if (BASE_DIR / "static" / "dist").is_dir() else []
STATICFILES_FINDERS = ["django.contrib.staticfiles.finders.FileSystemFinder"]
SERVESTATIC_USE_FINDERS = True
SERVESTATIC_ALLOW_ALL_ORIGINS = False
_HASHED = re.compile(r"/static/assets/.+-[\w-]{8}\.\w+")


def _kept_for_ever(headers: Headers, _path: str, url: str) -> None:
    """Files whose names hold their content's hash, from Vite, may be cached for ever. ServeStatic itself only
    knows Django's hashes."""
    if _HASHED.fullmatch(url):
        headers["Cache-Control"] = "max-age=315360000, public, immutable"


SERVESTATIC_ADD_HEADERS_FUNCTION = _kept_for_ever

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
    # The caller is told about a backend that is away; probes ask every few seconds.
    "filters": {
        "failures": {
            "()": "django.utils.log.CallbackFilter",
            "callback": lambda record: getattr(record, "status_code", 500) != 503,
        }
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": FOGLINE.log},
    "loggers": {
        "django.request": {"level": "ERROR", "filters": ["failures"]},
        # Its client logs each failed attempt; callers log once what follows from it.
        "kafka": {"level": "CRITICAL"},
    },
}
