"""Our manifests as an operator reads them: templates that it can render, and objects that a cluster gets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runup.release.decide.inclusion import Excluded, Filters, include
from runup.release.decide.payload import load_payload

DEPLOY = Path(__file__).parents[2] / "deploy"
FILES = sorted(path for folder in ("manifests", "update-status") for path in (DEPLOY / folder).glob("*.yaml"))
IMAGE = "registry.example/release@sha256:" + "5" * 64


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_what_we_ship_is_rendered(path: Path) -> None:
    """A file that is not is skipped with a warning, and its objects are nowhere: the alerts were."""
    stream = {"apiVersion": "image.openshift.io/v1", "kind": "ImageStream", "metadata": {"name": "5.0.0"}}
    files = {
        f"manifests/{path.name}": path.read_bytes(),
        "release-manifests/release-metadata": json.dumps(
            {"kind": "cincinnati-metadata-v0", "version": "5.0.0"}
        ).encode(),
        "release-manifests/image-references": json.dumps(stream).encode(),
    }
    payload = load_payload(files, source="deploy", release_image=IMAGE, strict_templates=True)
    assert payload.manifests
    cluster = Filters(profile="self-managed-high-availability")
    refused = [str(m.identity) for m in payload.manifests if isinstance(include(m, cluster), Excluded)]
    assert refused == []


def test_prometheus_gets_its_braces() -> None:
    """Upstream's way of writing them: text in text."""
    rules = next(path for path in FILES if path.name.endswith("02_alerts.yaml"))
    from runup.release.decide.payload import Values, render

    assert "{{ $labels.reason }}" in render(rules.read_text(), Values(IMAGE))
