"""What `runup release diff --live` makes of a server's refusal of a dry run: which say nothing of the update."""

from __future__ import annotations

from http import HTTPStatus
from itertools import chain, repeat
from pathlib import Path

import pytest
from tests.cli.answering import answering
from tests.cli.release.typed import config_map

from kubekit.kube import config
from kubekit.kube.client_sync import SyncClient
from runup.applying.control.dry_run import effects
from runup.applying.decide.rendering import ClusterValues
from runup.release.decide.inclusion_reasons import Explained
from runup.release.decide.manifest import Identity, Manifest

KINDS = {"groupVersion": "v1", "resources": [{"name": "configmaps", "kind": "ConfigMap", "namespaced": True}]}
OBJECT = "/api/v1/namespaces/default/configmaps/a"


@pytest.mark.parametrize(
    ("code", "state"),
    [
        pytest.param(HTTPStatus.UNAUTHORIZED, "unknown", id="credentials that have run out meanwhile"),
        pytest.param(HTTPStatus.PAYMENT_REQUIRED, "refused", id="a code that no server sends"),
        pytest.param(HTTPStatus.FORBIDDEN, "unknown", id="no right to write"),
        pytest.param(HTTPStatus.NOT_FOUND, "unknown", id="a namespace that has just gone"),
        pytest.param(HTTPStatus.METHOD_NOT_ALLOWED, "unknown", id="a kind that cannot be applied"),
        pytest.param(HTTPStatus.NOT_ACCEPTABLE, "refused", id="an answer that the server cannot write"),
        pytest.param(HTTPStatus.UNPROCESSABLE_ENTITY, "refused", id="an object that is not valid"),
    ],
)
def test_what_a_refusal_says_of_the_update(code: HTTPStatus, state: str, tmp_path: Path) -> None:
    """Where the server did not try the object, the effect is not known; where it did, the update would be refused."""
    manifest = Manifest.of("0000_50_a.yaml", Identity("", "ConfigMap", "default", "a"), config_map("a", x="1"))
    # A client asks once more where its credentials are refused.
    answers = chain([config_map("a", x="0")], repeat(int(code)))
    with (
        answering(tmp_path, {"/api/v1": KINDS, OBJECT: lambda: next(answers)}) as kubeconfig,
        SyncClient(config.load(str(kubeconfig))) as client,
    ):
        (effect,) = effects(client, [Explained(manifest, "in", ())], (), ClusterValues())
    assert (effect.object, effect.state) == ("ConfigMap default/a", state)
