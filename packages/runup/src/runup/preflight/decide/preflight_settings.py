"""The administrator's settings for preflights: ConfigMap `cluster-version-operator-preflight-config`.

Source: docs/decisions/0072 D25.

In: the ConfigMap, if there is one, and the defaults from the operator's flags. Out: the settings of pods, and a
sentence for each key that cannot be used, for which the default is kept. Only values that the API server accepts are
taken, so that no setting keeps the Deployment from being written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Literal

import msgspec
from msgspec.structs import replace

from kubekit.api import codec
from kubekit.api.core_v1 import ConfigMap
from kubekit.api.meta_v1 import Condition, Wire
from kubekit.lang import yaml as kyaml
from kubekit.lang.quantity import QuantityError, parse_quantity
from kubekit.lang.text import shorten
from runup.preflight.decide.preflight_deployment import SETTINGS_MAP, PodSettings
from runup.report import documentation

CONDITION = "PreflightSettingsInvalid"
REASON = "InvalidSettings"
# In less than 30 s not even an image is pulled; after more than a day nobody remembers the request.
MIN_TIMEOUT_S, MAX_TIMEOUT_S = 30, 24 * 3600
_MIN_MEMORY = Decimal(1024 * 1024)
# Characters of a value that a message quotes.
_MAX_QUOTED = 60
_MAX_INT64 = 2**63 - 1
_DURATION = re.compile(r"(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6})s?)?")
_REGISTRY = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-fA-F:]+\])(?::[0-9]{1,5})?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL_NAME = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_LABEL_KEY = re.compile(rf"((?=[^/]{{1,253}}/){_SUBDOMAIN.pattern}/)?{_LABEL_NAME}")
_LABEL_VALUE = re.compile(rf"({_LABEL_NAME})?")


class Unusable(ValueError):
    """A value that cannot be used. Its text follows key and value in a sentence: "timeout '5' is not between ..."."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings in effect. `unusable` has one sentence for each key whose value was not used."""

    pods: PodSettings
    unusable: tuple[str, ...] = ()


def read(config_map: ConfigMap | None, defaults: PodSettings) -> Settings:
    """Returns the settings of the ConfigMap, with `defaults` for each that is not set or cannot be used."""
    if config_map is None:
        return Settings(defaults)
    pods, unusable = defaults, []
    for key, text in sorted(config_map.data.items()):
        setting = KEYS.get(key)
        if setting is None:
            unusable.append(f"{_quote(key)} is not a setting (there are {', '.join(KEYS)})")
            continue
        try:
            pods = setting(pods, text.strip())
        except Unusable as error:
            unusable.append(f"{key} {_quote(text.strip())} {error}; the default is used")
    unusable += [f"{_quote(key)} is binary data; every setting is text" for key in sorted(config_map.binary_data)]
    problems = []
    quantities = pods.quantities
    for name in ("cpu", "memory"):
        request, limit = getattr(quantities, f"{name}_request"), getattr(quantities, f"{name}_limit")
        if _quantity_value(request) > _quantity_value(limit):
            problems.append(f"{name}Request {request} is more than {name}Limit {limit}; the defaults are used")
            own_quantities = defaults.quantities
            fields = {field: getattr(own_quantities, field) for field in (f"{name}_request", f"{name}_limit")}
            quantities = replace(quantities, **fields)
    pods, too_small = replace(pods, quantities=quantities), tuple(problems)
    return Settings(pods, (*unusable, *too_small))


def condition(unusable: tuple[str, ...], namespace: str) -> Condition | None:
    """Returns PreflightSettingsInvalid=True, which names every unusable key, or None without any."""
    if not unusable:
        return None
    text = f"ConfigMap {namespace}/{SETTINGS_MAP}: {'; '.join(unusable)}."
    return Condition(type=CONDITION, status="True", reason=REASON, message=text)


def _quantity_setting(field: str) -> Callable[[PodSettings, str], PodSettings]:
    """Returns a reader for a quantity such as `500m` or `512Mi`: positive, and for memory at least 1 MiB."""

    def with_quantity(settings: PodSettings, text: str) -> PodSettings:
        """Returns the settings with this quantity of CPU or memory. Raises Unusable."""
        try:
            value = parse_quantity(text)
        except QuantityError as error:
            raise Unusable("is not a quantity (for example 500m or 512Mi)") from error
        if value <= 0:
            raise Unusable("is not more than zero")
        if field.startswith("memory") and value < _MIN_MEMORY:
            raise Unusable("is less than 1Mi")
        return replace(settings, quantities=replace(settings.quantities, **{field: text}))

    return with_quantity


