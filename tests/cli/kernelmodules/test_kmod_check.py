"""`kmod check`: of a cluster and of a dump, for a release and for a kernel; what it comes to is the exit code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.commands import Run
from tests.cli.rights import LOOKER, let_looker_read
from tests.factories import node_json
from tests.kubekit.oci.layered import Made, put_image
from tests.kubekit.oci.registries import sandbox_registry, writing
from tests.servers import CRD, api_server, eventually

from kubekit.api import codec
from kubekit.api.core_v1 import Node
from kubekit.api.scheme import Resource, resource_of
from kubekit.kube import calls, config
from kubekit.kube.api_errors import NotFound
from kubekit.kube.client_sync import SyncClient
from kubekit.oci.access import Access
from kubekit.oci.layout import Layout
from kubekit.oci.reference import parse
from kubekit.oci.registry import RegistryClient
from runup.api.kmm_v1beta1 import Module
from runup.cli.kernelmodules.command import exit_code, table
from runup.kernelmodules.control.module_check import AssessmentTarget, CheckResult, assess_modules
from runup.kernelmodules.control.registries import GivenRegistries
from runup.kernelmodules.decide.readiness import Readiness, Status

# One server for all of them, and not one for each worker.
pytestmark = pytest.mark.xdist_group("kmod-check")
JSON = dict[str, Any]
KERNEL = "5.14.0-427.el9_4.x86_64"
NAMESPACES = Resource(group="", version="v1", kind="Namespace", plural="namespaces", namespaced=False)
MODULES = resource_of(Module)


@dataclass(frozen=True)
class ModulesCluster:
    """A cluster with Modules, and a registry with a release and their images."""

    kubeconfig: Path
    client: SyncClient
    host: str
    release: str
    toolkit: str
    layout: Path
    modules: tuple[JSON, ...]


def definition() -> JSON:
    """The kind Module, whose fields are kept as they are."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    names = {"kind": "Module", "plural": "modules", "singular": "module", "listKind": "ModuleList"}
    version = {"name": "v1beta1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "metadata": {"name": "modules.kmm.sigs.x-k8s.io"},
        "spec": {"group": "kmm.sigs.x-k8s.io", "names": names, "scope": "Namespaced", "versions": [version]},
    }


def module(name: str, image: str, selector: JSON | None = None, **container: Any) -> JSON:
    """A Module `drivers/<name>`."""
    mapped = {
        "modprobe": {"moduleName": name},
        "kernelMappings": [{"regexp": ".", "containerImage": image}],
        **container,
    }
    return {
        "apiVersion": MODULES.api_version,
        "kind": "Module",
        "metadata": {"name": name, "namespace": "drivers"},
        "spec": {"selector": selector or {}, "moduleLoader": {"container": mapped}},
    }


def pushed(host: str, layout: Layout, name: str, *layers: list[Made]) -> str:
    """An image in the registry, by digest."""
    made = put_image(layout, *layers)
    reference = parse(f"{host}/{name}")
    RegistryClient(writing(host)).push(layout, made.digest, reference)
    return f"{host}/{name}@{made.digest}"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModulesCluster]:
    """Three Modules: one that is there, one that is missing, one that would be built."""
    folder = tmp_path_factory.mktemp("kmod")
    with (
        sandbox_registry(folder) as host,
        api_server(folder / "server") as kubeconfig,
        SyncClient(config.load(str(kubeconfig))) as client,
    ):
        layout = Layout.create(folder / "layout")
        says = json.dumps({"KERNEL_VERSION": KERNEL, "RHEL_VERSION": "9.4", "RT_KERNEL_VERSION": f"{KERNEL}+rt"})
        toolkit = pushed(host, layout, "ocp/dtk", [Made("etc/driver-toolkit-release.json", says.encode())])
        tags = {"spec": {"tags": [{"name": "driver-toolkit", "from": {"name": toolkit}}]}}
        references = Made("release-manifests/image-references", json.dumps(tags).encode())
        release = pushed(host, layout, "ocp/release", [references])
        good = pushed(host, layout, "kmods/good", [Made(f"opt/lib/modules/{KERNEL}/good.ko")])
        modules = (
            module("good", good),
            module("missing", f"{host}/kmods/missing:$KERNEL_VERSION"),
            module("built", f"{host}/kmods/built:1", build={"dockerfileConfigMap": {"name": "sources"}}),
        )
        client.send(calls.create(CRD, definition()))
        client.send(calls.create(NAMESPACES, {"metadata": {"name": "drivers"}}))
        eventually(lambda: serves(client), "the kind Module is served")
        for one in modules:
            client.send(calls.create(MODULES, one))
        client.send(calls.create(resource_of(Node), node_json("worker-0", kernel="5.14.0-1.el9.x86_64")))
        yield ModulesCluster(kubeconfig, client, host, release, toolkit, layout.path, modules)


