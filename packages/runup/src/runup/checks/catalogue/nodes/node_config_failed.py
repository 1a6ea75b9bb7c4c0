"""The machine-config operator rejected a KubeletConfig or a ContainerRuntimeConfig.

Applies when the last condition of a KubeletConfig or a ContainerRuntimeConfig has the type Failure. The operator adds a
condition for each attempt, of the type Success or Failure; the status of a condition does not count. The result is
Unknown for an object without conditions.

Why it matters: the operator does not render the configuration of the pools that the object selects. The update brings
a new configuration, and these pools do not get it until the object is correct.

Remedy: correct or delete the object; its last condition names the mistake (`oc describe kubeletconfig NAME`, `oc
describe containerruntimeconfig NAME`).

Accepting it means that the selected pools stay on their old configuration.

Source of the rule: openshift/machine-config-operator, `pkg/controller/kubelet-config` and
`pkg/controller/container-runtime-config` (syncStatusOnly, wrapErrorWithCondition).
"""

from __future__ import annotations

from functools import partial

from runup.api.machineconfig_v1 import ContainerRuntimeConfig, KubeletConfig
from runup.checks.writing import DEFINITIONS, Context, Findings, Snapshot, declared, risk, unknown, yield_from_all

NAME = "NodeConfigFailed"
EXAMPLE = """
apiVersion: machineconfiguration.openshift.io/v1
kind: KubeletConfig
metadata: {name: max-pods}
status:
  conditions:
  - {type: Success, status: "True", message: Success}
  - {type: Failure, status: "False", message: 'Error: unknown field "maxPodz"'}
"""
_KINDS = (KubeletConfig, ContainerRuntimeConfig)


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields a risk for each configuration whose last attempt failed."""
    yield from yield_from_all(*(partial(_failed, snapshot, kind) for kind in _KINDS))


def _failed(snapshot: Snapshot, kind: type[KubeletConfig | ContainerRuntimeConfig]) -> Findings:
    for config in sorted(snapshot.all_or_none(kind), key=lambda each: each.metadata.name):
        name, command = config.metadata.name, f"`oc describe {kind.__name__.lower()} {config.metadata.name}`"
        if not config.status.conditions:
            why = f"the machine-config operator does not report whether it took {kind.__name__} {name}"
            yield unknown(NAME, why, [config], fix=f"See {command}, and the pod machine-config-controller.")
            continue
        if config.status.conditions[-1].type != "Failure":
            continue
        words = " ".join(config.status.conditions[-1].message.split()).removeprefix("Error: ").rstrip(".")
        yield risk(
            f"{NAME}-{name}",
            f"The machine-config operator rejected {kind.__name__} {name}, so the pools that it selects get no new "
            f"configuration{f': {words}' if words else ''}.",
            [config],
            fix=f"Correct or delete it; {command} shows the condition Success then.",
        )


CHECK = declared(run, NAME, "machine-config", reads=(*_KINDS, DEFINITIONS), rank=85)
