"""Discovery documents are kept until the kinds change."""

from __future__ import annotations

from kubesandbox.apiserver.http.messages import Form
from kubesandbox.apiserver.published import discovery_documents
from kubesandbox.apiserver.published.discovery_documents import Discovery
from kubesandbox.apiserver.served_kinds import KindTable


def test_documents_of_old_kinds_are_dropped() -> None:
    """A client that creates definitions without end does not fill the server's memory."""
    kinds = KindTable()
    discovery = Discovery(kinds)
    first = discovery.serve("/api", Form.OBJECT)
    assert first is not None
    assert discovery.serve("/api", Form.OBJECT) is first
    for _ in range(discovery_documents.MAX_CACHED + 1):
        kinds.generation += 1
        assert discovery.serve("/api", Form.OBJECT) is not first
    kinds.generation = 0
    assert discovery.serve("/api", Form.OBJECT) is not first
