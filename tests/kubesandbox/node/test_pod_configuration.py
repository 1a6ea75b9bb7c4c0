"""Tests the environment, volumes and credentials that a container gets."""

from __future__ import annotations

import json
import socket
import ssl
import stat
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession
from tests.kubesandbox.node.conftest import RESOURCES, AgentCluster, condition, ended, runs, state, waits

from kubekit.api import codec
from kubekit.api.whole_v1 import WholePod
from kubekit.kube import calls
from kubekit.kube.reviews import who_is
from kubesandbox.node import pod_volumes
from kubesandbox.node.pod_volumes import Sources
from kubesandbox.node.podspec import BadPod, container_spec

JSON = dict[str, Any]
POD: JSON = {
    "metadata": {
        "name": "p", "namespace": "ns", "uid": "u",
        "labels": {"app": "web", "tier": "x"}, "annotations": {"a/b": 'say "hi"'},
    },
    "spec": {
        "nodeName": "node-0",
        "containers": [{"name": "main", "resources": {"limits": {"memory": "96Mi"}}}],
    },
}  # fmt: skip
DATA = {("ConfigMap", "settings"): {"color": b"green", "size": b"$(color)"}, ("Secret", "login"): {"user": b"admin"}}


def configured_pod() -> WholePod:
    """A pod with labels, annotations and a limit."""
    return codec.convert(WholePod, POD)


def environment(*env: JSON, env_from: tuple[JSON, ...] = ()) -> dict[str, str]:
    """The environment that these entries make."""
    spec = container_spec({**POD["spec"]["containers"][0], "env": list(env), "envFrom": list(env_from)})
    return pod_volumes.container_environment(
        configured_pod(), spec, host_ip="192.0.2.1", lookup=lambda kind, name: DATA.get((kind, name))
    )


def field(path: str) -> JSON:
    """An environment variable `X` by downward API."""
    return {"name": "X", "valueFrom": {"fieldRef": {"fieldPath": path}}}


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        pytest.param(field("metadata.name"), "p", id="its name"),
        pytest.param(field("metadata.uid"), "u", id="its uid"),
        pytest.param(field("metadata.labels['app']"), "web", id="a label"),
        pytest.param(field("metadata.annotations['a/b']"), 'say "hi"', id="an annotation"),
        pytest.param(field("spec.nodeName"), "node-0", id="its node"),
        pytest.param(field("spec.serviceAccountName"), "default", id="its account"),
        pytest.param(field("status.podIP"), "192.0.2.1", id="its address"),
        pytest.param(
            {"name": "X", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory"}}}, str(96 << 20),
            id="its memory limit",
        ),
        pytest.param(
            {"name": "X", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}}}, "96",
            id="its memory limit in MiB",
        ),
        pytest.param(
            {"name": "X", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "size"}}}, "$(color)",
            id="a ConfigMap's value as it is",
        ),
        pytest.param(
            {"name": "X", "valueFrom": {"secretKeyRef": {"name": "login", "key": "user"}}}, "admin", id="a Secret's"
        ),
        pytest.param({"name": "X", "value": "$(color)-$(NONE)-$$(color)"}, "green-$(NONE)-$(color)", id="references"),
    ],
)  # fmt: skip
def test_values(entry: JSON, value: str) -> None:
    """By the kubelet's rules."""
    assert environment(entry, env_from=({"configMapRef": {"name": "settings"}},))["X"] == value


def test_references_see_only_what_stands_before_them() -> None:
    """The order of the entries counts."""
    found = environment({"name": "A", "value": "$(B)"}, {"name": "B", "value": "b"}, {"name": "C", "value": "$(B)"})
    assert found == {"A": "$(B)", "B": "b", "C": "b"}


