"""The cluster's TLS profile: who follows it, what OpenSSL calls it, and how it gets into files of any form."""

from __future__ import annotations

from typing import Any

import pytest

from kubekit.error_types import Terminal
from kubekit.lang import yaml as kyaml
from runup.process.tls_profile import TlsProfile, inject_profile, mandatory_profile, openssl_names, profile_of

HEAD = {"apiVersion": "operator.openshift.io/v1alpha1", "kind": "GenericOperatorConfig"}
PROFILE = TlsProfile("VersionTLS12", ("A", "B"))
VALUES: dict[str, Any] = {"minTLSVersion": "VersionTLS12", "cipherSuites": ["A", "B"]}
FLOW = "{apiVersion: operator.openshift.io/v1alpha1, kind: GenericOperatorConfig"
BLOCK = "apiVersion: operator.openshift.io/v1alpha1\nkind: GenericOperatorConfig\n"


@pytest.mark.parametrize(
    ("text", "serving"),
    [
        pytest.param(f"{FLOW}}}", VALUES, id="in braces"),
        pytest.param(f"{FLOW}, servingInfo: {{a: b, minTLSVersion: x}}}}", {"a": "b", **VALUES}, id="all in braces"),
        pytest.param(f"{BLOCK}servingInfo: {{a: b, cipherSuites: [x]}}\n", {"a": "b", **VALUES}, id="a part in braces"),
        pytest.param(f"{BLOCK}servingInfo:\n  a: b\n", {**VALUES, "a": "b"}, id="in lines"),
        pytest.param(f"{BLOCK}servingInfo:\n    minTLSVersion: x\n    a: b\n", {**VALUES, "a": "b"}, id="deeper lines"),
        pytest.param(BLOCK.rstrip(), VALUES, id="without a last line end"),
    ],
)
def test_the_same_whatever_the_form(text: str, serving: dict[str, Any]) -> None:
    """Earlier TLS settings are replaced; neighbouring fields stay."""
    found = inject_profile({"config.yaml": text}, PROFILE)["config.yaml"]
    assert kyaml.load(found) == {**HEAD, "servingInfo": serving}


@pytest.mark.parametrize(
    ("profile", "serving"),
    [
        pytest.param(TlsProfile("VersionTLS13", ()), {"minTLSVersion": "VersionTLS13"}, id="a version alone"),
        pytest.param(TlsProfile("", ("A",)), {"cipherSuites": ["A"]}, id="ciphers alone"),
    ],
)
@pytest.mark.parametrize("text", [f"{FLOW}}}", BLOCK], ids=["in braces", "in lines"])
def test_what_a_profile_does_not_say_is_not_written(text: str, profile: TlsProfile, serving: dict[str, Any]) -> None:
    """An empty value would be another setting."""
    assert kyaml.load(inject_profile({"c": text}, profile)["c"])["servingInfo"] == serving


@pytest.mark.parametrize("text", ["", "a: b", "[", "just words", "kind: GenericOperatorConfig"])
def test_what_is_no_such_file_is_left_alone(text: str) -> None:
    """Also where no profile is known."""
    assert inject_profile({"c": text}, PROFILE) == {"c": text}
    assert inject_profile({"c": text}, None) == {"c": text}


def test_a_file_without_a_profile_to_write_is_an_error() -> None:
    """Nobody gets an older TLS than the cluster asks for."""
    with pytest.raises(Terminal, match="the TLS profile is not known") as raised:
        inject_profile({"c": BLOCK}, None)
    assert raised.value.reason == "UpdatePayloadFailed"


@pytest.mark.parametrize(
    ("spec", "version"),
    [
        pytest.param(None, None, id="no spec"),
        pytest.param({}, None, id="no word of it"),
        pytest.param({"tlsAdherence": ""}, None, id="an empty word"),
        pytest.param({"tlsAdherence": "LegacyAdheringComponentsOnly"}, None, id="left to each component"),
        pytest.param({"tlsAdherence": "StrictAllComponents"}, "VersionTLS12", id="strict"),
        pytest.param({"tlsAdherence": "OfLater"}, "VersionTLS12", id="a word of a later release"),
        pytest.param(
            {"tlsAdherence": "StrictAllComponents", "tlsSecurityProfile": {"type": "Modern"}},
            "VersionTLS13",
            id="strict, and modern",
        ),
    ],
)
def test_who_follows_the_profile(spec: dict[str, Any] | None, version: str | None) -> None:
    """As `spec.tlsAdherence` was announced: unknown words are strict."""
    found = mandatory_profile({} if spec is None else {"spec": spec})
    assert (found and found.min_version) == version


def test_what_openssl_calls_them() -> None:
    """Those of TLS 1.3 nobody chooses among, and others nobody knows."""
    names = ("TLS_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "X", "TLS_RSA_WITH_3DES_EDE_CBC_SHA")
    assert openssl_names(names) == ("ECDHE-RSA-AES128-GCM-SHA256", "DES-CBC3-SHA")


@pytest.mark.parametrize(
    ("names", "known"),
    [
        pytest.param(["ECDHE-RSA-AES128-GCM-SHA256"], ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",), id="of OpenSSL"),
        pytest.param(["AES128-SHA"], ("TLS_RSA_WITH_AES_128_CBC_SHA",), id="of RSA, which OpenSSL does not name"),
        pytest.param(["AES128-SHA256"], ("TLS_RSA_WITH_AES_128_CBC_SHA256",), id="of RSA, with another digest"),
        pytest.param(["ECDHE-RSA-AES256-SHA"], ("TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",), id="of 256 bits"),
        pytest.param(["TLS_AES_128_GCM_SHA256"], ("TLS_AES_128_GCM_SHA256",), id="of TLS 1.3"),
        pytest.param(["TLS_OF_TOMORROW"], ("TLS_OF_TOMORROW",), id="one that only sounds right"),
        pytest.param(["nobody", "AES128-SHA", ""], ("TLS_RSA_WITH_AES_128_CBC_SHA",), id="others are left out"),
        pytest.param([], (), id="none"),
        pytest.param(None, (), id="nothing"),
    ],
)
def test_the_ciphers_of_a_profile_of_ones_own(names: Any, known: tuple[str, ...]) -> None:
    """By their names of IANA, in their order."""
    custom = {"type": "Custom", "custom": {"minTLSVersion": "VersionTLS12", "ciphers": names}}
    assert profile_of({"spec": {"tlsSecurityProfile": custom}}) == TlsProfile("VersionTLS12", known)


@pytest.mark.parametrize(
    ("spec", "version"),
    [
        pytest.param({"tlsSecurityProfile": {"type": "Old"}}, "VersionTLS10", id="old"),
        pytest.param({"tlsSecurityProfile": {"type": "Modern"}}, "VersionTLS13", id="modern"),
        pytest.param({"tlsSecurityProfile": {"type": "Intermediate"}}, "VersionTLS12", id="intermediate"),
        pytest.param({"tlsSecurityProfile": {"type": "New"}}, "VersionTLS12", id="one that nobody knows"),
        pytest.param({"tlsSecurityProfile": None}, "VersionTLS12", id="null"),
        pytest.param({}, "VersionTLS12", id="nothing"),
        pytest.param("x", "VersionTLS12", id="a text"),
        pytest.param({"tlsSecurityProfile": {"type": "Custom"}}, "", id="one's own, of nothing"),
    ],
)
def test_the_least_version_of_a_profile(spec: Any, version: str) -> None:
    """The intermediate one's where it does not say."""
    assert profile_of({"spec": spec}).min_version == version
