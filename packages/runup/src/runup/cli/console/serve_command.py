"""The command `runup serve`: puts the parts of the console together, serves it, and ends it."""

from __future__ import annotations

import asyncio
import secrets
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiohttp import web

from kubekit.error_types import Terminal
from kubekit.http.limited_site import LimitedSite
from kubekit.kube.client import Client
from kubekit.kube.clock import SystemClock
from kubekit.lang.text import one_line
from runup import __version__
from runup.cli.console.pages import ConsolePages
from runup.cli.console.render.frame import Site
from runup.cli.errors import CommandError
from runup.console.control import cluster_actions, evaluation_process, login, web_server, worker_tasks
from runup.console.control.reports import EVALUATE, Members, Reports
from runup.console.control.statuses import OUTLOOK, POLICY, STATUS, Statuses
from runup.console.decide import request_rules
from runup.console.decide.graph_ways import Graph
from runup.evaluation.request import RequestedUpdate
from runup.evaluation.results import suppressions_in
from runup.facts.target_release import release_of
from runup.fleet.control.fleet_members import NamedMembers, read_wherever, resolve_members
from runup.fleet.decide.members import Member
from runup.preflight.control import stores
from runup.process.ending_signals import ending_signals
from runup.process.endpoint import host_and_port
from runup.process.leader_election import cancel
from runup.process.log import configure_logging
from runup.process.serving_tls import ServingCertificate

if TYPE_CHECKING:
    from kubekit.kube.config import ClusterConfig
    from kubekit.oci.access import Access
    from runup.process.connection import Connection

# Seconds between readings of an update that somebody looks at.
_STATUS_EVERY_S = 10.0
# Seconds between two forecasts for an open page: each lists all pods.
_OUTLOOK_EVERY_S = 300.0
# Seconds between two readings of a policy for its open page: each lists all pods, for the forecast's gate.
_POLICY_EVERY_S = 60.0
_STOP_S = 1.0
# Longest line of a request's head: a bearer token is in the body.
_MAX_LINE = 8190


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeFlags:
    """The options as typed."""

    listen: str
    tls_cert: str = ""
    tls_key: str = ""
    behind_proxy: bool = False
    allow_actions: bool = False
    hosts: tuple[str, ...] = ()
    every_s: float = 600.0
    max_age_hours: float = 24.0
    to: str = ""
    to_image: str = ""
    release_dir: str = ""
    suppressions: str = ""
    store: str = ""
    days: int = 90
    graph: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Endpoint:
    """The address at which the console is served, with its certificate and the cluster of its logins."""

    host: str
    port: int
    hosts: frozenset[str]
    certificate: ServingCertificate | None = None
    cluster: ClusterConfig | None = None


def run(connection: Connection, named_members: NamedMembers, flags: ServeFlags, access: Callable[[], Access]) -> int:
    """Serves until a signal ends it, and returns 128 and the signal's number, as shells report it.

    Raises CommandError and Terminal for options that cannot be served.
    """
    if named_members.scheduler:
        raise CommandError("--engine dask: the console evaluates on this machine; leave out --engine and --scheduler")
    door = _endpoint_of_flags(flags, connection)
    rules = suppressions_in(flags.suppressions)
    graph = None
    if flags.graph:
        from runup.advice.control import graph_source

        loaded = graph_source.load(flags.graph, None, (), "amd64")
        graph = Graph(loaded.document, loaded.removed)
    pages = ConsolePages(
        max_age=timedelta(hours=flags.max_age_hours),
        rules=rules,
        loaded_graph=graph,
        stored=bool(flags.store),
        site=Site(has_sessions=door.cluster is not None or flags.allow_actions, acts=flags.allow_actions),
    )
    with ExitStack() as ending:
        members, from_store = ending.enter_context(_open_members(named_members, connection, flags))
        if flags.allow_actions and (from_store or all(member.dump for member in members()[0])):
            raise CommandError(
                "--allow-actions: a dump or a kept report cannot be changed; name live clusters with --contexts, "
                "--kubeconfigs or --inventory"
            )
        evaluation = _evaluate_function(connection, flags, access, from_store=from_store)
        # Nothing is wrong with the flags: from here on it is a process that logs, as are those that it forks.
        configure_logging()
        status = partial(worker_tasks.status_of, connection=connection)
        outlook = partial(worker_tasks.outlook_of, connection=connection)
        # A dump in a store is fetched for each of them.
        works: dict[str, Callable[[Member], object]] = {
            EVALUATE: partial(read_wherever, work=evaluation, lost=worker_tasks.unevaluated_member),
            STATUS: partial(read_wherever, work=status, lost=worker_tasks.status_error),
            OUTLOOK: partial(read_wherever, work=outlook, lost=worker_tasks.status_error),
            POLICY: partial(worker_tasks.policy_of, connection=connection),
        }
        processes = []
        # One for each: a page about an update does not wait for a round of evaluating, or for a simulation.
        for _ in works:
            # Here, 0 means as many workers as suit the machine: evaluating in the server's process would stop it.
            process = evaluation_process.EvaluationProcess(
                works, parallel=named_members.parallel or 0, limit_s=float(named_members.timeout_s)
            )
            ending.callback(process.close)
            processes.append(process)
        actions = cluster_actions.ClusterActions(connection, door.cluster) if flags.allow_actions else None
        return 128 + asyncio.run(
            _serve(door, members, pages=pages, processes=processes, flags=flags, actions=actions, from_store=from_store)
        )


