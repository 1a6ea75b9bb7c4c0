"""The kinds that the server serves: one row each, built-in ones here, custom ones made from CustomResourceDefinitions.

A row has the data for discovery, routing and the handlers: names, scope, verbs, subresources, whether `generation` is
counted, and the fields for field selectors. `KindTable` finds the row for a path.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from kubesandbox.apiserver import kubernetes_version

JSON = dict[str, Any]

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_APPS: dict[str, Any] = {"categories": ("all",), "generation": True}
_RBAC = "rbac.authorization.k8s.io"
_EVENT_FIELDS = (
    "involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
    "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath",
    "reason", "reportingComponent", "source", "type",
)  # fmt: skip
# events.k8s.io has no selector of the source (pkg/apis/events/v1/conversion.go).
_EVENTS_V1_FIELDS = tuple(
    name.replace("involvedObject", "regarding").replace("reportingComponent", "reportingController")
    for name in _EVENT_FIELDS
    if name != "source"
)
_POD_FIELDS = (
    "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
    "status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName",
)  # fmt: skip
# The order in which discovery lists the groups of a real server.
GROUP_ORDER: tuple[str, ...] = (
    "", "apiregistration.k8s.io", "apps", "events.k8s.io", "authentication.k8s.io", "authorization.k8s.io",
    "autoscaling", "batch", "certificates.k8s.io", "networking.k8s.io", "policy", "rbac.authorization.k8s.io",
    "storage.k8s.io", "admissionregistration.k8s.io", "apiextensions.k8s.io", "scheduling.k8s.io",
    "coordination.k8s.io", "discovery.k8s.io", "flowcontrol.apiserver.k8s.io",
)  # fmt: skip
_VERSION = re.compile(r"v(?P<major>\d+)((?P<stage>alpha|beta)(?P<minor>\d*))?")


@dataclass(frozen=True, slots=True, eq=False)
class Subresource:
    """A subresource, `plural/name`; `kind` is the kind that it reads and writes if that is not the resource's."""

    name: str
    verbs: tuple[str, ...] = ("get", "patch", "update")
    _: KW_ONLY
    group: str = ""
    version: str = ""
    kind: str = ""


