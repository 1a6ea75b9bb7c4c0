"""What another Kubernetes is known to answer otherwise (`newest.yaml`, or a file of its version), and its marks.

With RUNUP_KUBERNETES=newest the rows in `newest.yaml` have to fail, and every other row and test has to hold. Of the
tests in it some cases fail. A version without such a file answers as the rows say.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from tests.controlplane import build

from kubekit.api.codec import convert
from kubekit.api.meta_v1 import Wire

FOLDER = Path(__file__).parent


class Difference(Wire, frozen=True):
    """A reason, its effect on runup, and the rows (`FILE: ID`) and functions for which it holds."""

    reason: str
    effect: str = ""
    rows: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()


def differences(version: str) -> list[Difference]:
    """All that is known about a version, as RUNUP_KUBERNETES names it."""
    file = FOLDER / f"{version}.yaml"
    return [convert(Difference, each) for each in yaml.safe_load(file.read_text())] if file.exists() else []


def all_differences() -> list[Difference]:
    """Those of every version that can be chosen."""
    return [difference for version in build.others() for difference in differences(version)]


def mark(item: pytest.Function, version: str) -> None:
    """Marks a test of the real server that is known to fail on that version."""
    for difference in differences(version):
        is_row = any(item.name == f"test_row[kube-apiserver-{row}]" for row in difference.rows)
        if is_row or item.originalname in difference.tests:
            item.add_marker(pytest.mark.xfail(reason=difference.reason, strict=is_row))
