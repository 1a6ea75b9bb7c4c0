"""A MachineConfig replaces the operating system of the release.

Applies when machine-config-controller reports for a pool that a MachineConfig sets osImageURL (the metric
os_image_url_override). MachineConfigs are not read, since they may hold credentials. The result is Unknown if a pool
has a MachineConfig that no component of OpenShift generates, or if the MachineConfigs of a pool are not known, and
Prometheus does not answer.

Why it matters: nodes of the pool keep the operating system that osImageURL names. Their kubelet and kernel are not
updated with the release, and the next update may exceed the supported skew.

Remedy: build the image again from the target's operating system, and set osImageURL to it; or remove the field. `oc get
machineconfigs -o custom-columns=NAME:.metadata.name,IMAGE:.spec.osImageURL` lists it.

Accepting it is right where the image is built for the target.

Source of the rule: machine-config-operator, `pkg/controller/common/metrics.go` (os_image_url_override) and
`pkg/controller/common/helpers.go` (MergeMachineConfigs: the last osImageURL wins); the OpenShift documentation of
CoreOS image layering (out-of-cluster).
"""

from __future__ import annotations

import re

from runup.advice.decide import promql
from runup.api.machineconfig_v1 import MachineConfigPool
from runup.checks.writing import Context, Findings, Snapshot, declared, names, risk, unknown

NAME = "OSImageOverridden"
QUERY = "max(os_image_url_override) == bool 1"
EXAMPLE = """
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfigPool
metadata: {name: worker}
status: {configuration: {name: rendered-worker-1, source: [{name: 00-worker}, {name: 99-worker-custom-os}]}}
"""
# The MachineConfigs of components: machine-config-operator, the installer, the node tuning and the network operator.
_GENERATED = re.compile(
    r"00-[a-z0-9]+|01-.+-(container-runtime|kubelet)|9[0-9]-.+-generated-.+|99-.+-(ssh|fips)"
    r"|50-(nto|performance)-.+|80-ipsec-.+-extensions"
)
_COLUMNS = "custom-columns=NAME:.metadata.name,IMAGE:.spec.osImageURL"
_FIX = f"See `oc get machineconfigs -o {_COLUMNS}`; let Prometheus answer with --prometheus-url."


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields one risk if a MachineConfig sets osImageURL; Unknown for pools that may have such a one."""
    open_pools = {}
    for pool in sorted(snapshot.all(MachineConfigPool), key=lambda each: each.metadata.name):
        configurations = (pool.spec.configuration, pool.status.configuration)
        sources = dict.fromkeys(source.name for each in configurations for source in each.source)
        others = [name for name in sources if not _GENERATED.fullmatch(name)]
        if others or (any(each.name for each in configurations) and not sources):
            open_pools[pool.metadata.name] = (pool, names(others) or "not known")
    if not open_pools:
        return
    pools = [pool for pool, _ in open_pools.values()]
    listing = names([f"{name} ({others})" for name, (_, others) in open_pools.items()])
    answer = promql.evaluate(QUERY, context.prometheus, context.now)
    if isinstance(answer, str):
        error = f"; {answer}" if context.prometheus.configured else ""
        yield unknown(NAME, f"MachineConfigs may set osImageURL, and are not read: {listing}{error}", pools, fix=_FIX)
    elif answer:
        yield risk(
            NAME,
            f"A MachineConfig sets osImageURL: nodes do not get the operating system of {context.target}. "
            f"MachineConfigs that may set it, by pool: {listing}.",
            pools,
            fix=f"Build that image from the target's, or remove the field: `oc get machineconfigs -o {_COLUMNS}`.",
        )


CHECK = declared(run, NAME, "machine-config", reads=(MachineConfigPool,), rank=566, query=QUERY)
