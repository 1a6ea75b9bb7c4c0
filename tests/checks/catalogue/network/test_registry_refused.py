"""Which registries a cluster's nodes may pull the target from."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.checks.catalogue.asking import JSON, findings, messages_of
from tests.factories import context

from runup.checks.decide.model import Applies, Context

NAME = "TargetRegistryRefused"
REFUSED = "Nodes may not pull the target's image "


def image(**sources: list[str]) -> JSON:
    """The cluster's configuration of images."""
    metadata = {"name": "cluster"}
    return {
        "apiVersion": "config.openshift.io/v1",
        "kind": "Image",
        "metadata": metadata,
        "spec": {"registrySources": sources} if sources else {},
    }


def to(pull_spec: str) -> Context:
    """An update to the release of that pull spec."""
    return replace(context(), target_image=pull_spec)


@pytest.mark.parametrize(
    ("entry", "covers"),
    [
        ("quay.io", True),
        ("quay.io/example", True),
        ("quay.io/example/release", True),
        ("quay.io/exam", False),
        ("quay.io/example/release/more", False),
        ("quay.io:443", False),
        ("ay.io", False),
        ("*.io", True),
        ("*.quay.io", False),
        ("docker.io", False),
    ],
)
def test_what_an_entry_covers(entry: str, covers: bool) -> None:
    """The registry, a beginning of the path that ends where a part of it ends, or all registries of a domain."""
    target = to("quay.io/example/release@sha256:5")
    allowed = messages_of(NAME, image(allowedRegistries=["registry.example.com", entry]), to=target)
    refused = f"{REFUSED}quay.io/example/release: allowedRegistries names no registry that has it."
    assert allowed == [] if covers else allowed == [refused]
    blocked = messages_of(NAME, image(blockedRegistries=["registry.example.com", entry]), to=target)
    assert blocked == [f"{REFUSED}quay.io/example/release: blockedRegistries has {entry}."] * covers


@pytest.mark.parametrize(
    ("pull_spec", "entry"),
    [
        ("registry.example.com:5000/a/b:5.2.0", "registry.example.com:5000"),
        ("registry.example.com:5000/a/b:5.2.0", "*.example.com"),
        ("registry.example.com/a/b:5.2.0@sha256:5", "registry.example.com/a/b"),
    ],
)
def test_tags_and_ports(pull_spec: str, entry: str) -> None:
    """A tag is not part of the name, a port is part of the registry, and a wildcard is for any port."""
    assert messages_of(NAME, image(allowedRegistries=[entry]), to=to(pull_spec)) == []
    assert len(messages_of(NAME, image(blockedRegistries=[entry]), to=to(pull_spec))) == 1


def test_where_nothing_is_limited() -> None:
    """Also where the cluster has no such configuration, and whatever the target's image is."""
    assert messages_of(NAME, image(), to=to("")) == messages_of(NAME) == []


def test_an_image_that_is_not_known() -> None:
    """Only where registries are limited does it matter."""
    found = findings(NAME, image(blockedRegistries=["quay.io"]), to=to(""))
    assert found == [(f"{NAME}Unknown", "warning", Applies.UNKNOWN, ["cluster"])]


def running(pull_spec: str) -> JSON:
    """The cluster's version."""
    status = {"desired": {"version": "5.0.0", "image": pull_spec}}
    return {
        "apiVersion": "config.openshift.io/v1",
        "kind": "ClusterVersion",
        "metadata": {"name": "version"},
        "status": status,
    }


@pytest.mark.parametrize(
    ("image_of_today", "refused"),
    [
        ("quay.io/example/release@sha256:4", False),
        ("quay.io/other/release@sha256:4", False),
        ("registry.example.com/release@sha256:4", True),
    ],
)
def test_a_blocked_registry_that_has_the_running_release(image_of_today: str, refused: bool) -> None:
    """The machine-config operator does not let it keep a release away."""
    cluster = (image(blockedRegistries=["quay.io"]), running(image_of_today))
    assert bool(messages_of(NAME, *cluster, to=to("quay.io/example/release@sha256:5"))) == refused
