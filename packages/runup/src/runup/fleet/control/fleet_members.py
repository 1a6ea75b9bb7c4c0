"""Finds the clusters that a command names, and reads each of them; shared by the commands of a fleet."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from kubekit.lang.text import count, one_line
from runup.evaluation.workers import DependsOnWorker, Lost, Pool, Retried, run_here, workers_for
from runup.fleet.control import cluster_sources, remote_dumps
from runup.fleet.decide.members import BadFleet, Member, fleet_of, is_address, refuse_password, select_members
from runup.process.ending_signals import exit_on_signal
from runup.process.error_texts import failure_text

if TYPE_CHECKING:
    from runup.process.connection import Connection

R = TypeVar("R")


class NamedMembers(msgspec.Struct, frozen=True, kw_only=True):
    """The clusters as named: by contexts, folders, dumps, an inventory; and which of them are chosen.

    `parallel` is how many are read at once: None for as many as their kind allows, 0 for one after the other in this
    process. `scheduler` is the address of a Dask scheduler, whose workers read the dumps; this machine does without
    one. `hub` is the context of a hub whose clusters' reports are read, `cluster_set` one of its sets, `target` the
    version that these reports have to be about. With `takes_status` their statuses are read instead.
    """

    contexts: tuple[str, ...] = ()
    kubeconfigs: tuple[str, ...] = ()
    dumps: tuple[str, ...] = ()
    inventories: tuple[str, ...] = ()
    selector: str = ""
    parallel: int | None = None
    timeout_s: int = 600
    scheduler: str = ""
    hub: str = ""
    cluster_set: str = ""
    target: str = ""
    takes_status: bool = False


@contextmanager
def resolve_members(named: NamedMembers, connection: Connection) -> Iterator[tuple[tuple[Member, ...], list[str]]]:
    """Yields the fleet, and notes about what was left out; archives of dumps are unpacked meanwhile.

    Raises BadFleet for a fleet that nobody could read, and ConfigError.
    """
    if connection.context:
        text = "is for a command about one cluster; a fleet is named by --contexts"
        raise BadFleet(f"--context {connection.context} {text}")
    if named.cluster_set and not named.hub:
        raise BadFleet(f"--clusterset {named.cluster_set} is a set of a hub's clusters; give --hub CONTEXT, too")
    members: list[Member] = []
    notes: list[str] = []

    def add(found: tuple[list[Member], list[str]]) -> None:
        members.extend(found[0])
        notes.extend(found[1])

    with exit_on_signal(), ExitStack() as unpacked:
        if named.contexts:
            add(cluster_sources.members_of_contexts(named.contexts, connection.kubeconfig))
        for folder in named.kubeconfigs:
            add(cluster_sources.members_of_kubeconfigs(Path(folder)))
        for path in named.dumps:
            refuse_password(path, "--dumps")
            if is_address(path):
                add(_remote_members(path, float(named.timeout_s)))
                continue
            if named.scheduler and Path(path).is_file():
                way_out = "unpack it where the workers of the scheduler read it"
                raise BadFleet(f"--dumps {path}: what is unpacked here is not on their machines; {way_out}")
            add(unpacked.enter_context(cluster_sources.members_of_dumps(Path(path))))
        for file in named.inventories:
            members += cluster_sources.members_of_inventory(Path(file))
        if named.hub:
            from runup.fleet.decide.hub_clusters import members_with_reports, members_with_status

            evaluate = members_with_status if named.takes_status else partial(members_with_reports, target=named.target)
            hub = cluster_sources.connection_to(Member(name=named.hub, context=named.hub), connection)
            with hub.client("fleet") as client:
                add(cluster_sources.members_of_hub(client, named.hub, named.cluster_set, evaluate))
        yield select_members(fleet_of(members), named.selector), notes


def _remote_members(address: str, limit_s: float) -> tuple[list[Member], list[str]]:
    """Returns the members of which a store has dumps, listed by a process that ends before others begin."""
    listing = remote_dumps.Listing()
    for _, answer in Pool(remote_dumps.list_dumps, 1, limit_s).run([address]):
        if isinstance(answer, Lost):
            listing = remote_dumps.Listing(problem=f"{address}: {answer.why}")
        elif not isinstance(answer, Retried):
            listing = answer
    return remote_dumps.members_of(address, listing)


def problem_of(member: Member, error: Exception) -> str | None:
    """Returns why a cluster could not be read, in the words of a command about it alone; None for a bug of ours."""
    text = failure_text(error)
    return text and member.as_named(text)


class Progress(Protocol):
    """Shows how many clusters are done, and which were lost on the way."""

    def count_one(self) -> None: ...
    def show_under_way(self, names: Sequence[str]) -> None: ...
    def print_line(self, line: str) -> None: ...
    def clear_line(self) -> None: ...


def read_all(
    members: Sequence[Member],
    work: Callable[[Member], R],
    lost: Callable[[Member, str], R],
    named: NamedMembers,
    *,
    progress: Progress,
) -> list[R]:
    """Returns the result of each member, in their order, as `read_each` yields them."""
    results = dict(read_each(members, work, lost, named, progress=progress))
    return [results[index] for index in range(len(members))]


def read_each(
    members: Sequence[Member],
    work: Callable[[Member], R],
    lost: Callable[[Member, str], R],
    named: NamedMembers,
    *,
    progress: Progress,
) -> Iterator[tuple[int, R]]:
    """Yields the index of each member with its result as it arrives; `progress` shows lost clusters as it happens."""
    indexes = {member.name: index for index, member in enumerate(members)}
    for index, member in enumerate(members):
        if member.problem or member.has_travelled:
            # What has travelled is here already: nothing is read of the cluster.
            yield index, lost(member, member.problem) if member.problem else work(member)
            progress.count_one()
    # The dumps, which cost processor time, and the live clusters, which cost waiting; each with how many. Dumps that
    # others read come last: their client has threads, and a process with threads must not be forked.
    readable = [member for member in members if not member.problem and not member.has_travelled]
    dumps, live = ([member for member in readable if bool(member.dump) is is_dump] for is_dump in (True, False))
    if named.scheduler:
        # The workers of a scheduler have another working directory; links stay as typed.
        paths = [each.dump if is_address(each.dump) else os.path.abspath(each.dump) for each in dumps]  # noqa: PTH100
        dumps = [replace(member, dump=path) for member, path in zip(dumps, paths, strict=True)]
    lost_counts: Counter[str] = Counter()
    reading = partial(read_wherever, work=work, lost=lost)
    for batch in (live, dumps) if named.scheduler else (dumps, live):
        if not batch:
            continue
        show = partial(_show_under_way, progress, batch)
        if batch[0].dump and named.scheduler:
            from runup.evaluation.dask_engine import DaskPool

            answers: Iterator[tuple[int, R | Lost | Retried]] = DaskPool(
                partial(read_on_worker, work=work),
                named.scheduler,
                float(named.timeout_s),
                kind=type(lost(batch[0], "")),
                notice=progress.print_line,
                under_way=show,
            ).run(batch)
        elif named.parallel == 0:
            answers = run_here(reading, batch)
        else:
            size = workers_for(named.parallel, live=not batch[0].dump)
            answers = Pool(reading, min(size, len(batch)), float(named.timeout_s), under_way=show).run(batch)
        for index, answer in answers:
            member = batch[index]
            if isinstance(answer, Retried):
                progress.print_line(f"{one_line(member.name)}: {answer.why}; it is tried once more")
                continue
            if isinstance(answer, Lost):
                # The same reason is printed once: a scheduler or a store that is lost has it for each cluster.
                if not lost_counts[answer.why]:
                    progress.print_line(f"{one_line(member.name)}: {answer.why}\n{answer.bug}".rstrip())
                lost_counts[answer.why] += 1
                answer = lost(member, answer.why)
            yield indexes[member.name], answer
            progress.count_one()
    for why, number in lost_counts.items():
        if number > 1:
            progress.print_line(f"and {count(number - 1, 'more cluster')}: {why}")
    progress.clear_line()


def _show_under_way(progress: Progress, members: Sequence[Member], indexes: Sequence[int]) -> None:
    progress.show_under_way([members[index].name for index in indexes])


def read_on_worker(member: Member, *, work: Callable[[Member], R]) -> R:
    """Returns the result of a member, on a worker of a scheduler; raises DependsOnWorker without its dump."""
    if is_address(member.dump):
        try:
            with remote_dumps.fetch_dump(member.dump) as path:
                return work(replace(member, dump=str(path), address=member.dump))
        except remote_dumps.CannotFetch as error:
            raise DependsOnWorker(str(error)) from error
    folder = Path(member.dump)
    # A dump may be a prefix of files, too.
    is_there = folder.exists() or any(folder.parent.glob(f"{folder.name}-*"))
    if not is_there or (folder.is_dir() and not os.access(folder, os.R_OK | os.X_OK)):
        raise DependsOnWorker(f"cannot read {member.dump}; give the workers the folder that the dumps are in")
    return work(member)


def read_wherever(member: Member, *, work: Callable[[Member], R], lost: Callable[[Member, str], R]) -> R:
    """Returns the result of a member; a dump in a store is on this machine meanwhile."""
    if not is_address(member.dump):
        return work(member)
    try:
        with remote_dumps.fetch_dump(member.dump) as path:
            return work(replace(member, dump=str(path), address=member.dump))
    except remote_dumps.CannotFetch as error:
        return lost(member, str(error))
