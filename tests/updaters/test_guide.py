"""The guide about updaters: its objects against the tools' own definitions, and what the controller writes to them.

The tools themselves do not run here: the Go module proxy has neither system-upgrade-controller nor tuppr nor Omni. It
has no types of tuppr either, so its expression is evaluated, and its object is not validated.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.cli.commands import Run
from tests.controlplane.build import Unavailable
from tests.documents import document
from tests.rollout.control.policy_world import FOLDER
from tests.rollout.control.test_rights import KINDS
from tests.rollout.control.test_updaters import NEW, PlainWorld, serves
from tests.servers import CRD, api_server, eventually
from tests.updaters import definitions

from kubekit.api.scheme import Resource
from kubekit.kube import calls, config
from kubekit.kube.api_errors import KubeError
from kubekit.kube.auth import Credential, Static
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.reviews import token_request
from kubekit.lang import cel
from kubekit.lang import yaml as kyaml
from runup.cli.operator.main import main as operator_main
from runup.install.control.installing import manifests
from runup.install.decide.component import UPDATE_POLICY, Options, Platform
from runup.install.decide.component_objects import component_objects
from runup.process.names import OPERATOR_NAMESPACE
from runup.rollout.decide.updaters import ANNOTATION

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/updaters.md").read_text(encoding="utf-8")
BLOCKS = [
    each
    for block in re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    for each in kyaml.load_all(block.encode(), name="updaters.md")
]
EXAMPLES = ROOT / "examples" / "update-gates"
PLANS = Resource("upgrade.cattle.io", "v1", "Plan", "plans", namespaced=True)
CLUSTERS = Resource("cluster.x-k8s.io", "v1beta2", "Cluster", "clusters", namespaced=True)
KUSTOMIZATIONS = Resource("kustomize.toolkit.fluxcd.io", "v1", "Kustomization", "kustomizations", namespaced=True)
EXTENSIONS = Resource("runtime.cluster.x-k8s.io", "v1beta2", "ExtensionConfig", "extensionconfigs", namespaced=False)
NIGHTS = {"timeZone": "UTC", "windows": [{"opens": "0 0 * * *", "for": "24h"}]}
CALENDARS = Resource("update.runup.dev", "v1alpha1", "UpdateCalendar", "updatecalendars", namespaced=False)


def block(kind: str, number: int = 0) -> dict[str, Any]:
    """An object of the page."""
    found: dict[str, Any] = [each for each in BLOCKS if each["kind"] == kind][number]
    return found


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlainWorld]:
    """An API server with the tools' own definitions."""
    try:
        folder = definitions.build()
    except Unavailable as error:
        if os.environ.get("RUNUP_E2E") == "required":
            raise
        pytest.skip(str(error))
    data = tmp_path_factory.mktemp("real") / "data"
    with api_server(data) as kubeconfig, SyncClient(config.load(str(kubeconfig))) as client:
        for file in [*folder.glob("*.yaml"), *FOLDER.glob("01_*.crd.yaml")]:
            client.send(calls.create(CRD, document(file)))
        for resource in (PLANS, CLUSTERS, KUSTOMIZATIONS, EXTENSIONS, CALENDARS):
            eventually(lambda resource=resource: serves(client, resource), f"{resource.kind} is served")
        found = PlainWorld(client, data / "audit.log")
        found.begin()
        found.create(CALENDARS, "nights", spec=NIGHTS)
        yield found


def put(world: PlainWorld, resource: Resource, body: dict[str, Any]) -> None:
    """Creates an object as an administrator does; a field that the definition lacks is an error."""
    world.client.send(calls.create(resource, body, field_validation="Strict", field_manager="kubectl"))


