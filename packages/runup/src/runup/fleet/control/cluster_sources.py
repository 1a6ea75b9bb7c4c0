"""Finds the clusters of a fleet: in kubeconfigs, in folders and archives of dumps, in an inventory file, on a hub."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Protocol

from kubekit.kube import calls, config
from kubekit.kube.api_errors import KubeError, NotFound
from kubekit.kube.client_sync import SyncClient
from kubekit.lang import yaml as kyaml
from kubekit.lang.files import read_limited
from runup.api.hub_v1 import ADDON_LABEL, ManagedCluster, ManagedClusterSet, ManifestWork
from runup.dump import archive
from runup.dump.documents import SUFFIXES
from runup.dump.dump_files import COLLECTED, PACKED, BadDump, cluster_name
from runup.fleet.decide.hub_addon import NAMES
from runup.fleet.decide.hub_clusters import clusters_of_set
from runup.fleet.decide.members import BadFleet, Member, members_in
from runup.process.connection import Connection

ALL = "all"
_CASE = "-cv.yaml"
# What the folder of one dump has at its top.
_OF_ONE = ("cluster-scoped-resources", "namespaces", "config", "resources", "cluster-resources", COLLECTED)
# Next to the folders of one must-gather of several images.
_OF_ONE_GATHER = ("timestamp", "version")


def connection_to(member: Member, of: Connection) -> Connection:
    """Returns the connection to a live member, by the user and groups of the command's own."""
    to = Connection(member.kubeconfig or of.kubeconfig, member.context or None)
    to.as_user, to.as_group = of.as_user, of.as_group
    return to


def members_of_contexts(names: Sequence[str], kubeconfig: str | None) -> tuple[list[Member], list[str]]:
    """Returns a member for each context, and notes about contexts that were left out.

    `all` is every context of the kubeconfig, one for each server: people have a context for each namespace of a
    cluster. Raises BadFleet for a context that is named twice or is not there, and ConfigError.
    """
    known_contexts = config.context_names(kubeconfig)
    if ALL in names:
        if len(names) > 1:
            raise BadFleet(f"--contexts {ALL} has every context; leave out {', '.join(set(names) - {ALL})}")
        by_server: dict[str, str] = {}
        members, notes = [], []
        # The names sorted, after that of the current context if it can be used.
        try:
            current = config.load(kubeconfig).context
        except KubeError:
            current = ""
        for name in sorted(known_contexts, key=lambda name: (name != current, name)):
            try:
                server = config.load(kubeconfig, name).server
            except KubeError as error:
                members.append(Member(name=name, kubeconfig=kubeconfig or "", context=name, problem=error.message))
                continue
            if server in by_server:
                notes.append(f"context {name} leads to the server of {by_server[server]} ({server}), and is left out")
                continue
            by_server[server] = name
            members.append(_member_of_context(name, kubeconfig))
        return members, notes
    for name in names:
        if names.count(name) > 1:
            raise BadFleet(f"--contexts names {name} twice; a cluster counts once, so name it once")
        if name not in known_contexts:
            raise BadFleet(f'context "{name}" does not exist; there is {", ".join(known_contexts) or "none"}')
    return [_member_of_context(name, kubeconfig) for name in names], []


def _member_of_context(name: str, kubeconfig: str | None) -> Member:
    return Member(name=name, kubeconfig=kubeconfig or "", context=name)


def members_of_kubeconfigs(folder: Path) -> tuple[list[Member], list[str]]:
    """Returns a member for each kubeconfig in the folder, named after its file, with its current context.

    A file that cannot be read as one is a member that cannot be read. Raises BadFleet without such a folder.
    """
    members, notes = [], []
    for file in _visible_entries(folder, "--kubeconfigs"):
        if file.is_dir():
            notes.append(f"{file} is a folder, not a kubeconfig, and is left out")
            continue
        # The clusters of `a.yaml` and of `a.kubeconfig` are both called a, and then refused.
        name = file.name.removesuffix(file.suffix) if file.suffix in (*SUFFIXES, ".kubeconfig", ".conf") else file.name
        try:
            context = config.load(str(file)).context
        except KubeError as error:
            members.append(Member(name=name, kubeconfig=str(file), problem=error.message))
        else:
            members.append(Member(name=name, kubeconfig=str(file), context=context))
    return members, notes


def _visible_entries(folder: Path, flag: str) -> list[Path]:
    if not folder.is_dir():
        problem = "is not a folder" if folder.exists() else "does not exist"
        raise BadFleet(f"{flag} {folder}: {problem}; give the folder that they are in")
    return sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))


