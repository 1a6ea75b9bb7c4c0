"""Tests the files of a built image: the same bytes for the same input, with all content of a release."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from tests.kubekit.oci.layered import layout_in

from kubekit.oci import images
from kubekit.oci.images import Execution
from kubekit.oci.layers import open_image, read_folders
from kubekit.oci.layout import Layout
from kubekit.oci.reference import sha256
from runup.release.control.image_build import BuiltImage, build_image, build_release, layer_of

METADATA, REFERENCES = "release-manifests/release-metadata", "release-manifests/image-references"


def entries(data: bytes) -> list[tuple[str, int, bool, int]]:
    """Name, mode, whether it is a folder, and size of every entry of a layer."""
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(data))) as archive:
        found = list(archive)
    assert {(entry.mtime, entry.uid, entry.gid, entry.uname) for entry in found} == {(0, 0, 0, "")}
    return [(entry.name, entry.mode, entry.isdir(), entry.size) for entry in found]


def test_a_layer_is_reproducible() -> None:
    """Sorted, each folder before what is in it, and with no time in it, gzip's own neither."""
    layer = layer_of({"b/c/d": b"12", "a": b"1", "b/x": b""}, frozenset({"b/x"}))
    assert entries(layer.data) == [
        ("a", 0o644, False, 1),
        ("b", 0o755, True, 0),
        ("b/c", 0o755, True, 0),
        ("b/c/d", 0o644, False, 2),
        ("b/x", 0o755, False, 0),
    ]
    # RFC 1952, 2.3: MTIME, and 0 means that there is none.
    assert layer.data[4:8] == bytes(4)
    assert layer.diff_id == sha256(gzip.decompress(layer.data))


def documents(built: BuiltImage) -> tuple[dict[str, Any], dict[str, Any]]:
    """The manifest and the config as they are written."""
    layout = Layout.open(built.layout)
    manifest = json.loads(layout.read(built.digest))
    return manifest, json.loads(layout.read(manifest["config"]["digest"]))


def test_an_image_has_the_documents_of_the_specification(tmp_path: Path) -> None:
    """Each blob by its type, digest and size; the config says what the layers unpack to."""
    layers = [layer_of({"a": b"lower"}), layer_of({"b": b"upper"})]
    config = Execution(entrypoint=("/a",), user="1000")
    built = build_image(tmp_path, layers, tag="x", config=config, created="2026-01-01T00:00:00Z", architecture="arm64")
    manifest, described = documents(built)
    layout = Layout.open(tmp_path)
    configured = layout.blob(manifest["config"]["digest"]).read_bytes()
    assert manifest == {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {
            "mediaType": "application/vnd.oci.image.config.v1+json",
            "digest": sha256(configured),
            "size": len(configured),
        },
        "layers": [
            {
                "mediaType": "application/vnd.oci.image.layer.v1.tar+gzip",
                "digest": sha256(layer.data),
                "size": len(layer.data),
            }
            for layer in layers
        ],
    }
    assert described == {
        "architecture": "arm64",
        "os": "linux",
        "created": "2026-01-01T00:00:00Z",
        "config": {"Entrypoint": ["/a"], "User": "1000"},
        "rootfs": {"type": "layers", "diff_ids": [layer.diff_id for layer in layers]},
    }
    assert (built.tag, layout.resolve("x").digest) == ("x", built.digest)
    assert built.pullspec("quay.io/a") == f"quay.io/a@{built.digest}"


def test_a_release_that_says_nothing_of_itself(tmp_path: Path) -> None:
    """It is named by its version; the operator is the thin one, and starts."""
    built = build_release(tmp_path, version="5.2.0", files={"manifests/a.yaml": b"a"})
    image = open_image(Layout.open(tmp_path), "5.2.0")
    assert (built.tag, image.digest) == ("5.2.0", built.digest)
    assert (image.config.architecture, image.config.created) == ("amd64", "1970-01-01T00:00:00Z")
    assert image.config.config == Execution(
        entrypoint=("/usr/bin/cluster-version-operator",),
        labels={"io.openshift.release": "5.2.0", "io.runup.image": "thin"},
    )
    files = read_folders(image, ("manifests", "release-manifests", "usr"))
    assert files.keys() == {"manifests/a.yaml", METADATA, REFERENCES, "usr/bin/cluster-version-operator"}
    assert files["usr/bin/cluster-version-operator"].startswith(b"#!/usr/bin/env python3\n")
    (layer,) = image.manifest.layers
    modes = {name: mode for name, mode, _, _ in entries(image.layout.blob(layer.digest).read_bytes())}
    assert (modes["usr/bin/cluster-version-operator"], modes[METADATA]) == (0o755, 0o644)
    assert json.loads(files[METADATA]) == {"kind": "cincinnati-metadata-v0", "version": "5.2.0", "previous": []}
    assert json.loads(files[REFERENCES]) == {
        "kind": "ImageStream",
        "apiVersion": "image.openshift.io/v1",
        "metadata": {"name": "5.2.0", "creationTimestamp": "1970-01-01T00:00:00Z"},
        "spec": {"lookupPolicy": {"local": False}, "tags": []},
    }


