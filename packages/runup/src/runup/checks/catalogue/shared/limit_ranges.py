"""Determines whether a LimitRange refuses the next pods of a template, and which limits it gives their containers.

Source: kubernetes, `plugin/pkg/admission/limitranger` (PodValidateLimitFunc) and `pkg/apis/core/v1/defaults.go`
(SetDefaults_LimitRangeItem).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from kubekit.api.meta_v1 import Object, Wire
from runup.api.clusterversion_json import mapping
from runup.checks.catalogue.shared.pods import quantity_or_none
from runup.checks.writing import Slim

_Quantities = dict[str, str | int | float]
_Amounts = Mapping[str, Decimal]
Resources = Mapping[str, Any]


class LimitRangeItem(Wire, frozen=True, kw_only=True):
    """Limits of each Container, Pod, or other object."""

    type: str = ""
    max: _Quantities = {}
    min: _Quantities = {}
    default: _Quantities = {}
    default_request: _Quantities = {}
    max_limit_request_ratio: _Quantities = {}


class LimitRangeSpec(Wire, frozen=True):
    limits: tuple[LimitRangeItem, ...] = ()


class LimitRange(Object, frozen=True, kw_only=True):
    """Limits of each object in a namespace, and defaults of containers."""

    spec: LimitRangeSpec = LimitRangeSpec()


LIMIT_RANGES = Slim(group="", version="v1", kind="LimitRange", plural="limitranges", namespaced=True, type=LimitRange)


def _amounts(quantities: Mapping[str, Any]) -> dict[str, Decimal]:
    parsed = {key: quantity_or_none(value) for key, value in quantities.items() if isinstance(value, str | int | float)}
    return {key: amount for key, amount in parsed.items() if amount is not None}


def with_defaults(limit_range: LimitRange, resources: Resources) -> tuple[_Amounts, _Amounts]:
    """Returns requests and limits of a container, with the defaults of the LimitRange."""
    limits = _amounts(mapping(resources, "limits"))
    requests = limits | _amounts(mapping(resources, "requests"))
    for item in limit_range.spec.limits:
        if item.type == "Container":
            default = _amounts(item.max) | _amounts(item.default)
            default_request = _amounts(item.min) | default | _amounts(item.default_request)
            requests = default_request | requests
            limits = default | limits
    return requests, limits


def refusal(limit_range: LimitRange, containers: Iterable[Resources], init_containers: Iterable[Resources]) -> str:
    """Returns why the API server refuses a pod of containers with these `resources`, or an empty string."""
    running = [with_defaults(limit_range, each) for each in containers]
    initial = [with_defaults(limit_range, each) for each in init_containers]
    for requests, limits in (*initial, *running):
        for resource in sorted(requests.keys() & limits.keys()):
            if requests[resource] > limits[resource]:
                return f"its request of {resource} is above the default limit"
    whole = (_sum(requests for requests, _ in running), _sum(limits for _, limits in running))
    for item in limit_range.spec.limits:
        checked = {"Container": [*initial, *running], "Pod": [whole]}.get(item.type, [])
        for requests, limits in checked:
            if why := _exceeded(item, requests, limits):
                return why
    return ""


def _sum(amounts: Iterable[_Amounts]) -> _Amounts:
    total: dict[str, Decimal] = {}
    for each in amounts:
        for resource, amount in each.items():
            total[resource] = total.get(resource, Decimal(0)) + amount
    return total


def _exceeded(item: LimitRangeItem, requests: _Amounts, limits: _Amounts) -> str:
    """Returns which limit of the item a container or pod does not meet, or an empty string."""
    for resource, least in _amounts(item.min).items():
        if resource not in requests or min(requests[resource], limits.get(resource, least)) < least:
            return f"{resource} is below the minimum"
    for resource, most in _amounts(item.max).items():
        if resource not in limits:
            return f"it has no limit of {resource}"
        if max(limits[resource], requests.get(resource, most)) > most:
            return f"{resource} is above the maximum"
    for resource, ratio in _amounts(item.max_limit_request_ratio).items():
        if not requests.get(resource) or resource not in limits or limits[resource] / requests[resource] > ratio:
            return f"its limit of {resource} is too high for its request"
    return ""
