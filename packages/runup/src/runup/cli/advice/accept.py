"""The command `runup upgrade accept RISK[,RISK-...]`: accepts risks by name. `plan` is pure.

Texts on stdout are oc's. Beyond oc, a name that no update carries gets a warning on stderr with the most similar known
name, and the reason, user and end of an acceptance are recorded beside the API's names (`records`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click
import msgspec

from kubekit.kube.api_errors import message_of
from kubekit.lang.gotext import quote_go
from runup.cli import cluster_completion
from runup.cli.connection import connection_of, connection_options
from runup.cli.errors import CommandError, UsageProblem
from runup.cli.lazy import Command
from runup.cli.options import option
from runup.preflight.control import cluster_records

if TYPE_CHECKING:
    from kubekit.kube.client_sync import SyncClient
    from runup.api.config_v1 import ClusterVersion
    from runup.cli.render.text import Output
    from runup.cli.result_output import ResultPrinter

# A little wider than a report's names, because the update service and the cluster name risks as well.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_MAX_NAME = 256


class Change(msgspec.Struct, frozen=True):
    """The requested change; `remove` only without `replace`."""

    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    replace: bool = False
    clear: bool = False

    def applied(self, existing: Sequence[str]) -> tuple[str, ...]:
        """Returns the list afterwards: kept names in their order, new names sorted at the end."""
        if self.clear:
            return ()
        kept_names = () if self.replace else tuple(name for name in existing if name not in self.remove)
        return (*kept_names, *(name for name in sorted(set(self.add)) if name not in kept_names))

    def left(self, existing: Sequence[str]) -> tuple[str, ...]:
        """Returns the names that are no longer accepted: removed from the list, or requested to be removed."""
        after = self.applied(existing)
        return tuple(name for name in dict.fromkeys((*existing, *self.remove)) if name not in after)


def plan(args: Sequence[str], *, replace: bool, clear: bool) -> Change:
    """Returns the change that the command line asks for. Raises ValueError with oc's message."""
    if clear and replace:
        raise ValueError("--clear and --replace are mutually exclusive")
    if clear:
        if args:
            raise ValueError(f"unknown command {quote_go(' '.join(args))}")
        return Change(clear=True)
    if not args:
        raise ValueError("no positional arguments given")
    if len(args) > 1:
        raise ValueError("multiple positional arguments given")
    items = [item.strip() for item in args[0].split(",")]
    for item in items:
        if item in ("", "-"):
            raise ValueError(f"illegal risk {quote_go(item)}")
    add = tuple(item for item in items if not item.endswith("-"))
    remove = tuple(item[:-1] for item in items if item.endswith("-"))
    if conflicting := sorted(set(add) & set(remove)):
        raise ValueError(f"requested risks with both Risk and Risk-: {','.join(conflicting)}")
    if replace and remove:
        raise ValueError("The suffix '-' on risks is not allowed if --replace is specified")
    return Change(add, remove, replace)


def check_names(change: Change, existing: Sequence[str], known_names: Sequence[str]) -> None:
    """Raises CommandError for a new name that no risk can have: it would stay accepted for ever without effect."""
    for name in change.add:
        if name in known_names or name in existing or (_NAME.fullmatch(name) and len(name) <= _MAX_NAME):
            continue
        from difflib import get_close_matches

        near = get_close_matches(name, known_names, n=1, cutoff=0.6)
        hint = (
            f"did you mean {quote_go(near[0])}?" if near else "see them with `runup upgrade --include-not-recommended`"
        )
        text = f"no risk can be called {quote_go(name)}: names are letters, digits, dots and dashes"
        raise CommandError(f"{text}; {hint} Nothing was changed" if near else f"{text}; {hint}. Nothing was changed")


def unknown_names(change: Change, existing: Sequence[str], known_names: Sequence[str]) -> Iterator[str]:
    """Yields a warning for each new name that no update of this cluster carries now."""
    for name in sorted(set(change.add) - set(known_names) - set(existing)):
        from difflib import get_close_matches

        near = get_close_matches(name, known_names, n=1, cutoff=0.6)
        hint = f"; did you mean {quote_go(near[0])}?" if near else ""
        yield f"warning: no update of this cluster has a risk {quote_go(name)} now{hint}\n"


def without_effect(change: Change, cluster: ClusterVersion) -> Iterator[str]:
    """Yields a warning for each new name whose acceptance does not lift the risk, for those updates."""
    from kubekit.api.conditions import find
    from runup.advice.decide.lifting import is_acceptable

    for name in sorted(set(change.add)):
        targets = [
            update.release.version
            for update in cluster.status.conditional_updates
            for risk in update.risks
            if risk.name == name
            and not is_acceptable(cluster, update.release.version, name, find(risk.conditions, "Applies"))
        ]
        if targets:
            yield (
                f"warning: accepting {name} does not lift it for {', '.join(targets)}: "
                f"see `runup preflight explain {name}`\n"
            )


