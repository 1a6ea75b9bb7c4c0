"""One random corruption of one object of a big cluster changes only the answers about it.

The cluster is JSON as a server sends it, with some problems, listed by the client's own reader. The test compares the
complete answers of all built-in checks.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.factories import (
    PODS,
    cluster_operator,
    cluster_version,
    context,
    etcd,
    feature_gate,
    infrastructure,
    network,
    node,
    pdb,
    pod,
    pool,
    read_as,
)
from tests.few_or_many import few_or_many

from kubekit.api import codec
from kubekit.api.meta_v1 import Object
from kubekit.api.scheme import Resource
from kubekit.kube.list_pages import page_reader
from runup.checks.catalogue import CHECKS
from runup.checks.decide.engine import CheckOutcome, evaluate
from runup.checks.decide.model import Applies, Check, Snapshot, Unreadable
from runup.checks.decide.reads import Slim

JSON = dict[str, Any]
# What somebody may have written where something else belongs.
ODD: tuple[Any, ...] = ("true", 7, -1.5, True, [], ["x"], {}, {"a": 1}, "2026-13-01T00:00:00Z", "x" * 10_000)


def cluster() -> Iterator[Object]:
    """Hundreds of objects, one in nine with some trouble."""
    yield from (cluster_version(failing="True"), etcd(), infrastructure(), network(), feature_gate())
    for number in range(60):
        bad = number % 9 == 0
        yield node(f"n{number}", ready="False" if bad else "True", unschedulable=bad, kubelet="v1.36.0")
        yield cluster_operator(f"operator-{number}", degraded="True" if bad else "False")
        yield pdb(
            f"budget-{number}",
            f"ns-{number % 20}",
            max_unavailable=0 if bad else 1,
            disruptions_allowed=0 if bad else 1,
        )
        yield pod(f"pod-{number}", f"ns-{number % 20}")
    yield from (cluster_operator("etcd"), pool("master"), pool("worker"), pool("infra", degraded=1))


@cache
def listed() -> dict[Resource, tuple[type[Object], list[JSON]]]:
    """The cluster as a server's lists."""
    found: dict[Resource, tuple[type[Object], list[JSON]]] = {}
    for obj in cluster():
        found.setdefault(read_as(type(obj)), (type(obj), []))[1].append(codec.to_dict(obj))
    return found


def seen(lists: dict[Resource, tuple[type[Object], list[JSON]]]) -> Snapshot:
    """What the client makes of the lists."""
    pages = {
        resource: page_reader(kind)(json.dumps({"metadata": {"resourceVersion": "1"}, "items": items}).encode())
        for resource, (kind, items) in lists.items()
    }
    empty: dict[Resource, tuple[Any, ...]] = {read: () for check in CHECKS for read in check.reads}
    return Snapshot(
        objects=empty | {resource: tuple(map(kept(resource), page.items)) for resource, page in pages.items()},
        unreadable={},
        undecoded={resource: page.undecoded for resource, page in pages.items() if page.undecoded},
    )


def kept(resource: Resource) -> Callable[[Any], Any]:
    """What a cache keeps of an object."""
    return resource.keep if isinstance(resource, Slim) else lambda obj: obj


def asks_for(check: Check, snapshot: Snapshot, resource: Resource) -> bool:
    """Whether the check looks at that kind on this cluster."""
    seen_by = replace(snapshot, asked=set())
    with suppress(Unreadable):
        list(check.run(seen_by, context()))
    return resource in seen_by.asked


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every member of dicts and lists, at any depth, as its holder and its key."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in list(members):
        yield value, key
        yield from places(member)


@cache
def before() -> tuple[CheckOutcome, ...]:
    """Returns the findings about the unchanged cluster."""
    return evaluate(CHECKS, seen(listed()), context())


def test_the_cluster_as_it_is_is_read_whole() -> None:
    """Else the property below would hold for nothing."""
    assert not seen(listed()).undecoded
    assert {outcome.result for outcome in before()} >= {"Applies", "Clear"}


@pytest.mark.slow
@few_or_many(25, 100)
def test_one_corruption_changes_only_the_answers_that_concern_the_object(examples: int) -> None:
    """A check that does not read the kind says what it said; one that does names the object, and answers the rest."""
    settings(max_examples=examples)(given(data=st.data())(_changes_only_what_concerns_it))()


def _changes_only_what_concerns_it(data: st.DataObject) -> None:
    resource = data.draw(st.sampled_from(sorted(listed(), key=str)))
    kind, originals = listed()[resource]
    index = data.draw(st.integers(0, len(originals) - 1))
    corrupted = copy.deepcopy(originals[index])
    parts = [key for key in ("spec", "status") if key in corrupted] or ["metadata"]
    part = corrupted[data.draw(st.sampled_from(parts))]
    holder, key = data.draw(st.sampled_from(list(places(part)) or [(corrupted, "status")]))
    holder[key] = data.draw(st.sampled_from(ODD))
    items = [*originals[:index], corrupted, *originals[index + 1 :]]
    after = seen({**listed(), resource: (kind, items)})
    without = seen({**listed(), resource: (kind, [*originals[:index], *originals[index + 1 :]])})
    name = originals[index]["metadata"]["name"]
    bad = after.undecoded.get(resource, ())
    assert [each.name for each in bad] in ([], [name])
    rest = evaluate(CHECKS, without, context())
    for was, now, others in zip(before(), evaluate(CHECKS, after, context()), rest, strict=True):
        assert "the check failed" not in now.message
        if not asks_for(now.check, after, resource):
            assert now == was
        elif bad and now.result != "Skipped":
            assert now.result in ("Applies", "Unknown")
            shown = [f for f in now.findings if f.applies is Applies.UNKNOWN and name in {r.name for r in f.resources}]
            assert shown, f"{now.check.name} does not name {name}"
            assert resource == PODS or all(f"{name} cannot be read" in finding.message for finding in shown)
            if len(originals) > 1 and now.check.name != "NodePools":
                # NodePools keeps back what depends on all pools; the others say of the rest what they would without it.
                assert {f for f in now.findings if f not in shown} == set(others.findings)


def test_a_condition_whose_status_is_true_in_small_letters() -> None:
    """The case that stopped a whole preflight: in a node, and in an operator."""
    lists = copy.deepcopy(listed())
    for _, items in lists.values():
        for item in items:
            if item["metadata"]["name"] in ("n7", "operator-7"):
                item["status"]["conditions"][0]["status"] = "true"
    outcomes = {outcome.check.name: outcome for outcome in evaluate(CHECKS, seen(lists), context())}
    odd = "cannot be read: Invalid enum value 'true' - at `$.status.conditions[0].status`"
    (nodes,) = [f for f in outcomes["NodeHealth"].findings if f.name == "NodeHealthUnknown"]
    assert nodes.message == f"Whether NodeHealth applies to the object is unknown: Node n7 {odd}."
    (operators,) = [f for f in outcomes["ClusterOperatorHealth"].findings if f.name == "ClusterOperatorHealthUnknown"]
    assert f"ClusterOperator operator-7 {odd}." in operators.message
    assert outcomes["MachineConfigPoolHealth"].result == "Applies"
    found = [finding.name for finding in outcomes["ClusterOperatorHealth"].findings]
    assert len([name for name in found if name.startswith("ClusterOperatorDegraded-")]) == 7
