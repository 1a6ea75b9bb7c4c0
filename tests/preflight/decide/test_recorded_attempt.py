"""The attempt that is going on, as an annotation has it: people may edit it, and a folder and a deadline come of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubekit.api.core_v1 import ConfigMap
from kubekit.api.meta_v1 import ObjectMeta
from runup.api.config_v1 import Release
from runup.preflight.decide.attempt import Attempt
from runup.preflight.decide.stored_reports import ATTEMPT_ANNOTATION, NAME, read

RECORD: dict[str, Any] = {
    "id": "preflight-2-0123456789",
    "sourceVersion": "5.0.0",
    "targetVersion": "5.2.0",
    "targetImage": "registry.example/release@sha256:" + "5" * 64,
    "startedTime": "2026-03-01T12:00:00Z",
}


def annotated(text: str) -> ConfigMap:
    """The record with this annotation."""
    return ConfigMap(metadata=ObjectMeta(name=NAME, annotations={ATTEMPT_ANNOTATION: text}))


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        pytest.param(json.dumps(RECORD), True, id="as the operator writes it"),
        pytest.param(json.dumps({**RECORD, "startedTime": None}), True, id="from before it had a time"),
        pytest.param(json.dumps({**RECORD, "startedTime": "2026-03-01T12:00:00"}), False, id="a time without a zone"),
        pytest.param(
            json.dumps({**RECORD, "unfinishedSince": "2026-03-01T12:00:00"}), False, id="another time without a zone"
        ),
        pytest.param(json.dumps({**RECORD, "id": "../../etc"}), False, id="another folder's path"),
        pytest.param(json.dumps({**RECORD, "id": ""}), False, id="no ID"),
        pytest.param("{", False, id="no JSON"),
        pytest.param('{"id":"x","more":' + "[" * 100_000, False, id="nested without end"),
    ],
)
def test_a_record_counts_or_is_absent(text: str, counts: bool) -> None:
    """What cannot be used is as if nothing ran; nothing is raised out of a pass."""
    assert (read(annotated(text)).attempt is not None) is counts


@pytest.mark.parametrize(
    ("version", "image", "source", "same"),
    [
        pytest.param("5.2.0", "i@sha256:5", "5.0.0", True, id="the same"),
        pytest.param("5.2.0", "i@sha256:5", "5.0.3", False, id="from a newer release"),
        pytest.param("5.2.0", "i@sha256:5", "4.9.0", False, id="from an older one"),
        pytest.param("5.1.0", "i@sha256:5", "5.0.0", False, id="another version"),
        pytest.param("5.2.0", "i@sha256:6", "5.0.0", False, id="another image"),
    ],
)
def test_what_an_attempt_is_for(version: str, image: str, source: str, same: bool) -> None:
    """What was found for one way to one release says nothing of another."""
    attempt = Attempt(id="preflight-1-0", source_version="5.0.0", target_version="5.2.0", target_image="i@sha256:5")
    assert attempt.is_for(Release(version=version, image=image), source) is same
