"""Validation of pods and pod templates (k8s.io/kubernetes/pkg/apis/core/validation/validation.go)."""

from __future__ import annotations

import re
from typing import Any

from kubekit.lang.quantity import parse_quantity
from kubesandbox.apiserver.schema import field_errors as field
from kubesandbox.apiserver.schema import object_meta
from kubesandbox.apiserver.validation import common

JSON = dict[str, Any]

_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_HOST_PATHS = ("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket")


def whole_spec(spec: JSON) -> common.Faults:
    """Yields the faults of a pod's spec; a template allows more than a pod."""
    yield from pod_spec(spec, "spec")
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(kind) or ()):
            image = container.get("image") or ""
            if image != image.strip():
                why = "must not have leading or trailing whitespace"
                yield field.invalid(f"spec.{kind}[{index}].image", image, why)
    # A projected token needs a ServiceAccount.
    for index, volume in enumerate(spec.get("volumes") or () if not spec.get("serviceAccountName") else ()):
        for at, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
            if source.get("serviceAccountToken") is not None:
                token_path = f"spec.volumes[{index}].projected.sources[{at}].serviceAccountToken"
                yield field.forbidden(token_path, "must not be specified when serviceAccountName is not set")


def pod_spec(spec: JSON, path: str) -> common.Faults:
    """Yields the faults of the spec of a pod or of a template."""
    volumes: set[str] = set()
    yield from _volume_faults(spec.get("volumes") or (), f"{path}.volumes", volumes)
    if not spec.get("containers"):
        yield field.required(f"{path}.containers")
    names: set[str] = set()
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(kind) or ()):
            container_path, name = f"{path}.{kind}[{index}]", container.get("name") or ""
            yield from _container_faults(container, container_path, volumes)
            if name and name in names:
                yield field.duplicate(f"{container_path}.name", name)
            names.add(name)
    policy, dns = spec.get("restartPolicy") or "", spec.get("dnsPolicy") or ""
    if policy not in _RESTART_POLICIES:
        fault = field.not_supported(f"{path}.restartPolicy", policy, _RESTART_POLICIES)
        yield fault if policy else field.required(f"{path}.restartPolicy")
    if dns:
        yield from field.one_of(f"{path}.dnsPolicy", dns, _DNS_POLICIES)
    yield from object_meta.label_faults(spec.get("nodeSelector") or {}, f"{path}.nodeSelector")
    for name in ("serviceAccountName", "nodeName"):
        if (value := spec.get(name)) and (why := object_meta.dns1123_subdomain_faults(value)):
            yield field.invalid(f"{path}.{name}", value, why)
    if dns == "None" and not (spec.get("dnsConfig") or {}).get("nameservers"):
        if spec.get("dnsConfig") is None:
            yield field.required(f"{path}.dnsConfig", "must provide `dnsConfig` when `dnsPolicy` is None")
        else:
            why = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            yield field.required(f"{path}.dnsConfig.nameservers", why)
    yield from _affinity_faults(spec, path)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline < 2**31:
        yield field.invalid(f"{path}.activeDeadlineSeconds", deadline, "must be between 1 and 2147483647, inclusive")
    for name in ("hostname", "subdomain"):
        if (value := spec.get(name)) and (why := object_meta.dns1123_label_faults(value)):
            yield field.invalid(f"{path}.{name}", value, why)
    for index, toleration in enumerate(spec.get("tolerations") or ()):
        yield from _toleration_faults(toleration, f"{path}.tolerations[{index}]")
    yield from spread_faults(spec.get("topologySpreadConstraints") or [], f"{path}.topologySpreadConstraints")


def template_faults(obj: JSON, _old: JSON | None) -> common.Faults:
    """Yields the faults of a PodTemplate."""
    yield from pod_spec((obj.get("template") or {}).get("spec") or {}, "template.spec")