def _endpoint_of_flags(flags: ServeFlags, connection: Connection) -> _Endpoint:
    """Returns where to serve. Raises CommandError where tokens would be sent in the clear, or no host is known."""
    host, port = host_and_port(flags.listen)
    hosts = request_rules.hosts_of(host, flags.hosts)
    if bool(flags.tls_cert) != bool(flags.tls_key):
        raise CommandError("--tls-cert and --tls-key are a pair; give both")
    certificate = None
    if flags.tls_cert:
        files = (flags.tls_cert, flags.tls_key)
        certificate = ServingCertificate(*files, SystemClock(), serves="pages", flags=("--tls-cert", "--tls-key"))
        for file in files:
            # Here no later file is waited for.
            if not Path(file).exists():
                typed = f"--tls-cert {flags.tls_cert}, --tls-key {flags.tls_key}"
                raise CommandError(f"{typed}: they cannot be used: there is no {file}")
        try:
            certificate.start()
        except Terminal as error:
            raise CommandError(error.message) from error
    if request_rules.is_loopback(host) and not flags.behind_proxy:
        return _Endpoint(host=host, port=port, hosts=hosts, certificate=certificate)
    if certificate is None and not flags.behind_proxy:
        raise CommandError(
            f"--listen {flags.listen}: others reach this address, so tokens are asked for, never in the clear: give "
            "--tls-cert and --tls-key, or --behind-proxy if a proxy before it ends TLS; or listen on 127.0.0.1"
        )
    if not hosts or (flags.behind_proxy and not flags.hosts):
        raise CommandError(
            f"--listen {flags.listen}: by which name browsers ask is not known; give it with --host NAME"
        )
    return _Endpoint(host=host, port=port, hosts=hosts, certificate=certificate, cluster=connection.config())


@contextmanager
def _open_members(
    named_members: NamedMembers, connection: Connection, flags: ServeFlags
) -> Iterator[tuple[Members, bool]]:
    """Yields what returns the clusters, and whether all are those of a store. Raises CommandError, and Terminal."""
    if flags.store and not (
        named_members.contexts or named_members.kubeconfigs or named_members.dumps or named_members.inventories
    ):
        store = stores.open_store(flags.store, connection.config)

        def of_store() -> tuple[Sequence[Member], Sequence[str]]:
            return tuple(Member(name=name) for name in store.clusters()), ()

        if not of_store()[0]:
            advice = f"make some: runup fleet preflight --contexts all --store {flags.store}"
            raise CommandError(f"--store {flags.store} has no report; {advice}")
        yield of_store, True
        return
    with resolve_members(named_members, connection) as (members, notes):
        members_and_notes = tuple(members), tuple(map(one_line, notes))
        yield lambda: members_and_notes, False


