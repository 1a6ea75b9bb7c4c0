"""A component of the control plane is configured in an unsupported way.

Applies when `unsupportedConfigOverrides` of the operator of kube-apiserver, kube-controller-manager or kube-scheduler
is not empty.

Why it matters the operator says Upgradeable=False for it, and the target's component has never been tried with it.

What to do `oc edit kubeapiserver cluster` (or its neighbours) and take the overrides out; the operator's
Upgradeable condition then says True.

Accepting it means to take a configuration into the target that nobody has tried.

Source of the rule openshift/library-go, `pkg/operator/unsupportedconfigoverridescontroller`.
"""

from __future__ import annotations

from collections.abc import Iterator

from runup.checks.catalogue.control_plane.shared.component_settings import CONTROL_PLANE, OPERATORS
from runup.checks.catalogue.declaring import declared, risk
from runup.checks.catalogue.shared.presence import all_or_none
from runup.checks.decide.model import Context, Finding, Snapshot
from runup.checks.decide.wording import names

NAME = "UnsupportedConfigOverrides"
EXAMPLE = """
apiVersion: operator.openshift.io/v1
kind: KubeScheduler
metadata: {name: cluster}
spec: {unsupportedConfigOverrides: {arguments: {v: ["9"]}}}
"""


def _run(snapshot: Snapshot, _context: Context) -> Iterator[Finding]:
    for kind, component in OPERATORS:
        for operator in all_or_none(snapshot, kind):
            overrides = operator.spec.unsupported_config_overrides
            if overrides:
                keys = sorted(map(str, overrides)) if isinstance(overrides, dict) else [str(overrides)[:60]]
                yield risk(
                    NAME,
                    f"{component} is configured in an unsupported way: unsupportedConfigOverrides has {names(keys)}.",
                    [operator],
                    fix=f"`oc edit {kind.__name__.lower()} cluster`, and take the overrides out.",
                )


CHECK = declared(__doc__, NAME, "kube-apiserver", CONTROL_PLANE, _run, rank=290, example=EXAMPLE)
