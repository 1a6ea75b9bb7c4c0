"""The cluster's TLS profile, and its injection into the configuration files in a ConfigMap.

Files of kind `GenericOperatorConfig` and `GenericControllerConfig` are changed: `servingInfo.minTLSVersion` and
`servingInfo.cipherSuites`, line by line, so that order, comments and quoting of the rest stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kubekit.api.scheme import Resource
from kubekit.error_types import Terminal
from kubekit.lang import yaml as kyaml

API_SERVER = Resource(
    group="config.openshift.io", version="v1", kind="APIServer", plural="apiservers", namespaced=False
)
"""The resource whose object `cluster` contains the profile."""
KINDS = frozenset(
    {
        ("operator.openshift.io/v1alpha1", "GenericOperatorConfig"),
        ("config.openshift.io/v1", "GenericControllerConfig"),
    }
)
_KEYS = ("minTLSVersion", "cipherSuites")


@dataclass(frozen=True, slots=True)
class TlsProfile:
    """The minimum version, as Go's flags name it, and the ciphers by their IANA names."""

    min_version: str = ""
    ciphers: tuple[str, ...] = ()


_MODERN = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
_INTERMEDIATE = (
    *_MODERN,
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
)
_OLD = (
    *_INTERMEDIATE,
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
)
KNOWN_CIPHERS = frozenset(_OLD)
_OPENSSL = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256": "ECDHE-ECDSA-AES128-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256": "ECDHE-RSA-AES128-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "TLS_RSA_WITH_AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "TLS_RSA_WITH_AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "TLS_RSA_WITH_AES_128_CBC_SHA256": "AES128-SHA256",
    "TLS_RSA_WITH_AES_128_CBC_SHA": "AES128-SHA",
    "TLS_RSA_WITH_AES_256_CBC_SHA": "AES256-SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA": "DES-CBC3-SHA",
}
_NAMED = {
    "Old": TlsProfile("VersionTLS10", _OLD),
    "Intermediate": TlsProfile("VersionTLS12", _INTERMEDIATE),
    "Modern": TlsProfile("VersionTLS13", _MODERN),
}


def profile_of(api_server: Mapping[str, Any]) -> TlsProfile:
    """Returns the profile of the object APIServer `cluster`; the intermediate profile if it sets none."""
    spec = api_server.get("spec")
    profile = (spec.get("tlsSecurityProfile") if isinstance(spec, dict) else None) or {}
    if profile.get("type") != "Custom":
        # openshift/api: without a type the intermediate profile applies.
        return _NAMED.get(profile.get("type", ""), _NAMED["Intermediate"])
    custom = profile.get("custom") or {}
    ciphers = (_iana(str(name)) for name in custom.get("ciphers") or ())
    return TlsProfile(str(custom.get("minTLSVersion", "")), tuple(name for name in ciphers if name))


def mandatory_profile(api_server: Mapping[str, Any]) -> TlsProfile | None:
    """Returns the profile of APIServer `cluster` if each component has to follow it, None if that is optional.

    An unknown policy counts as strict, as announced with the field (`spec.tlsAdherence`).
    """
    spec = api_server.get("spec")
    policy = spec.get("tlsAdherence") if isinstance(spec, dict) else None
    return None if policy in (None, "", "LegacyAdheringComponentsOnly") else profile_of(api_server)


def openssl_names(ciphers: Iterable[str]) -> tuple[str, ...]:
    """Returns the ciphers' OpenSSL names, without those of TLS 1.3, which are not configurable, and unknown ones."""
    return tuple(_OPENSSL[name] for name in ciphers if name in _OPENSSL)


