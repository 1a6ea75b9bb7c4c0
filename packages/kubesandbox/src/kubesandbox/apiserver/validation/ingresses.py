"""Validation of Ingresses and IngressClasses (k8s.io/kubernetes/pkg/apis/networking/validation)."""

from __future__ import annotations

from typing import Any

from kubesandbox.apiserver.schema import Fault, FieldError, not_supported
from kubesandbox.apiserver.schema.name_rules import dns1123_subdomain_faults
from kubesandbox.apiserver.validation.common import Faults, changed_paths, is_address, port_name, port_number

JSON = dict[str, Any]

_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_NOT_IN_PATHS = ("//", "/./", "/../", "%2f", "%2F")
_NOT_AT_THE_END = ("/..", "/.")


def ingress_faults(obj: JSON, _old: JSON | None) -> Faults:
    """Yields the faults of an Ingress: hosts, paths, backends, secrets."""
    spec = obj.get("spec") or {}
    rules, default = spec.get("rules") or (), spec.get("defaultBackend")
    if not rules and default is None:
        why = "either `defaultBackend` or `rules` must be specified"
        yield FieldError(Fault.INVALID, "spec", spec, why)
    if default is not None:
        yield from _backend_faults(default, "spec.defaultBackend")
    for index, rule in enumerate(rules):
        yield from _rule_faults(rule, f"spec.rules[{index}]")
    for index, tls in enumerate(spec.get("tls") or ()):
        for number, host in enumerate(tls.get("hosts") or ()):
            yield from _host_faults(host, f"spec.tls[{index}].hosts[{number}]")
        secret = tls.get("secretName")
        if secret and (why := dns1123_subdomain_faults(secret)):
            yield FieldError(Fault.INVALID, f"spec.tls[{index}].secretName", secret, why)


def _rule_faults(rule: JSON, path: str) -> Faults:
    """Yields the faults of one rule: its host and its paths."""
    if host := rule.get("host"):
        if is_address(host):
            yield FieldError(Fault.INVALID, f"{path}.host", host, "must be a DNS name, not an IP address")
        else:
            yield from _host_faults(host, f"{path}.host")
    if (http := rule.get("http")) is None:
        return
    paths = http.get("paths") or ()
    if not paths:
        yield FieldError(Fault.REQUIRED, f"{path}.http.paths")
    for index, each in enumerate(paths):
        yield from _path_faults(each, f"{path}.http.paths[{index}]")


def _host_faults(host: str, path: str) -> Faults:
    # Only the first label may be a wildcard.
    if "*" not in host and (why := dns1123_subdomain_faults(host)):
        yield FieldError(Fault.INVALID, path, host, why)


def _path_faults(each: JSON, path: str) -> Faults:
    """Yields the faults of one path: its type, its text and its backend."""
    kind, text = each.get("pathType"), each.get("path") or ""
    if kind is None:
        yield FieldError(Fault.REQUIRED, f"{path}.pathType", detail="pathType must be specified")
    elif kind not in _PATH_TYPES:
        yield not_supported(f"{path}.pathType", kind, _PATH_TYPES)
    elif kind == "ImplementationSpecific":
        if text and not text.startswith("/"):
            yield FieldError(Fault.INVALID, f"{path}.path", text, "must be an absolute path")
    else:
        if not text.startswith("/"):
            yield FieldError(Fault.INVALID, f"{path}.path", text, "must be an absolute path")
        for part in _NOT_IN_PATHS:
            if part in text:
                yield FieldError(Fault.INVALID, f"{path}.path", text, f"must not contain '{part}'")
        for part in _NOT_AT_THE_END:
            if text.endswith(part):
                yield FieldError(Fault.INVALID, f"{path}.path", text, f"cannot end with '{part}'")
    yield from _backend_faults(each.get("backend") or {}, f"{path}.backend")


def _backend_faults(backend: JSON, path: str) -> Faults:
    """Yields the faults of a backend, which is either a Service or another object."""
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        yield FieldError(Fault.INVALID, path, "", "cannot set both resource and service backends")
    elif resource is not None:
        for name in ("kind", "name"):
            if not resource.get(name):
                yield FieldError(Fault.REQUIRED, f"{path}.resource.{name}")
    elif service is None:
        yield FieldError(Fault.REQUIRED, path, detail="a service or resource backend is required")
    else:
        yield from _service_faults(service, path)


def _service_faults(service: JSON, path: str) -> Faults:
    """Yields the faults of a Service backend: its name, and its port by name or by number."""
    name, port = service.get("name") or "", service.get("port") or {}
    if not name:
        yield FieldError(Fault.REQUIRED, f"{path}.service.name")
    if port.get("name") and port.get("number"):
        yield FieldError(Fault.INVALID, path, "", "cannot set both port name & port number")
    elif port.get("name"):
        for why in port_name(port["name"]):
            yield FieldError(Fault.INVALID, f"{path}.service.port.name", port["name"], why)
    elif port.get("number"):
        yield from port_number(port["number"], f"{path}.service.port.number")
    else:
        yield FieldError(Fault.REQUIRED, path, detail="port name or number is required")


def ingress_class(obj: JSON, old: JSON | None) -> Faults:
    """Yields the faults of an IngressClass: a controller, which stays, and parameters with kind and name."""
    spec = obj.get("spec") or {}
    if old is not None:
        yield from changed_paths(obj, old, "spec.controller")
    elif not spec.get("controller"):
        yield FieldError(Fault.REQUIRED, "spec.controller")
    parameters = spec.get("parameters")
    if parameters is not None:
        for name in ("kind", "name"):
            if not parameters.get(name):
                yield FieldError(Fault.REQUIRED, f"spec.parameters.{name}")
