"""Validation of CertificateSigningRequests (k8s.io/kubernetes/pkg/apis/certificates/validation)."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

from cryptography import x509

from kubesandbox.apiserver.schema import field_errors as field
from kubesandbox.apiserver.schema import object_meta
from kubesandbox.apiserver.validation.common import Faults

JSON = dict[str, Any]

_REQUEST = re.compile(rb"^-----BEGIN ([A-Z0-9 ]+)-----\s", re.MULTILINE)
_SHORTEST_S = 600
_USAGES = (
    "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment",
    "decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel",
    "ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime",
    "server auth", "signing", "timestamping",
)  # fmt: skip


def request_faults(obj: JSON, old: JSON | None) -> Faults:
    """Yields the faults of a CertificateSigningRequest, whose spec the server does not change after its creation."""
    if old is not None:
        return
    spec = obj.get("spec") or {}
    if why := _why_no_request(spec.get("request") or ""):
        yield field.invalid("spec.request", spec.get("request"), why)
    usages = spec.get("usages") or []
    if not usages:
        yield field.required("spec.usages")
    for index, usage in enumerate(usages):
        yield from field.one_of(f"spec.usages[{index}]", usage, _USAGES)
    for index, usage in enumerate(usages):
        if usage in usages[:index]:
            yield field.duplicate(f"spec.usages[{index}]", usage)
    yield from _signer_name(spec.get("signerName") or "", "spec.signerName")
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < _SHORTEST_S:
        why = f"may not specify a duration less than {_SHORTEST_S} seconds (10 minutes)"
        yield field.invalid("spec.expirationSeconds", seconds, why)


def _why_no_request(text: str) -> str:
    """Returns why a text in base64 is no certificate request in PEM with a valid signature, or ""."""
    try:
        pem = base64.b64decode(text)
    except binascii.Error:
        pem = b""
    kind = _REQUEST.search(pem)
    if kind is None or kind[1] != b"CERTIFICATE REQUEST":
        return "PEM block type must be CERTIFICATE REQUEST"
    try:
        request = x509.load_pem_x509_csr(pem[kind.start() :])
    except ValueError as error:
        return f"asn1: {error}"
    return "" if request.is_signature_valid else "x509: ECDSA verification failure"


def _signer_name(name: str, path: str) -> Faults:
    """Yields the faults of a signer's name, which is a domain and a name (ValidateSignerName)."""
    if not name:
        yield field.required(path)
        return
    domain, slash, rest = name.partition("/")
    if not slash or "/" in rest:
        why = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        yield field.invalid(path, name, why)
        return
    labels = domain.split(".")
    faults = ((label, object_meta.dns1123_label_faults(label)) for label in labels)
    if found := next(((label, why) for label, why in faults if why), None):
        yield field.invalid(path, domain, f'validating label "{found[0]}": {found[1]}')
    if len(labels) < 2:
        yield field.invalid(path, domain, "should be a domain with at least two segments separated by dots")
    faults = ((label, object_meta.dns1123_subdomain_faults(label)) for label in rest.split("."))
    if found := next(((label, why) for label, why in faults if why), None):
        yield field.invalid(path, rest, f'validating label "{found[0]}": {found[1]}')
