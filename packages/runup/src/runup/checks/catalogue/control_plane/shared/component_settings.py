"""Collects what administrators set of Kubernetes' own components: feature gates, flags and admission plug-ins.

In OpenShift these are the kubelet's part in a KubeletConfig, a custom feature set, and `unsupportedConfigOverrides` of
the operators of the control plane. What the release itself sets is the release's business.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from kubekit.api.meta_v1 import Object
from kubekit.api.scheme import Resource, resource_of
from runup.api.cluster_settings_v1 import FeatureGate
from runup.api.machineconfig_v1 import KubeletConfig
from runup.api.operator_v1 import KubeAPIServer, KubeControllerManager, KubeScheduler
from runup.checks.catalogue.shared.presence import DEFINITIONS, all_or_none
from runup.checks.decide.model import Snapshot

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
    for config in all_or_none(snapshot, KubeletConfig):
        set_here = config.spec.kubelet_config.get("featureGates")
        for name in set_here if isinstance(set_here, dict) else ():
            yield Setting(str(name), "kubelet", config, "spec.kubeletConfig.featureGates")
    for gate in all_or_none(snapshot, FeatureGate):
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
        for operator in all_or_none(snapshot, kind):
            overrides = operator.spec.unsupported_config_overrides
            # The field takes any JSON (openshift/api, operator/v1), which need not be an object.
            for key in _ARGUMENTS if isinstance(overrides, dict) else ():
                for name, value in _override_arguments(overrides, key):
                    path = f"spec.unsupportedConfigOverrides.{key}"
                    yield Setting(name, component, operator, path), value


def _override_arguments(overrides: Mapping[str, Any], key: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yields the arguments below `key` of the overrides, each with its values."""
    arguments = overrides.get(key)
    for name, value in arguments.items() if isinstance(arguments, dict) else ():
        yield str(name), tuple(map(str, value)) if isinstance(value, list) else (str(value),)
