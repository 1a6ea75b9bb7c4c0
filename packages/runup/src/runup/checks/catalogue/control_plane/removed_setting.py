"""A component of the control plane, a kubelet or kube-proxy has a setting that the target's version does not accept.

Applies when a flag, an admission plug-in or a controller (`--controllers`) is removed in a minor version up to the
target's, or came after it; when a feature gate is removed, came later, or is set against the value that the target
locks it to; and when a value has another meaning in the target or none (`--cloud-provider=aws`, kube-proxy's mode
`userspace`, `eventRecordQPS: 0`). The check reads the objects that set these: the ConfigMaps `kubeadm-config`,
`kubelet-config` and `kube-proxy` of kubeadm, the annotations `k3s.io/node-args` and `rke2.io/node-args` of nodes, and
without these the commands of the static pods in `kube-system`. Files on nodes (`kubeadm-flags.env`, a kubelet's own
configuration) are not in any object, and so are not read. A minor version that is not released is reported as planned.
A setting that the components of no minor version have is Unknown, and where the target is newer than the tables, all
other settings are.

Why it matters: a component with an unknown setting exits with an error, so the control plane or the kubelet of the
node stays down.

Remedy: remove the setting before the update, where the risk names it; a gate that is locked or removed has no effect.

Accepting it means that the component does not start.

Source of the rule: <https://kubernetes.io/docs/tasks/administer-cluster/kubeadm/kubeadm-reconfigure/>; the sources of
the components, as `data/removed-flags.yaml`, `data/removed-gates.yaml` and `data/locked-gates.yaml` have them, and the
changelogs, as `data/changed-values.yaml` has them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from kubekit.lang.text import count
from runup.checks.catalogue.control_plane.shared.given_settings import (
    CONTROLLER,
    FIELD,
    FLAG,
    GATE,
    PLUGIN,
    READS,
    SAME,
    Given,
    Malformed,
    all_given,
)
from runup.checks.catalogue.shared.kubernetes_versions import target_minor, target_unknown
from runup.checks.decide.removal_tables import Table, document, table
from runup.checks.decide.wording import names
from runup.checks.writing import (
    Context,
    Findings,
    Snapshot,
    Unreadable,
    declared,
    full_name,
    risk,
    unknown,
)
from runup.report.report import Severity

NAME = "RemovedComponentSetting"
EXAMPLE = """
apiVersion: v1
kind: Pod
metadata: {name: kube-apiserver-cp-0, namespace: kube-system, labels: {component: kube-apiserver, tier: control-plane}}
spec:
  containers:
  - {name: kube-apiserver, command: [kube-apiserver, "--feature-gates=SidecarContainers=true"]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: kubeadm-config, namespace: kube-system}
data:
  ClusterConfiguration: |
    apiVersion: kubeadm.k8s.io/v1beta4
    kind: ClusterConfiguration
    apiServer:
      extraArgs:
      - {name: feature-gates, value: SidecarContainers=true}
"""
_GATES, _LOCKED, _FLAGS = "removed-gates", "locked-gates", "removed-flags"
_PROVIDER = "cloud-provider"
# Where the tables have the names of settings that are not flags.
_KEYS = {GATE: "", PLUGIN: "admission", CONTROLLER: "controllers"}
# The columns of the table of values with the names of settings.
_COLUMNS = {FIELD: "field", FLAG: "flag", GATE: "gate"}


class Refused(msgspec.Struct, frozen=True):
    """Why a target does not take a setting, how severe that is, and what to do besides `Given.fix`."""

    why: str
    severity: Severity = "critical"
    fix: str = ""


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields the risks of settings that the target does not know, and Unknown for settings that cannot be parsed."""
    # What is alike except for its holder is one risk.
    by_setting: dict[tuple[str, ...], list[Given]] = {}
    malformed: list[Malformed] = []
    lacking: Unreadable | None = None
    try:
        for each in all_given(snapshot):
            if isinstance(each, Malformed):
                malformed.append(each)
                continue
            value = each.value if each.setting != FLAG or each.name == _PROVIDER else ""
            by_setting.setdefault((each.setting, each.name, each.component, each.place, value), []).append(each)
    except Unreadable as error:
        # What was reported before it may show a risk.
        lacking = error
    target = target_minor(context)
    if target is not None:
        yield from _findings(list(by_setting.values()), target)
    elif by_setting:
        first = next(iter(by_setting.values()))[0]
        yield target_unknown(NAME, [first.holder], first.kind)
    for each in malformed:
        yield unknown(NAME, each.why, [each.holder], fix=each.fix, kind=each.kind)
    if lacking is not None:
        raise lacking


