"""Collects what the components of a cluster without a ClusterVersion are given: flags, feature gates, plug-ins.

Who writes them is asked first: ConfigMaps of kubeadm, from which it writes static pods and kubelets' configuration at
each update, and the arguments of k3s and RKE2, which each node has in an annotation. What else stands in a static pod
then are these programs' own defaults, which change with their version. Where nobody of them is found, the static pods'
commands count (Talos, what is made by hand). Services show no static pods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from kubekit.api.core_v1 import ConfigMap, Node
from kubekit.api.meta_v1 import Object, ObjectMeta
from kubekit.api.pod_parts import CommandPod
from kubekit.lang import yaml as kyaml
from kubekit.lang.yaml_errors import YamlError
from runup.checks.decide.distributions import distribution_of
from runup.checks.decide.reads import Slim
from runup.checks.writing import Resource, Snapshot, Unreadable, full_name, resource_of

COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "etcd")
FLAG, GATE, PLUGIN = "Flag", "Feature gate", "Admission plug-in"
_PLUGIN_FLAGS = ("enable-admission-plugins", "disable-admission-plugins", "admission-control")
_FLAGS_OF_EVERY_VERSION = ("feature-gates", "enable-admission-plugins", "disable-admission-plugins")
_KUBEADM_MAP, _KUBELET_MAP, _PROXY_MAP = "kubeadm-config", "kubelet-config", "kube-proxy"
# Who writes what: https://kubernetes.io/docs/tasks/administer-cluster/kubeadm/kubeadm-reconfigure/.
_EDIT = "Take it out with `kubectl edit configmap -n kube-system {}`"
_KUBEADM_FIX = f"{_EDIT.format(_KUBEADM_MAP)}, before `kubeadm upgrade apply` writes the static pods from it."
_KUBELET_FIX = f"{_EDIT.format(_KUBELET_MAP)}, then run `kubeadm upgrade node phase kubelet-config` on each node and "
_KUBELET_FIX += "restart its kubelet."
_PROXY_FIX = f"{_EDIT.format(_PROXY_MAP)}, then `kubectl rollout restart daemonset -n kube-system kube-proxy`."
_STATIC_FIXES = {"Talos": "Take it out on each node of the control plane: `talosctl --nodes NODE edit mc`."}
_STATIC_FIX = "Take it out where the static pod is written, such as /etc/kubernetes/manifests on its node."
# kind runs kubeadm once, and updates no cluster (https://kind.sigs.k8s.io/docs/user/configuration/).
_KIND_FIX = "Leave it out of the configuration of the new cluster: `kind create cluster --name NEW --config FILE`."
# The parts of kubeadm's ClusterConfiguration (kubeadm.k8s.io) with the arguments of components.
_CLUSTER_CONFIGURATION_PARTS = (
    ("apiServer", "kube-apiserver"),
    ("controllerManager", "kube-controller-manager"),
    ("scheduler", "kube-scheduler"),
    ("etcd.local", "etcd"),
)
# The annotation of a node with the arguments of its server or agent, and where these are configured
# (https://docs.k3s.io/installation/configuration, https://docs.rke2.io/install/configuration).
_NODE_ARGUMENTS = {
    "k3s.io/node-args": "/etc/rancher/k3s/config.yaml",
    "rke2.io/node-args": "/etc/rancher/rke2/config.yaml",
}
_NODE_FLAGS = {f"--{component}-arg": component for component in COMPONENTS} | {
    "--kube-controller-arg": "kube-controller-manager"
}


def _slim_config_map(config_map: ConfigMap) -> ConfigMap:
    """Returns the ConfigMap, with its data if it is one of kubeadm's."""
    keeps = config_map.metadata.name in (_KUBEADM_MAP, _KUBELET_MAP, _PROXY_MAP)
    return ConfigMap(metadata=_slim_metadata(config_map), data=config_map.data if keeps else {})


def _slim_metadata(obj: Object) -> ObjectMeta:
    """Returns the metadata with the fields alone that a finding needs to name the object."""
    metadata = obj.metadata
    return ObjectMeta(
        name=metadata.name,
        namespace=metadata.namespace,
        uid=metadata.uid,
        resource_version=metadata.resource_version,
    )


