"""The clusters of a fleet: each has a name, one place where it is read, and labels by which some are chosen. Pure.

An inventory is a file that names them; its paths are relative to the file:

    clusters:
    - name: harbour
      context: harbour                 # of the usual kubeconfig, or of `kubeconfig`
      labels: {env: production}
    - name: lighthouse
      kubeconfig: lighthouse.kubeconfig
    - name: island
      dump: dumps/island.tar.gz
"""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from kubekit.error_types import Terminal
from runup.fleet.decide.newest_status import NewestStatus
from runup.report.report import Report


class Doubt(msgspec.Struct, frozen=True):
    """A reason why data on the hub may be outdated: an Unknown risk and a sentence."""

    risk: str
    message: str


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster of the fleet: a `dump` to read, else a `context` of a `kubeconfig` (empty: the usual one).

    `problem` says why the cluster cannot be read; it is then named in every result, and Unknown. `address` is where a
    dump came from that is on this machine only while it is read. Of a cluster that nobody reads from here, `report` or
    `status` is the one that has travelled to its hub, and `doubts` say why it may no longer hold.
    """

    name: str
    dump: str = ""
    kubeconfig: str = ""
    context: str = ""
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    problem: str = ""
    address: str = ""
    report: Report | None = None
    status: NewestStatus | None = None
    doubts: tuple[Doubt, ...] = ()

    @property
    def has_travelled(self) -> bool:
        """True if the data of the cluster was already read from the hub."""
        return self.report is not None or self.status is not None

    @property
    def place(self) -> str:
        """A text about the source of the cluster."""
        if self.has_travelled:
            return f"a {'report' if self.report is not None else 'status'} on the hub"
        if self.dump:
            return f"dump {self.dump}"
        parts = (f"context {self.context}" if self.context else "", self.kubeconfig and f"kubeconfig {self.kubeconfig}")
        return " of ".join(part for part in parts if part) or "the current context"

    def as_named(self, text: str) -> str:
        """Returns the text about the dump with the place that was named, instead of where it lies for the moment."""
        return text.replace(self.dump, self.address) if self.address else text


class BadFleet(Terminal):
    """Error raised if the named fleet has no clusters, or two clusters that cannot be distinguished."""

    def __init__(self, message: str) -> None:
        super().__init__(message, reason="BadFleet")


def fleet_of(members: Iterable[Member]) -> tuple[Member, ...]:
    """Returns the members, sorted by name. Raises BadFleet for none, or two with one place or one name."""
    sorted_members = tuple(sorted(members, key=lambda member: member.name))
    if not sorted_members:
        raise BadFleet(
            "the fleet has no cluster; name some with --contexts, --kubeconfigs, --dumps, --inventory or --hub"
        )
    names_by_source: dict[tuple[str, str, str], str] = {}
    by_name: dict[str, list[Member]] = defaultdict(list)
    for member in sorted_members:
        by_name[member.name].append(member)
        if member.problem or member.has_travelled:
            continue
        source = (member.dump, member.kubeconfig, member.context)
        if (known_as := names_by_source.get(source)) is not None:
            named_text = f" (as {known_as} and as {member.name})" if known_as != member.name else ""
            raise BadFleet(f"{member.place} is given twice{named_text}; a cluster counts once, so give it once")
        names_by_source[source] = member.name
    for name, namesakes in by_name.items():
        if len(namesakes) > 1:
            places = " and ".join(member.place for member in namesakes)
            way_out = "give each a different name in a file for --inventory"
            raise BadFleet(f"{len(namesakes)} clusters are called {name}: {places}; {way_out}")
    return sorted_members


def select_members(members: Iterable[Member], selector: str) -> tuple[Member, ...]:
    """Returns the members whose labels fit `selector`, which is empty for all of them. Raises BadFleet.

    The selector has kubectl's forms `key=value`, `key!=value`, `key` and `!key`, joined by commas.
    """
    remaining = tuple(members)
    chosen = tuple(member for member in remaining if fits_labels(member.labels, selector))
    if remaining and not chosen:
        keys = ", ".join(sorted({key for member in remaining for key in member.labels})) or "none"
        raise BadFleet(f"no cluster has labels that fit {selector!r}; the labels that there are: {keys}")
    return chosen


def fits_labels(labels: Mapping[str, str], selector: str) -> bool:
    """Returns whether the labels fit a selector of `select_members`."""
    return all(_fits_term(labels, term.strip()) for term in selector.split(",") if term.strip())


def _fits_term(labels: Mapping[str, str], term: str) -> bool:
    if "!=" in term:
        key, _, value = term.partition("!=")
        return labels.get(key.strip()) != value.strip()
    if "=" in term:
        key, _, value = term.partition("=")
        return labels.get(key.strip()) == value.strip("= ")
    return term[1:].strip() not in labels if term.startswith("!") else term in labels


def refuse_password(address: str, position: str) -> None:
    """Raises BadFleet for an address with a password: it is printed, kept with reports and sent to other machines."""
    credentials, at, _ = address.partition("://")[2].partition("/")[0].rpartition("@")
    if at and ":" in credentials:
        way_out = "fsspec reads it from its configuration (~/.config/fsspec) or the environment"
        raise BadFleet(f"{position}: an address with a password would be printed and kept; leave it out, {way_out}")


def is_address(text: str) -> bool:
    """Returns whether the text is the address of a store and not a path: `s3://bucket/prefix`."""
    scheme, colon, _ = text.partition("://")
    return bool(colon) and scheme.replace("+", "").isalnum()


_FIELDS = ("name", "context", "kubeconfig", "dump", "labels")


def members_in(document: Any, file: str) -> tuple[Member, ...]:
    """Returns the clusters that the document of `file` names. Raises BadFleet with the entry and the field."""
    entries = document.get("clusters") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        example = "{name: NAME, context: CONTEXT}"
        raise BadFleet(f"--inventory {file}: has no list `clusters`, of which an item is for example {example}")
    return tuple(_parse_member(entry, file, f"{file}: clusters[{number}]") for number, entry in enumerate(entries))


def _parse_member(entry: Any, file: str, position: str) -> Member:
    if not isinstance(entry, dict):
        raise BadFleet(f"{position}: is not a map")
    if unknown := sorted(str(key) for key in entry if key not in _FIELDS):
        raise BadFleet(f"{position}: does not know {', '.join(unknown)}; it has {', '.join(_FIELDS)}")
    for key in _FIELDS[:4]:
        value = entry.get(key)
        if value is not None and (not isinstance(value, str) or not value.strip()):
            raise BadFleet(f"{position}: {key} is not text")
    name, context, kubeconfig, dump = (entry.get(key) or "" for key in _FIELDS[:4])
    if not name:
        raise BadFleet(f"{position}: name is missing")
    if dump and (context or kubeconfig):
        raise BadFleet(f"{position}: dump and {'context' if context else 'kubeconfig'} both say where {name} is read")
    if not (dump or context or kubeconfig):
        raise BadFleet(f"{position}: where {name} is read is missing; give context, kubeconfig or dump")
    refuse_password(dump, f"{position}: dump")
    labels = {} if entry.get("labels") is None else entry["labels"]
    if not isinstance(labels, dict) or not all(isinstance(label, str | int | bool) for label in labels.values()):
        raise BadFleet(f"{position}: labels is not a map of names and values")
    return Member(
        name=name,
        dump=dump if is_address(dump) else _relative_to_file(dump, file),
        kubeconfig=_relative_to_file(kubeconfig, file),
        context=context,
        labels={str(key): str(each).lower() if isinstance(each, bool) else str(each) for key, each in labels.items()},
    )


def _relative_to_file(path: str, file: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(file), path)) if path else ""
