"""Judges the settings of gates, flags and plug-ins by a table of what Kubernetes removed, for the checks of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from runup.checks.catalogue.control_plane.shared.component_settings import Setting
from runup.checks.catalogue.declaring import risk, unsure
from runup.checks.catalogue.shared.kubernetes_versions import target_minor
from runup.checks.decide.model import Context, Finding
from runup.checks.decide.removal_tables import table


def judge(
    name: str,
    noun: str,
    settings: Iterable[Setting],
    context: Context,
    table_name: str,
    row_of: Callable[[Any, Setting], Iterable[str]],
) -> Iterator[Finding]:
    """Yields a finding for every setting that the target does not know, and for those beyond the table's range.

    `row_of` returns the names of the setting's kind in a row of the table.
    """
    all_settings = list(settings)
    if not all_settings:
        return
    target, rows = target_minor(context), table(table_name)
    if target is None:
        why = "the target does not say which Kubernetes it ships"
        yield unsure(name, why, [each.holder for each in all_settings], fix="Ask the publisher of the release.")
        return
    for setting in all_settings:
        where = f"{type(setting.holder).__name__} {setting.holder.metadata.name}, {setting.path}"
        # From 0, because a setting may be left over from long before the running version.
        minor = next((number for number, row in rows.between(0, target) if setting.name in row_of(row, setting)), None)
        if minor is not None:
            yield risk(
                name,
                f"{noun} {setting.name} of {setting.component} is set ({where}), and Kubernetes 1.{minor} removed it; "
                f"{context.target} ships {context.target_kubernetes}.",
                [setting.holder],
                severity="critical",
                fix=f"Take it out of {where}; `oc get {type(setting.holder).__name__.lower()} -o yaml` shows it gone.",
            )
        elif not rows.knows(target):
            yield unsure(
                name,
                f"{noun} {setting.name} of {setting.component} is set ({where}), and the table of what is removed ends "
                f"with Kubernetes 1.{rows.last}",
                [setting.holder],
                fix="Look it up in the changelogs of Kubernetes, or take it out.",
            )
