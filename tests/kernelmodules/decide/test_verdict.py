"""Tests how knowledge about images becomes a verdict: which kernels are checked, and the preflight's findings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from msgspec.structs import replace as with_fields
from tests.factories import context, node, snapshot

from kubekit.api import codec
from kubekit.api.core_v1 import Node
from kubekit.api.extension_v1 import CustomResourceDefinition
from kubekit.api.scheme import resource_of
from runup.api.kmm_v1beta1 import Module
from runup.checks.catalogue.nodes import kernel_module_validations, kernel_modules_ready
from runup.checks.catalogue.nodes.kernel_module_validations import OCP_RESOURCES, VALIDATION_RESOURCES
from runup.checks.decide.engine import run_check
from runup.checks.decide.model import Snapshot
from runup.kernelmodules.decide.readiness import PreflightResults, Readiness, Status
from runup.kernelmodules.decide.toolkit import Toolkit
from runup.kernelmodules.decide.verdict import (
    ExaminationOutcome,
    ImageVerdict,
    ToolkitUnknown,
    readiness_from,
    work_for_kernel,
    work_for_release,
)

KERNEL = "5.14.0-427.el9_4.x86_64"
ARM = "5.14.0-427.el9_4.aarch64"
NODES = resource_of(Node)
TOOLKITS = {"amd64": Toolkit("dtk", KERNEL, f"{KERNEL}+rt", "9.4"), "arm64": Toolkit("dtk", ARM, "", "9.4")}
BUILD = {"dockerfileConfigMap": {"name": "source"}, "secrets": [{"name": "token"}]}
SIGN = {"keySecret": {"name": "key"}, "certSecret": {"name": "cert"}}


def module(name: str = "a", selector: dict[str, str] | None = None, **container: Any) -> Module:
    """A Module `drivers/<name>`."""
    mapped = {
        "modprobe": {"moduleName": name},
        "kernelMappings": [{"regexp": ".", "containerImage": "r/a:1"}],
        **container,
    }
    spec = {"selector": selector or {}, "moduleLoader": {"container": mapped}}
    return codec.convert(Module, {"metadata": {"name": name, "namespace": "drivers"}, "spec": spec})


@pytest.mark.parametrize(
    ("selector", "nodes", "kernels"),
    [
        pytest.param({}, [node("w")], [KERNEL], id="one kind of node"),
        pytest.param({}, [node("w"), node("v")], [KERNEL], id="two of a kind"),
        pytest.param(
            {}, [node("w"), node("r", kernel="5.14.0-1.el9.x86_64+rt")], [KERNEL, f"{KERNEL}+rt"], id="real time, too"
        ),
        pytest.param(
            {}, [node("r", kernel="4.18.0-372.rt7.129.el8.x86_64")], [f"{KERNEL}+rt"], id="real time by the older name"
        ),
        pytest.param(
            {}, [node("w"), node("a", kernel=ARM, architecture="arm64")], [KERNEL, ARM], id="two architectures"
        ),
        pytest.param(
            {"gpu": "y"},
            [node("w"), node("a", kernel=ARM, architecture="arm64", labels={"gpu": "y"})],
            [ARM],
            id="those that it selects",
        ),
        pytest.param({"gpu": "y"}, [node("w")], [KERNEL], id="those of the cluster where it selects none"),
        pytest.param({}, [], [KERNEL], id="no nodes"),
    ],
)
def test_which_kernels_of_a_release(selector: dict[str, str], nodes: list[Node], kernels: list[str]) -> None:
    """Those that the Module's nodes will have."""
    work = work_for_release([module(selector=selector)], nodes, TOOLKITS)
    assert [each.question.kernel for each in work.asked] == kernels
    assert work.decided == ()


