"""Tests the built-in rules for the data of Secrets."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from kubesandbox.apiserver.validation.core import secret_faults

MIB = 1024 * 1024


def faults(kind: str, **values: bytes) -> list[str]:
    """Returns the faults of a Secret with these values."""
    encoded = {name.replace("_", "."): base64.b64encode(value).decode() for name, value in values.items()}
    secret: dict[str, Any] = {"metadata": {"name": "a", "namespace": "x"}, "type": kind, "data": encoded}
    return [fault.detail for fault in secret_faults(secret, None)]


@pytest.mark.parametrize("size", [MIB - 2, MIB - 1, MIB])
def test_a_mebibyte_is_allowed(size: int) -> None:
    """MaxSecretSize of k8s.io/api/core/v1 counts bytes, not those of their base64 with its padding."""
    assert faults("Opaque", a=b"x" * size) == []


@pytest.mark.parametrize("size", [MIB + 1, MIB + 2, MIB + 3])
def test_more_is_not(size: int) -> None:
    """By one byte, too."""
    assert faults("Opaque", a=b"x" * size) == [f"may not be more than {MIB} bytes"]


def test_settings_of_a_registry_that_are_too_deep_are_refused() -> None:
    """Go's decoder stops at 10,000 levels, and names them so."""
    deep = b"[" * 100_000
    assert faults("kubernetes.io/dockerconfigjson", _dockerconfigjson=deep) == ["exceeded max depth"]
