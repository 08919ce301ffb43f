"""Sends messages by the channels that an admin has made. A channel is a URL of the library apprise.

The code here sends mail and webhooks itself, because apprise gives each mail a Message-ID of its own and does
not say why a webhook refused a message (docs/decisions/0043-alarms-that-reach-people.md). Apprise still reads
the URLs of both, and sends by all other channels.
"""

from __future__ import annotations

import logging
import re
import smtplib
import ssl
import threading
from contextlib import suppress
from email.message import EmailMessage
from email.utils import formataddr, formatdate
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import apprise
import httpx
from apprise.plugins.custom_json import NotifyJSON
from apprise.plugins.email.base import NotifyEmail
from apprise.plugins.mqtt import NotifyMQTT
from apprise.utils.parse import parse_qsd

TIMEOUT_S = 10.0
SERVICE_S = 60.0
"""How long apprise may take for a message, with all that a URL names as receivers."""
URL_MAX = 2_000
REASON_MAX = 300
MAIL, WEBHOOK = ("mailto", "mailtos"), ("json", "jsons")
SCHEMES: dict[str, str] = {
    "mailto": "mail",
    "mailtos": "mail",
    "json": "webhook",
    "jsons": "webhook",
    "msteams": "Microsoft Teams",
    "workflow": "Microsoft Teams (workflow)",
    "workflows": "Microsoft Teams (workflow)",
    "slack": "Slack",
    "discord": "Discord",
    "gchat": "Google Chat",
    "mmost": "Mattermost",
    "mmosts": "Mattermost",
    "rocket": "Rocket.Chat",
    "rockets": "Rocket.Chat",
    "matrix": "Matrix",
    "matrixs": "Matrix",
    "zulip": "Zulip",
    "wxteams": "Webex",
    "webex": "Webex",
    "nctalk": "Nextcloud Talk",
    "nctalks": "Nextcloud Talk",
    "tgram": "Telegram",
    "signal": "Signal",
    "signals": "Signal",
    "threema": "Threema",
    "whatsapp": "WhatsApp",
    "ntfy": "ntfy",
    "ntfys": "ntfy",
    "gotify": "Gotify",
    "gotifys": "Gotify",
    "pover": "Pushover",
    "pbul": "Pushbullet",
    "mqtt": "MQTT",
    "mqtts": "MQTT",
    "twilio": "SMS by Twilio",
    "vonage": "SMS by Vonage",
    "clicksend": "SMS by ClickSend",
    "bulksms": "SMS by BulkSMS",
    "msgbird": "SMS by MessageBird",
    "smseagle": "SMS by SMSEagle",
    "smseagles": "SMS by SMSEagle",
    "seven": "SMS by seven",
    "sinch": "SMS by Sinch",
    "plivo": "SMS by Plivo",
    "pagerduty": "PagerDuty",
    "opsgenie": "Opsgenie",
    "signl4": "SIGNL4",
    "splunk": "Splunk On-Call",
}
"""The schemes that are allowed, and what people call them: those that reach people or a receiver of messages.
None writes a file, runs a program or shows something on this machine."""
REFUSED_PARAMETERS = (
    "pgp",
    "wkd",
    "template",
    "attach",
    "image",
    "avatar",
    "cert",
    "key_file",
    "include",
    "config",
)
"""Parameters whose names begin so may name files of this machine, or load what another server says."""


_under_way: dict[str, tuple[str, threading.Thread]] = {}
"""By URL the attempts of apprise that have not ended, each with its message: a service that hangs holds one
thread, however often it is tried."""
_lock = threading.Lock()  # guards it


class UrlRefused(ValueError):
    """A URL is not one of a channel. The message says why, without the URL."""


class NotSent(Exception):
    """The message did not go out, or nobody confirmed that it did. The text says why, without secrets.
    `maybe`: the receiver may have the message nevertheless."""

    def __init__(self, why: str, *, maybe: bool = False) -> None:
        super().__init__(why)
        self.maybe = maybe