def serves(client: SyncClient) -> bool:
    """Whether the server knows Modules by now."""
    try:
        client.send(calls.list_raw(MODULES))
    except NotFound:
        return False
    return True


def found_in(ran: Any) -> dict[str, tuple[str, str]]:
    """Stage and status by module."""
    return {
        each["name"]: (each["verificationStage"], each["verificationStatus"]) for each in json.loads(ran.out)["modules"]
    }


def listed(cluster: ModulesCluster) -> tuple[str, ...]:
    """The kernel, and the registry on this machine that Modules may name."""
    return ("--kernel", KERNEL, "--inner-registry", cluster.host)


ALL = {"good": ("Done", "True"), "missing": ("Image", "False"), "built": ("Build", "Unknown")}


@pytest.mark.slow
def test_a_release(cluster: ModulesCluster, run: Run) -> None:
    """Its kernel is read out of it; a Module that would be built is not known, one without an image will not load."""
    ran = run("kmod", "check", "--kubeconfig", cluster.kubeconfig, "--to-image", cluster.release, "-o", "json")
    assert (ran.code, ran.err, found_in(ran)) == (2, "", ALL)
    reasons = {each["name"]: each["statusReason"] for each in json.loads(ran.out)["modules"]}
    assert reasons["good"].startswith("Verification successful (image accessible and verified)")
    assert reasons["missing"].startswith(
        f"image {cluster.host}/kmods/missing:{KERNEL} inaccessible or does not exists: "
    )
    assert reasons["built"].endswith("it would be built from the ConfigMap drivers/sources, which was not tried")


@pytest.mark.parametrize(
    ("chosen", "code"),
    [(("good",), 0), (("drivers/good",), 0), (("built",), 3), (("missing",), 2), (("good", "built"), 3)],
)
def test_exit_codes(cluster: ModulesCluster, run: Run, chosen: tuple[str, ...], code: int) -> None:
    """0 all will load, 2 some will not, 3 something is not known."""
    words = [word for name in chosen for word in ("--module", name)]
    ran = run("kmod", "check", "--kubeconfig", cluster.kubeconfig, *listed(cluster), *words, "-o", "json")
    assert (ran.code, set(found_in(ran))) == (code, {name.rpartition("/")[2] for name in chosen})


VERDICTS = {
    "nothing at all": ((), [], 0),
    "all will load": ((Status.TRUE,), [], 0),
    "one is not known": ((Status.TRUE, Status.UNKNOWN), [], 3),
    "one will not": ((Status.UNKNOWN, Status.FALSE, Status.TRUE), ["a note"], 2),
    "not all could be read": ((Status.TRUE,), ["a note"], 3),
    "none could be read": ((), ["a note"], 3),
}


@pytest.mark.parametrize("name", VERDICTS)
def test_what_it_comes_to(name: str) -> None:
    """The worst that is known, and then what is not."""
    statuses, notes, code = VERDICTS[name]
    found = tuple(
        Readiness(
            namespace="drivers",
            name="nic",
            kernel=KERNEL,
            architecture="amd64",
            stage="Done",
            status=status,
            reason="r",
        )
        for status in statuses
    )
    assert exit_code(CheckResult(found, notes)) == code


