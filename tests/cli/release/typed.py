"""`runup release` as typed, in this process: what tests of it share."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import yaml
from tests.cli.commands import Ran

from runup.cli.main import main

ANNOTATIONS = {"include.release.openshift.io/self-managed-high-availability": "true"}
JSON = dict[str, Any]


def run(*words: str) -> Ran:
    """A command to its end."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(["release", *words], prog="runup")
    return Ran(code, _written(out), _written(err))


def _written(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()


def config_map(name: str, namespace: str = "default", annotations: JSON | None = None, **data: str) -> JSON:
    """A manifest."""
    metadata = {"name": name, "namespace": namespace, "annotations": {**ANNOTATIONS, **(annotations or {})}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def plain(kind: str, name: str, api: str = "v1", **more: Any) -> JSON:
    """A manifest without a namespace."""
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, "annotations": ANNOTATIONS}, **more}


def release(folder: Path, *objects: JSON, version: str = "5.2.0", images: JSON | None = None) -> Path:
    """A release as a folder of files."""
    manifests = folder / "release-manifests"
    manifests.mkdir(parents=True)
    tags = [{"name": name, "from": {"kind": "DockerImage", "name": spec}} for name, spec in (images or {}).items()]
    stream = {"apiVersion": "image.openshift.io/v1", "kind": "ImageStream", "metadata": {"name": version}}
    (manifests / "image-references").write_text(json.dumps(stream | {"spec": {"tags": tags}}))
    (manifests / "release-metadata").write_text(json.dumps({"kind": "cincinnati-metadata-v0", "version": version}))
    for number, obj in enumerate(objects):
        (manifests / f"0000_50_a_{number:02}.yaml").write_text(yaml.safe_dump(obj))
    return folder