def checked(url: str) -> str:
    """Returns the scheme of a channel's URL. Raises UrlRefused."""
    url = url.strip()
    if len(url) > URL_MAX:
        raise UrlRefused(f"has more than {URL_MAX:,} characters")
    if not url.isprintable() or any(each.isspace() for each in url):
        raise UrlRefused("has a space or a character that cannot be printed")
    scheme = url.partition("://")[0].lower()
    if "://" not in url or scheme not in SCHEMES:
        raise UrlRefused(
            "has to begin with the scheme of something that reaches people, such as mailtos://, jsons://,"
            " slack://, msteams:// or tgram://; the reference of alarms has all"
        )
    query = urlsplit(url).query
    # Both ways to read it: apprise also divides it at semicolons, and leaves spaces out.
    names = [name for name, _ in parse_qsl(query, keep_blank_values=True)]
    for name in [*names, *parse_qsd(query)["qsd"]]:
        if name.lower().lstrip("+-:").startswith(REFUSED_PARAMETERS):
            raise UrlRefused(f'has the parameter "{name[:40]}", which is not allowed')
    if _plugin(url) is None:
        raise UrlRefused(f"is not complete: see how apprise writes a URL of {SCHEMES[scheme]}")
    return scheme


def send(url: str, message_id: str, subject: str, body: str, data: dict[str, Any]) -> str:
    """Sends a message. `message_id` is the same for each attempt, and `data` is for webhooks. Takes a few
    times TIMEOUT_S at most, or SERVICE_S. Returns a remark about the sending, mostly an empty one. Raises
    NotSent."""
    plugin = _plugin(url)
    if plugin is None:
        raise NotSent("This version of Fogline cannot read the channel's URL. Make the channel again.")
    try:
        if isinstance(plugin, NotifyEmail):
            return _mail(plugin, message_id, subject, body)
        if isinstance(plugin, NotifyJSON):
            _webhook(plugin, message_id, subject, body, data)
        else:
            _by_apprise(plugin, url, message_id, subject, body)
        return ""
    except NotSent as error:
        raise NotSent(without_secrets(str(error), url)[:REASON_MAX], maybe=error.maybe) from None
    except Exception as error:  # of a plugin of many: whatever it is, the message did not go out
        why = f"{type(error).__name__}: {error}"
        raise NotSent(without_secrets(why, url)[:REASON_MAX], maybe=True) from None


def _plugin(url: str) -> Any:
    """Returns apprise's plugin for the URL, or None if it cannot read it. Nothing of it is kept on disk."""
    asset = apprise.AppriseAsset(app_id="Fogline", app_url="", storage_mode="memory", secure_logging=True)
    logging.getLogger("apprise").setLevel(logging.CRITICAL)  # its lines may have parts of URLs
    plugin = apprise.Apprise.instantiate(url, asset=asset, suppress_exceptions=True)
    if plugin is not None:
        plugin.socket_connect_timeout = plugin.socket_read_timeout = TIMEOUT_S
    return plugin


def _mail(plugin: NotifyEmail, message_id: str, subject: str, body: str) -> str:
    sender = str(plugin.from_addr[1])
    domain = sender.rpartition("@")[2] or "fogline"
    message = EmailMessage()
    message["Subject"] = subject
    message["From"] = formataddr((plugin.from_addr[0] or "Fogline", sender))
    message["To"] = ", ".join(formataddr((name or "", address)) for name, address in plugin.targets)
    if plugin.cc:
        message["Cc"] = ", ".join(sorted(plugin.cc))
    if plugin.reply_to:
        message["Reply-To"] = ", ".join(sorted(plugin.reply_to))
    message["Message-ID"] = f"<{message_id}@{domain}>"
    message["Date"] = formatdate(usegmt=True)
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(body)
    receivers = [address for _, address in plugin.targets] + sorted(plugin.cc | plugin.bcc)
    context = ssl.create_default_context()
    if not plugin.verify_certificate:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        server = _server(plugin, context)
    except (OSError, smtplib.SMTPException) as error:
        where = f"{plugin.smtp_host}:{plugin.port}"
        raise NotSent(f"The mail server {where} does not answer: {_plain(error)}") from error
    try:
        if plugin.user and plugin.password:
            server.login(plugin.user, plugin.password)
        refused = server.send_message(message, sender, receivers)
    except smtplib.SMTPAuthenticationError as error:
        raise NotSent("The mail server refused the user or the password.") from error
    except smtplib.SMTPResponseException as error:
        said = error.smtp_error.decode(errors="replace") if isinstance(error.smtp_error, bytes) else ""
        raise NotSent(f"The mail server refused the message: {error.smtp_code} {said}") from error
    except smtplib.SMTPRecipientsRefused as error:
        raise NotSent("The mail server refused all receivers.") from error
    except (OSError, smtplib.SMTPException) as error:
        why = f"The mail server {plugin.smtp_host}:{plugin.port} did not say that it took it: {error}"
        raise NotSent(why, maybe=True) from error
    finally:
        # Whatever it answers to the goodbye, it has taken the message or not.
        with suppress(OSError, smtplib.SMTPException):
            server.quit()
        server.close()
    # The others have it. Sent again, they would have it twice.
    return f"The mail server refused {len(refused)} of {len(receivers)} receivers." if refused else ""


