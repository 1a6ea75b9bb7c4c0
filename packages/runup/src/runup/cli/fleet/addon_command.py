"""The command `runup fleet addon`: prints the add-on that a hub of Open Cluster Management puts into its clusters."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kubekit.kube.clock import SystemClock
from kubekit.lang.version import Version, VersionError
from kubekit.rules.version_skew import is_kubernetes, version_of
from runup.checks.catalogue.own_rights import own_rights
from runup.checks.decide.cluster_kinds import ClusterKind
from runup.cli.errors import CommandError
from runup.cli.output import write
from runup.cli.render.text import machine, out
from runup.fleet.decide import hub_addon
from runup.fleet.decide.hub_addon import AddOn, Platform
from runup.preflight.decide import channel_target, schedule
from runup.preflight.decide.cluster_run import Checking
from runup.target.in_cluster import image_for_job

STATUS_EVERY, NEVER = "5m", "never"
# https://kubernetes.io/docs/concepts/overview/working-with-objects/names/
_PLACEMENT = re.compile(r"([a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?)/([a-z0-9](?:[-.a-z0-9]{0,251}[a-z0-9])?)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """The options as typed."""

    placements: tuple[str, ...]
    every: str
    platform: Platform
    to: str
    to_channel: str
    image: str
    status_every: str = ""


def run(flags: Flags) -> int:
    """Prints the objects as YAML. Raises CommandError for options that name nothing that could be made."""
    cron = _cron("--every", flags.every)
    status_every = ""
    if flags.platform == "openshift":
        status_every = "" if flags.status_every == NEVER else flags.status_every or STATUS_EVERY
    elif flags.status_every not in ("", NEVER):
        text = "the add-on reports no status of such a cluster; `runup fleet status --contexts` reads it"
        raise CommandError(f"--status-every {flags.status_every} with --platform kubernetes: {text}")
    status_cron = _cron("--status-every", status_every) if status_every else ""
    placements = []
    for typed in flags.placements:
        if (matched := _PLACEMENT.fullmatch(typed)) is None:
            raise CommandError(f"--placement {typed}: names no Placement; give NAMESPACE/NAME")
        placements.append((matched[1], matched[2]))
    to = _target(flags)
    channel = "" if to else flags.to_channel or channel_target.LATEST
    checking = Checking(image=image_for_job(flags.image), target_version=to, target_channel=channel)
    kind = ClusterKind.OPENSHIFT if flags.platform == "openshift" else ClusterKind.KUBERNETES
    addon = AddOn(
        platform=flags.platform,
        every=flags.every,
        cron=cron,
        checking=checking,
        rights=own_rights(kind),
        placements=tuple(placements),
        status_every=status_every,
        status_cron=status_cron,
    )
    documents = (machine(document, "yaml") for document in hub_addon.objects(addon))
    write([out("---\n".join(documents))])
    return 0


def _cron(option: str, every: str) -> str:
    try:
        return schedule.cron_of(every, SystemClock().now())
    except ValueError as error:
        raise CommandError(f"{option} {error}") from error


def _target(flags: Flags) -> str:
    """Returns the version that is checked, empty for a channel. Raises CommandError."""
    if flags.to and flags.to_channel:
        raise CommandError("--to and --to-channel both name the target; give one of them")
    if flags.platform == "kubernetes":
        if not is_kubernetes(flags.to):
            text = "has no ClusterVersion, which lists the releases of a channel; give --to MINOR, such as --to 1.36"
            raise CommandError(f"--platform kubernetes: such a cluster {text}")
        return str(version_of(flags.to))
    try:
        Version(flags.to or "0.0.0")
    except VersionError as error:
        raise CommandError(f"--to: {error}") from error
    return flags.to