# `accept -NAME` is how the design document writes it, `NAME-` how oc reads it; click would take the first for a flag.
@click.command("accept", cls=Command, context_settings={"ignore_unknown_options": True})
@click.argument("risks", nargs=-1, metavar="RISK[,RISK-...]", shell_complete=cluster_completion.risks)
@option("--replace", is_flag=True, help="Accept exactly the risks named, and no others.")
@option("--clear", is_flag=True, help="Accept no risk any more.")
@option("--reason", "reason", metavar="TEXT", default="", help="Why; recorded with your name.")
@option("--until", metavar="TIME", default="", help="How long: 30d, 12h, 2026-12-31 or 2026-12-31T12:00:00Z.")
@option("-o", "--output", type=click.Choice(["json", "yaml"]), help="Output format for programs.")
@connection_options
@click.pass_context
def accept(
    ctx: click.Context,
    risks: tuple[str, ...],
    replace: bool,
    clear: bool,
    reason: str,
    until: str,
    output: str | None,
) -> None:
    """Accept risks exposed to conditional updates.

    \b
      runup upgrade accept A,B          accept A and B too
      runup upgrade accept A-           accept A no longer
      runup upgrade accept --replace C  accept C and nothing else
      runup upgrade accept --clear      accept nothing
      runup upgrade accept A --until 30d --reason "fixed in 5.2.3"
    """
    for word in risks:
        if word.startswith("--"):
            raise click.NoSuchOption(word, ctx=ctx)
    try:
        change = plan([_suffixed(word) for word in risks], replace=replace, clear=clear)
    except ValueError as error:
        raise UsageProblem(str(error), ctx) from error
    if reason and not change.add:
        raise UsageProblem("--reason says why risks are accepted; name some", ctx)
    if until and not change.add:
        raise UsageProblem("--until says how long risks are accepted; name some", ctx)
    _carry_out(change, ctx, AcceptanceReason(reason.strip(), until), output)


class AcceptanceReason(msgspec.Struct, frozen=True):
    """The reason and end of an acceptance as typed; empty if not given."""

    reason: str = ""
    until: str = ""


def _suffixed(argument: str) -> str:
    """Returns `-A,B` as `A-,B`: risk names start with a capital letter, so a leading minus can only mean removal."""
    items = [item.strip() for item in argument.split(",")]
    return ",".join(f"{item[1:]}-" if item.startswith("-") else item for item in items)


def _carry_out(change: Change, ctx: click.Context, reason: AcceptanceReason, output: str | None) -> None:
    from runup.cli.result_output import ResultPrinter

    with connection_of(ctx).client() as client:
        carry_out(change, client, reason, ResultPrinter("accept", output))


def carry_out(change: Change, client: SyncClient, reason: AcceptanceReason, printer: ResultPrinter) -> None:
    """Records the reason, accepts the risks and prints the result. Keeps concurrent changes of others.

    Raises CommandError if a request fails.
    """
    from kubekit.kube.api_errors import KubeError
    from runup.cli.advice import acceptance_records
    from runup.evaluation.findings import objects_of
    from runup.process import clusterversion_client as clusters

    cluster = clusters.read(client, no="no", server="")
    warnings = checked(change, cluster)
    # A record is written before its name and removed after it: a name without its record would never expire.
    history = cluster_records.read_history(client, clusters.namespace()) if change.add else None
    objects = {name: objects_of(cluster, history, name) for name in change.add} if history else {}
    printer.extend(warnings)
    recorded = acceptance_records.keep_records(client, change.add, reason.reason, reason.until, objects, printer)
    try:
        # Strict: a server without the field would drop it and answer as if the risks were accepted.
        before, answer = clusters.change(
            client,
            cluster,
            lambda cluster_version: _patch(change, cluster_version),
            send=lambda body: clusters.patch(client, body, strict=True),
        )
    except KubeError as error:
        raise CommandError(f"unable to accept risks: {message_of(error)}") from error
    after = change.applied(_accepted_names(before))
    recorded = acceptance_records.forget_records(client, set(change.left(_accepted_names(before))), printer) or recorded
    text = (
        "Accept risks are not changed" if answer is None and not recorded else f"Accept risks are [{', '.join(after)}]"
    )
    printer.say(("out", f"info: {text}\n"))
    printer.done(_patch(change, before) if answer else None, acceptRisks=list(after), recorded=recorded)


def checked(change: Change, cluster: ClusterVersion) -> list[Output]:
    """Returns warnings about the names to be accepted. Raises CommandError for one that no risk can have."""
    from runup.evaluation.findings import known_risk_names

    known_names, existing = known_risk_names(cluster), _accepted_names(cluster)
    check_names(change, existing, known_names)
    lines = (*unknown_names(change, existing, known_names), *without_effect(change, cluster))
    return [("err", line) for line in lines]


def _accepted_names(cluster: ClusterVersion) -> tuple[str, ...]:
    desired = cluster.spec.desired_update
    return tuple(risk.name for risk in desired.accept_risks) if desired else ()


def _patch(change: Change, cluster: ClusterVersion) -> dict[str, Any] | None:
    """Returns the merge patch that makes the list as requested; None if it already is."""
    existing = _accepted_names(cluster)
    after = change.applied(existing)
    if after == existing:
        return None
    return {"spec": {"desiredUpdate": {"acceptRisks": [{"name": name} for name in after] or None}}}
