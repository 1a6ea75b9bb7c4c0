"""What the newest Kubernetes is known to answer otherwise: `newest.yaml`, and the marks of its tests.

With RUNUP_KUBERNETES=newest the rows in it have to fail, and every other row and test has to hold. Of the tests in it
some cases fail.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from kubekit.api.codec import convert
from kubekit.api.meta_v1 import Wire

FILE = Path(__file__).with_name("newest.yaml")


class Difference(Wire, frozen=True):
    """A reason, and the rows (`FILE: ID`) and functions for which it holds."""

    reason: str
    rows: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()


def differences() -> list[Difference]:
    """All that is known."""
    return [convert(Difference, each) for each in yaml.safe_load(FILE.read_text())]


def mark(item: pytest.Function) -> None:
    """Marks a test of the real server that is known to fail on the newest Kubernetes."""
    for difference in differences():
        is_row = any(item.name == f"test_row[kube-apiserver-{row}]" for row in difference.rows)
        if is_row or item.originalname in difference.tests:
            item.add_marker(pytest.mark.xfail(reason=difference.reason, strict=is_row))
