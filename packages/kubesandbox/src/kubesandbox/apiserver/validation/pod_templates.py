"""Validation of pods and of pod templates."""

from __future__ import annotations

from typing import Any

from kubesandbox.apiserver.json_copy import copy_json
from kubesandbox.apiserver.schema import Fault, FieldError, not_supported, object_meta
from kubesandbox.apiserver.schema.name_rules import dns1123_label_faults, dns1123_subdomain_faults
from kubesandbox.apiserver.validation.common import Faults
from kubesandbox.apiserver.validation.containers import container_faults
from kubesandbox.apiserver.validation.topology_spread import spread_faults

JSON = dict[str, Any]

_MUTABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_HOST_PATHS = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_OF_ONE_KIND = "may not specify more than 1 volume type"


def pod_faults(obj: JSON, old: JSON | None) -> Faults:
    """Yields the faults of a new pod's spec, or a fault if an update changes more than the mutable fields."""
    spec = obj.get("spec") or {}
    if old is None:
        yield from pod_spec(spec, "spec")
        yield from _token_faults(spec)
    elif _immutable_part(spec) != _immutable_part(old.get("spec") or {}):
        yield FieldError(Fault.FORBIDDEN, "spec", None, _MUTABLE)


def _token_faults(spec: JSON) -> Faults:
    """Yields a fault for each projected token of a pod without a ServiceAccount."""
    if spec.get("serviceAccountName"):
        return
    for index, volume in enumerate(spec.get("volumes") or ()):
        for at, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
            if source.get("serviceAccountToken") is not None:
                token_path = f"spec.volumes[{index}].projected.sources[{at}].serviceAccountToken"
                why = "must not be specified when serviceAccountName is not set"
                yield FieldError(Fault.FORBIDDEN, token_path, None, why)


