"""A release declares the rights of its checks: written when it is built, read back as untrusted data."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runup.api.preflight_reads_v1 import FILE as READS_FILE
from runup.api.preflight_reads_v1 import Right
from runup.checks.catalogue import CHECKS
from runup.checks.catalogue.own_rights import own_rights
from runup.checks.decide import rights
from runup.checks.decide.cluster_kinds import ClusterKind, checks_for_cluster
from runup.checks.decide.rights_file_of_release import rights_of_files, with_rights_file
from runup.preflight.decide import service_account

CHECK = """
apiVersion: preflight.runup.dev/v1alpha1
kind: PreflightCheck
metadata: {name: certificates}
spec:
  component: etcd
  reads:
  - {name: claims, version: v1, resource: endpoints, kind: Endpoints, fields: [subsets], namespace: openshift-etcd}
  - {name: routes, group: route.openshift.io, version: v1, resource: routes, kind: Route, fields: [spec.host]}
  for: routes
  expression: "false"
  risk: {name: Certificates, message: m}
"""


# Where images are asked for, and which addresses are the Services', which is every target's business.
MIRRORS = {
    *("imagedigestmirrorsets", "imagetagmirrorsets", "imagecontentsourcepolicies"),
    *("networks", "servicecidrs", "proxies"),
}


def declared(*reads: dict[str, Any], format_: str = rights.FORMAT) -> bytes:
    """A file as an image may hold it."""
    return json.dumps({"format": format_, "reads": reads}).encode()


def test_what_a_release_packs_is_what_is_read_back() -> None:
    """Declarative checks, Python's, and what every preflight reads; a namespace stays one."""
    files = with_rights_file({"preflight-checks/a.yaml": CHECK.encode(), "manifests/b.yaml": b"{"}, own_rights())
    found, refused = rights.rights_of_file(files[READS_FILE])
    assert refused == ()
    assert {Right("", "endpoints", "openshift-etcd"), Right("route.openshift.io", "routes")} <= set(found)
    reads = {(r.group, r.plural) for check in checks_for_cluster(CHECKS, ClusterKind.OPENSHIFT) for r in check.reads}
    assert reads <= {(r.group, r.resource) for r in found}
    assert {Right("config.openshift.io", "clusterversions"), Right("config.openshift.io", "featuregates")} <= set(found)


def test_python_of_the_image_below_counts_and_not_the_own() -> None:
    """A release that is built upon another operator's image has that one's Python."""
    below = declared({"group": "x", "resource": "ys"})
    files = with_rights_file({"preflight-checks/a.yaml": CHECK.encode()}, own_rights(), below)
    found, _ = rights.rights_of_file(files[READS_FILE])
    assert Right("x", "ys") in found
    assert Right("", "nodes") not in found
    assert Right("route.openshift.io", "routes") in found


def test_a_file_that_somebody_wrote_by_hand_stays() -> None:
    """The declaration of the release takes precedence."""
    assert with_rights_file({READS_FILE: b"theirs"}, own_rights()) == {rights.FILE: b"theirs"}


def test_a_check_that_cannot_be_used_reads_nothing() -> None:
    """And does not hide the others."""
    files = {"preflight-checks/a.yaml": b"kind: [", "preflight-checks/b.yaml": CHECK.encode()}
    assert Right("route.openshift.io", "routes") in rights_of_files(files)


MCO = "machineconfiguration.openshift.io"
REFUSED: list[Any] = [
    pytest.param({"group": "", "resource": "secrets"}, id="Secrets"),
    pytest.param({"group": "", "resource": "secrets", "namespace": "openshift-config"}, id="Secrets of one namespace"),
    pytest.param({"group": "", "resource": "*"}, id="every kind of a group"),
    pytest.param({"group": "*", "resource": "nodes"}, id="every group"),
    pytest.param({"group": "*", "resource": "*"}, id="everything"),
    pytest.param({"group": "", "resource": "nodes/proxy"}, id="a connection to a kubelet"),
    pytest.param({"group": "", "resource": "pods/exec"}, id="a command in a pod"),
    pytest.param({"group": "", "resource": "serviceaccounts/token"}, id="a token"),
    pytest.param({"group": "", "resource": ""}, id="nothing"),
    pytest.param({"group": "", "resource": "SECRETS"}, id="another way to write it"),
    pytest.param({"group": "oauth.openshift.io", "resource": "oauthaccesstokens"}, id="tokens of people"),
    pytest.param({"group": "oauth.openshift.io", "resource": "oauthclients"}, id="passwords of OAuth clients"),
    pytest.param({"group": MCO, "resource": "machineconfigs"}, id="files of nodes, the pull secret among them"),
    pytest.param({"group": MCO, "resource": "controllerconfigs"}, id="the registry's pull secret"),
    pytest.param({"group": "", "resource": "pods", "namespace": "*"}, id="no namespace"),
]