STATUS = Subresource("status")
SCALE = Subresource("scale", group="autoscaling", version="v1", kind="Scale")


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """A kind in one version of its group."""

    group: str
    version: str
    kind: str
    plural: str
    _: KW_ONLY
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[Subresource, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    singular: str = ""
    list_kind: str = ""
    generation: bool = False
    fields: tuple[str, ...] = ()
    # The resource that holds the objects, if another kind's (events.k8s.io serves core's Events).
    stored_as: str = ""
    # Custom resources only.
    crd: JSON | None = field(default=None, repr=False)
    scale_paths: Mapping[str, str] | None = None
    columns: tuple[JSON, ...] = ()
    deprecation: str = ""  # the warning of a version that is deprecated

    @property
    def custom(self) -> bool:
        """Reports whether a CustomResourceDefinition defines the kind."""
        return self.crd is not None

    @property
    def converts(self) -> bool:
        """Reports whether a webhook converts its objects between versions."""
        return self.crd is not None and (self.crd["spec"].get("conversion") or {}).get("strategy") == "Webhook"

    @property
    def stored_version(self) -> str:
        """The storage version of a custom resource, `group/version`."""
        versions = self.crd["spec"]["versions"] if self.crd else ()
        name = next((version["name"] for version in versions if version.get("storage")), self.version)
        return f"{self.group}/{name}"

    @property
    def resource(self) -> str:
        """The resource as errors and storage name it, `plural.group`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def storage(self) -> str:
        """The storage resource of its objects; all versions of a kind share one."""
        return self.stored_as or self.resource

    @property
    def api_version(self) -> str:
        """The apiVersion: `group/version`, or `version` for core."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def list_name(self) -> str:
        """The kind of its lists."""
        return self.list_kind or f"{self.kind}List"

    @property
    def singular_name(self) -> str:
        """The singular name, which `kubectl get <singular>` accepts."""
        return self.singular or self.kind.lower()

    def subresource(self, name: str) -> Subresource | None:
        """Returns the subresource of that name, or None."""
        return next((sub for sub in self.subresources if sub.name == name), None)

    @property
    def has_status(self) -> bool:
        """Reports whether status is written only through its own subresource."""
        return self.subresource("status") is not None


# Kinds that subresources read: never stored, and not in discovery by themselves.
SCALE_KIND = Kind("autoscaling", "v1", "Scale", "scales")
EVICTION_KIND = Kind("policy", "v1", "Eviction", "evictions")
BINDING_KIND = Kind("", "v1", "Binding", "bindings")
TOKEN_KIND = Kind("authentication.k8s.io", "v1", "TokenRequest", "tokenrequests")


def _core_kind(kind: str, plural: str, **more: Any) -> Kind:
    return Kind("", "v1", kind, plural, **more)


def _review_kind(group: str, kind: str, plural: str, *, namespaced: bool = False) -> Kind:
    return Kind(group, "v1", kind, plural, namespaced=namespaced, verbs=("create",))


BUILTIN: tuple[Kind, ...] = (
    _core_kind("ComponentStatus", "componentstatuses", namespaced=False, short_names=("cs",), verbs=("get", "list")),
    _core_kind("ConfigMap", "configmaps", short_names=("cm",)),
    _core_kind("Endpoints", "endpoints", short_names=("ep",), list_kind="EndpointsList"),
    _core_kind("Event", "events", short_names=("ev",), fields=_EVENT_FIELDS),
    _core_kind("LimitRange", "limitranges", short_names=("limits",)),
    _core_kind(
        "Namespace", "namespaces", namespaced=False, short_names=("ns",), fields=("status.phase",),
        verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
        subresources=(Subresource("finalize", ("update",)), STATUS),
    ),
    _core_kind(
        "Node", "nodes", namespaced=False, short_names=("no",), fields=("spec.unschedulable",), subresources=(STATUS,)
    ),
    _core_kind("PersistentVolumeClaim", "persistentvolumeclaims", short_names=("pvc",), subresources=(STATUS,)),
    _core_kind("PersistentVolume", "persistentvolumes", namespaced=False, short_names=("pv",), subresources=(STATUS,)),
    _core_kind(
        "Pod", "pods", short_names=("po",), categories=("all",), generation=True, fields=_POD_FIELDS,
        subresources=(
            Subresource("binding", ("create",), version="v1", kind="Binding"),
            Subresource("ephemeralcontainers"),
            Subresource("eviction", ("create",), group="policy", version="v1", kind="Eviction"),
            Subresource("log", ("get",)),
            Subresource("resize"),
            STATUS,
        ),
    ),
    _core_kind("PodTemplate", "podtemplates", generation=True),
    _core_kind(
        "ReplicationController", "replicationcontrollers", short_names=("rc",), subresources=(SCALE, STATUS), **_APPS
    ),
    _core_kind("ResourceQuota", "resourcequotas", short_names=("quota",), subresources=(STATUS,)),
    _core_kind("Secret", "secrets", fields=("type",)),
    _core_kind(
        "ServiceAccount", "serviceaccounts", short_names=("sa",),
        subresources=(
            Subresource("token", ("create",), group="authentication.k8s.io", version="v1", kind="TokenRequest"),
        ),
    ),
    _core_kind(
        "Service", "services", short_names=("svc",), categories=("all",), subresources=(STATUS,),
        fields=("spec.clusterIP", "spec.type"),
    ),
    Kind("apps", "v1", "ControllerRevision", "controllerrevisions"),
    Kind("apps", "v1", "DaemonSet", "daemonsets", short_names=("ds",), subresources=(STATUS,), **_APPS),
    Kind("apps", "v1", "Deployment", "deployments", short_names=("deploy",), subresources=(SCALE, STATUS), **_APPS),
    Kind(
        "apps", "v1", "ReplicaSet", "replicasets", short_names=("rs",), subresources=(SCALE, STATUS),
        fields=("status.replicas",), **_APPS,
    ),
    Kind("apps", "v1", "StatefulSet", "statefulsets", short_names=("sts",), subresources=(SCALE, STATUS), **_APPS),
    Kind("batch", "v1", "CronJob", "cronjobs", short_names=("cj",), subresources=(STATUS,), **_APPS),
    Kind("batch", "v1", "Job", "jobs", subresources=(STATUS,), fields=("status.successful",), **_APPS),
    Kind("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", short_names=("hpa",),
         categories=("all",), subresources=(STATUS,)),
    Kind("autoscaling", "v1", "HorizontalPodAutoscaler", "horizontalpodautoscalers", short_names=("hpa",),
         categories=("all",), subresources=(STATUS,), stored_as="horizontalpodautoscalers.autoscaling"),
    Kind(
        "policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", short_names=("pdb",), generation=True,
        subresources=(STATUS,),
    ),
    Kind("coordination.k8s.io", "v1", "Lease", "leases"),
    Kind(_RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False),
    Kind(_RBAC, "v1", "ClusterRole", "clusterroles", namespaced=False),
    Kind(_RBAC, "v1", "RoleBinding", "rolebindings"),
    Kind(_RBAC, "v1", "Role", "roles"),
    Kind(
        "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False,
        short_names=("crd", "crds"), categories=("api-extensions",), generation=True, subresources=(STATUS,),
    ),
    Kind(
        "apiregistration.k8s.io", "v1", "APIService", "apiservices", namespaced=False,
        categories=("api-extensions",), subresources=(STATUS,),
    ),
    Kind(
        "admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations",
        namespaced=False, categories=("api-extensions",), generation=True,
    ),
    Kind(
        "admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies",
        namespaced=False, categories=("api-extensions",), generation=True, subresources=(STATUS,),
        list_kind="ValidatingAdmissionPolicyList",
    ),
    Kind(
        "admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings",
        namespaced=False, categories=("api-extensions",), generation=True,
    ),
    Kind(
        "admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations",
        namespaced=False, categories=("api-extensions",), generation=True,
    ),
    Kind("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", generation=True),
    Kind("events.k8s.io", "v1", "Event", "events", short_names=("ev",), fields=_EVENTS_V1_FIELDS, stored_as="events"),
    Kind("storage.k8s.io", "v1", "CSIDriver", "csidrivers", namespaced=False),
    Kind("storage.k8s.io", "v1", "CSINode", "csinodes", namespaced=False,
         subresources=(STATUS,) if kubernetes_version.number() >= 37 else ()),
    Kind("storage.k8s.io", "v1", "CSIStorageCapacity", "csistoragecapacities", list_kind="CSIStorageCapacityList"),
    Kind("storage.k8s.io", "v1", "StorageClass", "storageclasses", namespaced=False, short_names=("sc",)),
    Kind("storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", namespaced=False, subresources=(STATUS,)),
    Kind("networking.k8s.io", "v1", "IngressClass", "ingressclasses", namespaced=False, generation=True),
    Kind(
        "networking.k8s.io", "v1", "Ingress", "ingresses", short_names=("ing",), generation=True,
        subresources=(STATUS,),
    ),
    Kind(
        "networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", short_names=("netpol",), generation=True,
        list_kind="NetworkPolicyList",
    ),
    Kind(
        "flowcontrol.apiserver.k8s.io", "v1", "FlowSchema", "flowschemas", namespaced=False, generation=True,
        subresources=(STATUS,),
    ),
    Kind(
        "flowcontrol.apiserver.k8s.io", "v1", "PriorityLevelConfiguration", "prioritylevelconfigurations",
        namespaced=False, generation=True, subresources=(STATUS,),
    ),
    Kind("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", namespaced=False),
    Kind(
        "scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", namespaced=False, short_names=("pc",),
        generation=True,
    ),
    Kind(
        "certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests", namespaced=False,
        short_names=("csr",), fields=("spec.signerName",), subresources=(Subresource("approval"), STATUS),
    ),
    _review_kind("authentication.k8s.io", "SelfSubjectReview", "selfsubjectreviews"),
    _review_kind("authentication.k8s.io", "TokenReview", "tokenreviews"),
    _review_kind("authorization.k8s.io", "LocalSubjectAccessReview", "localsubjectaccessreviews", namespaced=True),
    _review_kind("authorization.k8s.io", "SelfSubjectAccessReview", "selfsubjectaccessreviews"),
    _review_kind("authorization.k8s.io", "SelfSubjectRulesReview", "selfsubjectrulesreviews"),
    _review_kind("authorization.k8s.io", "SubjectAccessReview", "subjectaccessreviews"),
)  # fmt: skip


class KindTable:
    """The currently served kinds. Custom ones are added and removed with their definitions."""

    def __init__(self, serves: Callable[[Kind], bool] = lambda _: True) -> None:
        """`serves` selects the built-in kinds that are served."""
        self._builtin = {(kind.group, kind.version, kind.plural): kind for kind in BUILTIN if serves(kind)}
        self._custom: dict[str, tuple[Kind, ...]] = {}
        self._all = dict(self._builtin)
        # Grows with every change; the cache key of discovery and OpenAPI documents.
        self.generation = 0

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        """Returns the kind that a path names, or None."""
        return self._all.get((group, version, plural))

    def of_kind(self, group: str, kind: str) -> Kind | None:
        """Returns any version of a kind, or None."""
        return next((row for row in self._all.values() if row.group == group and row.kind == kind), None)

    def of_plural(self, group: str, plural: str) -> Kind | None:
        """Returns any version of a resource, or None."""
        return next((row for row in self._all.values() if row.group == group and row.plural == plural), None)

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._all.values())

    def groups(self) -> dict[str, list[str]]:
        """Returns the versions by group, preferred ones first; groups in the order of discovery."""
        group_versions: dict[str, list[str]] = {}
        for kind in self._all.values():
            versions = group_versions.setdefault(kind.group, [])
            if kind.version not in versions:
                versions.append(kind.version)
        place = {group: index for index, group in enumerate(GROUP_ORDER)}
        ordered = sorted(group_versions, key=lambda group: (place.get(group, len(place)), group))
        return {group: sorted(group_versions[group], key=version_priority) for group in ordered}

    def set_custom(self, name: str, kinds: tuple[Kind, ...]) -> None:
        """Sets the kinds of the definition called `name`; an empty tuple removes it."""
        if kinds:
            self._custom[name] = kinds
        else:
            self._custom.pop(name, None)
        custom = {(kind.group, kind.version, kind.plural): kind for rows in self._custom.values() for kind in rows}
        # Built-in kinds win over a definition of the same name.
        self._all = {**custom, **self._builtin}
        self.generation += 1

    def custom(self) -> dict[str, tuple[Kind, ...]]:
        """Returns the kinds by the name of their definition."""
        return self._custom


def version_priority(version: str) -> tuple[int, int, int, str]:
    """Returns a sort key that puts v2 before v1 before v1beta2 before v1alpha1 before others (Kubernetes' order)."""
    if (parts := _VERSION.fullmatch(version)) is None:
        return (3, 0, 0, version)
    rank = {None: 0, "beta": 1, "alpha": 2}[parts["stage"]]
    return (rank, -int(parts["major"]), -int(parts["minor"] or 0), version)