def _set_timeout(settings: PodSettings, text: str) -> PodSettings:
    """Returns the settings with this time limit. Raises Unusable."""
    match = _DURATION.fullmatch(text)
    if not text or match is None:
        raise Unusable("is not a duration (for example 10m, 1h30m, or 600 for seconds)")
    hours, minutes, seconds = (int(number or 0) for number in match.groups())
    total = hours * 3600 + minutes * 60 + seconds
    if not MIN_TIMEOUT_S <= total <= MAX_TIMEOUT_S:
        raise Unusable(f"is not between {MIN_TIMEOUT_S}s and {MAX_TIMEOUT_S // 3600}h")
    return replace(settings, timeout_s=float(total))


class _Strict(Wire, frozen=True, forbid_unknown_fields=True):
    """A Pod's field type that rejects unknown fields, so that a typo is reported and not ignored."""


class _Toleration(_Strict, frozen=True):
    key: str = ""
    operator: Literal["", "Exists", "Equal"] = ""
    value: str = ""
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""
    toleration_seconds: Annotated[int, msgspec.Meta(ge=-_MAX_INT64 - 1, le=_MAX_INT64)] | None = None


class _Requirement(_Strict, frozen=True):
    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: tuple[str, ...] = ()


class _Term(_Strict, frozen=True):
    match_expressions: tuple[_Requirement, ...]


class _Required(_Strict, frozen=True):
    node_selector_terms: tuple[_Term, ...]


class _Preferred(_Strict, frozen=True):
    weight: int
    preference: _Term


class _NodeAffinity(_Strict, frozen=True):
    required: _Required | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: tuple[_Preferred, ...] = msgspec.field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class _Affinity(_Strict, frozen=True):
    node_affinity: _NodeAffinity


def _set_tolerations(settings: PodSettings, text: str) -> PodSettings:
    """Returns the settings with these tolerations. Raises Unusable for what the API server would refuse."""
    tolerations = _parse_yaml(text, tuple[_Toleration, ...], "a list of tolerations, as a pod has them")
    for toleration in tolerations:
        if toleration.key and not _LABEL_KEY.fullmatch(toleration.key):
            raise Unusable(f"has the key {_quote(toleration.key)}, which is not valid for a taint")
        if not toleration.key and toleration.operator != "Exists":
            raise Unusable("has a toleration without key whose operator is not Exists")
        if toleration.operator == "Exists" and toleration.value:
            raise Unusable(f"has a value with operator Exists, for {toleration.key or 'all keys'}")
        if not _LABEL_VALUE.fullmatch(toleration.value):
            raise Unusable(f"has the value {_quote(toleration.value)}, which is not valid for a taint")
        # The API server's own rule for tolerations (k8s.io/kubernetes/pkg/apis/core/validation).
        if toleration.toleration_seconds is not None and toleration.effect != "NoExecute":
            raise Unusable("has tolerationSeconds with another effect than NoExecute")
    return replace(settings, tolerations=tuple(codec.to_dict(toleration) for toleration in tolerations))


def _set_affinity(settings: PodSettings, text: str) -> PodSettings:
    """Returns the settings with this node affinity. Raises Unusable for what the API server would refuse."""
    affinity = _parse_yaml(text, _Affinity, "an affinity with nodeAffinity, as a pod has it").node_affinity
    terms = [
        *(affinity.required.node_selector_terms if affinity.required else ()),
        *(term.preference for term in affinity.preferred),
    ]
    if (affinity.required and not affinity.required.node_selector_terms) or not all(
        term.match_expressions for term in terms
    ):
        raise Unusable("has a term without matchExpressions, which selects no node")
    for requirement in (expression for term in terms for expression in term.match_expressions):
        if not _LABEL_KEY.fullmatch(requirement.key):
            raise Unusable(f"has the key {_quote(requirement.key)}, which is not valid for a label")
        wrong = next((value for value in requirement.values if not _LABEL_VALUE.fullmatch(value)), None)
        if wrong is not None:
            raise Unusable(f"has the value {_quote(wrong)}, which is not valid for a label")
        if requirement.operator in ("In", "NotIn") and not requirement.values:
            raise Unusable(f"has operator {requirement.operator} without values, for {requirement.key}")
        if requirement.operator in ("Exists", "DoesNotExist") and requirement.values:
            raise Unusable(f"has values with operator {requirement.operator}, for {requirement.key}")
        number = len(requirement.values) == 1 and re.fullmatch(r"\d{1,18}", requirement.values[0])
        if requirement.operator in ("Gt", "Lt") and not number:
            raise Unusable(f"has operator {requirement.operator} without one whole number, for {requirement.key}")
    # The API server's own limits for preferred scheduling terms.
    if any(not 1 <= preference.weight <= 100 for preference in affinity.preferred):
        raise Unusable("has a weight that is not between 1 and 100")
    return replace(settings, node_affinity=codec.to_dict(affinity))