@pytest.mark.parametrize("read", REFUSED)
def test_what_nobody_may_declare(read: dict[str, Any]) -> None:
    """It is named and not given; what is next to it is."""
    found, refused = rights.rights_of_file(declared(read, {"group": "", "resource": "pods"}))
    assert len(refused) == 1
    names = {right.resource for right in found}
    assert names == {"pods", "clusterversions", "featuregates"} | MIRRORS
    rules = service_account.read_rules(found)
    assert {verb for rule in rules for verb in rule["verbs"]} == {"get", "list", "watch"}


BAD: list[Any] = [
    pytest.param(b"{", "is not as expected", id="no JSON"),
    pytest.param(b"[]", "is not as expected", id="no object"),
    pytest.param(b'{"x":' + b"[" * 100_000, "is not as expected", id="nested without end"),
    pytest.param(b'{"format": "x", "reads": [1]}', "is not as expected", id="no right"),
    pytest.param(declared(format_="preflight-reads-v9"), "has format 'preflight-reads-v9'", id="a later format"),
    pytest.param(declared(*[{"group": "", "resource": f"k{n}"} for n in range(501)]), "names 501 kinds", id="too many"),
    pytest.param(
        declared(*[{"group": "", "resource": "pods", "namespace": f"n{n}"} for n in range(21)]),
        "names 21 namespaces",
        id="too many namespaces",
    ),
    pytest.param(b" " * (rights.MAX_BYTES + 1), "bytes", id="too large"),
]


@pytest.mark.parametrize(("data", "words"), BAD)
def test_a_file_that_cannot_be_used(data: bytes, words: str) -> None:
    """The reader gets the reason and falls back."""
    with pytest.raises(rights.BadReads, match=words.replace("(", r"\(")):
        rights.rights_of_file(data)


def spaced(length: int) -> bytes:
    """A file of that many bytes."""
    return declared() + b" " * (length - len(declared()))


LARGEST: list[Any] = [
    pytest.param(declared(*[{"group": "", "resource": f"k{n}"} for n in range(500)]), id="as many kinds as are given"),
    pytest.param(
        declared(*[{"group": "", "resource": "pods", "namespace": f"n{n}"} for n in range(20)]),
        id="as many namespaces as are given",
    ),
    pytest.param(spaced(rights.MAX_BYTES), id="as large as is read"),
    pytest.param(declared({"group": "a" * 63 + ".b", "resource": "k" * 63}), id="the longest names"),
]


@pytest.mark.parametrize("data", LARGEST)
def test_a_file_at_its_limits(data: bytes) -> None:
    """All of it is given."""
    assert rights.rights_of_file(data)[1] == ()


@pytest.mark.parametrize("read", [{"group": "a" * 64, "resource": "x"}, {"group": "", "resource": "k" * 64}])
def test_a_name_that_is_a_character_too_long(read: dict[str, Any]) -> None:
    """The API server would not take it."""
    (why,) = rights.rights_of_file(declared(read))[1]
    assert why.endswith("does not name exactly one kind")


def test_one_right_for_the_whole_cluster_covers_those_for_a_namespace() -> None:
    """No Role where there is a ClusterRole already."""
    found, _ = rights.rights_of_file(
        declared({"group": "", "resource": "pods", "namespace": "a"}, {"group": "", "resource": "pods"})
    )
    assert Right("", "pods") in found and Right("", "pods", "a") not in found
