"""The table of an update's requests, and its page: `python -m tests.rules.test_update_writes` writes the page."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from runup.rules.update_writes import WRITES

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "update-writes.md"
_BEGINNING = """# Requests of an update

An update sends these requests to the API server. Admission webhooks and admission policies must let all of them pass:
[WebhookBlocksUpdate](checks/WebhookBlocksUpdate.md),
[AdmissionPolicyDeniesUpdate](checks/AdmissionPolicyDeniesUpdate.md) and
[AdmissionPolicyParamMissing](checks/AdmissionPolicyParamMissing.md) evaluate each configuration against this list. The
list has the API groups of OpenShift 4 and of Kubernetes 1.34. A release can apply objects of further groups. The first
two checks evaluate these as well if the target's manifests are given. The API server calls no webhook and no policy for
objects of `admissionregistration.k8s.io`.

| sender | place | operations | API group | resources |
|---|---|---|---|---|
"""
_PLACES = {
    "cluster": "no namespace",
    "platform": "the platform's namespaces",
    "everywhere": "every namespace",
    "platform's namespaces": "no namespace; selectors apply to the labels of the platform's Namespaces",
}


def page() -> str:
    """Returns the page with a row for each sender, place, operations and API group."""
    rows = groupby(WRITES, key=lambda write: (write.sender, write.place, write.operations, write.group))
    lines = [
        f"| {sender} | {_PLACES[place]} | {', '.join(operations)} | {group or 'core'} | "
        f"{', '.join(f'`{write.resource}`' for write in writes)} |\n"
        for (sender, place, operations, group), writes in rows
    ]
    return _BEGINNING + "".join(lines)


def test_page_lists_the_table() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()


def test_no_request_is_listed_twice() -> None:
    keys = [(write.group, write.resource, write.place, write.sender) for write in WRITES]
    assert len(set(keys)) == len(keys)


def test_operations_are_those_of_admission() -> None:
    assert {operation for write in WRITES for operation in write.operations} == {"CREATE", "UPDATE", "DELETE"}


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