def test_whole_objects_with_a_prefix() -> None:
    """Each key is a variable; `env` wins over it."""
    found = environment(
        {"name": "S_color", "value": "red"}, env_from=({"prefix": "S_", "configMapRef": {"name": "settings"}},)
    )
    assert found == {"S_color": "red", "S_size": "$(color)"}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        pytest.param({"configMapKeyRef": {"name": "none", "key": "k"}}, 'configmap "none" not found', id="no map"),
        pytest.param({"secretKeyRef": {"name": "none", "key": "k"}}, 'secret "none" not found', id="no Secret"),
        pytest.param(
            {"configMapKeyRef": {"name": "settings", "key": "k"}}, "couldn't find key k in ConfigMap ns/settings",
            id="no such key",
        ),
        pytest.param({"fieldRef": {"fieldPath": "spec.x"}}, "unsupported fieldPath: spec.x", id="no such field"),
    ],
)  # fmt: skip
def test_what_keeps_a_container_from_starting(source: JSON, message: str) -> None:
    """CreateContainerConfigError, unless it is optional."""
    with pytest.raises(BadPod) as raised:
        environment({"name": "X", "valueFrom": source})
    assert (raised.value.message, raised.value.reason) == (message, "CreateContainerConfigError")
    if "fieldRef" not in source:
        ((kind, reference),) = source.items()
        assert environment({"name": "X", "valueFrom": {kind: {**reference, "optional": True}}}) == {}


async def test_a_config_map_that_comes_later(still: AgentCluster) -> None:
    """The container waits, says for what, and starts when it is there."""
    reference = {"configMapKeyRef": {"name": "late", "key": "k"}}
    await still.run("", container=_with_env("echo $K", reference), restartPolicy="Never")
    status = await still.until(waits("CreateContainerConfigError"), "its refusal")
    assert state(status)["waiting"]["message"] == 'configmap "late" not found'
    await still.create("ConfigMap", "late", data={"k": "value"})
    await still.manual.until_sleeping()
    await still.manual.advance(10)
    await still.until(ended, "its end")
    assert still.log() == "value\n"


def _with_env(script: str, source: JSON) -> JSON:
    return {"command": ["/bin/sh", "-c", script], "env": [{"name": "K", "valueFrom": source}]}


async def test_a_restart_reads_its_environment_anew(still: AgentCluster) -> None:
    """What a ConfigMap says when the container starts counts."""
    await still.create("ConfigMap", "c", data={"k": "one"})
    await still.run("", container=_with_env("echo $K; exit 1", {"configMapKeyRef": {"name": "c", "key": "k"}}))
    await still.until(waits("CrashLoopBackOff", "10s"), "the second end")
    await still.client.send(calls.merge_patch(RESOURCES["ConfigMap"], "c", {"data": {"k": "two"}}, "default"))
    await still.manual.until_sleeping()
    await still.manual.advance(10)
    await still.until(waits("CrashLoopBackOff", "20s"), "the third end")
    assert still.log().split() == ["one", "one", "two"]


