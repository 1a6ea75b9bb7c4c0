"""Facts of a dump: the snapshot that it proves, at the dump's own time, and where each object is in its files."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

from kubekit.api.scheme import Resource
from runup.api.clusterversion_json import texts
from runup.checks.decide.model import Check, Snapshot
from runup.checks.decide.reads import namespace_of
from runup.checks.decide.snapshots import snapshot_of
from runup.dump import archive
from runup.dump import dump_objects as objects
from runup.dump.documents import identity
from runup.dump.dump_files import find
from runup.dump.dump_limits import read_dump_file
from runup.dump.load import Dump
from runup.facts.target_release import TargetRelease
from runup.process.clusterversion_client import ACCEPTED
from runup.report.report import ReportedResource

# Needed for every check: versions, acceptance records, feature gates and the records of Helm releases.
_ALWAYS = frozenset({"clusterversions", "configmaps", "featuregates", "namespaces", "nodes", "pods", "secrets"})


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
    is `absent` if the server did not serve it when the dump was collected. A read of fields that the dump leaves out is
    unreadable.
    """
    collected, reads = dump.collected, tuple(reads)
    insufficient = _insufficient_reads(reads, collected.fields) if collected.fields else {}

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

    snapshot = snapshot_of(
        [resource for resource in reads if resource not in insufficient],
        dump.objects,
        lacking=why_lacking,
        partly=why_partly,
        complete_in=lambda resource: collected.namespaces.get((resource.group, resource.plural), ()),
        absent=lambda resource: (resource.group, resource.plural) in collected.absent,
        served=lambda resource: (resource.group, resource.plural) in collected.served,
    )
    return replace(snapshot, unreadable={**snapshot.unreadable, **insufficient}) if insufficient else snapshot


def _insufficient_reads(reads: Iterable[Resource], fields: Mapping[tuple[str, str], str]) -> dict[Resource, str]:
    """Returns why the fields that a dump has do not suffice, for each read of other ones."""
    # Imported here: most dumps have whole objects.
    from runup.facts.collected_fields import why_insufficient

    recorded = {resource: fields.get((resource.group, resource.plural), "") for resource in reads}
    return {resource: why for resource, text in recorded.items() if text and (why := why_insufficient(resource, text))}


def acceptance_records(dump: Dump) -> dict[str, str]:
    """Returns the dump's acceptance records: why and until when risks are accepted."""
    records = (o for o in dump.objects if (o["kind"], o["metadata"]["name"]) == ("ConfigMap", ACCEPTED))
    return texts(next(records, None), "data")


@dataclass(frozen=True, slots=True)
class Place:
    """The place of an object in a dump: the URI of its file, relative to the working directory, and the line."""

    uri: str
    line: int = 1


_CLUSTER = ReportedResource(group="config.openshift.io", kind="ClusterVersion", namespace="", name="version")


def find_places(dump: Path, wanted_resources: Collection[ReportedResource]) -> dict[str, Place]:
    """Returns the place of each object of the dump at `dump`, by its text; that of ClusterVersion is the dump's own.

    Objects in an archive are at the archive. Raises BadDump, as reading the dump does.
    """
    keys = {(item.group, item.kind, item.namespace, item.name): item.text for item in (*wanted_resources, _CLUSTER)}
    names = {item.name.encode() for item in (*wanted_resources, _CLUSTER)}
    with archive.open_dump(dump) as folder:
        if folder != dump:
            return {"": Place(uri_of(dump))}
        layout, places_by_text = find(folder), dict[str, Place]()
        for file in layout.files:
            try:
                data = read_dump_file(file)
            except (OSError, ValueError):
                continue
            # Most files have none of the objects: only those that name one are decoded.
            if not any(name in data for name in names):
                continue
            contents = objects.read(file, layout.style).objects
            for obj in contents:
                if text := keys.get(identity(obj)):
                    name = identity(obj)[3]
                    is_list = len(contents) > 1 or _LIST.search(data)
                    line = _line_of_name(data.decode(errors="replace"), name) if is_list else 1
                    places_by_text[text] = Place(uri_of(file), line)
    cluster_place = places_by_text.get(_CLUSTER.text)
    return {**places_by_text, "": cluster_place} if cluster_place else places_by_text


# A list in a file, also one of a single item.
_LIST = re.compile(rb'(?:^|[\s{,])"?items"?\s*:')


def _line_of_name(text: str, name: str) -> int:
    """Returns the number of the first line that gives `name` as a name, in YAML or JSON; 1 if it does not exist."""
    name_pattern = re.compile(rf"(?:^|[\s{{,-])\"?name\"?:\s*[\"']?{re.escape(name)}[\"']?\s*(?:[,}}]|$)")
    return next((number for number, line in enumerate(text.splitlines(), 1) if name_pattern.search(line)), 1)


def uri_of(file: Path) -> str:
    """Returns the path relative to the working directory as a URI, or an absolute URI if it is elsewhere."""
    whole = file.resolve()
    try:
        return quote(whole.relative_to(Path.cwd()).as_posix())
    except ValueError:
        return whole.as_uri()
