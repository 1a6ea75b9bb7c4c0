"""Tests what a namespace's user can cause the kernel-modules controller to do (docs/how-to/kernel-modules.md)."""

from __future__ import annotations

import base64
import ipaddress
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.kernelmodules.decide.validation_world import (
    BUILD,
    KERNEL,
    SIGN,
    Story,
    module,
    observed_with,
    started,
    validation,
)
from tests.kubekit.oci.layered import Made, layout_in, put_image
from tests.kubekit.oci.registries import Answer, odd_registry
from tests.release.control.test_registry_access import Answers, cluster

from kubekit.api.meta_v1 import NamespacedName
from kubekit.oci.access import Access
from kubekit.oci.reference import parse
from kubesandbox.node.pod_volumes import expand_variables
from runup.api.kmm_v1beta1 import TLSOptions
from runup.kernelmodules.control import answer_cache as build_inputs
from runup.kernelmodules.control import registries as service_networks
from runup.kernelmodules.control.image_stage import verify_image
from runup.kernelmodules.control.registries import ClusterRegistries
from runup.kernelmodules.decide.build_jobs import Builder
from runup.kernelmodules.decide.module_state import BuildInputs, BuildInputsQuestion, Image, ImageQuestion
from runup.kernelmodules.decide.runs import RunState
from runup.kernelmodules.decide.verdict import ExaminationOutcome
from runup.process.plan import Delete

JSON = dict[str, Any]
GONE = Image(verified=False, reason="gone")
DOCKERFILE = BuildInputs("FROM scratch\n", ("v1",))
DEPLOYED = Path(__file__).parents[3] / "deploy"
NETWORK = "/apis/config.openshift.io/v1/networks/cluster"
CIDRS = "/apis/networking.k8s.io/v1/servicecidrs"
PULL_SECRET = "/api/v1/namespaces/openshift-config/secrets/pull-secret"
MIRROR_SETS = "/apis/config.openshift.io/v1/imagetagmirrorsets"


def question(image: str, secret: str = "", **tls: bool) -> ImageQuestion:
    """Whether a Module of the namespace `drivers` is in `image`."""
    return ImageQuestion(
        image=image,
        kernel="6.1.0",
        dir_name="/opt",
        module_names=("a",),
        tls=TLSOptions(**tls),
        namespace="drivers",
        secret=secret,
    )


def logins(host: str, user: str) -> tuple[int, JSON]:
    """A pull secret with a login at `host`."""
    auth = base64.b64encode(f"{user}:word".encode()).decode()
    data = base64.b64encode(json.dumps({"auths": {host: {"auth": auth}}}).encode()).decode()
    return 200, {"data": {".dockerconfigjson": data}}


async def test_an_image_at_an_inner_address_is_not_asked_for(tmp_path: Path) -> None:
    """And nothing of what answers there comes back in the verdict; whether the image is in order is not known."""
    with odd_registry(layout_in(tmp_path), lambda _: Answer(400, b'{"errors":[{"message":"SECRET"}]}')) as inner:
        async with cluster({}) as client:
            registries = ClusterRegistries(client, Access(attempts=1))
            for tls in ({}, {"insecure": True}, {"insecure_skip_tls_verify": True}):
                found = await verify_image(question(f"{inner.host}/a:1", **tls), registries)
                assert found.outcome is ExaminationOutcome.UNKNOWN
                assert "was not asked, because it is at an inner address" in found.message
                assert "SECRET" not in found.message
    assert inner.asked == []


async def test_an_administrator_lists_registries_or_mirrors_to_them(tmp_path: Path) -> None:
    """By the flags, or by a mirror set, which only an administrator may write."""
    layout = layout_in(tmp_path)
    made = put_image(layout, [Made("opt/lib/modules/6.1.0/a.ko")])
    with odd_registry(layout) as inner:
        by_tag = {"imageTagMirrors": [{"source": "registry.example", "mirrors": [inner.host]}]}
        mirrored: Answers = {MIRROR_SETS: (200, {"items": [{"metadata": {"name": "m"}, "spec": by_tag}]})}
        listed = Access(attempts=1, inner=frozenset({inner.host}))
        for answers, also, image in (
            ({}, listed, f"{inner.host}/a@{made.digest}"),
            ({}, Access(attempts=1, plain_http=frozenset({inner.host})), f"{inner.host}/a@{made.digest}"),
            (mirrored, Access(attempts=1), f"{inner.host}/a@{made.digest}"),
        ):
            async with cluster(answers) as client:
                access = await ClusterRegistries(client, also).access("drivers", "", [])
                assert access.inner == {inner.host}
                found = await verify_image(question(image), ClusterRegistries(client, also))
                assert found.outcome is ExaminationOutcome.VERIFIED, found.message


