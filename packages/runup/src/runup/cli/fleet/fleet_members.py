"""Finds the clusters that the options of a command name, and reads each of them; shared by the commands of a fleet."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec
import msgspec.structs

from kubekit.lang.text import one_line
from runup.cli.errors import CommandError, describe
from runup.cli.output import without_printable
from runup.cli.render.screen import join_parts
from runup.evaluation.workers import Lost, Pool, Retried, workers_for
from runup.fleet.control import cluster_sources, remote_dumps
from runup.fleet.control.cluster_sources import connection_to
from runup.fleet.decide.members import BadFleet, Member, fleet_of, is_address, refuse_password, select_members
from runup.process.ending_signals import exit_on_signal

if TYPE_CHECKING:
    from runup.cli.render.text import Output
    from runup.evaluation.dask_engine import DaskPool
    from runup.process.connection import Connection

R = TypeVar("R")


class NamedMembers(msgspec.Struct, frozen=True, kw_only=True):
    """The clusters as named: by contexts, folders, dumps, an inventory; and which of them are chosen.

    `scheduler` is the address of a Dask scheduler, whose workers read the dumps; this machine does without one. `hub`
    is the context of a hub whose clusters' reports are read, `cluster_set` one of its sets, `target` the version that
    these reports have to be about. With `takes_status` their statuses are read instead.
    """

    contexts: tuple[str, ...] = ()
    kubeconfigs: tuple[str, ...] = ()
    dumps: tuple[str, ...] = ()
    inventories: tuple[str, ...] = ()
    selector: str = ""
    parallel: int = 0
    timeout_s: int = 600
    scheduler: str = ""
    hub: str = ""
    cluster_set: str = ""
    target: str = ""
    takes_status: bool = False


@contextmanager
def resolve_members(
    named_members: NamedMembers, connection: Connection
) -> Iterator[tuple[tuple[Member, ...], list[str]]]:
    """Yields the fleet, and notes about what was left out; archives of dumps are unpacked meanwhile.

    Raises CommandError for a fleet that nobody could read, and ConfigError.
    """
    if connection.context:
        raise CommandError(
            f"--context {connection.context} is for a command about one cluster; a fleet is named by --contexts"
        )
    if named_members.cluster_set and not named_members.hub:
        text = "is a set of a hub's clusters; give --hub CONTEXT, too"
        raise CommandError(f"--clusterset {named_members.cluster_set} {text}")
    members: list[Member] = []
    notes: list[str] = []
    try:
        with exit_on_signal(), ExitStack() as unpacked:
            if named_members.contexts:
                _append_members(
                    cluster_sources.members_of_contexts(named_members.contexts, connection.kubeconfig), members, notes
                )
            for folder in named_members.kubeconfigs:
                _append_members(cluster_sources.members_of_kubeconfigs(Path(folder)), members, notes)
            for path in named_members.dumps:
                refuse_password(path, "--dumps")
                if is_address(path):
                    _append_members(_remote_members(path, named_members), members, notes)
                    continue
                if named_members.scheduler and Path(path).is_file():
                    way_out = "unpack it where the workers of the scheduler read it"
                    raise BadFleet(f"--dumps {path}: what is unpacked here is not on their machines; {way_out}")
                _append_members(unpacked.enter_context(cluster_sources.members_of_dumps(Path(path))), members, notes)
            for file in named_members.inventories:
                members += cluster_sources.members_of_inventory(Path(file))
            if named_members.hub:
                _append_members(_members_of_hub(named_members, connection), members, notes)
            yield select_members(fleet_of(members), named_members.selector), notes
    except BadFleet as error:
        raise CommandError(error.message) from error


def _members_of_hub(named_members: NamedMembers, connection: Connection) -> tuple[list[Member], list[str]]:
    from runup.fleet.control.cluster_sources import members_of_hub
    from runup.fleet.decide.hub_clusters import members_with_reports
    from runup.fleet.decide.hub_status import members_with_status

    hub = named_members.hub
    judge = (
        members_with_status
        if named_members.takes_status
        else partial(members_with_reports, target=named_members.target)
    )
    with connection_to(Member(name=hub, context=hub), connection).client("fleet") as client:
        return members_of_hub(client, hub, named_members.cluster_set, judge)


def _remote_members(address: str, named_members: NamedMembers) -> tuple[list[Member], list[str]]:
    """Returns the members of which a store has dumps, listed by a process that ends before others begin."""
    pool: Pool[str, remote_dumps.Listing] = Pool(remote_dumps.list_dumps, 1, float(named_members.timeout_s))
    listing = remote_dumps.Listing()
    for _, answer in pool.run([address]):
        if isinstance(answer, Lost):
            listing = remote_dumps.Listing(problem=f"{address}: {answer.why}")
        elif not isinstance(answer, Retried):
            listing = answer
    return remote_dumps.members_of(address, listing)


def _append_members(read_members: tuple[list[Member], list[str]], members: list[Member], notes: list[str]) -> None:
    members += read_members[0]
    notes += read_members[1]


def problem_of(member: Member, error: Exception) -> str | None:
    """Returns why a cluster could not be read, in the words of a command about it alone; None for a bug of ours."""
    text = failure_text(error)
    return text and member.as_named(text)


def failure_text(error: Exception) -> str | None:
    """Returns what a command about one cluster would say of an error; None for a bug of ours."""
    from kubekit.error_types import RunupError
    from kubekit.oci.registry_errors import OciError

    if isinstance(error, RunupError | OciError):
        return str(error)
    failure = describe(error)
    return failure.text.strip().removeprefix("error: ") if failure else None


def read_all(
    members: Sequence[Member],
    work: Callable[[Member], R],
    lost: Callable[[Member, str], R],
    named_members: NamedMembers,
) -> list[R]:
    """Returns the result of each member, in their order; what is lost on the way is told on stderr as it happens."""
    results: dict[str, R] = {member.name: lost(member, member.problem) for member in members if member.problem}
    progress = _Progress(len(members))
    for member in members:
        if member.has_travelled:
            # It is here already: nothing is read of the cluster.
            results[member.name] = work(member)
        if member.problem or member.has_travelled:
            progress.count_one()
    # The dumps, which cost processor time, and the live clusters, which cost waiting; each with how many. Dumps that
    # others read come last: their client has threads, beside which no process is forked.
    readable = [member for member in members if not member.problem and not member.has_travelled]
    dumps = [_with_absolute_path(member, named_members) for member in readable if member.dump]
    live = [member for member in readable if not member.dump]
    parallel = named_members.parallel
    batches = (dumps, workers_for(parallel, live=False)), (live, workers_for(parallel, live=True))
    for batch, size in batches[::-1] if named_members.scheduler else batches:
        if not batch:
            continue
        reading = partial(read_wherever, work=work, lost=lost)
        pool: Pool[Member, R] | DaskPool[Member, R]
        if batch[0].dump and named_members.scheduler:
            from runup.evaluation.dask_engine import DaskPool

            pool = DaskPool(reading, named_members.scheduler, float(named_members.timeout_s))
        else:
            pool = Pool(reading, min(size, len(batch)), float(named_members.timeout_s))
        for index, answer in pool.run(batch):
            member = batch[index]
            if isinstance(answer, Retried):
                progress.print_line(f"{one_line(member.name)}: {answer.why}; it is tried once more")
            elif isinstance(answer, Lost):
                progress.print_line(f"{one_line(member.name)}: {answer.why}\n{answer.bug}".rstrip())
                results[member.name] = lost(member, answer.why)
                progress.count_one()
            else:
                results[member.name] = answer
                progress.count_one()
    progress.clear_line()
    return [results[member.name] for member in members]


def read_wherever(member: Member, *, work: Callable[[Member], R], lost: Callable[[Member, str], R]) -> R:
    """Returns the result of a member; a dump in a store is on this machine meanwhile."""
    if not is_address(member.dump):
        return work(member)
    try:
        with remote_dumps.fetch_dump(member.dump) as path:
            return work(msgspec.structs.replace(member, dump=str(path), address=member.dump))
    except remote_dumps.CannotFetch as error:
        return lost(member, str(error))


def _with_absolute_path(member: Member, named_members: NamedMembers) -> Member:
    """Returns the member with a whole path for the workers of a scheduler, whose working directory is another one."""
    if not named_members.scheduler or is_address(member.dump):
        return member
    return msgspec.structs.replace(member, dump=os.path.abspath(member.dump))  # noqa: PTH100 -- links stay as typed


class _Progress:
    """Tells on stderr how many clusters are done: in place on a terminal, every hundredth in a pipe."""

    _EVERY = 100

    def __init__(self, total: int) -> None:
        self._total, self._done = total, 0
        self._in_place = without_printable(sys.stderr).isatty()

    def count_one(self) -> None:
        """Counts a cluster."""
        self._done += 1
        text = f"{self._done} of {self._total} clusters"
        if self._in_place:
            self._write_to_terminal(f"\r\x1b[K{text}")
        elif self._done % self._EVERY == 0:
            self.print_line(text)

    def print_line(self, line: str) -> None:
        """Writes a line, above the one in place."""
        self.clear_line()
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()

    def clear_line(self) -> None:
        """Clears the line in place."""
        if self._in_place:
            self._write_to_terminal("\r\x1b[K")

    def _write_to_terminal(self, text: str) -> None:
        stream = without_printable(sys.stderr)
        stream.write(text)
        stream.flush()


def warnings(notes: Sequence[str]) -> list[Output]:
    """Returns the notes as lines for stderr, each once."""
    return [("err", join_parts(f"warning: {note}\n")) for note in dict.fromkeys(notes)]