def _parse_yaml(text: str, kind: Any, description: str) -> Any:
    """Returns the YAML text as a `kind`. Raises Unusable, whose message says that the text is not `description`."""
    try:
        return msgspec.convert(kyaml.load(text.encode(), name="value"), kind)
    except (kyaml.YamlError, msgspec.ValidationError) as error:
        reason = next(iter(str(error).splitlines()), "")
        raise Unusable(f"is not {description} ({reason})") from error


def _set_priority_class(settings: PodSettings, text: str) -> PodSettings:
    """Returns the settings with this PriorityClass, none if the text is empty. Raises Unusable."""
    if text and (not _SUBDOMAIN.fullmatch(text) or len(text) > 253):
        raise Unusable("is not a valid name of a PriorityClass")
    return replace(settings, priority_class=text)


def _registries_setting(field: str) -> Callable[[PodSettings, str], PodSettings]:
    """Returns a reader for a list of registries with commas or spaces."""

    def with_registries(settings: PodSettings, text: str) -> PodSettings:
        """Returns the settings with these registries, in order. Raises Unusable."""
        hosts = tuple(text.replace(",", " ").split())
        if not all(_REGISTRY.fullmatch(host) for host in hosts):
            raise Unusable("is not a comma-separated list of registries (for example registry.example:5000)")
        return replace(settings, **{field: hosts})

    return with_registries


def _choice_setting(field: str, *allowed: str) -> Callable[[PodSettings, str], PodSettings]:
    """Returns a reader for one of a few texts; where these are true and false, the setting is a boolean."""

    def with_choice(settings: PodSettings, text: str) -> PodSettings:
        """Returns the settings with this choice. Raises Unusable, whose message lists the allowed texts."""
        if text not in allowed:
            raise Unusable(f"is neither {' nor '.join(allowed)}")
        return replace(settings, **{field: text == "true" if "true" in allowed else text})

    return with_choice


def _set_documentation_base(settings: PodSettings, text: str) -> PodSettings:
    """Returns the settings with this address below which findings are documented. Raises Unusable."""
    try:
        return replace(settings, documentation_base=documentation.read_base(text))
    except documentation.BadBase as error:
        raise Unusable(str(error)) from error


KEYS: Mapping[str, Callable[[PodSettings, str], PodSettings]] = {
    "cpuRequest": _quantity_setting("cpu_request"),
    "memoryRequest": _quantity_setting("memory_request"),
    "cpuLimit": _quantity_setting("cpu_limit"),
    "memoryLimit": _quantity_setting("memory_limit"),
    "timeout": _set_timeout,
    "tolerations": _set_tolerations,
    "affinity": _set_affinity,
    "priorityClassName": _set_priority_class,
    "serviceAccount": _choice_setting("service_account", "operator", "dedicated"),
    "reportSink": _choice_setting("report_sink", "volume", "configmap"),
    "documentationBase": _set_documentation_base,
    "catalogs": _choice_setting("catalogs", "read", "skip"),
    "rehearse": _choice_setting("rehearses", "true", "false"),
    "innerRegistries": _registries_setting("inner_registries"),
    "plainHttpRegistries": _registries_setting("plain_http_registries"),
}


def _quantity_value(text: str) -> Decimal:
    """Returns the quantity as a number, or 0 if it is invalid: the API server reports an invalid flag."""
    try:
        return parse_quantity(text)
    except QuantityError:
        return Decimal(0)


def _quote(text: str) -> str:
    return repr(shorten(text, _MAX_QUOTED, keep=_MAX_QUOTED))