def _findings(settings: Sequence[list[Given]], target: int) -> Findings:
    """Yields a finding for each setting that the target rejects, and one for all settings that no table has."""
    untold: list[Given] = []
    unlisted: list[Given] = []
    gates = {(each[0].component, each[0].name): each[0].value for each in settings if each[0].setting == GATE}
    for alike in settings:
        first = alike[0]
        if refused := refusal(first, target, gates):
            # The kinds of one setting's holders are the same: its place is theirs.
            holders = names([full_name(each.holder) for each in alike])
            shown_value = f" to {first.value}" if first.value and (first.setting != FLAG or refused.fix) else ""
            yield risk(
                NAME,
                f"{first.setting} {first.name} of {first.component} is set"
                f"{shown_value} ({holders}, {first.place}): {refused.why}.",
                [each.holder for each in alike],
                severity=refused.severity,
                fix=f"{refused.fix} {first.fix}".strip(),
                kind=first.kind,
            )
        elif not _is_listed(first):
            unlisted += alike
        else:
            untold += alike
    if unlisted:
        listed = names(sorted({f"{each.name} of {each.component}" for each in unlisted}))
        yield unknown(
            NAME,
            f"the sources of Kubernetes 1.{table(_FLAGS).first - 1} to 1.{table(_FLAGS).last} have no {listed}",
            [unlisted[0].holder],
            fix="Look them up in the documentation of the component that runs.",
            kind=unlisted[0].kind,
        )
    if untold and not (
        all(table(name).knows(target) for name in (_GATES, _LOCKED, _FLAGS))
        and target <= document("changed-values")["last"]
    ):
        listed = names(sorted({f"{each.name} of {each.component}" for each in untold}))
        yield unknown(
            NAME,
            f"{count(len(untold), 'setting')} ({listed}): the table of what is removed ends with Kubernetes "
            f"1.{table(_FLAGS).last} (as of {table(_FLAGS).date})",
            [untold[0].holder],
            fix="Look them up in the changelog of the target's Kubernetes.",
            kind=untold[0].kind,
        )


def refusal(given: Given, target: int, gates: Mapping[tuple[str, str], str]) -> Refused | None:
    """Returns why the target's component rejects the setting, or None. `gates` are the given ones by name."""
    return _refused_name(given, target) or _refused_value(given, target, gates)


def _is_listed(given: Given) -> bool:
    """Returns whether a minor version of the tables has the name of the setting; fields and etcd have no list."""
    if given.setting == FIELD or given.component == "etcd":
        return True
    rows = table(_GATES if given.setting == GATE else _FLAGS)
    key = _KEYS.get(given.setting, given.component)
    return any(given.name in (row.get(key, ()) if key else row) for row in (rows.base, *rows.added.values()))


def _refused_name(given: Given, target: int) -> Refused | None:
    """Returns why the target does not know the name of a setting, or locks it to another value."""
    if given.setting == FIELD:
        return None
    rows = table(_GATES if given.setting == GATE else _FLAGS)
    key = _KEYS.get(given.setting, given.component)
    # From the first version on: a setting may be left over from long before the running version.
    for minor, row in rows.until(target):
        if given.name in (row.get(key, ()) if key else row):
            return _removal(given, rows, minor, "does not have it any more")
    for minor, row in rows.added.items():
        if minor > target and given.name in (row.get(key, ()) if key else row):
            return Refused(f"{_since(given, rows, minor)} is the first to have it")
    if given.setting == GATE:
        for minor, row in table(_LOCKED).until(target):
            for value, locked in row.items():
                if given.name in locked and given.value not in SAME[value]:
                    return _removal(given, table(_LOCKED), minor, f"locks it to {value}")
    return None


def _refused_value(given: Given, target: int, gates: Mapping[tuple[str, str], str]) -> Refused | None:
    """Returns why the target does not take the value of a flag or field, or reads it in another way."""
    is_provider = given.name == _PROVIDER and given.component in ("kube-controller-manager", "kubelet")
    if given.setting == FLAG and is_provider:
        for minor, row in table(_FLAGS).until(target):
            if given.value in row.get("providers", ()):
                fix = "Write external, and run the cloud provider's own cloud-controller-manager."
                removal = _removal(given, table(_FLAGS), minor, "does not have this cloud provider any more")
                return msgspec.structs.replace(removal, fix=fix)
    for row in document("changed-values")["values"]:
        if (
            given.component in row["components"]
            and given.name == row.get(_COLUMNS.get(given.setting, ""))
            and given.value in row.get("values", [given.value])
            and given.holder.metadata.name == row.get("holder", given.holder.metadata.name)
            and row["since"] <= target <= row.get("until", target)
            and not any(gates.get((given.component, gate)) == value for gate, value in row.get("unless", {}).items())
        ):
            why = f"Kubernetes 1.{row['since']} {row['effect']} ({row['source']})"
            return Refused(why, row["severity"], row["fix"])
    return None


def _removal(given: Given, rows: Table, minor: int, effect: str) -> Refused:
    """Returns the settings that a minor version removes or locks; those of an unreleased version may still change."""
    return Refused(f"{_since(given, rows, minor)} {effect}", "critical" if rows.knows(minor) else "warning")


def _since(given: Given, rows: Table, minor: int) -> str:
    return rows.when(minor).replace("Kubernetes", "the etcd of kubeadm" if given.component == "etcd" else "Kubernetes")


CHECK = declared(run, NAME, "kube-apiserver", reads=READS, rank=285, severity="critical", clusters="Kubernetes")
