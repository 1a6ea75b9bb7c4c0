"""Renders what `oc adm upgrade` prints without flags, byte for byte, in order and by stream. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubekit.lang.oc_version import newest_first
from runup.api.clusterversion_json import Condition, Facts, mapping, mappings, text
from runup.cli.render.text import Output, columns, err, indent_lines, out, reason_and_message

NO_INFO = "warning: No current {type} info, see `oc describe clusterversion` for more details.\n"
NO_UPDATES = (
    "No updates available. You may still upgrade to a specific release image with --to-image or wait for new updates "
    "to be available.\n"
)
_NONE_CONDITIONAL = "\nNo updates which are not recommended based on your cluster configuration are available.\n"
_MORE = (
    "\nAdditional updates which are not recommended{unsure} for your cluster configuration are available, to view "
    "those re-run the command with --include-not-recommended.\n"
)


def overview(cluster: Facts, *, include_not_recommended: bool) -> Iterator[Output]:
    """Yields everything that the command prints about the cluster and its updates."""
    # Failing, Progressing, Upgradeable and ReleaseAccepted, in the words of `oc adm upgrade`.
    failing = cluster.condition("Failing")
    if failing is None:
        yield err(NO_INFO.format(type="Failing"))
    elif failing.status != "False":
        yield out(f"Failing={failing.status}:\n\n{_detail(failing)}\n")
    progressing = cluster.condition("Progressing")
    if progressing is None or not progressing.message:
        yield err(NO_INFO.format(type="Progressing"))
    elif progressing.status == "True":
        yield out(f"info: An upgrade is in progress. {progressing.message}\n")
    else:
        yield out(f"{progressing.message}\n")
    yield out("\n")
    upgradeable = cluster.condition("Upgradeable")
    if upgradeable and upgradeable.status == "False":
        yield out(f"Upgradeable=False\n\n{_detail(upgradeable)}\n")
    accepted = cluster.condition("ReleaseAccepted")
    if accepted and accepted.status != "True":
        yield out(f"ReleaseAccepted={accepted.status}\n\n{_detail(accepted)}\n")
    yield from _channel_lines(cluster)
    # The recommended updates, and why they may be out of date.
    updates = newest_first(cluster.available, lambda release: release.version)
    retrieved = cluster.condition("RetrievedUpdates")
    # The lists may be from an earlier answer of the update service.
    stale = retrieved if retrieved and retrieved.status == "False" else None
    if updates:
        rows = [("  VERSION", "IMAGE"), *((f"  {release.version}", release.image) for release in updates)]
        yield out(f"\nRecommended updates:\n\n{columns(rows, minwidth=14, padding=1)}")
    if stale:
        action = "refresh" if updates else "display"
        yield err(f"warning: Cannot {action} available updates:\n{_detail(stale)}\n")
    elif not updates:
        yield out(NO_UPDATES)
    yield from _conditional_updates(cluster, show_updates=include_not_recommended)


def _channel_lines(cluster: Facts) -> Iterator[Output]:
    """Yields where updates come from: the upstream and the channel; nothing without a channel."""
    if not cluster.channel:
        return
    if cluster.upstream:
        yield out(f"Upstream: {cluster.upstream}\n")
    else:
        yield out("Upstream is unset, so the cluster will use an appropriate default.\n")
    yield out(channel_line(cluster))


def channel_line(cluster: Facts) -> str:
    """Returns the line with the channel and those that contain the running release."""
    channels_text = ", ".join(cluster.channels)
    return (
        f"Channel: {cluster.channel} (available channels: {channels_text})\n"
        if channels_text
        else f"Channel: {cluster.channel}\n"
    )


def _conditional_updates(cluster: Facts, *, show_updates: bool) -> Iterator[Output]:
    """Yields the updates with known issues, or only a hint to them unless `show_updates`."""
    updates = cluster.not_recommended
    if not show_updates:
        unsure = next((c.status for _, c in updates if c.status not in ("True", "False")), "")
        hint = f', or where the recommended status is "{unsure}",' if unsure else ""
        if updates:
            yield out(_MORE.format(unsure=hint))
        return
    if not updates:
        yield out(_NONE_CONDITIONAL)
        return
    yield out("\nUpdates with known issues:\n")
    for update, condition in newest_first(updates, lambda pair: pair[0].release.version):
        yield out(
            f"\n  Version: {update.release.version}\n  Image: {update.release.image}\n  Reason: {condition.reason}\n"
            f"  Message: {indent_lines(condition.message.strip())}\n"
        )


def _detail(condition: Condition) -> str:
    return reason_and_message(condition.reason, condition.message) + "\n"


def as_data(cluster: Facts) -> dict[str, Any]:
    """Returns the same for programs: the cluster's release, its conditions, and both lists of updates, newest first."""
    spec, status = mapping(cluster.json, "spec"), mapping(cluster.json, "status")
    available = newest_first(mappings(status, "availableUpdates"), lambda release: text(release, "version"))
    conditional = newest_first(
        mappings(status, "conditionalUpdates"), lambda update: text(mapping(update, "release"), "version")
    )
    return {
        "desired": mapping(status, "desired"),
        "channel": cluster.channel,
        "upstream": cluster.upstream,
        "desiredUpdate": spec.get("desiredUpdate"),
        "conditions": mappings(status, "conditions"),
        "availableUpdates": None if status.get("availableUpdates") is None else available,
        "conditionalUpdates": conditional,
    }