def _immutable_part(spec: JSON) -> JSON:
    """Returns a pod's spec without the fields that an update may change."""
    immutable: JSON = copy_json(spec)
    # A binding sets the pod's node by an update, which is validated here as well.
    for name in ("activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "nodeName"):
        immutable.pop(name, None)
    for name in ("containers", "initContainers"):
        for container in immutable.get(name) or ():
            container.pop("image", None)
            container.pop("imagePullPolicy", None)
    immutable.pop("ephemeralContainers", None)
    return immutable


def pod_spec(spec: JSON, path: str) -> Faults:
    """Yields the faults of the spec of a pod or of a template."""
    volumes: set[str] = set()
    yield from _volume_faults(spec.get("volumes") or (), f"{path}.volumes", volumes)
    if not spec.get("containers"):
        yield FieldError(Fault.REQUIRED, f"{path}.containers")
    yield from container_faults(spec, path, volumes)
    policy, dns = spec.get("restartPolicy") or "", spec.get("dnsPolicy") or ""
    if policy not in _POLICIES:
        fault = not_supported(f"{path}.restartPolicy", policy, _POLICIES)
        yield fault if policy else FieldError(Fault.REQUIRED, f"{path}.restartPolicy")
    if dns and dns not in _DNS_POLICIES:
        yield not_supported(f"{path}.dnsPolicy", dns, _DNS_POLICIES)
    yield from object_meta.label_faults(spec.get("nodeSelector") or {}, f"{path}.nodeSelector")
    for name in ("serviceAccountName", "nodeName"):
        if (value := spec.get(name)) and (why := dns1123_subdomain_faults(value)):
            yield FieldError(Fault.INVALID, f"{path}.{name}", value, why)
    if dns == "None" and not (spec.get("dnsConfig") or {}).get("nameservers"):
        yield _dns_fault(spec, path)
    yield from _affinity_faults(spec, path)
    yield from _number_faults(spec, path)
    for index, toleration in enumerate(spec.get("tolerations") or ()):
        yield from _toleration_faults(toleration, f"{path}.tolerations[{index}]")
    yield from spread_faults(spec.get("topologySpreadConstraints") or [], f"{path}.topologySpreadConstraints")


def _dns_fault(spec: JSON, path: str) -> FieldError:
    """Returns the fault of dnsPolicy None without a nameserver."""
    if spec.get("dnsConfig") is None:
        why = "must provide `dnsConfig` when `dnsPolicy` is None"
        return FieldError(Fault.REQUIRED, f"{path}.dnsConfig", detail=why)
    why = "must provide at least one DNS nameserver when `dnsPolicy` is None"
    return FieldError(Fault.REQUIRED, f"{path}.dnsConfig.nameservers", detail=why)


def template_faults(obj: JSON, _old: JSON | None) -> Faults:
    """Yields the faults of a PodTemplate."""
    yield from pod_spec((obj.get("template") or {}).get("spec") or {}, "template.spec")


def _affinity_faults(spec: JSON, path: str) -> Faults:
    """Yields the faults of required node affinity: operators that need values, or must have none."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    name = "requiredDuringSchedulingIgnoredDuringExecution"
    terms = (affinity.get(name) or {}).get("nodeSelectorTerms")
    where = f"{path}.affinity.nodeAffinity.{name}.nodeSelectorTerms"
    if affinity.get(name) is not None and not terms:
        yield FieldError(Fault.REQUIRED, where, detail="must have at least one node selector term")
    for index, term in enumerate(terms or ()):
        for number, each in enumerate(term.get("matchExpressions") or ()):
            operator, values = each.get("operator") or "", each.get("values")
            at = f"{where}[{index}].matchExpressions[{number}]"
            if operator in ("In", "NotIn") and not values:
                why = "must be specified when `operator` is 'In' or 'NotIn'"
                yield FieldError(Fault.REQUIRED, f"{at}.values", detail=why)
            elif operator in ("Exists", "DoesNotExist") and values:
                why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                yield FieldError(Fault.FORBIDDEN, f"{at}.values", detail=why)


def _number_faults(spec: JSON, path: str) -> Faults:
    """Yields the faults of a pod's deadline (seconds), host name and subdomain."""
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline < 2**31:
        why = "must be between 1 and 2147483647, inclusive"
        yield FieldError(Fault.INVALID, f"{path}.activeDeadlineSeconds", deadline, why)
    for name in ("hostname", "subdomain"):
        if (value := spec.get(name)) and (why := dns1123_label_faults(value)):
            yield FieldError(Fault.INVALID, f"{path}.{name}", value, why)


def _volume_faults(volumes: list[JSON] | tuple[()], path: str, names: set[str]) -> Faults:
    """Yields the faults of volumes; adds the names of the valid ones to `names`."""
    for index, volume in enumerate(volumes):
        volume_path, name = f"{path}[{index}]", volume.get("name") or ""
        faults = list(_source_faults(volume, volume_path))
        if not name:
            faults.append(FieldError(Fault.REQUIRED, f"{volume_path}.name"))
        elif why := dns1123_label_faults(name):
            faults.append(FieldError(Fault.INVALID, f"{volume_path}.name", name, why))
        if name in names:
            faults.append(FieldError(Fault.DUPLICATE, f"{volume_path}.name", name))
        if not faults:
            names.add(name)
        yield from faults


# In the order in which a real server checks them: it reports the second one that it finds.
_SOURCES = ("emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs", "iscsi",
            "glusterfs", "persistentVolumeClaim", "rbd", "cinder", "cephfs", "flexVolume", "configMap", "projected",
            "flocker", "downwardAPI", "fc", "csi", "ephemeral", "image")  # fmt: skip


def _source_faults(volume: JSON, source_path: str) -> Faults:
    """Yields the faults of a volume's source; there must be exactly one."""
    given_sources = [name for name in _SOURCES if volume.get(name) is not None]
    if not given_sources:
        yield FieldError(Fault.REQUIRED, source_path, None, "must specify a volume type")
    for extra in given_sources[1:]:
        yield FieldError(Fault.FORBIDDEN, f"{source_path}.{extra}", None, _OF_ONE_KIND)
    if given_sources == ["hostPath"]:
        yield from _host_path_faults(volume["hostPath"], f"{source_path}.hostPath")
    if given_sources == ["secret"] and not volume["secret"].get("secretName"):
        yield FieldError(Fault.REQUIRED, f"{source_path}.secret.secretName")
    if given_sources == ["configMap"] and not volume["configMap"].get("name"):
        yield FieldError(Fault.REQUIRED, f"{source_path}.configMap.name")


def _host_path_faults(source: JSON, source_path: str) -> Faults:
    """Yields the faults of a hostPath volume."""
    path, kind = source.get("path") or "", source.get("type")
    if not path:
        yield FieldError(Fault.REQUIRED, f"{source_path}.path")
        return
    if ".." in path.split("/"):
        yield FieldError(Fault.INVALID, f"{source_path}.path", path, "must not contain '..'")
    if kind is not None and kind not in _HOST_PATHS:
        yield not_supported(f"{source_path}.type", kind, _HOST_PATHS)


def _toleration_faults(toleration: JSON, fault_path: str) -> Faults:
    """Yields the faults of a toleration."""
    key, operator = toleration.get("key") or "", toleration.get("operator") or ""
    for why in object_meta.qualified_name(key) if key else ():
        yield FieldError(Fault.INVALID, f"{fault_path}.key", key, why)
    if not key and operator != "Exists":
        why = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield FieldError(Fault.INVALID, f"{fault_path}.operator", operator, why)
    effect = toleration.get("effect") or ""
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        why = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield FieldError(Fault.INVALID, f"{fault_path}.effect", effect, why)
    if operator == "Exists" and toleration.get("value"):
        why = "value must be empty when `operator` is 'Exists'"
        yield FieldError(Fault.INVALID, f"{fault_path}.operator", toleration["value"], why)
    if operator not in ("", "Equal", "Exists"):
        yield not_supported(f"{fault_path}.operator", operator, ("Equal", "Exists"))
    if effect and effect not in _EFFECTS:
        yield not_supported(f"{fault_path}.effect", effect, _EFFECTS)
