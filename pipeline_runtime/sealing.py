"""Encrypts passwords, tokens and private keys, so that the database and the messages do not reveal them.

A text is sealed by Fernet (AES-128-CBC with HMAC-SHA-256, package cryptography) under a key that HKDF-SHA-256
(RFC 5869) derives from a secret of the installation. `purpose` keeps what is sealed for one use from being
opened for another: the database's texts are sealed with `secret_key`, what is sent to nodes with
`cluster_key`.
"""

from __future__ import annotations

import base64

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF


class SealBroken(Exception):
    """A sealed text was not made with this secret for this purpose, or was changed since."""


def seal(plain: str, secret: str, purpose: str) -> str:
    """`plain`, so that only who has `secret` can open it; ASCII. Two calls never give the same text."""
    return _fernet(secret, purpose).encrypt(plain.encode()).decode()


def opened(sealed: str, secret: str, purpose: str) -> str:
    """What was sealed. Raises SealBroken."""
    try:
        return _fernet(secret, purpose).decrypt(sealed.encode()).decode()
    except InvalidToken:
        raise SealBroken(
            "This was sealed with another key of Fogline than the one it has now, or was changed since."
        ) from None


def _fernet(secret: str, purpose: str) -> Fernet:
    if not secret:
        raise ValueError("a secret is needed to seal anything")
    key = HKDF(SHA256(), length=32, salt=None, info=b"fogline " + purpose.encode()).derive(secret.encode())
    return Fernet(base64.urlsafe_b64encode(key))
