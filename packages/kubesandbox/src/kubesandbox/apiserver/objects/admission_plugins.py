"""The admission plugins of kube-apiserver: which of them the server has, and when an absent one would have mattered.

`docs/reference/sandbox-admission.md` is generated from this table (`tools/admission_page.py`). Order and defaults are
those of k8s.io/kubernetes v1.34, pkg/kubeapiserver/options/plugins.go.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kubesandbox.apiserver.metadata import JSON
from kubesandbox.apiserver.served_kinds import Kind

# Takes the kind, the new object, and the former one, None for a new object.
Matters = Callable[[Kind, JSON, JSON | None], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionPlugin:
    """A plugin; `matters` is for an absent one that a real server has on by default."""

    name: str
    on_by_default: bool
    present: bool
    note: str = ""
    matters: Matters | None = None


def _present(name: str, note: str = "") -> AdmissionPlugin:
    return AdmissionPlugin(name=name, on_by_default=True, present=True, note=note)


def _off(name: str) -> AdmissionPlugin:
    return AdmissionPlugin(name=name, on_by_default=False, present=False)


def _missing(name: str, note: str, matters: Matters | None = None) -> AdmissionPlugin:
    return AdmissionPlugin(name=name, on_by_default=True, present=False, note=note, matters=matters)


_REQUESTS = "certificatesigningrequests.certificates.k8s.io"


def _is_new_node(kind: Kind, obj: JSON, old: JSON | None) -> bool:
    if kind.resource != "nodes" or old is not None:
        return False
    # The taint of a node that is ready, as the sandbox's own, goes at once.
    conditions = _status(obj, "conditions")
    ready = {"type": "Ready", "status": "True"}.items()
    return not (isinstance(conditions, list) and any(ready <= each.items() for each in conditions))


def _is_approved(kind: Kind, obj: JSON, old: JSON | None) -> bool:
    return kind.resource == _REQUESTS and old is not None and _status(obj, "conditions") != _status(old, "conditions")


def _is_signed(kind: Kind, obj: JSON, old: JSON | None) -> bool:
    return kind.resource == _REQUESTS and old is not None and _status(obj, "certificate") != _status(old, "certificate")


def _is_for_clients(kind: Kind, obj: JSON, old: JSON | None) -> bool:
    # The spec of another kind need not be an object: custom resources are validated later.
    if kind.resource != _REQUESTS or old is not None:
        return False
    return (obj.get("spec") or {}).get("signerName") == "kubernetes.io/kube-apiserver-client"


def _status(obj: JSON, key: str) -> object:
    return (obj.get("status") or {}).get(key)


PLUGINS: tuple[AdmissionPlugin, ...] = (
    _off("AlwaysAdmit"),
    _off("NamespaceAutoProvision"),
    _present("NamespaceLifecycle"),
    _off("NamespaceExists"),
    _off("LimitPodHardAntiAffinityTopology"),
    _present("LimitRanger"),
    _present("ServiceAccount", "in namespaces with the account `default`; no volume with a token is added to the spec"),
    _off("NodeRestriction"),
    _missing("TaintNodesByCondition", "nothing would take the taint of a new Node away", _is_new_node),
    _off("AlwaysPullImages"),
    _off("ImagePolicyWebhook"),
    _present("PodSecurity", "without warnings about the pods that a namespace already has"),
    _off("PodNodeSelector"),
    _present("Priority"),
    _present("DefaultTolerationSeconds"),
    _off("PodTolerationRestriction"),
    _off("EventRateLimit"),
    _off("ExtendedResourceToleration"),
    _present("DefaultStorageClass"),
    _present("StorageObjectInUseProtection"),
    _off("OwnerReferencesPermissionEnforcement"),
    _present("PersistentVolumeClaimResize"),
    _present("RuntimeClass"),
    _missing("CertificateApproval", "a user needs no right to `approve` for the signer", _is_approved),
    _missing("CertificateSigning", "a user needs no right to `sign` for the signer", _is_signed),
    _missing("ClusterTrustBundleAttest", "the server does not serve ClusterTrustBundles"),
    _missing("CertificateSubjectRestriction", "a request may name the group `system:masters`", _is_for_clients),
    _present("DefaultIngressClass"),
    _off("DenyServiceExternalIPs"),
    _missing("PodTopologyLabels", "a real server needs the feature gate PodTopologyLabelsAdmission for it"),
    _missing("MutatingAdmissionPolicy", "a real server needs a feature gate and a runtime-config for it"),
    _present("MutatingAdmissionWebhook"),
    _present("ValidatingAdmissionPolicy"),
    _present("ValidatingAdmissionWebhook"),
    _present("ResourceQuota", "without `limitedResources`"),
    _off("AlwaysDeny"),
)
MISSING = tuple(plugin for plugin in PLUGINS if plugin.matters is not None)


def page() -> str:
    """Returns the page of the plugins, in Markdown."""
    rows = (
        f"| {plugin.name} | {'on' if plugin.on_by_default else 'off'} | {'present' if plugin.present else 'absent'} | "
        f"{plugin.note}{_warned(plugin)} |"
        for plugin in PLUGINS
    )
    return f"{_HEAD}{chr(10).join(rows)}\n"


def _warned(plugin: AdmissionPlugin) -> str:
    return "; the server warns once" if plugin.matters is not None else ""


_HEAD = """# The admission plugins of the sandbox

The plugins of kube-apiserver 1.34, in the order in which they run. If a plugin is absent that a real server has on by
default, the sandbox logs a warning the first time that the plugin would have mattered. `--disable-admission-plugins`
turns a plugin off that is present.

| plugin | real server | sandbox | notes |
|---|---|---|---|
"""