# kubeadm, RKE2 and Talos give their static pods this label.
STATIC_PODS = Slim(
    group="",
    version="v1",
    kind="Pod",
    plural="pods",
    namespaced=True,
    type=CommandPod,
    keep=lambda pod: msgspec.structs.replace(pod, metadata=_slim_metadata(pod)),
    namespace="kube-system",
    label_selector="tier=control-plane",
)
CONFIG_MAPS = Slim(
    group="",
    version="v1",
    kind="ConfigMap",
    plural="configmaps",
    namespaced=True,
    type=ConfigMap,
    keep=_slim_config_map,
    namespace="kube-system",
)
READS: tuple[Resource, ...] = (STATIC_PODS, CONFIG_MAPS, resource_of(Node))


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """A flag, gate or plug-in that a component is given; `value` is a flag's or a gate's text.

    `holder` is the object that says so, `place` where in it; `fix` says how it is taken out.
    """

    setting: str
    name: str
    value: str
    component: str
    holder: Object
    place: str
    fix: str

    @property
    def kind(self) -> Resource:
        """The kind of the holder as it is read."""
        return _kind_of(self.holder)


class Malformed(msgspec.Struct, frozen=True):
    """An object with settings that cannot be parsed; `why` says which part and why, `fix` where to look."""

    holder: Object
    why: str
    fix: str

    @property
    def kind(self) -> Resource:
        """The kind of the holder as it is read."""
        return _kind_of(self.holder)


def _kind_of(holder: Object) -> Resource:
    if isinstance(holder, Node):
        return resource_of(Node)
    return CONFIG_MAPS if isinstance(holder, ConfigMap) else STATIC_PODS


def given_settings(snapshot: Snapshot) -> Iterator[Given | Malformed]:
    """Yields the settings of the components, and the ConfigMaps that are malformed. Raises Unreadable at the end."""
    nodes = snapshot.all(Node)
    written_by_nodes = [node for node in nodes if any(key in node.metadata.annotations for key in _NODE_ARGUMENTS)]
    for node in written_by_nodes:
        yield from _settings_of_node(node)
    pods = sorted(snapshot.listed(STATIC_PODS), key=full_name)
    if written_by_nodes or not pods:
        return
    distribution = distribution_of(nodes).name
    fix = _STATIC_FIXES.get(distribution, _STATIC_FIX)
    try:
        config_maps = {each.metadata.name: each for each in snapshot.listed(CONFIG_MAPS)}
    except Unreadable:
        # kubeadm adds flags of its own to etcd's static pod, which nobody configured.
        yield from (given for pod in pods for given in _settings_of_static_pod(pod, fix) if given.component != "etcd")
        raise
    if _KUBEADM_MAP not in config_maps:
        yield from (given for pod in pods for given in _settings_of_static_pod(pod, fix) if given.component != "etcd")
    for name, (key, reader) in _READERS.items():
        if name in config_maps:
            found = _settings_in_config_map(config_maps[name], key, reader)
            yield from (
                (replace(each, fix=_KIND_FIX) if isinstance(each, Given) else each for each in found)
                if distribution == "kind"
                else found
            )


def _settings_in_config_map(
    config_map: ConfigMap, key: str, reader: Callable[[ConfigMap, Any], Iterator[Given]]
) -> Iterator[Given | Malformed]:
    """Yields the settings that `reader` finds in the YAML below a key of the ConfigMap, or that it is malformed."""
    fix = f"See `kubectl get configmap -n kube-system {config_map.metadata.name} -o yaml`."
    try:
        content = kyaml.load(config_map.data.get(key, ""))
    except YamlError as error:
        yield Malformed(config_map, f"{key} of ConfigMap {full_name(config_map)} is not YAML: {error}", fix)
        return
    if isinstance(content, dict):
        yield from reader(config_map, content)
    else:
        yield Malformed(config_map, f"ConfigMap {full_name(config_map)} has no mapping in {key}", fix)


def _settings_of_cluster_configuration(config_map: ConfigMap, content: Any) -> Iterator[Given]:
    for part, component in _CLUSTER_CONFIGURATION_PARTS:
        for name, value in _names_and_values(_value_at(content, f"{part}.extraArgs")):
            place = f"{part}.extraArgs of ClusterConfiguration"
            yield from _settings(
                component, name, value=_value_text(value), holder=config_map, place=place, fix=_KUBEADM_FIX
            )


def _settings_of_kubelet_configuration(config_map: ConfigMap, content: Any) -> Iterator[Given]:
    for name, value in _names_and_values(content.get("featureGates")):
        yield Given(
            setting=GATE,
            name=name,
            value=_value_text(value),
            component="kubelet",
            holder=config_map,
            place="featureGates of kubelet",
            fix=_KUBELET_FIX,
        )