def test_a_release_that_says_all_of_itself(tmp_path: Path) -> None:
    """In files that people read, versions and images sorted."""
    build_release(
        tmp_path,
        version="5.2.0",
        files={},
        previous=["5.1.9", "5.1.10"],
        following=["5.3.1", "5.3.0"],
        metadata={"url": "https://example.com"},
        image_references={"b": "quay.io/b", "a": "quay.io/a"},
        operator=b"#!/bin/sh\n",
        tag="mine",
        created="2026-01-01T00:00:00Z",
        architecture="arm64",
        labels={"io.runup.image": "other", "more": "x"},
    )
    image = open_image(Layout.open(tmp_path), "mine")
    assert (image.config.architecture, image.config.created) == ("arm64", "2026-01-01T00:00:00Z")
    assert image.labels == {"io.openshift.release": "5.2.0", "io.runup.image": "other", "more": "x"}
    files = read_folders(image, ("release-manifests", "usr"))
    assert files["usr/bin/cluster-version-operator"] == b"#!/bin/sh\n"
    assert files[METADATA].decode().splitlines()[:3] == [
        "{",
        '  "kind": "cincinnati-metadata-v0",',
        '  "version": "5.2.0",',
    ]
    assert files[METADATA].endswith(b"}\n")
    assert json.loads(files[METADATA]) == {
        "kind": "cincinnati-metadata-v0",
        "version": "5.2.0",
        "previous": ["5.1.10", "5.1.9"],
        "next": ["5.3.0", "5.3.1"],
        "metadata": {"url": "https://example.com"},
    }
    references = json.loads(files[REFERENCES])
    assert references["metadata"] == {"name": "5.2.0", "creationTimestamp": "2026-01-01T00:00:00Z"}
    assert references["spec"]["tags"] == [
        {"name": name, "from": {"kind": "DockerImage", "name": f"quay.io/{name}"}} for name in ("a", "b")
    ]


def test_files_that_are_brought_count(tmp_path: Path) -> None:
    """Before those that would be written."""
    brought = {METADATA: b"m", REFERENCES: b"r", "usr/bin/cluster-version-operator": b"o"}
    build_release(tmp_path, version="5.2.0", files=brought)
    assert read_folders(open_image(Layout.open(tmp_path)), ("release-manifests", "usr")) == brought


def test_a_release_without_an_operator(tmp_path: Path) -> None:
    """It has none, and says how it would start all the same."""
    build_release(tmp_path, version="5.2.0", files={}, operator=None)
    image = open_image(Layout.open(tmp_path))
    assert read_folders(image, ("usr",)) == {}
    assert image.config.config.entrypoint == ("/usr/bin/cluster-version-operator",)


@pytest.mark.parametrize(("said", "architecture"), [("arm64", "arm64"), ("", "s390x")], ids=["said", "not said"])
def test_a_release_upon_a_base(tmp_path: Path, said: str, architecture: str) -> None:
    """The base brings the operator, how it runs, and the machine that it is for; the release lies upon it."""
    below = [layer_of({"usr/bin/cluster-version-operator": b"base"}), layer_of({"b": b""})]
    labels = {"by": "base", "io.openshift.release": "5.1.0"}
    execution = Execution(entrypoint=("/x",), cmd=("y",), env=("A=b",), user="7", labels=labels)
    build_image(tmp_path / "base", below, tag="base", config=execution, architecture=said)
    base = open_image(Layout.open(tmp_path / "base"))
    build_release(tmp_path / "made", version="5.2.0", files={}, base=base, architecture="s390x")
    image = open_image(Layout.open(tmp_path / "made"), "5.2.0")
    assert image.config.architecture == architecture
    assert image.config.config == Execution(
        entrypoint=("/usr/bin/cluster-version-operator",),
        env=("A=b",),
        user="7",
        labels={"by": "base", "io.openshift.release": "5.2.0"},
    )
    assert image.manifest.layers[:2] == base.manifest.layers
    assert image.config.rootfs.diff_ids[:2] == tuple(layer.diff_id for layer in below)
    assert len(image.manifest.layers) == len(image.config.rootfs.diff_ids) == 3
    files = read_folders(image, ("release-manifests", "usr"))
    assert files["usr/bin/cluster-version-operator"] == b"base"
    assert files.keys() == {METADATA, REFERENCES, "usr/bin/cluster-version-operator"}


def test_an_image_without_a_layer(tmp_path: Path) -> None:
    """It may be in order: what its layers are is said, though there are none."""
    built = build_image(layout_in(tmp_path).path, [], tag="", config=Execution())
    manifest, described = documents(built)
    assert "layers" not in manifest
    assert described["rootfs"] == {"type": "layers", "diff_ids": []}
    assert images.REF_NAME not in Layout.open(built.layout).resolve().annotations
