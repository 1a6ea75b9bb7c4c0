"""A component of the control plane, a kubelet or kube-proxy is given what the target's does not take.

Applies when a flag or an admission plug-in is removed in a minor version up to the target's, or a feature gate is
removed, or set against the value that the target locks it to. The check reads the objects that set these: the
ConfigMaps `kubeadm-config`, `kubelet-config` and `kube-proxy` of kubeadm, the annotations `k3s.io/node-args` and
`rke2.io/node-args` of nodes, and without these the commands of the static pods in `kube-system`. Files on nodes
(`kubeadm-flags.env`, a kubelet's own configuration) are not in any object, and so are not read. Where the target is
newer than the tables, what is given is Unknown.

Why it matters: a component that does not know what it is given prints it and ends: the control plane stays down, or the
node's kubelet.

What to do: take it out where the risk says, before the update; a gate that is locked or removed has had no effect of
its own since.

Accepting it means that the component does not start.

Source of the rule: <https://kubernetes.io/docs/tasks/administer-cluster/kubeadm/kubeadm-reconfigure/>; the sources of
the components, as `data/removed-flags.yaml`, `data/removed-gates.yaml` and `data/locked-gates.yaml` have them.
"""

from __future__ import annotations

from collections.abc import Iterable

from kubekit.lang.text import count
from runup.checks.catalogue.control_plane.shared.given_settings import FLAG, PLUGIN, READS, Given, Malformed, all_given
from runup.checks.catalogue.shared.kubernetes_versions import target_minor, target_unknown
from runup.checks.decide.removal_tables import table
from runup.checks.decide.wording import names
from runup.checks.writing import Context, Findings, Snapshot, Unreadable, declared, full_name, risk, unknown

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


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields the risks of settings that the target does not know, and Unknown for settings that cannot be parsed."""
    # What is alike but for its holder is one risk.
    by_setting: dict[tuple[str, ...], list[Given]] = {}
    malformed: list[Malformed] = []
    lacking: Unreadable | None = None
    try:
        for each in all_given(snapshot):
            if isinstance(each, Malformed):
                malformed.append(each)
                continue
            value = each.value if each.setting != FLAG else ""
            by_setting.setdefault((each.setting, each.name, each.component, each.place, value), []).append(each)
    except Unreadable as error:
        # What was told before it may show a risk.
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


def _findings(settings: Iterable[list[Given]], target: int) -> Findings:
    """Yields a finding for each setting that the target rejects, and one for all settings that no table has."""
    untold: list[Given] = []
    for alike in settings:
        first = alike[0]
        if why := _not_taken(first, target):
            # The kinds of one setting's holders are the same: its place is theirs.
            holders = names([full_name(each.holder) for each in alike])
            shown_value = f" to {first.value}" if first.value and first.setting != FLAG else ""
            yield risk(
                NAME,
                f"{first.setting} {first.name} of {first.component} is set"
                f"{shown_value} ({holders}, {first.place}): {why}.",
                [each.holder for each in alike],
                severity="critical",
                fix=first.fix,
                kind=first.kind,
            )
        else:
            untold += alike
    if untold and not all(table(name).knows(target) for name in (_GATES, _LOCKED, _FLAGS)):
        listed = names(sorted({f"{each.name} of {each.component}" for each in untold}))
        yield unknown(
            NAME,
            f"{count(len(untold), 'setting')} ({listed}): the table of what is removed ends with Kubernetes "
            f"1.{table(_FLAGS).last}",
            [untold[0].holder],
            fix="Look them up in the changelog of the target's Kubernetes.",
            kind=untold[0].kind,
        )


def _not_taken(given: Given, target: int) -> str:
    """Returns why the target's component does not start with what it is given, or an empty string."""
    if given.setting in (FLAG, PLUGIN):
        key = given.component if given.setting == FLAG else "admission"
        minor = next((minor for minor, row in table(_FLAGS).between(0, target) if given.name in row.get(key, ())), None)
        return "" if minor is None else f"{_since(given, minor)} does not have it any more"
    # A gate of long ago may have the name of a new one only where the list was cut: removal counts first.
    for minor, row in table(_GATES).between(0, target):
        if given.name in row:
            return f"{_since(given, minor)} does not have it any more"
    for minor, row in table(_LOCKED).between(0, target):
        for value, gates in row.items():
            if given.name in gates and given.value not in _SAME[value]:
                return f"{_since(given, minor)} locks it to {value}"
    return ""


# What Go takes for a truth (strconv.ParseBool); a text that is none is no lock's business.
_SAME = {"true": ("true", "t", "1", ""), "false": ("false", "f", "0", "")}


def _since(given: Given, minor: int) -> str:
    return f"{'the etcd of kubeadm' if given.component == 'etcd' else 'Kubernetes'} 1.{minor}"


CHECK = declared(run, NAME, "kube-apiserver", reads=READS, rank=285, severity="critical", clusters="Kubernetes")