@pytest.mark.parametrize(
    ("nodes", "toolkits", "status", "why"),
    [
        pytest.param(
            [node("a", kernel=f"{ARM}+rt", architecture="arm64")],
            TOOLKITS,
            Status.FALSE,
            "real-time kernels",
            id="no real-time kernel",
        ),
        pytest.param(
            [node("a", kernel=f"{ARM}+64k", architecture="arm64")],
            TOOLKITS,
            Status.UNKNOWN,
            "64k pages",
            id="large pages",
        ),
        pytest.param(
            [node("p", kernel="5.14.0-1.ppc64le", architecture="ppc64le")],
            TOOLKITS,
            Status.UNKNOWN,
            "not read",
            id="another machine",
        ),
        pytest.param(
            [node("w")],
            {"amd64": ToolkitUnknown("no release", True)},
            Status.FALSE,
            "no release",
            id="no release image",
        ),
        pytest.param(
            [node("w")], {"amd64": ToolkitUnknown("away", False)}, Status.UNKNOWN, "away", id="a registry that is away"
        ),
    ],
)
def test_what_is_decided_without_asking(nodes: list[Node], toolkits: Any, status: Status, why: str) -> None:
    """No kernel, no question."""
    work = work_for_release([module()], nodes, toolkits)
    assert work.asked == ()
    assert [(each.status, why in each.reason) for each in work.decided] == [(status, True)]


def test_one_kernel_for_every_module() -> None:
    """Of the architecture that its name says; without a mapping it is reported at once, without a loader nothing is."""
    other = module("b", kernelMappings=[{"literal": "4.18", "containerImage": "r/b:1"}])
    plugin = codec.convert(Module, {"metadata": {"name": "c", "namespace": "drivers"}, "spec": {}})
    work = work_for_kernel([module(), other, plugin], [node("w")], ARM)
    assert [(each.module.metadata.name, each.question.architectures) for each in work.asked] == [("a", ("arm64",))]
    assert [(each.name, each.status) for each in work.decided] == [("b", Status.FALSE)]


@pytest.mark.parametrize(
    ("container", "outcome", "stage", "status", "shown"),
    [
        pytest.param({}, ExaminationOutcome.VERIFIED, "Done", Status.TRUE, "said", id="verified"),
        pytest.param(
            {"build": BUILD},
            ExaminationOutcome.VERIFIED,
            "Done",
            Status.TRUE,
            "said",
            id="verified, whatever could build it",
        ),
        pytest.param({}, ExaminationOutcome.FAILED, "Image", Status.FALSE, "said", id="missing"),
        pytest.param({}, ExaminationOutcome.UNKNOWN, "Image", Status.UNKNOWN, "said", id="not known"),
        pytest.param(
            {"build": BUILD},
            ExaminationOutcome.UNKNOWN,
            "Image",
            Status.UNKNOWN,
            "said",
            id="not known, before any build",
        ),
        pytest.param(
            {"build": BUILD},
            ExaminationOutcome.FAILED,
            "Build",
            Status.UNKNOWN,
            "said; it would be built from the ConfigMap drivers/source with the Secrets token, which was not tried",
            id="to be built",
        ),
        pytest.param(
            {"build": BUILD, "sign": SIGN},
            ExaminationOutcome.FAILED,
            "Build",
            Status.UNKNOWN,
            "said; it would be built from the ConfigMap drivers/source with the Secrets token, then signed with the "
            "Secrets key and cert, which was not tried",
            id="to be built and signed",
        ),
        pytest.param(
            {"sign": {**SIGN, "unsignedImage": "r/u:${KERNEL_X}"}},
            ExaminationOutcome.FAILED,
            "Sign",
            Status.UNKNOWN,
            "said; it would be made of r/u:5 and signed with the Secrets key and cert, which was not tried",
            id="to be signed",
        ),
        pytest.param(
            {"sign": SIGN},
            ExaminationOutcome.FAILED,
            "Image",
            Status.FALSE,
            "said; no image to sign given",
            id="nothing to sign",
        ),
    ],
)
def test_what_a_verdict_comes_to(
    container: dict[str, Any], outcome: ExaminationOutcome, stage: str, status: Status, shown: str
) -> None:
    """A build or a signature that nobody tried is not known."""
    (asked,) = work_for_kernel([module(**container)], [], KERNEL).asked
    found = readiness_from(asked, ImageVerdict(outcome=outcome, message="said"))
    assert (found.stage, found.status, found.reason) == (stage, status, shown)


