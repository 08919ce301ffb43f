from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from pipeline_runtime.checkpoint import access
from pipeline_runtime.checkpoint.errors import AccessDenied

KEY = "cluster-key"
SCOPES = ["*", "group:a:read", "group:a:write", "group:b:read", "files:read", "files:write"]


@pytest.mark.parametrize("wanted", SCOPES[1:])
@pytest.mark.parametrize("scope", SCOPES)
def test_a_token_grants_its_scope_and_write_includes_read(scope: str, wanted: str) -> None:
    granted = scope in ("*", wanted) or (scope, wanted) in {
        ("group:a:write", "group:a:read"),
        ("files:write", "files:read"),
    }
    token = access.mint(KEY, scope, expires_at=100)
    if granted:
        access.check(KEY, token, wanted, now=99)
    else:
        with pytest.raises(AccessDenied):
            access.check(KEY, token, wanted, now=99)


def test_a_token_ends_when_it_expires() -> None:
    token = access.mint(KEY, "*", expires_at=100)
    access.check(KEY, token, "files:read", now=99.9)
    with pytest.raises(AccessDenied, match="expired"):
        access.check(KEY, token, "files:read", now=100)


def test_a_group_whose_name_looks_like_a_scope_gains_nothing() -> None:
    with pytest.raises(AccessDenied):
        access.check(KEY, access.mint(KEY, "group:a:write", 100), "group:a:writeb:read", now=0)


@given(position=st.integers(min_value=0), character=st.characters())
def test_a_token_with_one_other_character_is_refused(position: int, character: str) -> None:
    token = access.mint(KEY, "group:a:read", expires_at=100)
    index = position % len(token)
    changed = token[:index] + character + token[index + 1 :]
    if changed != token:
        with pytest.raises(AccessDenied):
            access.check(KEY, changed, "group:a:read", now=0)


@pytest.mark.parametrize("token", ["", ".", "v1", "v1.x.y.z", "v1.KmFs.99999999999."])
def test_nonsense_is_refused(token: str) -> None:
    with pytest.raises(AccessDenied):
        access.check(KEY, token, "files:read")


def test_another_cluster_and_an_empty_key_open_nothing() -> None:
    with pytest.raises(AccessDenied):
        access.check("other", access.mint(KEY, "*", 100), "files:read", now=0)
    with pytest.raises(AccessDenied):
        access.check("", access.mint(KEY, "*", 100), "files:read", now=0)
    with pytest.raises(ValueError):
        access.mint("", "*", 100)
