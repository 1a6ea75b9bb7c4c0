"""Write the table with which the sandbox's API server reads and writes protobuf.

usage: tools/generate_protobuf_fields.py [VERSION FOLDER]

Field numbers and JSON names come from the struct tags in MODULES at VERSION, which the Go module proxy serves (`go`
must be installed). The result is checked in; run this again for a newer version.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

VERSION = f"v0{sys.argv[1].removeprefix('1')}" if len(sys.argv) > 1 else "v0.34.4"
_FOLDER = Path(__file__).parent.parent / "packages/kubesandbox/src/kubesandbox/apiserver/http"
OUTPUT = (Path(sys.argv[2]) if len(sys.argv) > 2 else _FOLDER) / "protobuf_fields.json"
ROOTS = {
    "v1": (
        "core/v1",
        "Namespace Node Pod Service Endpoints ConfigMap Secret ServiceAccount Event PersistentVolume "
        "PersistentVolumeClaim ReplicationController ResourceQuota LimitRange PodTemplate Binding",
    ),
    "apps/v1": ("apps/v1", "Deployment ReplicaSet StatefulSet DaemonSet ControllerRevision"),
    "batch/v1": ("batch/v1", "Job CronJob"),
    "policy/v1": ("policy/v1", "PodDisruptionBudget Eviction"),
    "coordination.k8s.io/v1": ("coordination/v1", "Lease"),
    "rbac.authorization.k8s.io/v1": ("rbac/v1", "Role RoleBinding ClusterRole ClusterRoleBinding"),
    "authentication.k8s.io/v1": ("authentication/v1", "TokenRequest TokenReview SelfSubjectReview"),
    "authorization.k8s.io/v1": (
        "authorization/v1",
        "SelfSubjectAccessReview SubjectAccessReview LocalSubjectAccessReview SelfSubjectRulesReview",
    ),
    "autoscaling/v1": ("autoscaling/v1", "Scale HorizontalPodAutoscaler"),
    "autoscaling/v2": ("autoscaling/v2", "HorizontalPodAutoscaler"),
    "flowcontrol.apiserver.k8s.io/v1": ("flowcontrol/v1", "FlowSchema PriorityLevelConfiguration"),
    "networking.k8s.io/v1": ("networking/v1", "Ingress IngressClass NetworkPolicy"),
    "discovery.k8s.io/v1": ("discovery/v1", "EndpointSlice"),
    "events.k8s.io/v1": ("events/v1", "Event"),
    "node.k8s.io/v1": ("node/v1", "RuntimeClass"),
    "scheduling.k8s.io/v1": ("scheduling/v1", "PriorityClass"),
    "storage.k8s.io/v1": ("storage/v1", "StorageClass CSIDriver CSINode CSIStorageCapacity VolumeAttachment"),
    "certificates.k8s.io/v1": ("certificates/v1", "CertificateSigningRequest"),
    "admissionregistration.k8s.io/v1": (
        "admissionregistration/v1",
        "ValidatingWebhookConfiguration MutatingWebhookConfiguration ValidatingAdmissionPolicy "
        "ValidatingAdmissionPolicyBinding",
    ),
    "apiextensions.k8s.io/v1": ("apiextensions/v1", "CustomResourceDefinition"),
    "apiregistration.k8s.io/v1": ("apiregistration/v1", "APIService"),
    "meta.k8s.io/v1": ("meta/v1", "DeleteOptions"),
}
# Answers alone: a failure, an object's metadata, and what discovery lists. The core group has its version to itself.
ANSWERS = {
    "v1": "Status APIVersions APIGroup APIGroupList APIResourceList",
    "meta.k8s.io/v1": "PartialObjectMetadata PartialObjectMetadataList",
    "meta.k8s.io/v1beta1": "PartialObjectMetadata PartialObjectMetadataList",
}
# Of v1beta1 the list alone differs from v1.
BETA_LIST = "meta.k8s.io/v1beta1/PartialObjectMetadataList"
MODULES = ("k8s.io/api", "k8s.io/apimachinery", "k8s.io/apiextensions-apiserver", "k8s.io/kube-aggregator")
# Messages whose JSON is not the sum of their fields.
SPECIAL = {
    "meta/v1.Time": "time",
    "meta/v1.MicroTime": "microtime",
    "meta/v1.Duration": "duration",
    "meta/v1.FieldsV1": "raw",
    "runtime.RawExtension": "raw",
    "resource.Quantity": "quantity",
    "intstr.IntOrString": "intorstring",
    "apiextensions/v1.JSON": "raw",
}
# Messages of which JSON is one member's value: the last that is there (apiextensions/v1/marshal.go).
CHOICES = {
    "apiextensions/v1.JSONSchemaPropsOrArray": ("@{}", "[]@{}"),
    "apiextensions/v1.JSONSchemaPropsOrBool": ("bool", "@{}"),
    "apiextensions/v1.JSONSchemaPropsOrStringArray": ("@{}", "[]string"),
}
SCHEMA = "apiextensions/v1.JSONSchemaProps"
SCALARS = {"string": "string", "bool": "bool", "int32": "int", "int64": "int", "int": "int", "float64": "double"}
STRUCT = re.compile(r"^type (\w+) struct ?\{(?:\n(.*?)^)?\}", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"^type (\w+) (\[\]\w+|map\[\w+\][\w.]+|[\w.]+)$", re.MULTILINE)
FIELD = re.compile(r'^\t(?:(\w+)\s+)?(\S+)\s+`json:"([^"]*)"[^`]*protobuf:"([^"]*)"', re.MULTILINE)


def module_folders() -> dict[str, Path]:
    """Where the Go tool keeps the modules."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "go.mod").write_text("module fields\n\ngo 1.24\n")
        modules = {}
        for module in MODULES:
            out = subprocess.run(
                ["go", "mod", "download", "-json", f"{module}@{VERSION}"],
                cwd=folder,
                check=True,
                capture_output=True,
                text=True,
            )
            modules[module] = Path(json.loads(out.stdout)["Dir"])
    return modules


