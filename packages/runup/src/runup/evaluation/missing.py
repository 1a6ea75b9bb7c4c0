"""Describes what could not be checked: the kinds of objects that are missing, and the subjects that need them. Pure.

A kind that is not known here is its own subject (docs/decisions/0072 D38).
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Generic

import msgspec

from runup.report.causes import R, family_of
from runup.report.report import Report


class Missing(msgspec.Struct, Generic[R], frozen=True):
    """The risks that are unknown for lack of objects, and the kinds (`PLURAL.GROUP`) that could not be read in full.

    The kind that most of the risks lack comes first; `subjects` are in the order in which an update meets them.
    """

    risks: tuple[R, ...] = ()
    kinds: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()


def missing_objects(risks: Iterable[R]) -> Missing[R]:
    """Returns the kinds that are missing, of the unknown risks that lack a kind.

    A risk that is unknown because of an object that is there lacks none, and is left out.
    """
    unsure = tuple(risk for risk in risks if risk.applies == "Unknown" and risk.lacking)
    kind_counts = Counter(kind for risk in unsure for kind in risk.lacking)
    kinds = tuple(sorted(kind_counts, key=lambda kind: (-kind_counts[kind], kind)))
    last = len(_ORDER_OF_SUBJECTS)
    subjects = sorted(set(map(subject, kinds)), key=lambda name: (_ORDER_OF_SUBJECTS.get(name, last), name))
    return Missing(unsure, kinds, tuple(subjects))


def subject(kind: str) -> str:
    """Returns the subject for which objects of the kind, `PLURAL.GROUP`, are needed: by its name, else by its group."""
    plural, _, group = kind.partition(".")
    return (
        _SUBJECT_OF_KIND.get(kind)
        or _SUBJECT_OF_GROUP.get(group)
        or (plural if "." in group and not _BUILT_IN(group) else _APIS)
    )


# Kinds of Kubernetes itself that have no other subject are read for what the target no longer serves.
_APIS = "APIs"
_BUILT_IN = re.compile(r".*\.k8s\.io").fullmatch
# In the order in which an update meets them: the request, the control plane, what runs next to it, the nodes.
_SUBJECT_OF_GROUP = {
    "config.openshift.io": "configuration",
    "operator.openshift.io": "control plane",
    "admissionregistration.k8s.io": "admission",
    "apiextensions.k8s.io": _APIS,
    "apiregistration.k8s.io": _APIS,
    "apiserver.openshift.io": _APIS,
    "migration.k8s.io": _APIS,
    "operators.coreos.com": "operators",
    "packages.operators.coreos.com": "operators",
    "olm.operatorframework.io": "operators",
    "gateway.networking.k8s.io": "networking",
    "networking.k8s.io": "networking",
    "route.openshift.io": "networking",
    "cloudcredential.openshift.io": "credentials",
    "certificates.k8s.io": "certificates",
    "imageregistry.operator.openshift.io": "registry",
    "machine.openshift.io": "nodes",
    "machineconfiguration.openshift.io": "nodes",
    "kmm.sigs.x-k8s.io": "modules",
    "policy": "drains",
    "ceph.rook.io": "storage",
    "ocs.openshift.io": "storage",
    "kubevirt.io": "drains",
    "storage.k8s.io": "storage",
    "apps": "drains",
    "batch": "drains",
    "cert-manager.io": "certificates",
    "k8s.cni.cncf.io": "networking",
    "k8s.ovn.org": "networking",
    "node.k8s.io": "admission",
    "scheduling.k8s.io": "admission",
    "security.openshift.io": "admission",
}
_SUBJECT_OF_KIND = {
    "cloudcredentials.operator.openshift.io": "credentials",
    "configmaps": "certificates",
    "endpoints": "admission",
    "endpointslices.discovery.k8s.io": "admission",
    "limitranges": "admission",
    "machineconfigurations.operator.openshift.io": "nodes",
    "namespaces": "drains",
    "ec2nodeclasses.karpenter.k8s.aws": "nodes",
    "nodes": "nodes",
    "nodes.config.openshift.io": "nodes",
    "persistentvolumeclaims": "storage",
    "persistentvolumes": "storage",
    "pods": "drains",
    "resourcequotas": "admission",
    "serviceaccounts": "admission",
    "services": "admission",
}
_ORDER_OF_SUBJECTS = {one: place for place, one in enumerate(dict.fromkeys(_SUBJECT_OF_GROUP.values()))}


_ENDINGS = (".tar.gz", ".tgz", ".tar", ".yaml", ".yml", ".json")
_HERE = "runup dump collect collected"


def kinds(report: Report, absent: Collection[tuple[str, str]] = ()) -> tuple[str, ...]:
    """Returns the kinds, as `PLURAL.GROUP`, whose lists would make Unknown checks decidable, sorted by name.

    Kinds that are known to be `absent`, as (group, plural), cannot be collected.
    """
    lacking = {kind for risk in report.risks for kind in risk.lacking}
    return tuple(sorted(lacking - {f"{plural}.{group}".rstrip(".") for group, plural in absent}))


def command(dump: Path, lacking: Sequence[str]) -> str:
    """Returns the command that collects a dump with all kinds that checks read, next to `dump`; empty if none lacks."""
    if not lacking:
        return ""
    name = next((dump.name.removesuffix(end) for end in _ENDINGS if dump.name.endswith(end)), dump.name)
    return f"runup dump collect {shlex.quote(str(dump.parent / f'{name}-collected'))}" if name else _HERE


# The family of a risk -> what becomes of an update with it, each from the page of the risk in docs/reference/checks.
WHY = {
    "ArchitecturesMixed": "the other nodes cannot take it",
    "CRDStoredVersionDropped": "it stops at that definition",
    "CgroupV1": "the nodes do not come back",
    "ContainerRuntimeTooOld": "the nodes may not come back",
    "EtcdMembersUnhealthy": "another member less is the API's outage",
    "FeatureSetForbidsUpdates": "the feature set excludes it",
    "KubeletSkew": "such kubelets may not be used with its API server",
    "MaxUnavailableUnsafe": "etcd may lose its quorum",
    "NetworkTypeRemoved": "the target does not have that network",
    "PackageBasedNodes": "the target does not have such nodes",
    "RemovedAdmissionPlugin": "the API server may not start",
    "RemovedComponentSetting": "the component does not start",
    "RemovedFeatureGate": "the component may not start",
    "RemovedFlag": "the component may not start",
    "RemovedVolumePlugin": "the target cannot mount these volumes",
}


def why_not_acceptable(risk: str, severity: str = "critical") -> str:
    """Returns what would happen to an update with the risk, or an empty string if it may sensibly be accepted.

    A setting that only changes its meaning, or may be removed by a version that is not released, is a warning.
    """
    family = family_of(risk)
    return "" if family == "RemovedComponentSetting" and severity != "critical" else WHY.get(family, "")