def seen(status: Status, stage: str = "Image") -> PreflightResults:
    """Returns what is known about the Module."""
    return PreflightResults(
        (
            Readiness(
                namespace="drivers",
                name="a",
                kernel=KERNEL,
                architecture="amd64",
                stage=stage,
                status=status,
                reason="because",
            ),
        )
    )


def cluster(*objects: Any) -> Snapshot:
    """A cluster whose server knows all these kinds."""
    found = snapshot(*objects)
    kinds = dict.fromkeys((*OCP_RESOURCES, *VALIDATION_RESOURCES, NODES, *kernel_module_validations.CHECK.reads), ())
    return replace(found, objects={**kinds, **found.objects})


@pytest.mark.parametrize(
    ("objects", "known", "risks", "shown"),
    [
        pytest.param((), None, [], "", id="no Modules"),
        pytest.param((module(),), seen(Status.TRUE, "Done"), [], "", id="verified"),
        pytest.param(
            (module(),),
            seen(Status.FALSE),
            ["KernelModulesNotReady"],
            f"Kernel module drivers/a will not load on kernel {KERNEL}, by stage Image: because.",
            id="missing",
        ),
        pytest.param(
            (module(),),
            seen(Status.UNKNOWN, "Build"),
            ["KernelModulesNotReadyUnknown"],
            f"drivers/a on kernel {KERNEL}, at stage Build: because.",
            id="to be built",
        ),
        pytest.param((module(),), None, ["KernelModulesNotReadyUnknown"], "were not looked at", id="nobody looked"),
        pytest.param(
            (module(),),
            PreflightResults(why="no toolkit"),
            ["KernelModulesNotReadyUnknown"],
            "no toolkit",
            id="and why",
        ),
        pytest.param(
            (module("b"),), seen(Status.TRUE), ["KernelModulesNotReadyUnknown"], "is being looked at", id="a new one"
        ),
    ],
)
def test_what_a_preflight_says(
    objects: tuple[Module, ...], known: PreflightResults | None, risks: list[str], shown: str
) -> None:
    """One risk a Module that is not ready, with stage and reason."""
    outcome = run_check(kernel_modules_ready.CHECK, cluster(*objects), with_fields(context(), kernel_modules=known))
    assert [finding.name for finding in outcome.findings] == risks
    assert all(shown in finding.message for finding in outcome.findings)
    assert all(finding.resources[0].name == objects[0].metadata.name for finding in outcome.findings)


@pytest.mark.parametrize("known", [None, seen(Status.FALSE)], ids=["nobody looked", "the images were looked at"])
def test_one_story(known: PreflightResults | None) -> None:
    """That nobody validated anything is said as long as the preflight itself has not looked."""
    shown = run_check(
        kernel_module_validations.CHECK, cluster(module()), with_fields(context(), kernel_modules=known)
    ).findings
    assert len(shown) == (1 if known is None else 0)


def test_a_cluster_without_the_kinds() -> None:
    """No definition, no Modules, nothing to say; where definitions cannot be read, it is not known."""
    reads = kernel_modules_ready.CHECK.reads
    absent = Snapshot(
        objects={reads[-1]: ()},
        unreadable=dict.fromkeys(reads[:-1], "the server has no API x"),
        absent=frozenset(reads[:-1]),
    )
    assert run_check(kernel_modules_ready.CHECK, absent, context()).result == "Clear"
    unread = replace(absent, objects={}, unreadable=dict.fromkeys(reads, "forbidden"))
    assert run_check(kernel_modules_ready.CHECK, unread, context()).result == "Unknown"
    assert reads[-1].kind == CustomResourceDefinition.__name__