class Types:
    """Go types by package, read when first asked for."""

    def __init__(self, modules: dict[str, Path]) -> None:
        self.modules = modules
        self.table: dict[str, list[list[object]]] = {}
        self._sources: dict[str, str] = {}

    def source(self, package: str) -> str:
        """All hand-written Go text of a package such as `core/v1`."""
        if package not in self._sources:
            machinery = self.modules["k8s.io/apimachinery"] / "pkg"
            folders = {
                "meta/v1": machinery / "apis/meta/v1",
                "meta/v1beta1": machinery / "apis/meta/v1beta1",
                "runtime": machinery / "runtime",
                "resource": machinery / "api/resource",
                "intstr": machinery / "util/intstr",
                "types": machinery / "types",
                "apiextensions/v1": self.modules["k8s.io/apiextensions-apiserver"] / "pkg/apis/apiextensions/v1",
                "apiregistration/v1": self.modules["k8s.io/kube-aggregator"] / "pkg/apis/apiregistration/v1",
            }
            folder = folders.get(package, self.modules["k8s.io/api"] / package)
            texts = [p.read_text() for p in sorted(folder.glob("*.go")) if "generated" not in p.name]
            self._sources[package] = "\n".join(texts)
        return self._sources[package]

    def kind(self, go_type: str, package: str) -> str:
        """How a value of `go_type`, named in `package`, is encoded; messages are added to the table."""
        go_type = go_type.lstrip("*")
        if go_type in SCALARS:
            return SCALARS[go_type]
        if go_type == "[]byte":
            return "bytes"
        if go_type.startswith("[]"):
            return "[]" + self.kind(go_type[2:], package)
        if mapped := re.fullmatch(r"map\[[\w.]+\](\S+)", go_type):
            return "{}" + self.kind(mapped[1], package)
        return self.named(*self.qualified(go_type, package))

    def qualified(self, go_type: str, package: str) -> tuple[str, str]:
        """Package and name of a type that may carry an import's name."""
        prefix, _, name = go_type.rpartition(".")
        if not prefix:
            return package, name
        known = {"metav1": "meta/v1", "v1": "core/v1", "corev1": "core/v1", "apiv1": "core/v1"}
        if prefix == "v1" and package == "core/v1":
            return "meta/v1", name
        if prefix == "v1" and re.search(
            r'^\s*(?:v1 )?"k8s.io/apimachinery/pkg/apis/meta/v1"', self.source(package), re.MULTILINE
        ):
            return "meta/v1", name
        imported = re.search(rf'^\s*{prefix} "k8s.io/api/([\w/]+)"', self.source(package), re.MULTILINE)
        return known.get(prefix, imported[1] if imported else prefix), name

    def named(self, package: str, name: str) -> str:
        """A type by its name: an alias is what it stands for, a struct is a message."""
        full = f"{package}.{name}"
        if full in SPECIAL:
            return SPECIAL[full]
        if full in CHOICES:
            members = [kind.format(SCHEMA) for kind in CHOICES[full]]
            self.table[full] = [[number, "@value", kind] for number, kind in enumerate(members, 1)]
            return "@" + full
        for alias, target in NAMED.findall(self.source(package)):
            if alias == name:
                if target.startswith("[]"):  # such a type is a message around its items
                    self.table[full] = [[1, "@items", "[]" + self.kind(target[2:], package)]]
                    return "@" + full
                return self.kind(target, package)
        self.struct(package, name)
        return "@" + full

    def repeated(self, go_type: str, package: str) -> str:
        """What a named list stands for: where its field is repeated, it is no message around its items."""
        return next((to for name, to in NAMED.findall(self.source(package)) if name == go_type), go_type)

    def struct(self, package: str, name: str) -> None:
        """Add a struct's fields to the table."""
        full = f"{package}.{name}"
        if full in self.table:
            return
        self.table[full] = []
        body = next(body for found, body in STRUCT.findall(self.source(package)) if found == name)
        for _, go_type, json_tag, tag in FIELD.findall(body):
            number = int(tag.split(",")[1])
            json_name, _, options = json_tag.partition(",")
            inline = not json_name and "inline" in options
            if ",rep," in tag:
                go_type = self.repeated(go_type, package)
            row: list[object] = [number, "" if inline else json_name, self.kind(go_type, package)]
            # Protobuf carries the zero of a plain value where JSON leaves it out; a pointer's zero is meant.
            if "omitempty" in options and not go_type.startswith("*"):
                row.append("omitempty")
            self.table[full].append(row)


def main() -> None:
    """Write the table."""
    types = Types(module_folders())
    roots = {}
    for api_version, (package, kinds) in ROOTS.items():
        for kind in kinds.split():
            types.struct(package, kind)
            roots[f"{api_version}/{kind}"] = f"{package}.{kind}"
    types.struct("meta/v1", "ListMeta")
    for api_version, kinds in ANSWERS.items():
        for kind in kinds.split():
            root = f"{api_version}/{kind}"
            package = "meta/v1beta1" if root == BETA_LIST else "meta/v1"
            types.struct(package, kind)
            roots[root] = f"{package}.{kind}"
    document = {"source": f"{', '.join(MODULES)} {VERSION}", "roots": roots, "messages": types.table}
    rows = [f'"source": {json.dumps(document["source"])}', f'"roots": {json.dumps(roots, indent=0)}']
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(fields)}" for name, fields in sorted(types.table.items()))
    OUTPUT.write_text("{" + ",\n".join(rows) + ',\n"messages": {\n' + lines + "\n}}\n")


if __name__ == "__main__":
    main()