def policy(number: int) -> dict[str, Any]:
    """The spec of a policy of the page, for the version of this test and without waiting."""
    spec: dict[str, Any] = block("UpdatePolicy", number)["spec"]
    gates = {**spec["gates"], "forecast": "Ignore", "health": {"settle": "1s"}}
    return {**spec, "target": {**spec["target"], "version": NEW}, "gates": gates, "soak": "0s"}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_34_the_plan_of_the_guide_gets_its_version(real: PlainWorld) -> None:
    """Before the gates open the Plan has neither version nor channel, so that the tool does not resolve it."""
    real.begin(**policy(0))
    real.client.send(calls.delete(PLANS, "server", "system-upgrade"))
    put(real, PLANS, block("Plan"))
    real.passes(3)
    assert {"version", "channel"} & set(real.plan()) == set()
    real.report()
    real.passes(4)
    assert real.plan() == {**block("Plan")["spec"], "version": NEW}
    with pytest.raises(KubeError, match="channels"):
        put(
            real,
            PLANS,
            {
                **block("Plan"),
                "metadata": {"name": "b", "namespace": "system-upgrade"},
                "spec": {"channels": "a", "upgrade": {"image": "b"}},
            },
        )


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_36_the_cluster_of_the_guide_waits(real: PlainWorld) -> None:
    """The annotation goes when the gates open, of a Cluster as Cluster API v1.14.2 defines it, and comes back."""
    real.begin(**policy(1))
    real.client.send(calls.delete(CLUSTERS, "harbour", "clusters"))
    [words] = re.findall(r"annotate cluster harbour (\S+)=\n", PAGE)
    topology = {"classRef": {"name": "c"}, "version": NEW}
    metadata = {"name": "harbour", "namespace": "clusters", "annotations": {words: ""}}
    put(
        real,
        CLUSTERS,
        {"apiVersion": CLUSTERS.api_version, "kind": "Cluster", "metadata": metadata, "spec": {"topology": topology}},
    )
    real.passes(3)
    assert ANNOTATION in real.annotations()
    real.report()
    real.passes(4)
    assert ANNOTATION not in real.annotations()
    real.server = NEW
    real.kubelet(NEW)
    real.passes(4)
    assert ANNOTATION in real.annotations()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_kustomizations_of_flux_are_valid(real: PlainWorld) -> None:
    """Every field of the example is one of Flux, and the update depends on the gate."""
    found = list(kyaml.load_all((EXAMPLES / "flux.yaml").read_bytes(), name="flux.yaml"))
    real.create(Resource("", "v1", "Namespace", "namespaces", namespaced=False), "flux-system")
    for each in found:
        put(real, KUSTOMIZATIONS, each)
    gate, update = (each["spec"] for each in found)
    assert (gate["wait"], update["dependsOn"]) == (True, [{"name": found[0]["metadata"]["name"]}])


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_36_the_extension_of_the_guide_is_valid(real: PlainWorld) -> None:
    """The ExtensionConfig is one of Cluster API v1.14.2, and the container's arguments are those of the command."""
    name = "cluster-api-extension.yaml"
    found = {each["kind"]: each for each in kyaml.load_all((EXAMPLES / name).read_bytes(), name=name)}
    put(real, EXTENSIONS, found["ExtensionConfig"])
    service = found["ExtensionConfig"]["spec"]["clientConfig"]["service"]
    assert (service["namespace"], service["name"]) == ("update-extension", found["Service"]["metadata"]["name"])
    [container] = found["Deployment"]["spec"]["template"]["spec"]["containers"]
    command, *flags = container["args"]
    flags = [each for each in flags if not each.startswith("--kubeconfig")]
    with pytest.raises(SystemExit) as ended:
        operator_main([command, *flags, "--kubeconfig=/nonexistent/kubeconfig"])
    assert ended.value.code == 1
    assert operator_main([command, *flags, "--typo"]) != 0


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_34_the_rights_of_the_guide_suffice(real: PlainWorld) -> None:
    """With the roles of an installation on Kubernetes and the Role of the guide alone, the version is written."""
    real.begin(**policy(0))
    options = Options(image="i", namespace=UPDATE_POLICY.namespace, platform=Platform.KUBERNETES)
    installed = component_objects(UPDATE_POLICY, manifests(UPDATE_POLICY, Platform.KUBERNETES), options)
    for name in (UPDATE_POLICY.namespace, OPERATOR_NAMESPACE):
        real.create(KINDS["Namespace"], name)
    for body in (*installed, block("Role"), block("RoleBinding")):
        if body["kind"] in KINDS and body["kind"] != "Namespace":
            real.client.send(calls.apply(KINDS[body["kind"]], body, field_manager="test"))
    token = real.client.send(token_request("update-controller", UPDATE_POLICY.namespace)).token
    account = replace(real.client.config, auth=Static(Credential(authorization=f"Bearer {token}")))
    real.report()
    with SyncClient(account) as limited:
        whole, real.client = real.client, limited
        try:
            assert real.observe().objects.unreadable == ()
            real.passes(5)
        finally:
            real.client = whole
    assert real.plan()["version"] == NEW


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({}, False),
        ({"status": {}}, False),
        ({"status": {"conditions": []}}, False),
        ({"status": {"conditions": [{"type": "GatesOpen", "status": "False"}]}}, False),
        ({"status": {"conditions": [{"type": "Done", "status": "True"}]}}, False),
        ({"status": {"conditions": [{"type": "GatesOpen", "status": "True"}]}}, True),
    ],
)
def test_35_the_expression_for_tuppr(status: dict[str, Any], expected: bool) -> None:
    """tuppr binds `object` and its status: no run raises an error, and only True opens."""
    [check] = block("KubernetesUpgrade")["spec"]["healthChecks"]
    program = cel.compile_cel(check["expr"], {"status": "map"})
    assert program.evaluate({"status": status.get("status", {})}) is expected


def test_the_role_of_the_guide_is_for_one_plan() -> None:
    """The controller may read and patch the object that the policy names, and nothing else."""
    [rule] = block("Role")["rules"]
    field = block("UpdatePolicy")["spec"]["field"]
    assert rule["resourceNames"] == [field["name"]] == [block("Plan")["metadata"]["name"]]
    assert (rule["verbs"], block("Role")["metadata"]["namespace"]) == (["get", "patch"], field["namespace"])


@pytest.mark.parametrize("name", sorted(file.name for file in EXAMPLES.iterdir()))
def test_every_recipe_waits_for_the_gates(name: str, run: Run) -> None:
    """Each example is valid YAML; its command is one that runup knows, and the page names the file."""
    text = (EXAMPLES / name).read_text(encoding="utf-8")
    assert list(kyaml.load_all(text.encode(), name=name))
    assert f"examples/update-gates/{name}" in PAGE or "`examples/update-gates/` has a job for" in PAGE
    for words in re.findall(r"runup (upgrade gate .*)$", text, re.MULTILINE):
        typed = [re.sub(r'"\$(RUN|WAIT)"', lambda found: {"RUN": "v1.36.2-3f9a1c", "WAIT": "1s"}[found[1]], words)]
        ran = run(*typed[0].split(), "--kubeconfig", "/nonexistent/kubeconfig")
        assert (ran.code, "/nonexistent/kubeconfig" in ran.err) == (1, True), ran.err
    assert "runup upgrade gate" in text or name in ("flux.yaml", "cluster-api-extension.yaml")
