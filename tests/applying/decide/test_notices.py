"""What events say about one object of a release."""

from __future__ import annotations

import pytest
from tests.applying.decide.tasks import task

from kubekit.lang.text import stored_bytes
from runup.applying.decide.contesting_writers import MAX_MESSAGE_BYTES, contested_notice, dropped_notice

TASK = task("0000_50_a_x.yaml", "Deployment", "apps", "x")


@pytest.mark.parametrize(
    ("writer", "words"),
    [
        pytest.param("mesh", 'is changed by "mesh" as often as it is put back', id="by somebody who is known"),
        pytest.param("", "is changed or deleted as often as it is put back", id="by nobody knows whom"),
    ],
)
def test_who_insists(writer: str, words: str) -> None:
    """And what can be done about it."""
    notice = contested_notice(TASK, writer)
    assert notice.message.startswith(f'deployment "ns/x" (1 of 1) {words}')
    assert notice.message.endswith("spec.overrides")


def test_what_a_server_does_not_keep() -> None:
    """Each thing in its words, as many as an event holds."""
    notice = dropped_notice(TASK, ['unknown field "spec.a"', 'unknown field "spec.b"'])
    assert notice.message.endswith('all of it: unknown field "spec.a"; unknown field "spec.b"')
    many = dropped_notice(TASK, [f'unknown field "spec.{number}"' for number in range(100)]).message
    assert stored_bytes(many) <= MAX_MESSAGE_BYTES
    assert 'unknown field "spec.0"; unknown field "spec.1"; ' in many
    assert many.endswith(" more")
