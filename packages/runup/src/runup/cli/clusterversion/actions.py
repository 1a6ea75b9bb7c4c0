"""The actions of `runup upgrade` once its flags are parsed, one function each.

Each reads ClusterVersion, lets pure functions decide (`targets`, `preflight_request`), sends at most one patch,
prints.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from kubekit.kube.api_errors import KubeError, message_of
from kubekit.kube.client_sync import SyncClient
from runup.advice.decide.update_in_progress import update_in_progress
from runup.api.config_v1 import ClusterVersion, Update
from runup.cli.clusterversion import preflight_end, preflight_request, target_choice, update_under_way
from runup.cli.clusterversion.command_request import UpgradeRequest
from runup.cli.clusterversion.target_choice import Flags
from runup.cli.errors import CommandError
from runup.cli.output import screen_of, write
from runup.cli.preflight.render import finding_texts as rendered
from runup.cli.render.text import machine
from runup.cli.result_output import ResultPrinter
from runup.evaluation.findings import Findings, current_findings, findings_of_target, requested_preflight
from runup.preflight.control import cluster_records
from runup.process import clusterversion_client as clusters
from runup.process.clusterversion_client import namespace
from runup.process.connection import Connection


def run(request: UpgradeRequest, connection: Connection) -> int | None:
    """Carries out the one action that the flags ask for."""
    _check_flags(request)
    write(target_choice.check_flags(request.flags))
    if request.preflight:
        preflight_request.check_target(request.flags)
    action = _action_of_flags(request)
    with connection.client() as client:
        return action(request, client)


def _check_flags(request: UpgradeRequest) -> None:
    """Rejects combinations of our own flags; those of oc's flags are rejected later, by `targets.check_flags`."""
    flags = request.flags
    # A bad duration fails before anything is sent.
    preflight_request.parse_timeout(request.timeout)
    if request.clear_preflight and (flags != Flags() or request.preflight or request.wait):
        raise CommandError("--clear-preflight may not be specified with any other flags")
    if request.preflight and flags.clear:
        raise CommandError("--clear may not be specified with any other flags")
    if (request.wait or request.timeout) and not request.preflight:
        option = "--wait" if request.wait else "--timeout"
        raise CommandError(
            f"{option} needs --mode=preflight: an update is followed with `runup upgrade status --watch`"
        )
    if request.timeout and not request.wait:
        raise CommandError("--timeout needs --wait")
    if request.output == "html" and request.preflight and not request.wait:
        raise CommandError("-o html is a page of the result, so it needs --wait")
    acts = flags.names_target or flags.clear or request.clear_preflight
    if request.output in ("wide", "html") and acts and not request.preflight:
        raise CommandError(f"-o {request.output} is for showing; what an action did is told as text, json or yaml")


def _action_of_flags(request: UpgradeRequest) -> Callable[[UpgradeRequest, SyncClient], int | None]:
    """Returns the function that carries out what the flags ask for."""
    flags = request.flags
    if request.preflight:
        return _request_preflight
    if request.clear_preflight:
        return _clear_preflight
    if flags.clear:
        return _clear_update
    if flags.to_multi_arch:
        return _request_multi_arch
    return _start_update if flags.names_target else _show_state


def _show_state(request: UpgradeRequest, client: SyncClient) -> None:
    """Prints the cluster's updates, or with `-o html` the page of its preflight."""
    if request.output != "html":
        from runup.cli.clusterversion.show import ShowOptions, show_cluster

        show_cluster(client, ShowOptions(request.flags.include_not_recommended, request.output))
        return
    cluster = clusters.read(client)
    history, accepted = (
        cluster_records.read_history(client, namespace()),
        cluster_records.read_accepted(client, cluster),
    )
    findings = current_findings(cluster, history, accepted)
    if findings is None:
        raise CommandError(_NO_PAGE)
    write([("out", _render_page(findings, client, cluster))])


_NO_PAGE = (
    "no preflight is asked for, so there is nothing to make a page of. Ask for one: "
    "runup upgrade --mode=preflight --to=VERSION --wait -o html, or see `runup preflight show -h` for an earlier one"
)


def _render_page(findings: Findings, client: SyncClient, cluster: ClusterVersion) -> str:
    from runup.cli.preflight.render.preflight_page import page

    return page(findings, client.now(), cluster=clusters.name_of(client, cluster))


def _start_update(request: UpgradeRequest, client: SyncClient) -> None:
    start_update(request.flags, client, ResultPrinter("update", request.output))


def start_update(flags: Flags, client: SyncClient, printer: ResultPrinter) -> None:
    """Requests the update that the flags name, and prints the result. Raises CommandError to refuse."""
    planned = planned_update(flags, client, printer)
    if planned is None:
        printer.done(None)
        return
    target, body = planned
    _patch_update(client, body)
    printer.say(("out", f"Requested update to {target.name}\n"))
    printer.done(body, version=target.version, image=target.image)