def _affinity_faults(spec: JSON, path: str) -> common.Faults:
    """Yields the faults of required node affinity: operators that need values, or must not have values."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    name = "requiredDuringSchedulingIgnoredDuringExecution"
    terms = (affinity.get(name) or {}).get("nodeSelectorTerms")
    where = f"{path}.affinity.nodeAffinity.{name}.nodeSelectorTerms"
    if affinity.get(name) is not None and not terms:
        yield field.required(where, "must have at least one node selector term")
    for index, term in enumerate(terms or ()):
        for number, each in enumerate(term.get("matchExpressions") or ()):
            operator, values = each.get("operator") or "", each.get("values")
            at = f"{where}[{index}].matchExpressions[{number}]"
            if operator in ("In", "NotIn") and not values:
                yield field.required(f"{at}.values", "must be specified when `operator` is 'In' or 'NotIn'")
            elif operator in ("Exists", "DoesNotExist") and values:
                yield field.forbidden(
                    f"{at}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                )


def _volume_faults(volumes: list[JSON] | tuple[()], path: str, names: set[str]) -> common.Faults:
    """Yields the faults of volumes; adds the names of the valid ones to `names`."""
    for index, volume in enumerate(volumes):
        volume_path, name = f"{path}[{index}]", volume.get("name") or ""
        faults = list(_source_faults(volume, volume_path))
        if not name:
            faults.append(field.required(f"{volume_path}.name"))
        elif why := object_meta.dns1123_label_faults(name):
            faults.append(field.invalid(f"{volume_path}.name", name, why))
        if name in names:
            faults.append(field.duplicate(f"{volume_path}.name", name))
        if not faults:
            names.add(name)
        yield from faults


# In the order in which a real server checks them: it reports the second one that it finds.
_SOURCES = ("emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs", "iscsi",
            "glusterfs", "persistentVolumeClaim", "rbd", "cinder", "cephfs", "flexVolume", "configMap", "projected",
            "flocker", "downwardAPI", "fc", "csi", "ephemeral", "image")  # fmt: skip


def _source_faults(volume: JSON, source_path: str) -> common.Faults:
    """Yields the faults of a volume's source; there must be exactly one."""
    given_sources = [name for name in _SOURCES if volume.get(name) is not None]
    if not given_sources:
        yield field.required(source_path, "must specify a volume type")
    for extra in given_sources[1:]:
        yield field.forbidden(f"{source_path}.{extra}", "may not specify more than 1 volume type")
    if given_sources == ["hostPath"]:
        host_path = volume["hostPath"].get("path") or ""
        if not host_path:
            yield field.required(f"{source_path}.hostPath.path")
            return
        if ".." in host_path.split("/"):
            yield field.invalid(f"{source_path}.hostPath.path", host_path, "must not contain '..'")
        if (kind := volume["hostPath"].get("type")) is not None:
            yield from field.one_of(f"{source_path}.hostPath.type", kind, _HOST_PATHS)
    if given_sources == ["secret"] and not volume["secret"].get("secretName"):
        yield field.required(f"{source_path}.secret.secretName")
    if given_sources == ["configMap"] and not volume["configMap"].get("name"):
        yield field.required(f"{source_path}.configMap.name")


def _toleration_faults(toleration: JSON, fault_path: str) -> common.Faults:
    """Yields the faults of a toleration."""
    key, operator = toleration.get("key") or "", toleration.get("operator") or ""
    for why in object_meta.qualified_name(key) if key else ():
        yield field.invalid(f"{fault_path}.key", key, why)
    if not key and operator != "Exists":
        why = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield field.invalid(f"{fault_path}.operator", operator, why)
    effect = toleration.get("effect") or ""
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        yield field.invalid(
            f"{fault_path}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"
        )
    if operator == "Exists" and toleration.get("value"):
        yield field.invalid(
            f"{fault_path}.operator", toleration["value"], "value must be empty when `operator` is 'Exists'"
        )
    if operator:
        yield from field.one_of(f"{fault_path}.operator", operator, ("Equal", "Exists"))
    if effect:
        yield from field.one_of(f"{fault_path}.effect", effect, ("NoSchedule", "PreferNoSchedule", "NoExecute"))


# -- Containers --------------------------------------------------------------------------------------------------------

_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_FIELD_PATHS = (
    *("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName"),
    *("status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"),
)
# Valid field labels (ConvertDownwardAPIFieldLabel) that environment variables do not support.
_OTHER_FIELDS = frozenset({"metadata.annotations", "metadata.labels", "spec.restartPolicy", "status.phase"})
_VARIABLE_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_PROBE_NUMBERS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_PRINTABLE = re.compile(r"[ -<>-~]+")