@contextmanager
def members_of_dumps(path: Path) -> Iterator[tuple[list[Member], list[str]]]:
    """Yields a member for each dump in a folder, or in an archive of such a folder, which is unpacked meanwhile.

    Raises BadFleet if it does not exist, or the folder is itself a dump.
    """
    if path.is_file() and path.suffix not in SUFFIXES:
        try:
            with archive.open_dump(path, also=PACKED) as unpacked:
                # The folder whose entries are the dumps: archives mostly have one folder around them.
                entries = list(unpacked.iterdir())
                if len(entries) == 1 and entries[0].is_dir() and not _is_one_dump(entries[0]):
                    folder_of_dumps = entries[0]
                else:
                    folder_of_dumps = unpacked
                yield _dumps_in_folder(folder_of_dumps, str(path))
        except BadDump as error:
            raise BadFleet(f"--dumps {error.message}") from error
        return
    if path.is_file():
        raise BadFleet(f"--dumps {path}: is one file; give the folder that the dumps are in")
    yield _dumps_in_folder(path, str(path))


def _is_one_dump(folder: Path) -> bool:
    return any((folder / name).exists() for name in (*_OF_ONE, *_OF_ONE_GATHER))


def _dumps_in_folder(folder: Path, typed: str) -> tuple[list[Member], list[str]]:
    members, skipped = [], []
    entries = _visible_entries(folder, "--dumps")
    if _is_one_dump(folder):
        raise BadFleet(
            f"--dumps {typed}: is one dump; give the folder that it is in, or `preflight run --dump {typed}`"
        )
    cases = [entry.name.removesuffix(_CASE) for entry in entries if entry.name.endswith(_CASE)]
    for entry in entries:
        if entry.name.endswith(_CASE):
            prefix = entry.name.removesuffix(_CASE)
            members.append(Member(name=prefix, dump=str(entry.with_name(prefix))))
        elif entry.is_dir() or entry.name.endswith(PACKED):
            members.append(Member(name=cluster_name(entry), dump=str(entry)))
        elif not any(entry.name.startswith(f"{case}-") for case in cases):
            skipped.append(entry.name)
    if not members:
        hint = "; if it is itself a dump: " + f"runup preflight run --dump {typed}" if skipped else ""
        raise BadFleet(f"--dumps {typed}: has no dump (a folder or a tar archive){hint}")
    names_text = ", ".join(skipped[:3]) + (f" and {len(skipped) - 3} more" if len(skipped) > 3 else "")
    notes = [f"{typed}: not a folder or a tar archive, and left out: {names_text}"] if skipped else []
    return members, notes


def members_of_inventory(file: Path) -> tuple[Member, ...]:
    """Returns the clusters that an inventory file names. Raises BadFleet."""
    try:
        return members_in(kyaml.load(read_limited(file), name=str(file)), str(file))
    except kyaml.YamlError as error:
        raise BadFleet(f"--inventory {error}") from error
    except (OSError, ValueError) as error:  # ValueError: a NUL is in the name
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise BadFleet(f"--inventory {file}: cannot be read: {reason}") from error


class Evaluate(Protocol):
    """A function that creates a member for each cluster from its data on the hub."""

    def __call__(
        self,
        clusters: Sequence[ManagedCluster],
        works: Sequence[ManifestWork],
        now: datetime,
        *,
        unreadable: Mapping[str, str],
    ) -> Sequence[Member]: ...


def members_of_hub(
    client: SyncClient, hub: str, cluster_set: str, evaluate: Evaluate
) -> tuple[list[Member], list[str]]:
    """Returns a member for each cluster of the hub, or of one of its sets, and why there may be others.

    `hub` is its context, as typed. Raises BadFleet if it is not a hub, or has no such set or no cluster; and KubeError.
    """
    try:
        clusters = client.listing(ManagedCluster)
        works = client.listing(ManifestWork, label_selector=f"{ADDON_LABEL} in ({','.join(sorted(NAMES.values()))})")
    except NotFound as error:
        text = f"--hub {hub}: is no hub of Open Cluster Management, for it does not have its kinds: {error}"
        raise BadFleet(text) from error
    chosen = tuple(clusters.items)
    if cluster_set:
        chosen = clusters_of_set(chosen, _set_named(client, hub, cluster_set))
    unreadable = {each.namespace: f"what its agent reports cannot be read: {each.problem}" for each in works.undecoded}
    # The hub's time, which only its answers tell.
    members = [*evaluate(chosen, works.items, client.now(), unreadable=unreadable)]
    # Nobody knows about these which set they are in, so they are in each.
    members += [
        Member(name=each.name or "(without a name)", problem=f"its ManagedCluster cannot be read: {each.problem}")
        for each in clusters.undecoded
    ]
    if not members:
        raise BadFleet(f"--hub {hub}: has no ManagedCluster; `kubectl get managedclusters` lists them")
    reasons = dict.fromkeys((*clusters.incomplete, *works.incomplete))
    return members, [f"--hub {hub}: there may be clusters or reports that are not listed: {why}" for why in reasons]


def _set_named(client: SyncClient, hub: str, name: str) -> ManagedClusterSet:
    try:
        return client.send(calls.get(ManagedClusterSet, name))
    except NotFound as error:
        names = [each.metadata.name for each in client.listing(ManagedClusterSet).items]
        there = f"there is {', '.join(sorted(names))}" if names else "it has no ManagedClusterSets"
        raise BadFleet(f"--clusterset {name}: the hub {hub} has no such ManagedClusterSet; {there}") from error
