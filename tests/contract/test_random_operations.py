"""Random sequences of operations leave both servers in the same state, and are answered alike."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.contract.api import Api
from tests.contract.conftest import define_widgets
from tests.contract.machine import Difference, run
from tests.contract.operations import Pair
from tests.controlplane.plane import ControlPlane

SEQUENCES = 150


@pytest.mark.e2e
@pytest.mark.timeout(600)
def test_both_servers_answer_alike(sandbox_server: Path, real_server: ControlPlane) -> None:
    """`python -m bench random_operations` runs ten thousand."""
    servers = [Api("kube-apiserver", str(real_server.kubeconfig)), Api("sandbox", str(sandbox_server))]
    for api in servers:
        define_widgets(api)
    pair = Pair(*servers)

    def fail(difference: Difference) -> None:
        raise AssertionError(str(difference))

    try:
        run(pair, SEQUENCES, fail, shrink=True)
    finally:
        pair.close()
