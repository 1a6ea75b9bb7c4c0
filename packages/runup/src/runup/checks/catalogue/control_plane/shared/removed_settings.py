"""Yields the findings about settings (feature gates, flags, admission plug-ins) that Kubernetes has removed.

In: the settings of the cluster, and the name of a table that lists by minor version of Kubernetes what it removed. Out:
a risk for each setting that the target's Kubernetes does not know, and an Unknown finding where the table ends before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from runup.checks.catalogue.control_plane.shared.component_settings import Setting
from runup.checks.catalogue.declaring import risk, unknown_finding
from runup.checks.catalogue.shared.kubernetes_versions import target_minor
from runup.checks.decide.model import Context, Finding
from runup.checks.decide.removal_tables import table


def removed_findings(
    name: str,
    setting_kind: str,
    settings: Iterable[Setting],
    context: Context,
    table_name: str,
    removed_names: Callable[[Any, Setting], Iterable[str]],
) -> Iterator[Finding]:
    """Yields a finding for each setting that the target does not know, or all settings if the table ends before it.

    `name` is the risk's name, `setting_kind` what its message calls a setting ("Feature gate"). `removed_names` returns
    from a row of the table, which is one minor version, the names that it removed for the component of a setting.
    """
    all_settings = list(settings)
    if not all_settings:
        return
    target, rows = target_minor(context), table(table_name)
    if target is None:
        why = "the target does not say which Kubernetes it ships"
        yield unknown_finding(
            name, why, [setting.holder for setting in all_settings], fix="Ask the publisher of the release."
        )
        return
    for setting in all_settings:
        place = f"{type(setting.holder).__name__} {setting.holder.metadata.name}, {setting.path}"
        is_set = f"{setting_kind} {setting.name} of {setting.component} is set ({place})"
        # From 0, because a setting may be left over from long before the running version.
        minor = next(
            (number for number, row in rows.between(0, target) if setting.name in removed_names(row, setting)), None
        )
        if minor is not None:
            yield risk(
                name,
                f"{is_set}, and Kubernetes 1.{minor} removed it; {context.target} ships {context.target_kubernetes}.",
                [setting.holder],
                severity="critical",
                fix=f"Take it out of {place}; `oc get {type(setting.holder).__name__.lower()} -o yaml` shows it gone.",
            )
        elif not rows.knows(target):
            yield unknown_finding(
                name,
                f"{is_set}, and the table of what is removed ends with Kubernetes 1.{rows.last}",
                [setting.holder],
                fix="Look it up in the changelogs of Kubernetes, or take it out.",
            )