def _iana(name: str) -> str:
    """Returns the IANA name of a cipher given by its OpenSSL name, empty if Go does not know it."""
    if name.startswith("TLS_"):
        return name
    plain = name.replace("-", "").replace("_", "")
    cipher_names = {cipher.removeprefix("TLS_").replace("_WITH", "").replace("_", ""): cipher for cipher in _OLD}
    rsa = {f"RSA{plain}", f"RSA{plain}SHA256", f"{plain}SHA256", plain}
    changed = {item.replace("AES128", "AES128CBC") if "GCM" not in item else item for item in rsa}
    changed |= {item.replace("AES256", "AES256CBC") if "GCM" not in item else item for item in rsa}
    return next((cipher_names[item] for item in sorted(rsa | changed) if item in cipher_names), "")


def inject_profile(data: Mapping[str, Any], profile: TlsProfile | None) -> dict[str, Any]:
    """Returns `data` of a ConfigMap with `profile` in its configuration files. Raises Terminal without a profile."""
    changed = dict(data)
    for key, text in data.items():
        if not isinstance(text, str) or not _is_config(text):
            continue
        if profile is None:
            raise Terminal(
                "APIServer cluster could not be read, so the TLS profile is not known", reason="UpdatePayloadFailed"
            )
        changed[key] = _with_profile(text, profile)
    return changed


def _is_config(text: str) -> bool:
    """Returns whether a text is a configuration file of one of `KINDS`, whose TLS settings can be set."""
    try:
        document = kyaml.load(text)
    except kyaml.YamlError:
        return False
    return isinstance(document, dict) and (document.get("apiVersion"), document.get("kind")) in KINDS


def _with_profile(text: str, profile: TlsProfile) -> str:
    """Returns the YAML `text` with the profile in its `servingInfo`; comments stay where the layout allows it."""
    # PyYAML is a megabyte that few releases need: those that set TLS profiles in ConfigMaps.
    import yaml as pyyaml

    root = pyyaml.compose(text, Loader=pyyaml.CSafeLoader)
    if root is None:
        return text
    lines = text.splitlines(keepends=True)
    serving = next((pair for pair in root.value if pair[0].value == "servingInfo"), None)
    flow = any(node.flow_style for node in (root, *(pair[1] for pair in [serving] if pair))) if serving else False
    # `{a: b}` has no lines of its own to replace: the document is written again, and loses its comments.
    if getattr(root, "flow_style", False) or flow:
        return _rewrite_document(text, profile)
    if serving is None or not isinstance(serving[1], pyyaml.MappingNode):
        end = "" if not text or text.endswith("\n") else "\n"
        return text + end + "servingInfo:\n" + _profile_lines(profile, "  ")
    indent = " " * serving[1].start_mark.column
    removed_lines: set[int] = set()
    for key, value in serving[1].value:
        if key.value in _KEYS:
            last = value.end_mark.line if value.end_mark.column else value.end_mark.line - 1
            removed_lines.update(range(key.start_mark.line, max(last, key.start_mark.line) + 1))
    at = serving[0].start_mark.line + 1
    head = [line for number, line in enumerate(lines[:at]) if number not in removed_lines]
    tail = [line for number, line in enumerate(lines[at:], start=at) if number not in removed_lines]
    return "".join([*head, _profile_lines(profile, indent), *tail])


def _rewrite_document(text: str, profile: TlsProfile) -> str:
    """Returns the serving configuration (YAML) with the TLS settings of the profile."""
    document = kyaml.load(text)
    serving = document.get("servingInfo") or {}
    kept_serving = {key: value for key, value in serving.items() if key not in _KEYS}
    document["servingInfo"] = {**kept_serving, **_values(profile)}
    return kyaml.dump(document)


def _values(profile: TlsProfile) -> dict[str, Any]:
    version = {"minTLSVersion": profile.min_version} if profile.min_version else {}
    return {**version, **({"cipherSuites": list(profile.ciphers)} if profile.ciphers else {})}


def _profile_lines(profile: TlsProfile, indent: str) -> str:
    setting_lines = [f"{indent}minTLSVersion: {profile.min_version}\n"] if profile.min_version else []
    if profile.ciphers:
        setting_lines += [f"{indent}cipherSuites:\n", *(f"{indent}- {name}\n" for name in profile.ciphers)]
    return "".join(setting_lines)