def test_the_table(cluster: ModulesCluster, run: Run) -> None:
    """Module, kernel, stage, whether it is verified, the reason in full, and what it comes to."""
    ran = run("kmod", "check", "--kubeconfig", cluster.kubeconfig, *listed(cluster), "-o", "wide")
    head, *rows = ran.out.splitlines()
    assert head.split() == ["MODULE", "KERNEL", "STAGE", "VERIFIED", "IMAGE", "REASON"]
    assert [row.split()[:4] for row in rows[:3]] == [
        ["drivers/built", KERNEL, "Build", "Unknown"],
        ["drivers/good", KERNEL, "Done", "True"],
        ["drivers/missing", KERNEL, "Image", "False"],
    ]
    assert ran.out.endswith("\n1 of 3 verified, 1 will not load, 1 not known.\n")


@pytest.mark.parametrize(
    ("statuses", "summary"),
    [
        pytest.param({"a": "TT", "b": "T"}, "2 of 2 verified.", id="a Module for two kernels counts once"),
        pytest.param({"a": "TF", "b": "T"}, "1 of 2 verified, 1 will not load.", id="it must be verified for both"),
        pytest.param({"a": "TU", "b": "UF"}, "0 of 2 verified, 1 will not load, 1 not known.", id="the worst counts"),
    ],
)
def test_modules_are_counted_as_by_a_validation(statuses: dict[str, str], summary: str) -> None:
    """By Module, and not by kernel."""
    meaning = {"T": Status.TRUE, "F": Status.FALSE, "U": Status.UNKNOWN}
    found = [
        Readiness(
            namespace="drivers",
            name=name,
            kernel=f"k{number}",
            architecture="amd64",
            stage="Done",
            status=meaning[letter],
            reason="r",
        )
        for name, letters in statuses.items()
        for number, letter in enumerate(letters)
    ]
    assert table(found).endswith(f"\n{summary}\n")


async def test_every_module_counts_as_by_a_validation() -> None:
    """One that loads nothing is verified, one that admission would refuse is not; both are in the table."""
    plugin = {"selector": {}, "devicePlugin": {"container": {"image": "a:1"}}}
    specs = {
        "plugin": plugin,
        "invalid": {**plugin, "dra": {"driverName": "a.b"}},
        "both": module("both", "a:1", inTreeModulesToRemove=["a"], inTreeModuleToRemove="b")["spec"],
    }
    modules = [
        codec.convert(Module, {"metadata": {"name": name, "namespace": "drivers"}, "spec": spec})
        for name, spec in specs.items()
    ]
    found = await assess_modules(modules, [], AssessmentTarget(kernel=KERNEL), GivenRegistries(Access()))
    assert {each.name: (each.stage, each.status.value, each.reason.partition(" (")[0][:29]) for each in found} == {
        "plugin": ("Done", "True", "Verification successful"),
        "invalid": ("Image", "False", "the Module is invalid: spec.d"),
        "both": ("Image", "False", "the Module is invalid: only o"),
    }
    assert table(found).endswith("\n1 of 3 verified, 2 will not load.\n")


def test_the_yaml_form(cluster: ModulesCluster, run: Run) -> None:
    """The same as JSON."""
    words = ("kmod", "check", "--kubeconfig", cluster.kubeconfig, *listed(cluster), "--module", "good", "-o")
    assert yaml.safe_load(run(*words, "yaml").out) == json.loads(run(*words, "json").out)