def _settings_of_proxy_configuration(config_map: ConfigMap, content: Any) -> Iterator[Given]:
    for name, value in _names_and_values(content.get("featureGates")):
        yield Given(
            setting=GATE,
            name=name,
            value=_value_text(value),
            component="kube-proxy",
            holder=config_map,
            place="featureGates of config.conf",
            fix=_PROXY_FIX,
        )


_READERS: Mapping[str, tuple[str, Callable[[ConfigMap, Any], Iterator[Given]]]] = {
    _KUBEADM_MAP: ("ClusterConfiguration", _settings_of_cluster_configuration),
    _KUBELET_MAP: ("kubelet", _settings_of_kubelet_configuration),
    _PROXY_MAP: ("config.conf", _settings_of_proxy_configuration),
}


def _names_and_values(value: Any) -> list[tuple[str, Any]]:
    """Returns names and values, from a map or from a list of both (kubeadm.k8s.io from v1beta4 on)."""
    if isinstance(value, list):
        return [(str(each.get("name")), each.get("value")) for each in value if isinstance(each, dict)]
    return list(value.items()) if isinstance(value, dict) else []


def _value_at(content: Any, path: str) -> Any:
    for key in path.split("."):
        content = content.get(key) if isinstance(content, dict) else None
    return content


def _value_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _settings_of_static_pod(pod: CommandPod, fix: str) -> Iterator[Given]:
    for container in pod.spec.containers:
        if container.name in COMPONENTS:
            for name, value in _flags_of_arguments((*container.command, *container.args)):
                yield from _settings(container.name, name, value=value, holder=pod, place="command", fix=fix)


def _settings_of_node(node: Node) -> Iterator[Given | Malformed]:
    """Yields the settings that k3s or RKE2 passes to the components of the node.

    An example of its arguments: `--kube-apiserver-arg feature-gates=A=true`.
    """
    for annotation, file in _NODE_ARGUMENTS.items():
        try:
            arguments = msgspec.json.decode(node.metadata.annotations.get(annotation, "[]"), type=list[str])
        # UnicodeEncodeError: half of a surrogate pair, as a dump can have it escaped.
        except (msgspec.DecodeError, UnicodeEncodeError) as error:
            fix = f"See `kubectl get node {node.metadata.name} -o yaml`."
            yield Malformed(
                node, f"annotation {annotation} of Node {node.metadata.name} is no list of words: {error}", fix
            )
            continue
        fix = f"Take it out of {file} or the service's arguments on {node.metadata.name}, and restart the service."
        for name, value in _flags_of_arguments(arguments):
            if component := _NODE_FLAGS.get(f"--{name}"):
                flag, _, of_flag = value.partition("=")
                yield from _settings(
                    component, flag, value=of_flag, holder=node, place=f"annotation {annotation}", fix=fix
                )


def _flags_of_arguments(arguments: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yields the flags among arguments with their values, which stand behind `=` or in the next argument."""
    waiting = ""
    for argument in arguments:
        if argument.startswith("--"):
            if waiting:
                yield waiting, ""
            name, has_value, value = argument[2:].partition("=")
            if has_value:
                yield name, value
            waiting = "" if has_value else name
        elif waiting:
            yield waiting, argument
            waiting = ""
    if waiting:
        yield waiting, ""


def _settings(component: str, flag: str, value: str, holder: Object, place: str, fix: str) -> Iterator[Given]:
    """Yields a flag, or the gates or plug-ins that its value names; etcd has gates of its own."""
    # The components take a flag with underscores, too (component-base, cli/flag).
    flag = flag.lstrip("-").replace("_", "-")
    parts = [part.strip() for part in value.split(",") if part.strip()]
    if flag == "feature-gates" and component != "etcd":
        for part in parts:
            gate, _, state = part.partition("=")
            yield Given(
                setting=GATE,
                name=gate.strip(),
                value=state.strip().lower(),
                component=component,
                holder=holder,
                place=place,
                fix=fix,
            )
    if flag in _PLUGIN_FLAGS:
        for part in parts:
            yield Given(setting=PLUGIN, name=part, value="", component=component, holder=holder, place=place, fix=fix)
    # Every version has these flags: findings are about the gates and plug-ins in a flag's value, not about the flag.
    if flag not in _FLAGS_OF_EVERY_VERSION:
        yield Given(setting=FLAG, name=flag, value=value, component=component, holder=holder, place=place, fix=fix)
