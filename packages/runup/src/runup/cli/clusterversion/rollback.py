"""`runup upgrade rollback`: back to the previous release, within one minor version. `plan` is pure; texts are oc's."""

from __future__ import annotations

import click
import msgspec

from runup.api.clusterversion_json import JSON, Facts, Release, mapping, read, text
from runup.cli.connection import connection_of, connection_options
from runup.cli.errors import CommandError, UsageProblem
from runup.cli.lazy import Command
from runup.cli.options import option
from runup.cli.render.text import out
from runup.cli.result_output import ResultPrinter
from runup.cli.versions import check_version, numbers, order
from runup.process.connection import Connection


class Plan(msgspec.Struct, frozen=True):
    """The previous release, and the patch that requests it."""

    previous: Release
    patch: JSON


def plan(facts: Facts) -> Plan:
    """Returns the rollback to the release that the cluster came from. Raises CommandError if that is not supported."""
    now = facts.desired
    try:
        check_version(now.version)
    except ValueError as error:
        raise CommandError(f"invalid ClusterVersion status.desired.version: {error}") from error
    before = _previous_release(facts)
    if order(before.version) >= order(now.version):
        versions_text = f"{before.version} ({before.image}) is greater than or equal to current version {now.version}"
        way_out = "Use 'oc adm upgrade ...' to update, and not this rollback command."
        raise CommandError(f"previous version {versions_text} ({now.image}).  {way_out}")
    if numbers(before.version)[:2] != numbers(now.version)[:2]:
        versions_text = (
            f"{before.version} is less than the current target {now.version} and matches the cluster's previous"
        )
        raise CommandError(
            f"{versions_text} version, but rollbacks that change major or minor versions are not recommended."
        )
    progressing = facts.condition("Progressing")
    if progressing is None:
        raise CommandError("no current Progressing info, see `oc describe clusterversion` for more details.\n")
    if progressing.status != "False":
        why = f"Progressing={progressing.status}: {progressing.reason}: {progressing.message}"
        raise CommandError(f"unable to rollback while an update is {why}.")
    return Plan(before, _rollback_patch(facts, before))


def _previous_release(facts: Facts) -> Release:
    """Returns the newest release of the history but the current one. Raises CommandError if there is none."""
    now = facts.desired
    before = next((r for r in facts.history if (r.version, r.image) != (now.version, now.image)), None)
    if before is None:
        current = f"{now.version} ({now.image})"
        raise CommandError(
            f"no previous version found in ClusterVersion's status.history besides the current {current}."
        )
    try:
        check_version(before.version)
    except ValueError as error:
        raise CommandError(f'previous version "{before.version}" invalid SemVer: {error}') from error
    return before


def _rollback_patch(facts: Facts, before: Release) -> JSON:
    """Returns the merge patch that requests the release `before`."""
    update: JSON = {"architecture": "", "version": before.version, "image": before.image, "force": False}
    if text(mapping(mapping(facts.json, "spec"), "desiredUpdate"), "mode"):
        # Without it a merge patch would keep the mode, and the request would be a preflight.
        update["mode"] = None
    return {"spec": {"desiredUpdate": update}}


@click.command("rollback", cls=Command)
@click.argument("words", nargs=-1, metavar="")
@option("-o", "--output", type=click.Choice(["json", "yaml"]), help="Output format for programs.")
@connection_options
@click.pass_context
def rollback(ctx: click.Context, words: tuple[str, ...], output: str | None) -> None:
    """Rollback the cluster to the previous release.

    \b
      runup upgrade rollback           back to the release that the cluster came from
      runup upgrade rollback -o json   the same, for a script
    """
    if words:
        from kubekit.lang.gotext import quote_go

        raise UsageProblem(f"unknown command {quote_go(' '.join(words))}", ctx)
    _carry_out(connection_of(ctx), output)


def _carry_out(connection: Connection, output: str | None) -> None:
    """Requests the rollback and prints the result. Raises CommandError if the server refuses it."""
    from kubekit.kube.api_errors import KubeError, message_of
    from runup.process import clusterversion_client as clusters

    printer = ResultPrinter("rollback", output)
    with connection.client() as client:
        facts = read(clusters.read_raw(client, no="no"))
        decided = plan(facts)
        try:
            clusters.patch(client, decided.patch)
        except KubeError as error:
            raise CommandError(f"Unable to rollback: {message_of(error)}") from error
        names = f"from {facts.desired.version} to {decided.previous.version}"
        printer.say(out(f"Requested rollback {names}\n"))
        printer.done(decided.patch, version=decided.previous.version, image=decided.previous.image)
