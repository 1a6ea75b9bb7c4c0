"""The actions of `runup upgrade` once its flags are parsed: each checks flags, calls the use case, prints."""

from __future__ import annotations

import re
import sys

import msgspec

from kubekit.error_types import InputError
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.clock import Clock
from runup.api.config_v1 import ClusterVersion
from runup.cli.clusterversion.show import ShowOptions, show_cluster
from runup.cli.clusterversion.wait_progress import progress_shower
from runup.cli.output import screen_of, write
from runup.cli.preflight.render import finding_texts as rendered
from runup.cli.render.text import Output, machine
from runup.cli.result_output import ResultPrinter
from runup.clusterversion.control import upgrade, upgrade_wait
from runup.clusterversion.decide import upgrade_request
from runup.clusterversion.decide.upgrade_target import Flags, check_flags
from runup.preflight.control import cluster_records
from runup.preflight.decide.findings import Findings, current_findings, requested_preflight
from runup.process import clusterversion_client as clusters
from runup.process.clusterversion_client import namespace
from runup.process.connection import Connection

DEFAULT_TIMEOUT_S = 15 * 60.0
_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?")


class UpgradeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed command line of `runup upgrade`."""

    flags: Flags
    preflight: bool = False
    wait: bool = False
    timeout: str | None = None
    clear_preflight: bool = False
    output: str | None = None

    @property
    def for_program(self) -> bool:
        """Returns whether stdout is read as a whole: data, or a page. Progress goes to stderr then."""
        return self.output in ("json", "yaml", "html")


def parse_timeout(text: str | None) -> float:
    """Returns the seconds of a duration such as 90s, 15m or 1h30m. Raises InputError."""
    if text is None:
        return DEFAULT_TIMEOUT_S
    match = _DURATION.fullmatch(text)
    if match is None or not any(match.groups()):
        raise InputError(f'--timeout must be a duration such as 90s, 15m or 1h30m, not "{text}"')
    hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return hours * 3600 + minutes * 60 + seconds


def run(request: UpgradeRequest, connection: Connection) -> int | None:
    """Carries out the one action that the flags ask for. Raises InputError for flags that contradict each other."""
    flags = request.flags
    # A bad duration fails before anything is sent.
    parse_timeout(request.timeout)
    if request.clear_preflight and (flags != Flags() or request.preflight or request.wait):
        raise InputError("--clear-preflight may not be specified with any other flags")
    if request.preflight and flags.clear:
        raise InputError("--clear may not be specified with any other flags")
    if (request.wait or request.timeout) and not request.preflight:
        option = "--wait" if request.wait else "--timeout"
        raise InputError(f"{option} needs --mode=preflight: an update is followed with `runup upgrade status --watch`")
    if request.timeout and not request.wait:
        raise InputError("--timeout needs --wait")
    if request.output == "html" and request.preflight and not request.wait:
        raise InputError("-o html is a page of the result, so it needs --wait")
    acts = flags.names_target or flags.clear or request.clear_preflight
    if request.output in ("wide", "html") and acts and not request.preflight:
        raise InputError(f"-o {request.output} is for showing; the result of an action is text, json or yaml")
    write(check_flags(flags))
    if request.preflight:
        upgrade_request.check_target(flags)
    with connection.client() as client:
        if request.preflight:
            return _preflight(request, client)
        if not acts:
            _show_state(request, client)
            return None
        clears = request.clear_preflight or flags.clear
        action = "clear-preflight" if request.clear_preflight else "clear" if clears else "update"
        printer = ResultPrinter(action, request.output)
        if clears:
            clear = upgrade.clear_preflight if request.clear_preflight else upgrade.clear_update
            sent = clear(client, printer.say)
        else:
            start = upgrade.request_multi_arch if flags.to_multi_arch else upgrade.start_update
            sent = start(flags, client, printer.say)
        printer.done(sent.patch, **sent.details)
        return None


def _show_state(request: UpgradeRequest, client: SyncClient) -> None:
    """Prints the cluster's updates, or with `-o html` the page of its preflight."""
    if request.output != "html":
        show_cluster(client, ShowOptions(request.flags.include_not_recommended, request.output))
        return
    cluster = clusters.read(client)
    history = cluster_records.read_history(client, namespace())
    findings = current_findings(cluster, history, cluster_records.read_accepted(client, cluster))
    if findings is None:
        raise InputError(
            "no preflight is asked for, so there is nothing to make a page of. Ask for one: "
            "runup upgrade --mode=preflight --to=VERSION --wait -o html, or see `runup preflight show -h` for an "
            "earlier one"
        )
    write([("out", _render_page(findings, client, cluster))])


def _render_page(findings: Findings, client: SyncClient, cluster: ClusterVersion) -> str:
    from runup.cli.preflight.render.preflight_page import page

    return page(findings, client.now(), cluster=clusters.name_of(client, cluster))


def _preflight(request: UpgradeRequest, client: SyncClient) -> int | None:
    """Requests a preflight; with --wait prints its result and returns the exit code, else None."""
    cluster, flags = clusters.read(client), request.flags
    target = upgrade_request.target_of(cluster, flags)
    answer = upgrade.request_preflight(client, cluster, flags, _say)
    if request.wait:
        timeout_s = parse_timeout(request.timeout)
        findings = wait(client, answer, request, timeout_s=timeout_s, namespace=namespace())
        if request.output == "html":
            result = _render_page(findings, client, cluster)
        elif request.for_program:
            result = machine(rendered.as_data(findings), str(request.output))
        else:
            result = rendered.result(findings, screen_of(sys.stdout), wide=request.output == "wide")
        write([("out", result)])
        return findings.exit_code
    if request.for_program:
        named_target = {"target": target.version or target.image}
        named_target |= {"architecture": target.architecture} if target.architecture else {}
        write([("out", machine({"requested": {"mode": "Preflight", **named_target}}, str(request.output)))])
        return None
    flag = f"--to={flags.to}" if flags.to else f"--to-image={flags.to_image}" if flags.to_image else "--to-multi-arch"
    follow = f"runup upgrade --mode=preflight {flag} --wait"
    write(
        [
            ("out", f"Requested preflight of {upgrade_request.name_of(target)}\n"),
            ("out", f"Follow it: {follow}, or see how far it is: runup upgrade\n"),
        ]
    )
    return None


def wait(
    client: SyncClient,
    requested: ClusterVersion,
    request: UpgradeRequest,
    *,
    timeout_s: float,
    namespace: str,
    clock: Clock | None = None,
) -> Findings:
    """Shows the preflight's progress and returns its findings; on stderr if stdout is for a program."""
    try:
        with progress_shower(sys.stderr if request.for_program else sys.stdout) as show:
            return upgrade_wait.wait(
                client, requested, timeout_s=timeout_s, namespace=namespace, show=show, say=_say, clock=clock
            )
    except KeyboardInterrupt:
        version, image = requested_preflight(requested) or ("", "")
        sys.stderr.write(f"\nThe preflight of {version or image} continues. {upgrade_wait.LEFT}\n")
        raise


def _say(*output: Output) -> None:
    write(output)