async def test_every_kind_of_volume(cluster: AgentCluster) -> None:
    """Each holds what it should, where the container looks for it, whatever runs the container."""
    await cluster.create("ConfigMap", "settings", data={"color": "green", "size": "7"})
    await cluster.create("Secret", "login", data={"user": b64encode(b"admin").decode()})
    await cluster.create("ServiceAccount", "robot")
    cluster.host("/etc/thing").mkdir(parents=True)
    cluster.host("/etc/thing/file").write_text("from the host")
    projected = {
        "sources": [
            {"serviceAccountToken": {"path": "token"}},
            {"configMap": {"name": "settings", "items": [{"key": "color", "path": "deep/colour"}]}},
            {"secret": {"name": "login"}},
            {"downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
        ]
    }
    made = [
        {"name": "config", "configMap": {"name": "settings"}},
        {"name": "secret", "secret": {"secretName": "login", "defaultMode": 0o400}},
        {"name": "host", "hostPath": {"path": "/etc/thing", "type": "Directory"}},
        {"name": "empty", "emptyDir": {}},
        {
            "name": "fields",
            "downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]},
        },
        {"name": "projected", "projected": projected},
    ]
    mounts = [{"name": volume["name"], "mountPath": f"/mnt/{volume['name']}"} for volume in made]
    mounts.append({"name": "config", "mountPath": "/mnt/one-file", "subPath": "size"})
    script = 'for file in "$@"; do cat $file; echo " <- "; done; echo written > $0/new'
    wanted = [
        "/mnt/config/color", "/mnt/secret/user", "/mnt/host/file", "/mnt/fields/labels", "/mnt/projected/deep/colour",
        "/mnt/projected/user", "/mnt/projected/name", "/mnt/one-file",
    ]  # fmt: skip
    container = {"command": ["/bin/sh", "-c", script, "/mnt/host", *wanted], "volumeMounts": mounts}
    spec = {"serviceAccountName": "robot", "automountServiceAccountToken": True, "restartPolicy": "Never"}
    await cluster.run("", container=container, volumes=made, **spec)
    status = await cluster.until(ended, "its end")
    assert ended(status)["exitCode"] == 0, cluster.log()
    assert [text.strip() for text in cluster.log().split("<-")[:-1]] == [
        "green", "admin", "from the host", 'app="web"', "green", "admin", "pod", "7",
    ]  # fmt: skip
    assert cluster.host("/etc/thing/new").read_text() == "written\n"


async def test_a_read_only_mount(cluster: AgentCluster) -> None:
    """Where there are mounts, it cannot be written to."""
    if not cluster.place.runner.mounts:
        pytest.skip("plain processes share the host's files")
    mounts = [{"name": "host", "mountPath": "/mnt", "readOnly": True}]
    made = [{"name": "host", "hostPath": {"path": "/x", "type": "DirectoryOrCreate"}}]
    await cluster.run("touch /mnt/x", container={"volumeMounts": mounts}, volumes=made, restartPolicy="Never")
    assert ended(await cluster.until(ended, "its end"))["exitCode"] != 0
    assert list(cluster.host("/x").iterdir()) == []


async def test_a_volume_that_cannot_be_set_up_yet(still: AgentCluster) -> None:
    """The pod waits in ContainerCreating, an event says for what, and it continues when that is there."""
    await still.run("exec sleep 1000", volumes=[{"name": "v", "configMap": {"name": "late"}}])
    status = await still.until(waits("ContainerCreating"), "waiting")
    assert (status["phase"], condition(status, "Ready")["status"]) == ("Pending", "False")
    expected = 'MountVolume.SetUp failed for volume "v" : configmap "late" not found'
    assert await still.until_told("FailedMount") == expected
    await still.create("ConfigMap", "late", data={})
    await still.manual.until_sleeping()
    await still.manual.advance(0.5)
    await still.until(runs, "it runs")


@pytest.mark.slow
async def test_what_only_the_running_pod_needed_goes_with_it(cluster: AgentCluster) -> None:
    """Volumes and credentials; the log stays for anybody who looks for the cause."""
    await cluster.create("ServiceAccount", "robot")
    await cluster.run("echo up; exec sleep 1000", serviceAccountName="robot", automountServiceAccountToken=True)
    await cluster.until_logged("up")
    folder = cluster.place.pod_folder(cluster.pods.all()[0])
    assert (folder / "serviceaccount" / "token").stat().st_mode & 0o777 == 0o600
    await cluster.delete(grace_s=1)
    await cluster.until_gone()
    await cluster.agent_idle()
    assert [path.name for path in folder.iterdir()] == ["main.log"]


async def test_its_account_speaks_for_it(cluster: AgentCluster) -> None:
    """The token is the account's, and dies with the pod."""
    await cluster.create("ServiceAccount", "robot")
    await cluster.run("echo up; exec sleep 1000", serviceAccountName="robot", automountServiceAccountToken=True)
    await cluster.until_logged("up")
    folder = cluster.place.pod_folder(cluster.pods.all()[0]) / "serviceaccount"
    assert (folder / "namespace").read_text() == "default"
    token, trusted = (folder / "token").read_text(), ssl.create_default_context(cafile=str(folder / "ca.crt"))
    asked = {"url": f"{cluster.place.server}/apis/authentication.k8s.io/v1/selfsubjectreviews", "ssl": trusted}
    headers = {"Authorization": f"Bearer {token}"}
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    async with ClientSession(headers=headers) as session:
        async with session.post(**asked, json=body) as response:
            answer = json.loads(await response.text())
            assert answer["status"]["userInfo"]["username"] == "system:serviceaccount:default:robot"
        await cluster.delete(grace_s=0)
        await cluster.until_gone()
        async with session.post(**asked, json=body) as response:
            assert response.status == 401


async def test_its_token_is_renewed_before_it_ends(still: AgentCluster) -> None:
    """After four fifths of its hour, as a kubelet does; the server knows both until then."""
    await still.create("ServiceAccount", "robot")
    await still.run("echo up; exec sleep 1000", serviceAccountName="robot", automountServiceAccountToken=True)
    await still.until_logged("up")
    file = still.place.pod_folder(still.pods.all()[0]) / "serviceaccount" / "token"
    before = file.read_text()
    await still.manual.until_sleeping()
    assert still.manual.sleeping == (2880,)
    await still.manual.advance(2880)
    await still.manual.until_sleeping()
    renewed = file.read_text()
    assert renewed != before
    for token in (before, renewed):
        assert (await still.client.send(who_is(token))).user.username == "system:serviceaccount:default:robot"


HOST_TYPES = [
    pytest.param("", "new", "folder", id="no type makes a folder"),
    pytest.param("", "file", "file", id="no type takes what is there"),
    pytest.param("DirectoryOrCreate", "new", "folder", id="DirectoryOrCreate makes a folder"),
    pytest.param("DirectoryOrCreate", "file", "is not a directory", id="DirectoryOrCreate finds a file"),
    pytest.param("Directory", "folder", "folder", id="Directory finds one"),
    pytest.param("Directory", "new", "is not a directory", id="Directory finds nothing"),
    pytest.param("FileOrCreate", "new", "file", id="FileOrCreate makes a file"),
    pytest.param("FileOrCreate", "folder", "is not a file", id="FileOrCreate finds a folder"),
    pytest.param("File", "file", "file", id="File finds one"),
    pytest.param("File", "folder", "is not a file", id="File finds a folder"),
    pytest.param("Socket", "socket", "socket", id="Socket finds one"),
    pytest.param("Socket", "file", "is not a socket file", id="Socket finds a file"),
    pytest.param("CharDevice", "file", "is not a character device", id="CharDevice finds a file"),
    pytest.param("BlockDevice", "file", "is not a block device", id="BlockDevice finds a file"),
]
OWN = {"key": "color", "path": "color", "mode": 0o400}
KINDS = {"folder": stat.S_ISDIR, "file": stat.S_ISREG, "socket": stat.S_ISSOCK}


def sources(folder: Path) -> Sources:
    """Returns the sources of the pod's volumes, below `folder`."""
    return Sources(
        pod=configured_pod(), folder=folder / "pod", host=folder, account=folder / "account", host_ip="192.0.2.1",
        lookup=lambda kind, name: DATA.get((kind, name)),
    )  # fmt: skip


@pytest.mark.parametrize(("type_", "path", "result"), HOST_TYPES)
def test_host_path_types(tmp_path: Path, type_: str, path: str, result: str) -> None:
    """Tests created and required paths, and the kubelet's words for a missing one."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        volume = {"name": "v", "hostPath": {"path": f"/{path}", "type": type_}}
        if result in KINDS:
            assert KINDS[result](pod_volumes.prepare_volume(volume, sources(tmp_path)).stat().st_mode)
            return
        with pytest.raises(BadPod) as raised:
            pod_volumes.prepare_volume(volume, sources(tmp_path))
    assert raised.value.message == (
        f'MountVolume.SetUp failed for volume "v" : hostPath type check failed: /{path} {result}'
    )


@pytest.mark.parametrize(
    ("volume", "mode"),
    [
        pytest.param({"configMap": {"name": "settings"}}, 0o644, id="as usual"),
        pytest.param({"configMap": {"name": "settings", "defaultMode": 0o666}}, 0o666, id="the volume's"),
        pytest.param({"configMap": {"name": "settings", "defaultMode": 0o666, "items": [OWN]}}, 0o400, id="its own"),
    ],
)  # fmt: skip
def test_file_modes(tmp_path: Path, volume: JSON, mode: int) -> None:
    """Of the files that a volume is made of, whatever the process's umask is."""
    file = pod_volumes.prepare_volume({"name": "v", **volume}, sources(tmp_path)) / "color"
    assert stat.S_IMODE(file.stat().st_mode) == mode


@pytest.mark.parametrize(
    ("volume", "message"),
    [
        pytest.param({"configMap": {"name": "none"}}, 'configmap "none" not found', id="no ConfigMap"),
        pytest.param({"secret": {"secretName": "none"}}, 'secret "none" not found', id="no Secret"),
        pytest.param(
            {"configMap": {"name": "settings", "items": [{"key": "k", "path": "p"}]}},
            "references non-existent config key: k", id="no such key",
        ),
        pytest.param({"nfs": {}}, "this node agent knows hostPath, emptyDir, configMap, secret, downwardAPI, projected",
                     id="a kind that is not supported"),
        pytest.param(
            {"configMap": {"name": "settings", "items": [{"key": "color", "path": "../../x"}]}},
            "volume file ../../x would leave the volume", id="a path that leads out",
        ),
    ],
)  # fmt: skip
def test_volumes_that_cannot_be_made(tmp_path: Path, volume: JSON, message: str) -> None:
    """The message names the volume and what is missing."""
    with pytest.raises(BadPod) as raised:
        pod_volumes.prepare_volume({"name": "v", **volume}, sources(tmp_path))
    assert raised.value.message == f'MountVolume.SetUp failed for volume "v" : {message}'


def test_what_is_optional_may_be_missing(tmp_path: Path) -> None:
    """An empty volume then."""
    volume = {"name": "v", "secret": {"secretName": "none", "optional": True}}
    assert list(pod_volumes.prepare_volume(volume, sources(tmp_path)).iterdir()) == []


@pytest.mark.parametrize(
    ("mount", "part"),
    [
        pytest.param({}, "", id="the whole volume"),
        pytest.param({"subPath": "a/b"}, "a/b", id="a part of it, made where it is missing"),
        pytest.param({"subPathExpr": "$(NAME)/x"}, "me/x", id="a part by the environment"),
        pytest.param({"subPath": "$(NAME)"}, "$(NAME)", id="which subPath does not read"),
    ],
)
def test_parts_of_volumes(tmp_path: Path, mount: JSON, part: str) -> None:
    """What the container sees at the mount's path."""
    spec = container_spec({"name": "c", "volumeMounts": [{"name": "v", "mountPath": "/mnt/", **mount}]})
    (bind,) = pod_volumes.container_binds(spec, {"v": tmp_path}, None, {"NAME": "me"})
    assert (bind.source, bind.target) == (tmp_path / part, "/mnt")
    assert bind.source.is_dir()


def test_a_part_never_leads_out_of_its_volume(tmp_path: Path) -> None:
    """Not by a link in it either."""
    (tmp_path / "v").mkdir()
    (tmp_path / "v" / "link").symlink_to(tmp_path)
    spec = container_spec({"name": "c", "volumeMounts": [{"name": "v", "mountPath": "/m", "subPath": "link/x"}]})
    with pytest.raises(BadPod, match="leads out of its volume"):
        pod_volumes.container_binds(spec, {"v": tmp_path / "v"}, None, {})
    assert not (tmp_path / "x").exists()
