"""osImageURL in MachineConfigs: reported by the metric, Unknown where users' MachineConfigs are not read."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.checks.catalogue.asking import JSON, findings
from tests.factories import NOW, context

from runup.advice.decide.promql import Answer, PrometheusState
from runup.checks.catalogue.nodes.osimage_overridden import NAME, QUERY


def pool(*sources: str, name: str = "rendered-worker-1") -> JSON:
    """A pool whose configuration is rendered from these MachineConfigs."""
    configuration = {"name": name, "source": [{"name": source} for source in sources]}
    return {
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfigPool",
        "metadata": {"name": "worker"},
        "status": {"configuration": configuration},
    }


USERS = pool("00-worker", "99-worker-chrony")
GENERATED = (
    *("00-worker", "01-worker-container-runtime", "01-worker-kubelet", "97-worker-generated-kubelet"),
    *("98-worker-generated-kubelet", "99-worker-generated-registries", "99-worker-generated-containerruntime-1"),
    *("99-worker-ssh", "99-worker-fips", "50-nto-worker", "50-performance-p", "80-ipsec-worker-extensions"),
)


def answers(**answer: Any) -> PrometheusState:
    """Prometheus with an answer to the check's query."""
    return PrometheusState(configured=True, answers={QUERY: Answer(at=NOW, **answer)})


@pytest.mark.parametrize(
    ("cluster", "prometheus", "expected"),
    [
        pytest.param(USERS, answers(applies=True), [NAME], id="it is set"),
        pytest.param(USERS, answers(applies=False), [], id="it is not set"),
        pytest.param(USERS, answers(error="no route"), [f"{NAME}Unknown"], id="no answer"),
        pytest.param(USERS, PrometheusState(), [f"{NAME}Unknown"], id="nobody is asked"),
        pytest.param(pool(*GENERATED), PrometheusState(), [], id="generated ones alone"),
        pytest.param(pool(), PrometheusState(), [f"{NAME}Unknown"], id="its MachineConfigs are not known"),
        pytest.param(pool(name=""), PrometheusState(), [], id="nothing is rendered yet"),
        pytest.param(pool("00-custom-os"), PrometheusState(), [f"{NAME}Unknown"], id="named like generated ones"),
    ],
)
def test_pools(cluster: JSON, prometheus: PrometheusState, expected: list[str]) -> None:
    found = findings(NAME, cluster, to=replace(context(), prometheus=prometheus))
    assert [each[0] for each in found] == expected