def _container_faults(container: JSON, path: str, volumes: set[str]) -> common.Faults:
    """Yields the faults of one container."""
    name = container.get("name") or ""
    if not name:
        yield field.required(f"{path}.name")
    elif why := object_meta.dns1123_label_faults(name):
        yield field.invalid(f"{path}.name", name, why)
    if not container.get("image"):
        yield field.required(f"{path}.image")
    yield from _container_port_faults(container.get("ports") or (), f"{path}.ports")
    for index, variable in enumerate(container.get("env") or ()):
        yield from _variable_faults(variable, f"{path}.env[{index}]")
    places: set[str] = set()
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        mount_path = f"{path}.volumeMounts[{index}]"
        volume_name, place = mount.get("name") or "", mount.get("mountPath") or ""
        if not volume_name:
            yield field.required(f"{mount_path}.name")
        if volume_name not in volumes:
            yield field.FieldError(field.Fault.NOT_FOUND, f"{mount_path}.name", volume_name)
        if not place:
            yield field.required(f"{mount_path}.mountPath")
        if place in places:
            yield field.invalid(f"{mount_path}.mountPath", place, "must be unique")
        places.add(place)
    policy = container.get("imagePullPolicy") or ""
    if policy:
        yield from field.one_of(f"{path}.imagePullPolicy", policy, _PULL_POLICIES)
    resources = container.get("resources") or {}
    limits = resources.get("limits") or {}
    for side in ("limits", "requests"):
        for resource, amount in (resources.get(side) or {}).items():
            if parse_quantity(str(amount)) < 0:
                yield field.invalid(f"{path}.resources.{side}[{resource}]", str(amount), common.NOT_NEGATIVE)
    for resource, requested in (resources.get("requests") or {}).items():
        limit = limits.get(resource)
        if limit is not None and parse_quantity(str(requested)) > parse_quantity(str(limit)):
            why = f"must be less than or equal to {resource} limit of {limit}"
            yield field.invalid(f"{path}.resources.requests", str(requested), why)
    for hook in ("postStart", "preStop"):
        if (action := (container.get("lifecycle") or {}).get(hook)) is not None:
            yield from _handler_faults(action, f"{path}.lifecycle.{hook}")
    for probe in _PROBES:
        if container.get(probe) is not None:
            yield from _probe_faults(container[probe], f"{path}.{probe}", once=probe != "readinessProbe")


def _container_port_faults(ports: list[JSON] | tuple[()], path: str) -> common.Faults:
    """Yields the faults of a container's ports: names, numbers, protocols."""
    names: set[str] = set()
    for index, port in enumerate(ports):
        port_path, name, protocol = f"{path}[{index}]", port.get("name") or "", port.get("protocol") or ""
        if name and (whys := common.port_name(name)):
            for why in whys:
                yield field.invalid(f"{port_path}.name", name, why)
        elif name in names:
            yield field.duplicate(f"{port_path}.name", name)
        elif name:
            names.add(name)
        if not port.get("containerPort"):
            yield field.required(f"{port_path}.containerPort")
        else:
            yield from common.port_number(port["containerPort"], f"{port_path}.containerPort")
        if port.get("hostPort"):
            yield from common.port_number(port["hostPort"], f"{port_path}.hostPort")
        yield from common.protocol_faults(protocol, f"{port_path}.protocol")


def _variable_faults(variable: JSON, path: str) -> common.Faults:
    """Yields the faults of an environment variable: its name, and the source of its value."""
    name, source = variable.get("name") or "", variable.get("valueFrom")
    if not name:
        yield field.required(f"{path}.name")
    elif not _PRINTABLE.fullmatch(name):
        why = "a valid environment variable name must consist only of printable ASCII characters other than '='"
        yield field.invalid(f"{path}.name", name, why)
    if source is None:
        return
    source_path = f"{path}.valueFrom"
    given_sources = [key for key in _VARIABLE_SOURCES if source.get(key) is not None]
    if source.get("fieldRef") is not None:
        field_path = source["fieldRef"].get("fieldPath") or ""
        at = f"{source_path}.fieldRef.fieldPath"
        if not field_path:
            yield field.required(at)
        elif field_path in _OTHER_FIELDS:
            yield field.not_supported(at, field_path, _FIELD_PATHS)
        elif field_path not in _FIELD_PATHS and not re.fullmatch(r"metadata\.(annotations|labels)\['.*'\]", field_path):
            yield field.invalid(at, field_path, f"error converting fieldPath: field label not supported: {field_path}")
    if not given_sources:
        source_names = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
        yield field.invalid(source_path, "", f"must specify one of: {source_names}")
    elif variable.get("value"):
        yield field.invalid(source_path, "", "may not be specified when `value` is not empty")
    elif len(given_sources) > 1:
        yield field.invalid(source_path, "", "may not have more than one field specified at a time")


