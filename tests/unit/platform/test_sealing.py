"""Sealed texts open for their secret and purpose alone."""

from __future__ import annotations

import pytest

from pipeline_runtime.sealing import SealBroken, opened, seal


def test_a_sealed_text_opens_with_its_secret_and_purpose() -> None:
    plain = 'a password with "quotes", umlauts äöü and\nlines'
    sealed = seal(plain, "secret", "connections")
    assert "password" not in sealed
    assert opened(sealed, "secret", "connections") == plain
    assert seal(plain, "secret", "connections") != sealed


@pytest.mark.parametrize(
    ("secret", "purpose"), [("another", "connections"), ("secret", "nodes")], ids=["secret", "purpose"]
)
def test_another_secret_or_purpose_does_not_open_it(secret: str, purpose: str) -> None:
    with pytest.raises(SealBroken, match="sealed with another key of Fogline"):
        opened(seal("plain", "secret", "connections"), secret, purpose)


@pytest.mark.parametrize("changed", ["", "no seal", "gAAAAA", "ünknown"])
def test_what_is_no_sealed_text_is_refused(changed: str) -> None:
    with pytest.raises(SealBroken):
        opened(changed, "secret", "connections")


def test_nothing_is_sealed_without_a_secret() -> None:
    with pytest.raises(ValueError, match="a secret is needed"):
        seal("plain", "", "connections")
