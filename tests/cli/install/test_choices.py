"""Tests the flags of `runup install`, and which choices the cluster makes."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from msgspec.structs import replace
from tests.cli.commands import Run
from tests.cli.commands import run as run

from kubekit.error_types import InputError
from runup import build_info
from runup.install.control.choices import Flags, options_of
from runup.install.decide.component import Certificates, Options, Platform
from runup.install.decide.refusals import Cluster

DIGEST = "registry.example/release@sha256:" + "5" * 64
USUAL = Flags(
    component="update-status",
    namespace=None,
    image="i:1",
    least_privilege=False,
    with_pools=False,
    hub=False,
    monitoring="auto",
    prometheus=None,
    platform="auto",
    certificates=None,
    printed=False,
)
PLAIN = Cluster(version=(1, 34), groups=frozenset({"apps"}), api_ports=(443, 6443, 8443))
MONITORED = Cluster(version=(1, 34), groups=frozenset({"apps", "monitoring.coreos.com"}))
OPENSHIFT = Cluster(version=(1, 34), groups=frozenset({"apps", "monitoring.coreos.com", "security.openshift.io"}))


def options(cluster: Cluster | None = PLAIN, own_image: str | None = None, **changes: Any) -> Options:
    """What comes of the usual flags with `changes`."""
    return options_of(replace(USUAL, **changes), cluster, own_image)


@pytest.mark.parametrize(
    ("cluster", "flag", "monitoring"),
    [
        (PLAIN, "auto", False),
        (PLAIN, "on", True),
        (MONITORED, "auto", True),
        (MONITORED, "off", False),
        (OPENSHIFT, "auto", True),
    ],
)
def test_monitoring_is_for_clusters_that_serve_it(cluster: Cluster, flag: str, monitoring: bool) -> None:
    """Unless the flag says it."""
    assert options(cluster, monitoring=flag).monitoring is monitoring


@pytest.mark.parametrize(
    ("cluster", "changes", "platform", "certificates"),
    [
        (PLAIN, {}, Platform.KUBERNETES, Certificates.OWN),
        (PLAIN, {"certificates": "cert-manager"}, Platform.KUBERNETES, Certificates.CERT_MANAGER),
        (PLAIN, {"printed": True}, Platform.KUBERNETES, Certificates.CERT_MANAGER),
        (OPENSHIFT, {}, Platform.OPENSHIFT, Certificates.SERVICE_CA),
        (OPENSHIFT, {"platform": "kubernetes"}, Platform.KUBERNETES, Certificates.OWN),
        (PLAIN, {"platform": "openshift"}, Platform.OPENSHIFT, Certificates.SERVICE_CA),
    ],
)
def test_who_makes_certificates(
    cluster: Cluster, changes: dict[str, Any], platform: Platform, certificates: Certificates
) -> None:
    """The service CA on OpenShift; elsewhere the command, and cert-manager where nothing secret may be printed."""
    found = options(cluster, **changes)
    assert (found.platform, found.certificates) == (platform, certificates)


def test_what_the_cluster_says_is_kept() -> None:
    """The ports of its API server, and whose Prometheus is usual there."""
    assert options().api_ports == (443, 6443, 8443)
    assert options().prometheus == ("monitoring", "prometheus-k8s")
    assert options(OPENSHIFT).prometheus == ("openshift-monitoring", "prometheus-k8s")
    assert options(prometheus="a/b").prometheus == ("a", "b")
    assert options().namespace == "openshift-update-status-controller"
    assert options(namespace="mine").namespace == "mine"


def test_nothing_is_asked_of_a_cluster_where_flags_say_all() -> None:
    """So that objects can be printed without one."""
    flags = replace(USUAL, platform="kubernetes", monitoring="off", printed=True)
    assert not flags.asks_the_cluster
    assert options_of(flags, None, None).api_ports == (443, 6443)
    assert all(replace(flags, **{name: "auto"}).asks_the_cluster for name in ("platform", "monitoring"))


def test_a_released_command_knows_its_image() -> None:
    """The flag counts first; an operator runs as a release, which no command knows."""
    assert options(image=None, own_image="own:1").image == "own:1"
    assert options(own_image="own:1").image == "i:1"
    assert options(component="operator", image=DIGEST, own_image="own:1").image == DIGEST


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"image": None}, "--image is needed: this runup is not a released version"),
        ({"component": "operator", "image": None}, "--image is needed: the operator runs as a release"),
        ({"component": "operator", "image": "release:5"}, "--image release:5: name the release by digest"),
        ({"image": "a b"}, "--image a b: "),
        ({"image": "i:1\n  hostNetwork: true"}, "--image i:1\n  hostNetwork: true: "),
        (
            {"component": "update-policy", "namespace": "mine"},
            "--namespace mine: update-policy must be in runup-update",
        ),
        ({"with_pools": True}, "--with-pools: update-status pauses no pools"),
        ({"hub": True}, "--hub: update-status takes no runs from a hub"),
        ({"namespace": "a/b"}, "--namespace a/b: the name of a namespace"),
        ({"namespace": "x" * 64}, f"--namespace {'x' * 64}: the name of a namespace"),
        ({"prometheus": "k8s"}, "--prometheus k8s: give NAMESPACE/ACCOUNT"),
        ({"prometheus": "a/b/c"}, "--prometheus a/b/c: give NAMESPACE/ACCOUNT"),
        ({"prometheus": "/b"}, "--prometheus /b: give NAMESPACE/ACCOUNT"),
        ({"printed": True, "certificates": "own"}, "--certificates=own makes a key, which -o yaml would print"),
        ({"platform": "openshift", "certificates": "own"}, "--certificates: on OpenShift the service CA makes them"),
    ],
)
def test_what_cannot_be_meant_is_refused(changes: dict[str, Any], says: str) -> None:
    """With the flag and the way out."""
    with pytest.raises(InputError) as refused:
        options(**changes)
    assert refused.value.message.startswith(says)


def test_a_wait_for_what_is_not_written_is_refused(run: Run) -> None:
    """Before any server is asked."""
    ran = run("install", "update-status", "--wait", "--dry-run=server")
    assert (ran.code, ran.err.partition(":")[0]) == (1, "error")
    assert "--wait and --dry-run" in ran.err


def test_objects_are_printed_without_a_cluster(run: Run) -> None:
    """Reports features that need cert-manager."""
    words = ("install", "kernel-modules", "--image=i:1", "-o", "yaml", "--platform=kubernetes", "--monitoring=off")
    ran = run(*words)
    assert ran.code == 0
    assert "kind: Certificate" in ran.out
    assert ran.err == "note: the certificates are made by cert-manager, which the cluster has to have\n"


def test_what_the_printed_operator_lacks_is_said_beside_it(run: Run) -> None:
    """The printed manifests can be applied unchanged."""
    ran = run(
        "install", "operator", f"--image=i@sha256:{64 * '1'}", "-o", "yaml", "--platform=kubernetes", "--monitoring=off"
    )
    assert ran.code == 0
    assert ran.err == "note: without ClusterVersion; create it after these, with a new clusterID\n"
    kinds = {obj["kind"] for obj in yaml.safe_load_all(ran.out)}
    assert "Deployment" in kinds
    assert "ClusterVersion" not in kinds


def test_a_released_version_installs_its_own_image(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The builder sets the image; a flag replaces it, and a checkout has no image."""
    words = ("install", "update-status", "-o", "yaml", "--platform=kubernetes", "--monitoring=off")
    assert "--image is needed" in run(*words).err
    monkeypatch.setattr(build_info, "IMAGE", "registry.example/runup:1.2.3")
    assert "image: registry.example/runup:1.2.3\n" in run(*words).out
    assert "image: registry.example/other:2\n" in run(*words, "--image=registry.example/other:2").out