def planned_update(
    flags: Flags, client: SyncClient, printer: ResultPrinter
) -> tuple[target_choice.Target, clusters.Patch] | None:
    """Returns the release that the flags name and the patch that asks for it; None if there is nothing to do.

    Prints warnings, or why there is nothing to do. Raises CommandError to refuse.
    """
    cluster = clusters.read(client)
    target = update_under_way.way_back(cluster, version=flags.to, image=flags.to_image) or target_choice.choose(
        cluster, flags
    )
    printer.extend(target.said)
    if isinstance(target, target_choice.Nothing):
        # The cluster is not there yet: the text before is oc's, which does not look.
        printer.extend(update_under_way.update_goes_on_message(update_in_progress(cluster)))
        return None
    if cluster.spec.desired_update is not None and cluster.spec.desired_update.accept_risks:
        history, accepted = (
            cluster_records.read_history(client, namespace()),
            cluster_records.read_accepted(client, cluster),
        )
        printer.extend(
            rendered.grown_warnings(
                findings_of_target(cluster, history, target.version, target.image, accepted=accepted)
            )
        )
    if flags.force:
        printer.say(("err", target_choice.FORCE_WARNING))
    # Guards would refuse to end the very update that makes the cluster progress.
    if not target.takes_back:
        printer.extend(target_choice.check_guards(cluster, allow_with_warnings=flags.allow_upgrade_with_warnings))
    body = target_choice.update_patch(
        cluster.spec.desired_update, version=target.version, image=target.image, force=flags.force
    )
    return target, body


def _patch_update(client: SyncClient, body: clusters.Patch) -> None:
    """Patches the request for an update. Raises CommandError if that fails, or if it became a preflight."""
    try:
        answer = clusters.patch(client, body)
    except KubeError as error:
        raise CommandError(f"Unable to upgrade: {message_of(error)}") from error
    if requested_preflight(answer):
        # The patch drops a mode that was read. This mode was set in between: the request is a preflight, not an update.
        raise CommandError(
            "somebody asked for a preflight at the same moment, so no update was requested; run the command again"
        )


def _request_multi_arch(request: UpgradeRequest, client: SyncClient) -> None:
    """Requests the update to the multi-architecture image of the running version."""
    flags, printer = request.flags, ResultPrinter("update", request.output)
    cluster = clusters.read(client)
    desired = cluster.spec.desired_update
    if desired is not None and desired.architecture == "Multi":
        raise CommandError("info: Update to multi cluster architecture has already been requested")
    printer.extend(target_choice.check_guards(cluster, allow_with_warnings=flags.allow_upgrade_with_warnings))
    if flags.force:
        printer.say(("err", target_choice.FORCE_WARNING))
    version = cluster.status.desired.version
    body = target_choice.update_patch(desired, version=version, architecture="Multi", force=flags.force)
    _patch_update(client, body)
    printer.say(("out", "Requested update to multi cluster architecture\n"))
    printer.done(body, version=version, architecture="Multi")


def _clear_update(request: UpgradeRequest, client: SyncClient) -> None:
    """Takes back the request for an update, and prints the result."""
    printer = ResultPrinter("clear", request.output)
    try:
        before, answer = clusters.change(
            client,
            clusters.read(client),
            lambda cluster_version: update_under_way.plan_clearing(cluster_version).patch,
            send=lambda body: clusters.patch(client, body),
        )
    except KubeError as error:
        raise CommandError(f"Unable to cancel current rollout: {message_of(error)}") from error
    clearing = update_under_way.plan_clearing(before)
    printer.extend(clearing.said)
    printer.done(clearing.patch if answer else None)


def _clear_preflight(request: UpgradeRequest, client: SyncClient) -> None:
    """Ends the preflight that is requested or still runs, and prints the result."""
    printer = ResultPrinter("clear-preflight", request.output)
    cluster = clusters.read(client)
    attempt = cluster_records.read_history(client, namespace()).attempt
    still_runs = cluster_records.read_preflight_target(client, namespace())
    before, after = clusters.change(
        client,
        cluster,
        lambda cluster_version: preflight_end.end_preflight(cluster_version, attempt, still_runs).patch,
        send=lambda body: clusters.patch(client, body, strict=True),
    )
    ending = preflight_end.end_preflight(before, attempt, still_runs)
    printer.extend(ending.said)
    printer.done(ending.patch if after else None)


def _request_preflight(request: UpgradeRequest, client: SyncClient) -> int | None:
    """Requests a preflight; with --wait returns the exit code of its result, else None."""
    cluster = clusters.read(client)
    target = preflight_request.target_of(cluster, request.flags)
    before, answer = preflight_request.send(client, cluster, request.flags)
    # Of the object that the request replaced, which another command may have changed since it was read.
    write(preflight_request.notes(before, request.flags))
    if not request.wait:
        write([("out", _requested_text(request, target))])
        return None
    from runup.cli.clusterversion import wait as waiting

    findings: Findings = waiting.wait(
        client, answer, request, timeout_s=preflight_request.parse_timeout(request.timeout), namespace=namespace()
    )
    write([("out", _result_document(request, findings, client, cluster))])
    return findings.exit_code


def _result_document(request: UpgradeRequest, findings: Findings, client: SyncClient, cluster: ClusterVersion) -> str:
    """Returns the preflight's result as text, HTML, JSON or YAML, as the request says."""
    if request.output == "html":
        return _render_page(findings, client, cluster)
    if request.for_program:
        return machine(rendered.as_data(findings), str(request.output))
    return rendered.result(findings, screen_of(sys.stdout), wide=request.wide)


def _requested_text(request: UpgradeRequest, target: Update) -> str:
    """Returns the text about a preflight that was requested, with the command that follows it."""
    if request.for_program:
        named_target = {"target": target.version or target.image}
        named_target |= {"architecture": target.architecture} if target.architecture else {}
        return machine({"requested": {"mode": "Preflight", **named_target}}, str(request.output))
    flags = request.flags
    flag_text = (
        f"--to={flags.to}" if flags.to else f"--to-image={flags.to_image}" if flags.to_image else "--to-multi-arch"
    )
    follow = f"runup upgrade --mode=preflight {flag_text} --wait"
    name = preflight_request.name_of(target)
    return f"Requested preflight of {name}\nFollow it: {follow}, or see how far it is: runup upgrade\n"
