"""Facts of a dump: the snapshot that it proves, at the dump's own time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from kubekit.api.scheme import Resource
from runup.api.clusterversion_json import texts
from runup.checks.decide.model import Check, Snapshot
from runup.checks.decide.reads import namespace_of
from runup.checks.decide.snapshots import snapshot_of
from runup.dump.load import Dump
from runup.facts.target_release import TargetRelease
from runup.process.clusterversion_client import ACCEPTED

# Needed for every check: versions, acceptance records and feature gates.
_ALWAYS = frozenset({"clusterversions", "configmaps", "featuregates", "namespaces", "nodes", "pods"})


def dumps_in(path: Path) -> Iterator[Path]:
    """Yields the dump at `path`, or each of the cases in it if it is a folder of several."""
    marks = sorted(path.glob("*-cv.yaml")) if path.is_dir() else []
    yield from (mark.with_name(mark.name.removesuffix("-cv.yaml")) for mark in marks)
    if not marks:
        yield path


def plurals_to_read(checks: Sequence[Check], release: TargetRelease) -> frozenset[str]:
    """Returns the plurals to read from a dump.

    Returns none, which means all, if the release has declarative checks: which of them count, and so what they read, is
    known only from the FeatureGate in the dump.
    """
    if release.check_files:
        return frozenset()
    return _ALWAYS | {resource.plural for check in checks for resource in check.reads}


def snapshot_of_dump(dump: Dump, reads: Iterable[Resource]) -> Snapshot:
    """Returns the snapshot of a dump, in which a kind is complete only where the dump's own lists prove it.

    A kind is unreadable (`lacking`) if the dump cannot say whether there are objects of it, and partly read if the
    cluster may have had more of them (`partly`), except in the namespaces that were listed in full (`complete_in`). It
    is `absent` if the server did not serve it when the dump was collected.
    """
    collected = dump.collected

    def why_lacking(resource: Resource) -> str:
        key = (resource.group, resource.plural)
        if collected.covers(key, namespace_of(resource)):
            return ""
        if collected.namespaces.get(key):
            return collected.why_partly(key)
        if key in collected.absent:
            return f"the cluster had no {resource.name} when the dump was collected"
        return f"the dump holds no {resource.name}: whether there were any is not known"

    def why_partly(resource: Resource) -> str:
        key = (resource.group, resource.plural)
        if key not in collected.partly or collected.covers(key, namespace_of(resource)):
            return ""
        return collected.why_partly(key)

    return snapshot_of(
        reads,
        dump.objects,
        lacking=why_lacking,
        partly=why_partly,
        complete_in=lambda resource: collected.namespaces.get((resource.group, resource.plural), ()),
        absent=lambda resource: (resource.group, resource.plural) in collected.absent,
    )


def acceptance_records(dump: Dump) -> dict[str, str]:
    """Returns the dump's acceptance records: why and until when risks are accepted."""
    records = (o for o in dump.objects if (o["kind"], o["metadata"]["name"]) == ("ConfigMap", ACCEPTED))
    return texts(next(records, None), "data")