def test_a_dump(cluster: ModulesCluster, run: Run, tmp_path: Path) -> None:
    """The registry is asked as the flags say; a kind that the dump lacks is reported, and not taken for none."""
    version = {"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion", "metadata": {"name": "version"}}
    dump = tmp_path / "dump"
    dump.mkdir()
    for number, obj in enumerate(({**version, "spec": {}, "status": {}}, *cluster.modules)):
        (dump / f"{number}.json").write_text(json.dumps(obj))
    ran = run("kmod", "check", "--dump", dump, "--to-image", cluster.release, "-o", "json")
    assert (ran.code, found_in(ran)) == (2, ALL)
    assert "warning: the dump holds no nodes: whether there were any is not known" in ran.err
    broken = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "odd", "labels": 1}}
    (dump / "odd.json").write_text(json.dumps(broken))
    ran = run("kmod", "check", "--dump", dump, *listed(cluster))
    assert "warning: Node /odd: " in ran.err
    only = run("kmod", "check", "--dump", dump, *listed(cluster), "--module", "good", "-o", "json")
    assert only.code == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param((), "give one of --to-image, --kernel and --toolkit-image", id="no kernel at all"),
        pytest.param(("--kernel", KERNEL, "--to-image", "a/b:1"), "give one of", id="two"),
        pytest.param(
            ("--kernel", KERNEL, "--module", "nope"),
            "there is no Module nope that loads a kernel module; there are: drivers/built, drivers/good",
            id="a Module that is none",
        ),
        pytest.param(("--kernel", KERNEL, "--dump", "/nowhere"), "/nowhere", id="a dump that is none"),
        pytest.param(
            ("--kernel", KERNEL, "--registry-config", "/nowhere"), "cannot be read", id="credentials that are none"
        ),
    ],
)
def test_bad_words(cluster: ModulesCluster, run: Run, words: tuple[str, ...], said: str) -> None:
    """One error that names the input."""
    ran = run("kmod", "check", "--kubeconfig", cluster.kubeconfig, *words)
    assert (ran.code, ran.out) == (1, "")
    assert said in ran.err
    assert ran.err.startswith("error: ")


def test_a_release_that_is_none(cluster: ModulesCluster, run: Run) -> None:
    """Every Module is reported why; nothing is assumed of its kernel."""
    ran = run(
        "kmod", "check", "--kubeconfig", cluster.kubeconfig, "--to-image", f"{cluster.host}/ocp/nope:1", "-o", "json"
    )
    assert (ran.code, set(found_in(ran).values())) == (2, {("Image", "False")})
    assert "the kernel is not known: failed to get image spec from image" in ran.out


@pytest.mark.parametrize("given", ["--to-image of a layout", "--toolkit-image"])
def test_other_ways_to_name_the_kernels(cluster: ModulesCluster, run: Run, given: str) -> None:
    """A release on the disk, or the driver toolkit itself: the same kernel."""
    layout = ("--to-image", f"oci:{cluster.layout}@{cluster.release.partition('@')[2]}")
    words = layout if given.startswith("--to") else ("--toolkit-image", cluster.toolkit)
    ran = run(
        "kmod", "check", "--kubeconfig", cluster.kubeconfig, *words, "--inner-registry", cluster.host, "-o", "json"
    )
    assert (ran.code, ran.err, found_in(ran)) == (2, "", ALL)


def test_nodes_on_real_time_kernels(cluster: ModulesCluster, run: Run) -> None:
    """A Module of such nodes is looked for under the release's real-time kernel."""
    nodes, name = resource_of(Node), "real-time"
    cluster.client.send(calls.create(nodes, node_json(name, kernel="5.14.0-1.el9.x86_64+rt", labels={"rt": "yes"})))
    cluster.client.send(calls.create(MODULES, module("quick", f"{cluster.host}/kmods/quick:1", {"rt": "yes"})))
    try:
        ran = run(
            "kmod",
            "check",
            "--kubeconfig",
            cluster.kubeconfig,
            "--to-image",
            cluster.release,
            "--module",
            "quick",
            "-o",
            "json",
        )
        assert [each["kernelVersion"] for each in json.loads(ran.out)["modules"]] == [f"{KERNEL}+rt"]
    finally:
        cluster.client.send(calls.delete(MODULES, "quick", "drivers"))
        cluster.client.send(calls.delete(nodes, name))


def test_a_module_that_cannot_be_read_is_a_note(cluster: ModulesCluster, run: Run) -> None:
    """It may be the one that does not load."""
    odd = module("odd", "x")
    odd["spec"]["selector"] = 7
    cluster.client.send(calls.create(MODULES, odd))
    try:
        words = (*listed(cluster), "--module", "good", "-o", "json")
        ran = run("kmod", "check", "--kubeconfig", cluster.kubeconfig, *words)
    finally:
        cluster.client.send(calls.delete(MODULES, "odd", "drivers"))
    assert (ran.code, set(found_in(ran))) == (3, {"good"})
    assert ran.err.startswith("warning: Module drivers/odd cannot be read: ")


