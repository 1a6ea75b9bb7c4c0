"""Validation of webhook configurations (pkg/apis/admissionregistration/validation)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from kubekit.lang.cel_types import DYN, CelType
from kubesandbox.apiserver.schema import field_errors as field
from kubesandbox.apiserver.schema.cel_declarations import POLICY_VARIABLES
from kubesandbox.apiserver.schema.object_meta import dns1123_subdomain_faults
from kubesandbox.apiserver.validation.common import Faults, selector_faults
from kubesandbox.apiserver.validation.policies import expression_faults

JSON = dict[str, Any]
_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_FORM = "; desired format: https://host[/path]"
_VARIABLES: Mapping[str, CelType] = {"object": DYN, "oldObject": DYN, **POLICY_VARIABLES}


def configuration_faults(obj: JSON, _old: JSON | None) -> Faults:
    """Yields the faults of the webhooks of a configuration."""
    names: set[str] = set()
    for index, hook in enumerate(obj.get("webhooks") or ()):
        path, name = f"webhooks[{index}]", hook.get("name") or ""
        yield from _hook_faults(hook, path)
        versions = hook.get("admissionReviewVersions") or []
        if not versions:
            yield field.required(f"{path}.admissionReviewVersions", "must specify one of v1, v1beta1")
        elif not {"v1", "v1beta1"} & {*versions}:
            why = "must include at least one of v1, v1beta1"
            yield field.invalid(f"{path}.admissionReviewVersions", versions, why)
        if name in names:
            yield field.duplicate(f"{path}.name", name)
        names.add(name)


def _hook_faults(hook: JSON, path: str) -> Faults:
    """Yields the faults of one webhook."""
    name = hook.get("name") or ""
    if not name:
        yield field.required(f"{path}.name")
    elif why := dns1123_subdomain_faults(name):
        yield field.invalid(f"{path}.name", name, why)
    elif name.count(".") < 2:
        yield field.invalid(f"{path}.name", name, "should be a domain with at least three segments separated by dots")
    for index, rule in enumerate(hook.get("rules") or ()):
        yield from _rule_faults(rule, f"{path}.rules[{index}]")
    choices = {"failurePolicy": ("Fail", "Ignore"), "matchPolicy": ("Equivalent", "Exact")}
    for key, supported in choices.items():
        if hook.get(key) is not None:
            yield from field.one_of(f"{path}.{key}", hook[key], supported)
    effects = ("None", "NoneOnDryRun")
    if hook.get("sideEffects") is None:
        yield field.required(f"{path}.sideEffects", f"must specify one of {', '.join(effects)}")
    else:
        yield from field.one_of(f"{path}.sideEffects", hook["sideEffects"], effects)
    timeout_s = hook.get("timeoutSeconds")
    if timeout_s is not None and not 1 <= timeout_s <= 30:
        yield field.invalid(f"{path}.timeoutSeconds", timeout_s, "the timeout value must be between 1 and 30 seconds")
    for key in ("namespaceSelector", "objectSelector"):
        yield from selector_faults(hook.get(key), f"{path}.{key}")
    if hook.get("reinvocationPolicy") is not None:
        yield from field.one_of(f"{path}.reinvocationPolicy", hook["reinvocationPolicy"], ("IfNeeded", "Never"))
    yield from _client_faults(hook.get("clientConfig") or {}, f"{path}.clientConfig")
    for index, condition in enumerate(hook.get("matchConditions") or ()):
        at = f"{path}.matchConditions[{index}]"
        yield from expression_faults(condition, "expression", at, _VARIABLES, want=("bool",))


def _rule_faults(rule: JSON, path: str) -> Faults:
    """Yields the faults of a rule: what it leaves out, and values next to `*`."""
    operations = rule.get("operations") or []
    if not operations:
        yield field.required(f"{path}.operations")
    if len(operations) > 1 and "*" in operations:
        why = "if '*' is present, must not specify other operations"
        yield field.invalid(f"{path}.operations", operations, why)
    for index, operation in enumerate(operations):
        yield from field.one_of(f"{path}.operations[{index}]", operation, _OPERATIONS)
    for key, label in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        values = rule.get(key) or []
        if not values:
            yield field.required(f"{path}.{key}")
        if len(values) > 1 and "*" in values:
            yield field.invalid(f"{path}.{key}", values, f"if '*' is present, must not specify other {label}")
    resources = rule.get("resources") or []
    if not resources:
        yield field.required(f"{path}.resources")
    if len(resources) > 1 and "*/*" in resources:
        why = "if '*/*' is present, must not specify other resources"
        yield field.invalid(f"{path}.resources", resources, why)
    if rule.get("scope") is not None:
        yield from field.one_of(f"{path}.scope", rule["scope"], ("*", "Cluster", "Namespaced"))


def _client_faults(client: JSON, path: str) -> Faults:
    """Yields the faults of a client configuration: either a URL by HTTPS, or a Service."""
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        yield field.required(path, "exactly one of url or service is required")
    elif url is not None:
        parts = urlsplit(url)
        if parts.scheme != "https":
            why = f"'https' is the only allowed URL scheme{_FORM}"
            yield field.invalid(f"{path}.url", parts.scheme, why)
        if not parts.netloc:
            yield field.invalid(f"{path}.url", "", f"host must be specified{_FORM}")
        if parts.fragment:
            yield field.invalid(f"{path}.url", parts.fragment, "fragments are not permitted in the URL")
        if parts.query:
            yield field.invalid(f"{path}.url", parts.query, "query parameters are not permitted in the URL")
    elif service is not None:
        # A real server names the two the wrong way round.
        for key, shown in (("namespace", "name"), ("name", "namespace")):
            if not service.get(key):
                yield field.required(f"{path}.service.{shown}")
