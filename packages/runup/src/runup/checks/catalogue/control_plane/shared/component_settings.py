"""Collects what administrators set of Kubernetes' own components: feature gates, flags and admission plug-ins.

In OpenShift these are the kubelet's part in a KubeletConfig, a custom feature set, and `unsupportedConfigOverrides` of
the operators of the control plane. Settings of the release itself are left to the release."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from kubekit.api.meta_v1 import Object
from runup.api.cluster_settings_v1 import FeatureGate
from runup.api.machineconfig_v1 import KubeletConfig
from runup.api.operator_v1 import KubeAPIServer, KubeControllerManager, KubeScheduler
from runup.checks.catalogue.shared.kubernetes_versions import target_minor, target_unknown
from runup.checks.decide.removal_tables import table
from runup.checks.writing import DEFINITIONS, Context, Findings, Resource, Snapshot, resource_of, risk, unknown

OPERATORS: tuple[tuple[type[KubeAPIServer | KubeControllerManager | KubeScheduler], str], ...] = (
    (KubeAPIServer, "kube-apiserver"),
    (KubeControllerManager, "kube-controller-manager"),
    (KubeScheduler, "kube-scheduler"),
)
CONTROL_PLANE: tuple[Resource, ...] = (*(resource_of(kind) for kind, _ in OPERATORS), DEFINITIONS)
GATES: tuple[Resource, ...] = (resource_of(KubeletConfig), resource_of(FeatureGate), *CONTROL_PLANE)
# How the operators' configuration calls a component's arguments (openshift/api, kubecontrolplane/v1 and osin).
_ARGUMENTS = ("apiServerArguments", "extendedArguments", "arguments")


class Setting(msgspec.Struct, frozen=True):
    """A feature gate, flag or admission plug-in, its component, and the object and path where it is set."""

    name: str
    component: str
    holder: Object
    path: str


def explicit_gates(snapshot: Snapshot) -> Iterator[Setting]:
    """Yields every feature gate that is set explicitly. Raises Unreadable."""
    for config in snapshot.all_or_none(KubeletConfig):
        set_here = config.spec.kubelet_config.get("featureGates")
        for name in set_here if isinstance(set_here, dict) else ():
            yield Setting(str(name), "kubelet", config, "spec.kubeletConfig.featureGates")
    for gate in snapshot.all_or_none(FeatureGate):
        custom = gate.spec.custom_no_upgrade
        for name in (*custom.enabled, *custom.disabled) if custom else ():
            yield Setting(name, "every component", gate, "spec.customNoUpgrade")
    for flag, values in _flags_with_values(snapshot):
        if flag.name == "feature-gates":
            for value in values:
                for part in value.split(","):
                    yield Setting(part.partition("=")[0], flag.component, flag.holder, flag.path)


def explicit_flags(snapshot: Snapshot) -> Iterator[Setting]:
    """Yields every flag of a control plane component that is set explicitly. Raises Unreadable."""
    yield from (flag for flag, _ in _flags_with_values(snapshot))


def admission_plugins(snapshot: Snapshot) -> Iterator[Setting]:
    """Yields every admission plug-in that is explicitly enabled or disabled. Raises Unreadable."""
    for flag, values in _flags_with_values(snapshot):
        # `admission-control` is the flag from before the other two, which replaced it.
        if flag.name in ("enable-admission-plugins", "disable-admission-plugins", "admission-control"):
            for value in values:
                for name in value.split(","):
                    yield Setting(name, flag.component, flag.holder, flag.path)


def _flags_with_values(snapshot: Snapshot) -> Iterator[tuple[Setting, tuple[str, ...]]]:
    """Yields every flag of a control plane component that is set explicitly, with its values. Raises Unreadable."""
    for kind, component in OPERATORS:
        for operator in snapshot.all_or_none(kind):
            overrides = operator.spec.unsupported_config_overrides
            # The field takes any JSON (openshift/api, operator/v1), which need not be an object.
            for key in _ARGUMENTS if isinstance(overrides, dict) else ():
                arguments = overrides.get(key)
                for name, value in arguments.items() if isinstance(arguments, dict) else ():
                    setting = Setting(str(name), component, operator, f"spec.unsupportedConfigOverrides.{key}")
                    yield setting, tuple(map(str, value)) if isinstance(value, list) else (str(value),)


def removed_findings(
    name: str,
    setting_kind: str,
    settings: Iterable[Setting],
    context: Context,
    table_name: str,
    removed_names: Callable[[Any, Setting], Iterable[str]],
) -> Findings:
    """Yields a finding for each setting that the target does not know, or all settings if the table ends before it.

    `name` is the risk's name, `setting_kind` what its message calls a setting ("Feature gate"). `removed_names` returns
    from a row of the table, which is one minor version, the names that it removed for the component of a setting.
    """
    all_settings = list(settings)
    if not all_settings:
        return
    target, rows = target_minor(context), table(table_name)
    if target is None:
        yield target_unknown(name, [setting.holder for setting in all_settings])
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
            yield unknown(
                name,
                f"{is_set}, and the table of what is removed ends with Kubernetes 1.{rows.last} (as of {rows.date})",
                [setting.holder],
                fix="Look it up in the changelogs of Kubernetes, or take it out.",
            )
