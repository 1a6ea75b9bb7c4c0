"""The minor version that the cluster must go to is out of support, or soon will be, by its distribution's calendar."""

from __future__ import annotations

from datetime import timedelta

from kubekit.api.core_v1 import Node
from runup.checks.writing import Context, Findings, Snapshot, declared, risk, unknown
from runup.rules.distributions import distribution_of

NAME = "TargetSupportEnded"
WARN_BEFORE_END = timedelta(days=60)


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields a finding if the target's support has ended or ends soon, Unknown if the calendar does not reach it."""
    support, minor, today = distribution_of(snapshot.all(Node)).support, context.target.minor, context.now.date()
    end = support.ends.get(minor)
    calendar = f"{support.source}, as of {support.as_of}"
    # Of a version older than the calendar's first one only this is known: its support ended no later than the first's.
    is_before_calendar = end is None and minor < min(support.ends)
    if is_before_calendar:
        end = min(support.ends.values())
    if end is None and max(support.ends.values()) < today:
        yield unknown(
            NAME,
            f"the calendar of {support.of} ({calendar}) ends with 1.{max(support.ends)}",
            fix="Look up how long the target is supported, where the calendar is published.",
        )
    # A version newer than the calendar's last one is supported at least as long as that one.
    if end is None or end - today > WARN_BEFORE_END:
        return
    ends = "ended" if end < today else "ends"
    paid = support.paid.get(minor)
    longer = f", paid support {'ended' if paid < today else 'ends'} on {paid}" if paid else ""
    later = [each for each in sorted(support.ends) if each > minor and support.ends[each] - today > WARN_BEFORE_END]
    end_text = "at the latest on" if is_before_calendar else "on"
    yield risk(
        NAME,
        f"Support of {support.of} 1.{minor} {ends} {end_text} {end}{longer} ({calendar}).",
        severity="warning" if end < today else "info",
        fix=f"Update to 1.{later[0]} or later: `runup preflight run --to 1.{later[0]}` plans the steps."
        if later
        else "See the calendar for a minor version that is supported for longer.",
    )


CHECK = declared(run, NAME, "kubernetes", reads=(Node,), by_hand=True, rank=369, clusters="Kubernetes")