@pytest.mark.parametrize(
    ("answers", "inside", "networks", "noted"),
    [
        pytest.param(
            {NETWORK: (200, {"status": {"serviceNetwork": ["172.30.0.0/16", "fd02::/112"]}})},
            True, ["172.30.0.0/16", "fd02::/112"], False, id="OpenShift's Network",
        ),
        pytest.param(
            {NETWORK: (200, {"spec": {"serviceNetwork": ["172.30.0.0/16", "x", 7]}})},
            True, ["172.30.0.0/16"], False, id="one that has no status yet, and odd entries",
        ),
        pytest.param(
            {CIDRS: (200, {"items": [{"spec": {"cidrs": ["10.96.0.0/12"]}}]})},
            True, ["10.96.0.0/12"], False, id="Kubernetes' ServiceCIDRs",
        ),
        pytest.param({}, True, [str(each) for each in service_networks.PRIVATE], True, id="one that does not tell"),
        pytest.param({}, False, [], False, id="outside of a cluster"),
    ],
)  # fmt: skip
async def test_which_addresses_are_the_services(
    answers: Answers, inside: bool, networks: list[str], noted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unknown rights count as the user's, with the remedy."""
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1" if inside else "")
    notes: list[str] = []
    async with cluster(answers) as client:
        access = await ClusterRegistries(client).access("drivers", "", notes)
        assert [str(each) for each in access.services] == networks
        assert (service_networks.UNKNOWN in notes) is noted
        given = Access(services=(ipaddress.ip_network("192.0.2.0/24"),))
        assert (await ClusterRegistries(client, given).access("drivers", "", [])).services == given.services


@pytest.mark.parametrize("tls", [{"insecure": True}, {"insecure_skip_tls_verify": True}])
async def test_the_clusters_logins_go_to_verified_servers_alone(tls: dict[str, bool]) -> None:
    """A Module may leave out the verification of its registry; what it sends is its namespace's own login then."""
    answers: Answers = {PULL_SECRET: logins("registry.example", "cluster")}
    answers["/api/v1/namespaces/drivers/secrets/mine"] = logins("registry.example", "mine")
    asked: list[Access] = []

    class Kept(ClusterRegistries):
        async def access(self, namespace: str, secret: str, notes: list[str], *, cluster: bool = True) -> Access:
            asked.append(await ClusterRegistries.access(self, namespace, secret, notes, cluster=cluster))
            raise TimeoutError

    async with cluster(answers) as client:
        for options in (tls, {}):
            await verify_image(question("registry.example/a:1", "mine", **options), Kept(client))
    wanted = [[each.source for each in access.credentials.files] for access in asked]
    assert wanted == [
        ["Secret drivers/mine"],
        ["Secret drivers/mine", "Secret openshift-config/pull-secret"],
    ]


@pytest.mark.parametrize("name", ["../../openshift-config/secrets/pull-secret", "a/b", "..", "%2e%2e"])
async def test_a_name_leads_to_no_other_namespace(name: str) -> None:
    """A text that would change the request's path is reported, and no request is sent."""
    answers: Answers = {PULL_SECRET: logins("registry.example", "cluster")}
    notes: list[str] = []
    async with cluster(answers) as client:
        access = await ClusterRegistries(client).access("drivers", name, notes, cluster=False)
        assert access.credentials.files == ()
        assert f"the pull secret drivers/{name} could not be read: " in notes[0]
        for wanted in (BuildInputsQuestion("drivers", name), BuildInputsQuestion("drivers", "", ((name, ""),))):
            found = await build_inputs.read_build_inputs(client, wanted)
            assert (found.dockerfile, found.versions) == ("", ())
            assert "cannot be the name of an object" in found.problem


HOSTILE: JSON = {
    **BUILD,
    "buildArgs": [
        {"name": "A", "value": "$(BUILDAH_ISOLATION) $$ --volume=/:/host"},
        {"name": "KERNEL_VERSION=x --isolation", "value": "oci"},
        {"name": "KERNEL_VERSION", "value": "other"},
    ],
    "secrets": [{"name": "token"}],
    "hostPath": "/",
    "selector": {"node-role.kubernetes.io/control-plane": ""},
}


def pods() -> list[JSON]:
    """The pods of a build and of a signature with all that a Module may say."""
    shown = Story(observed_with(module(build=HOSTILE, sign=SIGN), validation=validation(pushBuiltImage=True))).step()
    shown = shown.answer(GONE).answer(GONE, DOCKERFILE)
    (build,) = started(shown.plan)
    (sign,) = started(shown.run(RunState.SUCCEEDED).answer(GONE, BuildInputs("", ("k", "c"))).plan)
    return [build, sign]


def test_a_build_stays_in_the_modules_namespace() -> None:
    """With Secrets of that namespace and nothing of the node: no path, no network, no processes of it."""
    for job in pods():
        assert job["metadata"]["namespace"] == "drivers"
        spec = job["spec"]["template"]["spec"]
        assert {next(key for key in each if key != "name") for each in spec["volumes"]} <= {
            "downwardAPI", "emptyDir", "secret"
        }  # fmt: skip
        assert not {"hostNetwork", "hostPID", "hostIPC", "hostUsers", "serviceAccountName"} & spec.keys()


def test_a_build_has_no_account_of_the_cluster() -> None:
    """It is privileged, since buildah mounts; so it gets no token, and no toleration beyond a Module's own nodes."""
    for job in pods():
        spec = job["spec"]["template"]["spec"]
        assert spec["automountServiceAccountToken"] is False
        assert not {"tolerations", "nodeName", "priorityClassName"} & spec.keys()
        for container in (*spec.get("initContainers", ()), *spec["containers"]):
            assert container["securityContext"] == {"privileged": True, "runAsUser": 0}
            assert container["image"] == "builder:1"


def test_build_arguments_are_arguments() -> None:
    """Each is one word of the command, whatever is in it, and the kernel's own come last, so that they count."""
    (build, _) = pods()
    (container,) = build["spec"]["template"]["spec"]["initContainers"]
    assert container["command"] == ["/usr/bin/buildah"]
    given = [each for each in container["args"] if each.startswith("--build-arg=")]
    assert given[:2] == [
        "--build-arg=A=$$(BUILDAH_ISOLATION) $$$$ --volume=/:/host",
        "--build-arg=KERNEL_VERSION=x --isolation=oci",
    ]
    assert [each for each in given if each.startswith("--build-arg=KERNEL_VERSION=")][-1] == (
        f"--build-arg=KERNEL_VERSION={KERNEL}"
    )
    volumes = [each for each in container["args"] if each.startswith("--volume=")]
    assert volumes == ["--volume=/run/secrets/token:/run/secrets/token:ro"]


def test_a_kubelet_expands_nothing_of_a_module() -> None:
    """`$(NAME)` in a container's arguments would be a variable of the pod's; what arrives is what was written."""
    (build, _) = pods()
    (container,) = build["spec"]["template"]["spec"]["initContainers"]
    env = {each["name"]: each["value"] for each in container["env"]}
    arrived = [expand_variables(each, env) for each in container["args"]]
    assert "--build-arg=A=$(BUILDAH_ISOLATION) $$ --volume=/:/host" in arrived
    assert expand_variables("$(BUILDAH_ISOLATION)", env) == "chroot"


async def test_a_pull_secret_starts_no_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A credential helper is a program of the machine that reads the Secret, so that none is asked."""
    (tmp_path / "docker-credential-evil").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    (tmp_path / "docker-credential-evil").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    shown = {"credHelpers": {"registry.example": "evil"}, "credsStore": "evil", "auths": {}}
    data = base64.b64encode(json.dumps(shown).encode()).decode()
    answers: Answers = {"/api/v1/namespaces/drivers/secrets/mine": (200, {"data": {".dockerconfigjson": data}})}
    async with cluster(answers) as client:
        access = await ClusterRegistries(client).access("drivers", "mine", [])
    assert access.credentials.login(parse("registry.example/a:1")) is None
    assert not (tmp_path / "ran").exists()


def test_a_job_of_somebody_else_is_no_run_of_another_namespace() -> None:
    """Labels and owner can be written by whoever may make Jobs; the name and the namespace have to be the Module's."""
    shown = (
        Story(observed_with(module(build=BUILD))).step().answer(GONE).answer(GONE, DOCKERFILE).run(RunState.SUCCEEDED)
    )
    assert shown.results[0][:2] == ("Success", "Done")
    (run,) = shown.observed.runs
    forged = replace(run, key=NamespacedName("shop", run.key.name))
    shown.observed = replace(shown.observed, runs=(forged,), validation=validation())
    shown = shown.step()
    assert shown.results[0][0] == "InProgress"
    # It is of this validation and of no Module of its namespace, so it is removed; nothing else of `shop` is.
    assert [each.key for each in shown.plan.actions if isinstance(each, Delete)] == [forged.key]


def test_an_administrators_signing_image_is_the_one_that_sees_the_key() -> None:
    """A validation may name a driver toolkit: it signs only where the operator was given no image for that."""
    named = validation(dtkImage="registry.example/toolkit:1", pushBuiltImage=False)
    unsigned = {**SIGN, "unsignedImage": "registry.example/raw:v1"}
    for builder, image in (
        (Builder(image="builder:1", sign_image="signer:1"), "signer:1"),
        (Builder(image="builder:1"), "registry.example/toolkit:1"),
    ):
        shown = Story(observed_with(module(sign=unsigned), validation=named, builder=builder)).step()
        (job,) = started(shown.answer(GONE).answer(GONE, BuildInputs("", ("k", "c"))).plan)
        text = job["spec"]["template"]["metadata"]["annotations"]["kmm.node.kubernetes.io/dockerfile"]
        assert f"FROM {image} AS signing" in text


@pytest.mark.slow
def test_what_runs_as_root_says_why() -> None:
    """Every container of deploy/ is nobody, or root with a comment above; no other right of a node is asked for.

    deploy/kustomize is made of these, and deploy/chart has templates.
    """
    roots = []
    by_hand = ("manifests", "update-status", "kernel-module-preflight")
    for file in sorted(file for folder in by_hand for file in (DEPLOYED / folder).rglob("*.yaml")):
        text = file.read_text()
        for document in yaml.safe_load_all(text):
            if not isinstance(document, dict) or document.get("kind") not in {"Deployment", "Job", "DaemonSet", "Pod"}:
                continue
            spec = document["spec"]["template"]["spec"]
            nobody = (spec.get("securityContext") or {}).get("runAsNonRoot") is True
            for container in (*spec.get("initContainers", ()), *spec["containers"]):
                own = container["securityContext"]
                assert (own.get("privileged", False), own["allowPrivilegeEscalation"]) == (False, False)
                assert own["capabilities"] == {"drop": ["ALL"]}
                if not (nobody or own.get("runAsNonRoot")):
                    lines = text.splitlines()
                    at = next(at for at, line in enumerate(lines) if line.strip() == "runAsUser: 0")
                    assert lines[at - 1].strip().startswith("# ")
                    roots.append(file.name)
    assert roots == ["0000_00_cluster-version-operator_03_deployment.yaml"]


def test_every_line_of_the_table_has_its_test() -> None:
    """The page names a test of this file in each line, and each test of this file is there."""
    page = (DEPLOYED.parent / "docs" / "how-to" / "kernel-modules.md").read_text()
    section = page.partition("## What a namespace's user reaches")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ") and "test_" in line]
    tests = {name for name in globals() if name.startswith("test_")} - {"test_every_line_of_the_table_has_its_test"}
    named = {word.strip("`") for row in rows for word in row.replace(",", " ").split() if word.startswith("`test_")}
    assert named >= tests
    assert len(rows) == sum(line.startswith("| ") for line in section.splitlines()) - 1
