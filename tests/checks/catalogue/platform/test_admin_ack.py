"""Gates that ask for an acknowledgement: which count, and whose."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.checks.catalogue.asking import CONFIG, JSON, MANAGED, messages_of
from tests.factories import config_map_json, context

GATE, OTHER, LAST = "ack-5.0-a-in-5.1", "ack-5.0-b-in-5.1", "ack-5.1-c-in-5.2"


def gates(name: str = "admin-gates", **found: str) -> JSON:
    """The gates of a cluster."""
    return config_map_json(name, MANAGED, **{key.replace("_", "-"): text for key, text in found.items()})


def asks(gate: str) -> str:
    """Returns the finding about a gate that nobody acknowledged."""
    return f"Gate {gate} is not acknowledged: Do it."


MISSING = (
    "Whether AdminAck applies is unknown: openshift-config-managed has no ConfigMap admin-gates, which the "
    "cluster-version operator reads."
)
ACKS: dict[str, tuple[list[JSON], list[str]]] = {
    "one gate": ([gates(**{GATE: "Do it."})], [asks(GATE)]),
    "two gates, by name": ([gates(**{LAST: "Do it.", GATE: " Do\n it. "})], [asks(GATE), asks(LAST)]),
    "acknowledged, and one that is not": (
        [gates(**{GATE: "Do it.", OTHER: "Do it."}), config_map_json("admin-acks", CONFIG, **{GATE: "true"})],
        [asks(OTHER)],
    ),
    "acknowledged in another map": (
        [gates(**{GATE: "Do it."}), config_map_json("zz", CONFIG, **{GATE: "true"}), config_map_json("aa", CONFIG)],
        [asks(GATE)],
    ),
    "of a minor version that is behind, and one that is not": (
        [gates(**{"ack-4.9-a-in-5.0": "Do it.", GATE: "Do it."})],
        [asks(GATE)],
    ),
    "of the target's minor version and of the one after it": (
        [gates(**{"ack-5.2-a-in-5.3": "Do it.", "ack-5.3-a-in-5.4": "Do it.", GATE: "Do it."})],
        [asks(GATE)],
    ),
    "gates under the name of what acknowledges them": ([gates("admin-acks", **{GATE: "Do it."})], [MISSING]),
    "a bundle of another map": ([gates("zz", **{"ca-bundle.crt": "x"})], [MISSING]),
    "no gate": ([gates()], []),
    "a long gate that names no version": (
        [gates(**{"x" * 81: "Do it."})],
        [
            f'admin-gates configmap gate "{"x" * 81}" is invalid: admin-gates configmap gate name {"x" * 81} '
            'has invalid format; must comply with "^ack-([4-5][.][0-9]{1,})-[^-]".'
        ],
    ),
}


@pytest.mark.parametrize(("objects", "said"), ACKS.values(), ids=ACKS.keys())
def test_gates(objects: list[JSON], said: list[str]) -> None:
    """Those of that very map, each by itself."""
    assert messages_of("AdminAck", *objects) == said


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        pytest.param("ConfigMap", "admin-gates", [asks(GATE)], id="the target's own gates"),
        pytest.param("ConfigMap", "admin-acks", [], id="another map"),
        pytest.param("ConfigMap", "zz", [], id="a map that sorts behind"),
        pytest.param("Secret", "admin-gates", [], id="another kind"),
        pytest.param("Alert", "admin-gates", [], id="a kind that sorts before"),
    ],
)
def test_gates_of_the_target(kind: str, name: str, said: list[str]) -> None:
    """As its manifests have them."""
    manifest = {"kind": kind, "metadata": {"name": name}, "data": {GATE: "Do it."}}
    assert messages_of("AdminAck", gates(), to=replace(context(), manifests=(manifest,))) == said