def _server(plugin: NotifyEmail, context: ssl.SSLContext) -> smtplib.SMTP:
    if plugin.secure_mode == "ssl":
        return smtplib.SMTP_SSL(plugin.smtp_host, plugin.port, timeout=TIMEOUT_S, context=context)
    server = smtplib.SMTP(plugin.smtp_host, plugin.port, timeout=TIMEOUT_S)
    if plugin.secure_mode == "starttls":
        server.starttls(context=context)
    return server


def _webhook(plugin: NotifyJSON, message_id: str, subject: str, body: str, data: dict[str, Any]) -> None:
    port = f":{plugin.port}" if isinstance(plugin.port, int) else ""
    url = f"{'https' if plugin.secure else 'http'}://{plugin.host}{port}{plugin.fullpath or '/'}"
    headers = {"User-Agent": "Fogline", **plugin.headers, "Idempotency-Key": message_id}
    try:
        answer = httpx.post(
            url,
            json={"id": message_id, "subject": subject, "text": body, **data},
            headers=headers,
            params=plugin.params or None,
            auth=(plugin.user, plugin.password or "") if plugin.user else None,
            timeout=TIMEOUT_S,
            verify=plugin.verify_certificate,
            follow_redirects=False,
        )
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        raise NotSent(f"The receiver cannot be reached: {_plain(error)}") from error
    except httpx.HTTPError as error:
        raise NotSent(f"The receiver did not answer: {type(error).__name__}: {error}", maybe=True) from error
    if not answer.is_success:
        raise NotSent(f"The receiver answered {answer.status_code} {answer.reason_phrase}.")


def _by_apprise(plugin: Any, url: str, message_id: str, subject: str, body: str) -> None:
    """Lets a plugin send, in a thread of its own, as not each plugin has a limit for each wait."""
    answers: list[bool | Exception] = []

    def notify() -> None:
        try:
            answers.append(plugin.notify(title=subject, body=body, notify_type=apprise.NotifyType.WARNING))
        except Exception as error:
            answers.append(error)
        finally:
            if isinstance(plugin, NotifyMQTT):  # which keeps its connection, and a thread for it
                plugin.client.disconnect()
                plugin.client.loop_stop()

    thread = threading.Thread(target=notify, name="apprise", daemon=True)
    with _lock:
        before = _under_way.get(url)
        if before is not None and before[1].is_alive():
            why = "An earlier attempt still waits for the service, so nothing was sent now."
            raise NotSent(why, maybe=before[0] == message_id)
        _under_way[url] = message_id, thread
        thread.start()
    thread.join(SERVICE_S)
    if thread.is_alive():
        raise NotSent(f"The service has not answered within {SERVICE_S:.0f} s.", maybe=True)
    with _lock:
        del _under_way[url]
    [answer] = answers
    if isinstance(answer, Exception):
        raise answer
    if not answer:
        why = "The service did not take the message. See whether its URL is right, and whether it works."
        raise NotSent(why, maybe=True)


def without_secrets(text: str, url: str) -> str:
    """Returns the text with everything that comes from the URL blotted out, except its host."""
    host = urlsplit(url).hostname or ""
    parts = {part for part in _split(url) if len(part) >= 4 and part.lower() != host.lower()}
    for part in sorted(parts, key=len, reverse=True):
        text = text.replace(part, "…")
    return text


def _split(url: str) -> list[str]:
    rest = url.partition("://")[2]
    found = re.split(r"[/:@?&=#,]+", rest)
    return found + [unquote(each) for each in found]


def _plain(error: Exception) -> str:
    """Returns what went wrong, without the number that the system has for it."""
    return re.sub(r"\[Errno -?\d+\] ", "", str(error))
