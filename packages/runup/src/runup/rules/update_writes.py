"""The requests to the API server that an update consists of, by resource. Admission must let all of them pass.

Three parts of the cluster send them. The release: the operator applies its manifests, and the components that come with
it write their own configuration and status. The drain of nodes: pods are evicted, recreated, scheduled, and their
volumes move. The control plane's ordinary work, which an update cannot do without: leases, node status, certificate
requests, endpoints, tokens.

Sources: the manifests of OpenShift 4 releases by API group (github.com/openshift/api, `payload-manifests`, and the
`manifests` folders of the operators); k8s.io/kubernetes 1.34 for the control plane and the kubelet
(plugin/pkg/auth/authorizer/rbac/bootstrappolicy lists what each controller may write). A release deletes few of its
objects, so rows of the release have no DELETE. Objects of admissionregistration.k8s.io are missing on purpose: no
webhook and no policy is called for them (apiserver, `IsExemptAdmissionConfigurationResource`).
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Sender = Literal["release", "drain", "control plane"]
# Where the objects are: in no namespace, in the platform's namespaces, or in every namespace that has pods. The
# platform's Namespaces themselves are in none, but namespaceSelectors apply to their labels.
Place = Literal["cluster", "platform", "everywhere", "platform's namespaces"]


class Write(NamedTuple):
    """A kind of request: API group, resource with its subresource (`pods/eviction`), operations as in admission."""

    group: str
    resource: str
    operations: tuple[str, ...]
    place: Place
    sender: Sender

    @property
    def namespaced(self) -> bool:
        """Reports whether the objects are in a namespace; a Namespace is in none."""
        return self.place in ("platform", "everywhere")


_APPLY = ("CREATE", "UPDATE")
_ALL = ("CREATE", "UPDATE", "DELETE")

_OPERATORS = (
    "authentications cloudcredentials clustercsidrivers configs consoles csisnapshotcontrollers dnses etcds "
    "insightsoperators kubeapiservers kubecontrollermanagers kubeschedulers kubestorageversionmigrators "
    "machineconfigurations networks olms openshiftapiservers openshiftcontrollermanagers servicecas storages"
)
# place: sender: operations: group: resources, separated by spaces.
_ROWS: tuple[tuple[Place, Sender, tuple[str, ...], str, str], ...] = (
    ("platform's namespaces", "release", _APPLY, "", "namespaces"),
    ("cluster", "release", _APPLY, "apiextensions.k8s.io",
     "customresourcedefinitions customresourcedefinitions/status"),
    ("cluster", "release", _APPLY, "apiregistration.k8s.io", "apiservices apiservices/status"),
    ("cluster", "release", _APPLY, "rbac.authorization.k8s.io", "clusterroles clusterrolebindings"),
    ("cluster", "release", _APPLY, "scheduling.k8s.io", "priorityclasses"),
    ("cluster", "release", _APPLY, "storage.k8s.io", "csidrivers storageclasses"),
    ("cluster", "release", _APPLY, "snapshot.storage.k8s.io", "volumesnapshotclasses"),
    ("cluster", "release", _APPLY, "flowcontrol.apiserver.k8s.io", "flowschemas prioritylevelconfigurations"),
    ("cluster", "release", _APPLY, "security.openshift.io", "securitycontextconstraints"),
    ("cluster", "release", _APPLY, "config.openshift.io",
     "clusteroperators clusteroperators/status clusterversions clusterversions/status authentications/status "
     "consoles/status featuregates featuregates/status images/status infrastructures/status ingresses/status "
     "networks/status nodes/status operatorhubs/status proxies/status"),
    ("cluster", "release", _APPLY, "operator.openshift.io", _OPERATORS),
    ("cluster", "release", ("UPDATE",), "operator.openshift.io", " ".join(f"{it}/status" for it in _OPERATORS.split())),
    ("cluster", "release", _APPLY, "imageregistry.operator.openshift.io", "configs configs/status"),
    ("cluster", "release", _APPLY, "samples.operator.openshift.io", "configs configs/status"),
    ("cluster", "release", _APPLY, "console.openshift.io", "consoleclidownloads consoleplugins consolequickstarts"),
    ("cluster", "release", _APPLY, "oauth.openshift.io", "oauthclients"),
    ("cluster", "release", _ALL, "machineconfiguration.openshift.io", "machineconfigs"),
    ("cluster", "release", _APPLY, "machineconfiguration.openshift.io",
     "machineconfigpools machineconfigpools/status controllerconfigs controllerconfigs/status "
     "machineconfignodes machineconfignodes/status kubeletconfigs/status containerruntimeconfigs/status"),
    ("cluster", "release", _ALL, "migration.k8s.io", "storageversionmigrations"),
    ("cluster", "release", ("CREATE",), "authorization.k8s.io", "subjectaccessreviews"),
    ("platform", "release", _ALL, "", "pods configmaps secrets"),
    ("platform", "release", _APPLY, "", "services serviceaccounts"),
    ("platform", "release", _APPLY, "apps", "deployments daemonsets statefulsets"),
    ("platform", "release", _ALL, "batch", "jobs cronjobs"),
    ("platform", "release", _APPLY, "rbac.authorization.k8s.io", "roles rolebindings"),
    ("platform", "release", _APPLY, "networking.k8s.io", "networkpolicies"),
    ("platform", "release", _APPLY, "policy", "poddisruptionbudgets"),
    ("platform", "release", _APPLY, "monitoring.coreos.com", "prometheusrules servicemonitors podmonitors"),
    ("platform", "release", _APPLY, "route.openshift.io", "routes routes/status"),
    ("platform", "release", _APPLY, "cloudcredential.openshift.io", "credentialsrequests credentialsrequests/status"),
    ("platform", "release", _APPLY, "operator.openshift.io", "ingresscontrollers ingresscontrollers/status"),
    ("platform", "release", _APPLY, "ingress.operator.openshift.io", "dnsrecords dnsrecords/status"),
    ("platform", "release", _APPLY, "network.operator.openshift.io", "operatorpkis operatorpkis/status"),
    ("platform", "release", _APPLY, "image.openshift.io", "imagestreams"),
    ("platform", "release", _APPLY, "machine.openshift.io", "controlplanemachinesets machinesets machinesets/status"),
    ("platform", "release", _APPLY, "operators.coreos.com",
     "catalogsources catalogsources/status clusterserviceversions clusterserviceversions/status operatorgroups"),
    ("cluster", "drain", ("UPDATE",), "", "nodes"),
    ("cluster", "drain", _ALL, "storage.k8s.io", "volumeattachments"),
    ("cluster", "drain", ("UPDATE",), "storage.k8s.io", "volumeattachments/status"),
    ("cluster", "drain", ("UPDATE",), "", "persistentvolumes persistentvolumes/status"),
    ("everywhere", "drain", ("CREATE", "DELETE"), "", "pods"),
    ("everywhere", "drain", ("CREATE",), "", "pods/eviction pods/binding"),
    ("everywhere", "drain", ("UPDATE",), "", "pods/status"),
    ("everywhere", "drain", _APPLY, "", "persistentvolumeclaims persistentvolumeclaims/status"),
    ("everywhere", "drain", ("UPDATE",), "policy", "poddisruptionbudgets/status"),
    ("cluster", "control plane", ("CREATE", "UPDATE"), "", "nodes nodes/status"),
    ("cluster", "control plane", _APPLY, "storage.k8s.io", "csinodes"),
    ("cluster", "control plane", ("CREATE",), "certificates.k8s.io", "certificatesigningrequests"),
    ("cluster", "control plane", ("UPDATE",), "certificates.k8s.io",
     "certificatesigningrequests/approval certificatesigningrequests/status"),
    ("cluster", "control plane", ("CREATE",), "authentication.k8s.io", "tokenreviews"),
    ("platform", "control plane", _APPLY, "coordination.k8s.io", "leases"),
    ("everywhere", "control plane", ("CREATE",), "", "serviceaccounts/token"),
    ("everywhere", "control plane", _ALL, "", "endpoints"),
    ("everywhere", "control plane", _ALL, "discovery.k8s.io", "endpointslices"),
    ("platform", "control plane", _ALL, "apps", "replicasets controllerrevisions"),
    ("platform", "control plane", ("UPDATE",), "apps",
     "deployments/status daemonsets/status replicasets/status statefulsets/status"),
    ("platform", "control plane", ("UPDATE",), "batch", "jobs/status"),
)  # fmt: skip
WRITES: tuple[Write, ...] = tuple(
    Write(group=group, resource=resource, operations=operations, place=place, sender=sender)
    for place, sender, operations, group, resources in _ROWS
    for resource in resources.split()
)
