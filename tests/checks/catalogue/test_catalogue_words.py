"""What checks read out of words and numbers of others: shares, highest versions, images, and where a limit is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace
from tests.factories import context, network, node, pool, snapshot

from kubekit.lang.version import Version
from runup.checks.catalogue import CHECKS
from runup.checks.catalogue.nodes.kernel_modules import same_image
from runup.checks.catalogue.nodes.max_unavailable import allowed
from runup.checks.catalogue.nodes.node_pools import by_pool
from runup.checks.catalogue.olm.shared.olm import BadMaximum, allows, maximum
from runup.checks.decide.engine import run_check
from runup.checks.decide.objects import snapshot_of

BY_NAME = {check.name: check for check in CHECKS}


@pytest.mark.parametrize(
    ("said", "machines", "number"),
    [
        pytest.param(None, 3, 1, id="nothing"),
        pytest.param(0, 3, 1, id="none"),
        pytest.param(2, 3, 2, id="a number"),
        pytest.param("2", 3, 2, id="a number as text"),
        pytest.param("50%", 3, 1, id="a share, rounded down"),
        pytest.param("50%", 4, 2, id="a share"),
        pytest.param("67%", 3, 2, id="two of three"),
        pytest.param("66%", 3, 1, id="less than two of three"),
        pytest.param("1%", 3, 1, id="a small share"),
        pytest.param("100%", 5, 5, id="all"),
        pytest.param("many", 3, 1, id="a word"),
        pytest.param("many%", 3, 1, id="a share of a word"),
    ],
)
def test_how_many_machines_may_be_away(said: int | str | None, machines: int, number: int) -> None:
    """Rounded down, and at least one."""
    found = pool(machines=machines)
    assert allowed(replace(found, spec=replace(found.spec, max_unavailable=said))) == number


def properties(*values: Any) -> str:
    """What OLM writes on what it installs."""
    said = [{"type": "olm.package", "value": "x"}, *({"type": "olm.maxOpenShiftVersion", "value": v} for v in values)]
    return json.dumps({"properties": said})


@pytest.mark.parametrize(
    ("text", "highest"),
    [
        pytest.param("", None, id="nothing"),
        pytest.param(properties(), None, id="no highest"),
        pytest.param(properties(""), None, id="an empty one"),
        pytest.param(properties("5.1"), (5, 1), id="one"),
        pytest.param(properties("v5.1"), (5, 1), id="with a letter"),
        pytest.param(properties("5"), (5, 0), id="a major version"),
        pytest.param(properties(" 5.1.7-rc.1+build "), (5, 1), id="a whole version"),
        pytest.param(properties("5.9", "5.10"), (5, 10), id="the higher of two"),
        pytest.param(properties("6.0", "5.10"), (6, 0), id="the higher major of two"),
    ],
)
def test_the_highest_version_that_an_operator_takes(text: str, highest: tuple[int, int] | None) -> None:
    """As OLM reads it."""
    assert maximum(text) == highest


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(properties(5.1), "olm.maxOpenShiftVersion '5.1', which is no version in quotes", id="a number"),
        pytest.param(properties("soon"), "olm.maxOpenShiftVersion 'soon', which", id="a word"),
        pytest.param(properties("5.1", "soon"), "olm.maxOpenShiftVersion 'soon', which", id="one of two"),
        pytest.param(properties("x" * 61), f"olm.maxOpenShiftVersion '{'x' * 60}', which", id="as much as is told"),
        pytest.param("[" * 61, f"properties that are no JSON ('{'[' * 60}')", id="no JSON"),
    ],
)
def test_a_highest_version_that_is_none(text: str, said: str) -> None:
    """Not taken for any; as much is told as says which one it is."""
    with pytest.raises(BadMaximum) as caught:
        maximum(text)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("highest", "takes"),
    [
        (None, True),
        ((5, 1), False),
        ((5, 2), True),
        ((5, 3), True),
        ((4, 22), False),
        ((6, 0), True),
    ],
)
def test_whether_an_operator_takes_the_target(highest: tuple[int, int] | None, takes: bool) -> None:
    """Up to its highest, that included."""
    assert allows(highest, Version("5.2.7")) is takes


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        pytest.param("a/b@sha256:1", "a/b@sha256:1", True, id="word for word"),
        pytest.param("a/b@sha256:1", "mirror/b@sha256:1", True, id="from a mirror"),
        pytest.param("a/b@sha256:1", "a/b@sha256:2", False, id="a later digest"),
        pytest.param("a/b@sha256:2", "a/b@sha256:1", False, id="an earlier digest"),
        pytest.param("a/b:1", "a/b:1", True, id="one tag"),
        pytest.param("a/b:1", "c/b:1", False, id="one tag of two"),
        pytest.param("a/b:1", "a/b@sha256:1", False, id="a tag and a digest"),
        pytest.param("", "", False, id="none"),
    ],
)
def test_two_pull_specs_of_one_image(one: str, other: str, same: bool) -> None:
    """By digest, wherever it was pulled from."""
    assert same_image(one, other) is same


@pytest.mark.parametrize(
    ("type_", "target", "applies"),
    [
        ("OpenShiftSDN", "4.16.9", False),
        ("OpenShiftSDN", "4.17.0", True),
        ("OpenShiftSDN", "4.18.0", True),
        ("OpenShiftSDN", "5.0.0", True),
        ("Kuryr", "4.15.9", False),
        ("Kuryr", "4.16.0", True),
        ("OVNKubernetes", "5.2.0", False),
        ("Calico", "5.2.0", False),
    ],
)
def test_since_when_a_network_is_gone(type_: str, target: str, applies: bool) -> None:
    """In that very minor version, and in each later one."""
    found = network()
    found = replace(found, status=replace(found.status, network_type=type_))
    outcome = run_check(BY_NAME["NetworkTypeRemoved"], snapshot(found), context("4.15.0", target))
    assert [finding.name for finding in outcome.findings] == ["NetworkTypeRemoved"] * applies


def test_a_network_that_does_not_say_what_it_is() -> None:
    """Its spec counts where its status is silent; where both are, nobody can tell."""
    found = network()
    silent = replace(found, status=replace(found.status, network_type=""))
    told = replace(silent, spec=replace(silent.spec, network_type="Kuryr"))
    check = BY_NAME["NetworkTypeRemoved"]
    assert [run_check(check, snapshot(each), context()).result for each in (silent, told)] == ["Unknown", "Applies"]


def test_which_pool_updates_a_node() -> None:
    """Master before a custom one, a custom one before worker; none where two custom ones want it."""
    pools = (pool("worker"), pool("infra"), pool("gpu"), pool("master"))
    role = "node-role.kubernetes.io/"
    nodes = (
        node("plain"),
        node("infra", labels={f"{role}infra": ""}),
        node("both", labels={f"{role}infra": "", f"{role}gpu": ""}),
        node("first", role="master", labels={f"{role}infra": ""}),
        node("alone", role="gpu"),
        node("nowhere", role="edge"),
    )
    found = by_pool(nodes, pools)
    assert {name: [each.metadata.name for each in members] for name, members in found.items()} == {
        "worker": ["plain"],
        "infra": ["infra"],
        "": ["both", "nowhere"],
        "master": ["first"],
        "gpu": ["alone"],
    }


def validation(kind: str = "PreflightValidationOCP", name: str = "v", /, **status: Any) -> dict[str, Any]:
    """A validation of another kernel."""
    spec = {"releaseImage": "other@sha256:9"} if kind.endswith("OCP") else {"kernelVersion": "6.1.0"}
    metadata = {"name": name}
    return {
        "apiVersion": "kmm.sigs.x-k8s.io/v1beta2",
        "kind": kind,
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


def entry(status: str, **changes: Any) -> dict[str, Any]:
    """What a validation says of Module `drivers/kmod`."""
    return {"name": "kmod", "namespace": "drivers", "verificationStatus": status, **changes}


FAILED = "Kernel module drivers/kmod failed its verification at stage "
SAID: dict[str, tuple[list[dict[str, Any]], list[str]]] = {
    "verified": ([validation(modules=[entry("True")])], []),
    "verified, in the older word": ([validation(modules=[entry("Success")])], []),
    "failed": (
        [validation(modules=[entry("False", verificationStage="Build", statusReason="no gcc.")])],
        [f"{FAILED}Build: no gcc (PreflightValidationOCP v)."],
    ),
    "failed, in the older word, and nobody says why": (
        [validation(modules=[entry("Failure")])],
        [f"{FAILED}unknown (PreflightValidationOCP v)."],
    ),
    "under way": (
        [validation(modules=[entry("", verificationStage="Image")])],
        [
            "Whether KernelModuleNotVerified applies could not be told: PreflightValidationOCP v has not verified "
            "drivers/kmod yet."
        ],
    ),
    "nothing yet": (
        [validation("PreflightValidation")],
        [
            "Whether KernelModuleNotVerified applies could not be told: PreflightValidation v says nothing of any "
            "module yet."
        ],
    ),
    "two failed, in order": (
        [
            validation("PreflightValidation", "b", modules=[entry("False")]),
            validation("PreflightValidation", "a", modules=[entry("False", name="z"), entry("False", name="y")]),
        ],
        [
            FAILED.replace("kmod", "y") + "unknown (PreflightValidation a).",
            FAILED.replace("kmod", "z") + "unknown (PreflightValidation a).",
            f"{FAILED}unknown (PreflightValidation b).",
        ],
    ),
}


@pytest.mark.parametrize(("objects", "told"), SAID.values(), ids=SAID.keys())
def test_what_a_validation_says_of_modules(objects: list[dict[str, Any]], told: list[str]) -> None:
    """Each that failed, with its stage and why; what is not decided is not fine."""
    check = BY_NAME["KernelModuleNotVerified"]
    outcome = run_check(check, snapshot_of(check.reads, objects), context())
    assert [finding.message for finding in outcome.findings] == told


@pytest.mark.parametrize(
    ("names", "told"),
    [
        pytest.param("a", "1 kernel module (drivers/a) of the cluster was never verified", id="one"),
        pytest.param("ab", "2 kernel modules (drivers/a and drivers/b) of the cluster were never verified", id="two"),
    ],
)
def test_modules_that_nobody_verified(names: str, told: str) -> None:
    """Told as long as nobody has looked at their images either."""
    check = BY_NAME["KernelModuleNotVerified"]
    objects = [
        {
            "apiVersion": "kmm.sigs.x-k8s.io/v1beta1",
            "kind": "Module",
            "metadata": {"name": name, "namespace": "drivers"},
            "spec": {},
        }
        for name in names
    ]
    (found,) = run_check(check, snapshot_of(check.reads, objects), context()).findings
    assert found.message.startswith(told)
    assert run_check(check, snapshot_of(check.reads, ()), context()).result == "Clear"