def test_modules_of_one_namespace_are_not_all(cluster: ModulesCluster, run: Run, tmp_path: Path) -> None:
    """A tree that was gathered for some namespaces says so."""
    scoped, own = tmp_path / "cluster-scoped-resources", tmp_path / "namespaces" / "drivers" / MODULES.group
    version = {"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion", "metadata": {"name": "version"}}
    for file, obj in (
        (scoped / "config.openshift.io" / "clusterversions" / "version.yaml", {**version, "spec": {}, "status": {}}),
        (scoped / "core" / "namespaces" / "drivers.yaml", {"apiVersion": "v1", "kind": "Namespace"}),
        (scoped / "core" / "namespaces" / "shop.yaml", {"apiVersion": "v1", "kind": "Namespace"}),
        (own / "modules" / "good.yaml", cluster.modules[0]),
    ):
        file.parent.mkdir(parents=True, exist_ok=True)
        named = {"metadata": {"name": file.stem}, **obj}
        file.write_text(yaml.safe_dump(named, sort_keys=False))
    ran = run("kmod", "check", "--dump", tmp_path, *listed(cluster), "-o", "json")
    assert (ran.code, found_in(ran)) == (3, {"good": ALL["good"]})
    assert f"warning: modules.{MODULES.group}: " in ran.err
    assert "the dump has only a part of the modules" in ran.err


def test_only_modules_of_the_dumps_own_kind_are_looked_at(cluster: ModulesCluster, run: Run, tmp_path: Path) -> None:
    """A kind of the same name is another; one without a namespace in its metadata is named without."""
    version = {"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion", "metadata": {"name": "version"}}
    other = {**cluster.modules[1], "apiVersion": "example.com/v1"}
    odd = {"apiVersion": MODULES.api_version, "kind": "Module", "metadata": {"name": "odd"}, "spec": 7}
    objects = ({**version, "spec": {}, "status": {}}, cluster.modules[0], other, odd, node_json("n", kernel=KERNEL))
    for number, obj in enumerate(objects):
        (tmp_path / f"{number}.json").write_text(json.dumps(obj))
    ran = run("kmod", "check", "--dump", tmp_path, *listed(cluster), "-o", "json")
    assert (ran.code, found_in(ran)) == (3, {"good": ALL["good"]})
    assert "warning: Module /odd: " in ran.err


def test_whoever_may_not_list_nodes_is_told_that_none_are_known(cluster: ModulesCluster, run: Run) -> None:
    """Whether a Module has nodes decides whether its kernel module must load: nobody says that all is well."""
    let_looker_read(cluster.client, "modules.kmm.sigs.x-k8s.io")
    flags = (*listed(cluster), "--module", "good", "--as", LOOKER, "-o", "json")
    ran = run("kmod", "check", "--kubeconfig", cluster.kubeconfig, *flags)
    assert (ran.code, set(found_in(ran))) == (3, {"good"})
    assert "which there are is not known: nodes is forbidden" in ran.err


@pytest.mark.slow
def test_a_cluster_without_the_kind(tmp_path: Path, run: Run) -> None:
    """No kind, no Modules, nothing in the way."""
    with api_server(tmp_path / "server") as kubeconfig:
        ran = run("kmod", "check", "--kubeconfig", kubeconfig, "--kernel", KERNEL)
    assert (ran.code, ran.out) == (0, "No Modules load a kernel module here.\n")


def test_a_module_reaches_nothing_on_this_machine(cluster: ModulesCluster, run: Run) -> None:
    """Users of namespaces name these images: the command's user lists the local addresses that they may reach."""
    ran = run("kmod", "check", "--kubeconfig", cluster.kubeconfig, "--kernel", KERNEL, "--module", "good", "-o", "json")
    assert (ran.code, found_in(ran)) == (3, {"good": ("Image", "Unknown")})
    assert f"registry {cluster.host} was not asked, because it is at an inner address" in ran.out