def _evaluate_function(
    connection: Connection, flags: ServeFlags, access: Callable[[], Access], *, from_store: bool
) -> Callable[[Member], object]:
    """Returns the function that evaluates a cluster."""
    if from_store:
        return partial(worker_tasks.evaluate_kept, connection=connection, store=flags.store, days=flags.days)
    if flags.to_image and flags.release_dir:
        raise CommandError("--to-image and --release-dir both name the release; give one of them")
    registries = access()
    release = release_of(flags.release_dir, flags.to_image, registries.of_administrators())
    requested_update = RequestedUpdate(release=release, target=flags.to, image=flags.to_image, access=registries)
    if flags.store:
        stores.open_store(flags.store, connection.config).clusters()
        return partial(
            worker_tasks.evaluate_with_history,
            connection=connection,
            requested_update=requested_update,
            store=flags.store,
            days=flags.days,
        )
    return partial(worker_tasks.evaluate, connection=connection, requested_update=requested_update)


async def _serve(
    door: _Endpoint,
    members: Members,
    pages: ConsolePages,
    processes: Sequence[evaluation_process.EvaluationProcess],
    flags: ServeFlags,
    actions: cluster_actions.ClusterActions | None,
    *,
    from_store: bool,
) -> int:
    """Serves until a signal comes, and returns its number.

    Raises CommandError if the address cannot be had, or evaluating ends.
    """
    clock = SystemClock()
    async with (
        Client(door.cluster, user_agent=f"runup-serve/{__version__}") if door.cluster else nullcontext()
    ) as client:
        reports = Reports(processes[0], members, clock, every_s=flags.every_s, from_store=from_store)
        statuses = Statuses(processes[1], reports.member, clock, every_s=_STATUS_EVERY_S)
        outlooks = Statuses(processes[2], reports.member, clock, every_s=_OUTLOOK_EVERY_S, work=OUTLOOK)
        policies = Statuses(processes[3], reports.member, clock, every_s=_POLICY_EVERY_S, work=POLICY)
        logins = login.Logins(client, clock) if client is not None else None
        key = secrets.token_urlsafe() if actions and not logins else ""
        server = web_server.ConsoleServer(
            reports,
            statuses,
            pages=pages,
            clock=clock,
            hosts=door.hosts,
            logins=logins,
            actions=actions,
            enter_key=key,
            outlooks=outlooks,
            policies=policies,
        )
        # A future whose result is the number of the first signal that ends the command.
        loop = asyncio.get_running_loop()
        stopped: asyncio.Future[int] = loop.create_future()

        def stop(number: int) -> None:
            if not stopped.done():
                stopped.set_result(number)

        for number in ending_signals():
            # Only the main thread can; in another one whoever runs the loop ends it.
            with suppress(NotImplementedError, RuntimeError, ValueError):
                loop.add_signal_handler(number, stop, number)
        runner = web.AppRunner(server.app(), access_log=None, shutdown_timeout=_STOP_S, max_line_size=_MAX_LINE)
        await runner.setup()
        loops: list[asyncio.Task[None]] = []
        try:
            await _listen(runner, door, flags, key)
            loops += [asyncio.create_task(each.run()) for each in (reports, statuses, outlooks, policies)]
            if door.certificate is not None:
                loops.append(asyncio.create_task(door.certificate.follow()))
            ends: list[asyncio.Future[Any]] = [stopped, *loops]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for ended in loops:
                if ended.done():
                    ended.result()
            return stopped.result()
        except Terminal as error:
            raise CommandError(error.message) from error
        finally:
            await cancel(loops)
            await runner.cleanup()


async def _listen(runner: web.AppRunner, door: _Endpoint, flags: ServeFlags, key: str) -> None:
    """Listens, and prints the address; with a `key` also the address that lets a browser change clusters."""
    context = door.certificate.context if door.certificate else None
    try:
        await LimitedSite(runner, door.host, door.port, ssl_context=context).start()
    except OSError as error:
        raise CommandError(f"--listen {flags.listen}: {error.strerror or error}") from error
    host = f"[{door.host}]" if ":" in door.host else door.host
    port = runner.addresses[0][1]
    address = f"{'https' if context else 'http'}://{host}:{port}"
    sys.stdout.write(f"serving at {address}/ (Ctrl-C ends it)\n")
    if key:
        sys.stdout.write(f"to change clusters, open {address}{request_rules.ENTER}?key={key}\n")
    sys.stdout.flush()
