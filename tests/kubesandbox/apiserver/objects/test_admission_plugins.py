"""The plugins that the server lacks: on a page, and in a warning when one would have mattered."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.contract.api import JSON

from kubesandbox.apiserver.objects.admission import Admission
from kubesandbox.apiserver.objects.admission_plugins import MISSING, PLUGINS, page
from kubesandbox.apiserver.served_kinds import BUILTIN
from kubesandbox.apiserver.store import Store

PAGE = Path(__file__).parents[4] / "docs" / "reference" / "sandbox-admission.md"
KINDS = {kind.resource: kind for kind in BUILTIN}
REQUESTS = "certificatesigningrequests.certificates.k8s.io"
CLIENT = {"spec": {"signerName": "kubernetes.io/kube-apiserver-client"}}
APPROVED = {"status": {"conditions": [{"type": "Approved"}]}}
READY = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}


def test_the_page_is_current() -> None:
    """`python tools/admission_page.py` writes it."""
    assert PAGE.read_text() == page()


def test_an_absent_plugin_has_a_note() -> None:
    """Readers learn what is missing."""
    assert [p.name for p in PLUGINS if p.on_by_default and not p.present and not p.note] == []


@pytest.mark.parametrize(
    ("resource", "obj", "old", "expected"),
    [
        ("nodes", {}, None, {"TaintNodesByCondition"}),
        ("nodes", READY, None, set()),
        ("nodes", {}, {}, set()),
        (REQUESTS, CLIENT, None, {"CertificateSubjectRestriction"}),
        (REQUESTS, {"spec": {"signerName": "example.com/x"}}, None, set()),
        (REQUESTS, APPROVED, {}, {"CertificateApproval"}),
        (REQUESTS, APPROVED, APPROVED, set()),
        (REQUESTS, {"status": {"certificate": "x"}}, {}, {"CertificateSigning"}),
        ("configmaps", {}, None, set()),
    ],
)
def test_when_an_absent_plugin_matters(resource: str, obj: JSON, old: JSON | None, expected: set[str]) -> None:
    """Only a write that a real server would have changed, or might have refused."""
    kind = KINDS[resource]
    assert {plugin.name for plugin in MISSING if plugin.matters and plugin.matters(kind, obj, old)} == expected


def test_the_warning_comes_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A server with a thousand nodes says it once."""
    admission = Admission(Store(tmp_path / "store.db", monotonic=time.monotonic))
    for name in "ab":
        admission.admit(KINDS["nodes"], {"metadata": {"name": name}}, None)
    assert [record.getMessage() for record in caplog.records] == [
        "The admission plugin TaintNodesByCondition is absent: nothing would take the taint of a new Node away."
    ]