def _handler_faults(holder: JSON, path: str) -> common.Faults:
    """Yields the faults of a probe's or a hook's action; there must be one (validateHandler)."""
    given = [name for name in _HANDLERS if holder.get(name) is not None]
    for index, name in enumerate(given):
        if index:
            yield field.forbidden(f"{path}.{name}", "may not specify more than 1 handler type")
        else:
            yield from _action_faults(name, holder[name], f"{path}.{name}")
    if not given:
        yield field.required(path, "must specify a handler type")


def _action_faults(name: str, action: JSON, path: str) -> common.Faults:
    """Yields the faults of an action: its command, its port (a number or a port's name), its scheme."""
    if name == "exec" and not action.get("command"):
        yield field.required(f"{path}.command")
    port = action.get("port")
    if isinstance(port, int):
        yield from common.port_number(port, f"{path}.port")
    elif isinstance(port, str):
        for why in common.port_name(port):
            yield field.invalid(f"{path}.port", port, why)
    if scheme := action.get("scheme"):
        yield from field.one_of(f"{path}.scheme", scheme, ("HTTP", "HTTPS"))


def _probe_faults(probe: JSON, path: str, *, once: bool) -> common.Faults:
    """Yields the faults of a probe; `once` if it must have a success threshold of 1."""
    yield from _handler_faults(probe, path)
    yield from common.not_negative(probe, path, *_PROBE_NUMBERS)
    if once and probe.get("successThreshold", 1) != 1:
        yield field.invalid(f"{path}.successThreshold", probe["successThreshold"], "must be 1")


# -- Topology spread constraints ---------------------------------------------------------------------------------------

_ABOVE_ZERO = "must be greater than zero"


def spread_faults(constraints: list[JSON], path: str) -> common.Faults:
    """Yields the faults of a pod's constraints; no two may have the same topologyKey and whenUnsatisfiable."""
    pairs = [(each.get("topologyKey") or "", each.get("whenUnsatisfiable") or "") for each in constraints]
    for index, constraint in enumerate(constraints):
        at, unsatisfiable = f"{path}[{index}]", constraint.get("whenUnsatisfiable") or ""
        skew, domains = constraint.get("maxSkew") or 0, constraint.get("minDomains")
        if skew <= 0:
            yield field.invalid(f"{at}.maxSkew", skew, _ABOVE_ZERO)
        if not constraint.get("topologyKey"):
            yield field.required(f"{at}.topologyKey", "can not be empty")
        yield from field.one_of(f"{at}.whenUnsatisfiable", unsatisfiable, ("DoNotSchedule", "ScheduleAnyway"))
        if domains is not None and domains <= 0:
            yield field.invalid(f"{at}.minDomains", domains, _ABOVE_ZERO)
        if domains is not None and unsatisfiable != "DoNotSchedule":
            why = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {unsatisfiable}"
            yield field.invalid(f"{at}.minDomains", domains, why)
        for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if constraint.get(name) is not None:
                yield from field.one_of(f"{at}.{name}", constraint[name], ("Honor", "Ignore"))
        selector, keys = constraint.get("labelSelector"), constraint.get("matchLabelKeys") or ()
        if keys and selector is None:
            yield field.forbidden(f"{at}.matchLabelKeys", "must not be specified when labelSelector is not set")
        for number, label in enumerate(keys if selector is not None else ()):
            for why in object_meta.qualified_name(label):
                yield field.invalid(f"{at}.matchLabelKeys[{number}]", label, why)
        yield from common.selector_faults(selector, f"{at}.labelSelector")
        if pairs[index] in pairs[index + 1 :]:
            key, unsatisfiable = pairs[index]
            yield field.duplicate(f"{path}[{index}].{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {unsatisfiable}}}")
