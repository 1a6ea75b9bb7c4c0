"""ClusterVersion -> what `oc adm upgrade` prints without flags, byte for byte, in order and by stream. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from runup.api import codec
from runup.api.config_v1 import ClusterVersion
from runup.api.meta_v1 import Condition
from runup.cli.findings import not_recommended
from runup.cli.parsing import newest_first
from runup.cli.render.text import Output, columns, err, indented, out, reason_and_message
from runup.domain.conditions import find

_NO_INFO = "warning: No current {type} info, see `oc describe clusterversion` for more details.\n"
_NO_UPDATES = (
    "No updates available. You may still upgrade to a specific release image with --to-image or wait for new updates "
    "to be available.\n"
)
_NONE_CONDITIONAL = "\nNo updates which are not recommended based on your cluster configuration are available.\n"
_MORE = (
    "\nAdditional updates which are not recommended{unsure} for your cluster configuration are available, to view "
    "those re-run the command with --include-not-recommended.\n"
)


def overview(cluster: ClusterVersion, *, include_not_recommended: bool) -> Iterator[Output]:
    """Everything that the command prints about the cluster and its updates."""
    yield from _state(cluster)
    yield from _channel(cluster)
    yield from _recommended(cluster)
    yield from _conditional(cluster, shown=include_not_recommended)


def _state(cluster: ClusterVersion) -> Iterator[Output]:
    conditions = cluster.status.conditions
    failing = find(conditions, "Failing")
    if failing is None:
        yield err(_NO_INFO.format(type="Failing"))
    elif failing.status != "False":
        yield out(f"Failing={failing.status}:\n\n{_detail(failing)}\n")
    progressing = find(conditions, "Progressing")
    if progressing is None or not progressing.message:
        yield err(_NO_INFO.format(type="Progressing"))
    elif progressing.status == "True":
        yield out(f"info: An upgrade is in progress. {progressing.message}\n")
    else:
        yield out(f"{progressing.message}\n")
    yield out("\n")
    upgradeable = find(conditions, "Upgradeable")
    if upgradeable and upgradeable.status == "False":
        yield out(f"Upgradeable=False\n\n{_detail(upgradeable)}\n")
    accepted = find(conditions, "ReleaseAccepted")
    if accepted and accepted.status != "True":
        yield out(f"ReleaseAccepted={accepted.status}\n\n{_detail(accepted)}\n")


def _channel(cluster: ClusterVersion) -> Iterator[Output]:
    channel, upstream = cluster.spec.channel, cluster.spec.upstream
    if not channel:
        return
    if upstream:
        yield out(f"Upstream: {upstream}\n")
    else:
        yield out("Upstream is unset, so the cluster will use an appropriate default.\n")
    known = ", ".join(cluster.status.desired.channels)
    yield out(f"Channel: {channel} (available channels: {known})\n" if known else f"Channel: {channel}\n")


def _recommended(cluster: ClusterVersion) -> Iterator[Output]:
    updates = newest_first(cluster.status.available_updates or (), lambda release: release.version)
    retrieved = find(cluster.status.conditions, "RetrievedUpdates")
    stale = retrieved if retrieved and retrieved.status == "False" else None
    if updates:
        rows = [("  VERSION", "IMAGE"), *((f"  {release.version}", release.image) for release in updates)]
        yield out(f"\nRecommended updates:\n\n{columns(rows, minwidth=14, padding=1)}")
    if stale:
        what = "refresh" if updates else "display"
        yield err(f"warning: Cannot {what} available updates:\n{_detail(stale)}\n")
    elif not updates:
        yield out(_NO_UPDATES)


def _conditional(cluster: ClusterVersion, *, shown: bool) -> Iterator[Output]:
    found = not_recommended(cluster.status.conditional_updates)
    if not shown:
        unsure = next((c.status for _, c in found if c.status not in ("True", "False")), "")
        hint = f', or where the recommended status is "{unsure}",' if unsure else ""
        if found:
            yield out(_MORE.format(unsure=hint))
        return
    if not found:
        yield out(_NONE_CONDITIONAL)
        return
    yield out("\nUpdates with known issues:\n")
    for update, condition in newest_first(found, lambda pair: pair[0].release.version):
        yield out(
            f"\n  Version: {update.release.version}\n  Image: {update.release.image}\n  Reason: {condition.reason}\n"
            f"  Message: {indented(condition.message.strip())}\n"
        )


def _detail(condition: Condition) -> str:
    return reason_and_message(condition.reason, condition.message) + "\n"


def as_data(cluster: ClusterVersion) -> dict[str, Any]:
    """The same for programs: the cluster's release, its conditions, and both lists of updates, newest first."""
    status = cluster.status
    available = newest_first(status.available_updates or (), lambda release: release.version)
    conditional = newest_first(status.conditional_updates, lambda update: update.release.version)
    return {
        "desired": codec.to_dict(status.desired),
        "channel": cluster.spec.channel,
        "upstream": cluster.spec.upstream,
        "desiredUpdate": codec.to_dict(cluster.spec.desired_update) if cluster.spec.desired_update else None,
        "conditions": codec.to_dict(status.conditions),
        "availableUpdates": None if status.available_updates is None else codec.to_dict(available),
        "conditionalUpdates": codec.to_dict(conditional),
    }
