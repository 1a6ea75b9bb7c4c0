"""Operators, progress and estimates of the control plane (reference: oc's controlplane.go)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.updatestatus.decide import builders as b

from kubekit.api.core_v1 import Container, PodSpec
from kubekit.api.workloads_v1 import Deployment, DeploymentSpec, PodTemplate
from runup.api.config_v1 import ClusterOperator, UpdateHistory
from runup.updatestatus.decide import control_plane as cp
from runup.updatestatus.decide.control_plane import assessment_of, baseline_s, estimate, share_of_time, to_precision

IMAGE = "example.com/mco@sha256:" + "2" * 64


@pytest.mark.parametrize(
    ("annotations", "counted"),
    [
        ({"include.release.openshift.io/self-managed-high-availability": "true"}, True),
        ({"exclude.release.openshift.io/internal-openshift-hosted": "true"}, True),
        ({"release.openshift.io/create-only": "true"}, False),
        ({}, False),
    ],
)
def test_only_operators_of_the_payload_count(annotations: dict[str, str], counted: bool) -> None:
    """Others have no version to reach."""
    from msgspec.structs import replace

    operator = b.operator()
    operator = replace(operator, metadata=replace(operator.metadata, annotations=annotations))
    assert cp.is_of_payload(operator) is counted


@pytest.mark.parametrize(
    ("operator", "image", "flags"),
    [
        pytest.param(b.operator(at=b.NEW), "", (True, False, False), id="at the target"),
        pytest.param(b.operator(progressing="True"), "", (False, True, False), id="on its way"),
        pytest.param(b.operator(progressing="False"), "", (False, False, True), id="waiting"),
        pytest.param(b.operator(progressing="Unknown"), "", (False, False, False), id="it does not know"),
        pytest.param(b.operator(progressing=None), "", (False, False, False), id="it does not say"),
        pytest.param(b.operator(at=b.NEW, progressing="True"), "", (True, False, False), id="at the target and busy"),
        pytest.param(
            b.operator("machine-config", b.NEW, image=IMAGE), IMAGE, (True, False, False), id="the image agrees"
        ),
        pytest.param(
            b.operator("machine-config", b.NEW, image="old", progressing="True"),
            IMAGE,
            (False, True, False),
            id="the version agrees and the image does not: another architecture is coming",
        ),
        pytest.param(b.operator("machine-config", b.NEW), IMAGE, (True, False, False), id="no image is reported"),
        pytest.param(
            b.operator("machine-config", b.NEW, image=IMAGE), "", (False, False, True), id="the deployment is missing"
        ),
        pytest.param(
            b.operator("machine-config", b.NEW, image="old"), None, (True, False, False), id="nobody can read it"
        ),
        pytest.param(
            b.operator("etcd", b.NEW, image="old"), IMAGE, (True, False, False), id="another operator's image"
        ),
    ],
)
def test_operators(operator: ClusterOperator, image: str | None, flags: tuple[bool, bool, bool]) -> None:
    """Updated, updating and waiting; each of none or one."""
    found = cp.operator_state(operator, b.NEW, image)
    assert (found.updated, found.is_updating, found.is_waiting) == flags


def test_the_image_of_the_machine_config_operator() -> None:
    """That of the container of the same name."""
    containers = (Container(name="kube-rbac-proxy", image="x"), Container(name="machine-config-operator", image=IMAGE))
    deployment = Deployment(spec=DeploymentSpec(template=PodTemplate(spec=PodSpec(containers=containers))))
    assert cp.operator_image(deployment) == IMAGE
    assert cp.operator_image(Deployment()) == ""
    assert cp.operator_image(None) == ""


@pytest.mark.parametrize(
    ("message", "awaited"),
    [
        ("Working towards 4.14.1: 106 of 863 done (12% complete), waiting on etcd, dns", ["etcd", "dns"]),
        ("Working towards 4.15.0: 357 of 1021 done (34% complete), waiting up to 40 minutes on dns", ["dns"]),
        ("Working towards 4.14.1: 139 of 859 done (16% complete)", []),
        ("Unable to apply 4.14.1: wait has exceeded 40 minutes for these operators: etcd, kube-apiserver", []),
    ],
)
def test_awaited_operators_are_those_that_the_message_names(message: str, awaited: list[str]) -> None:
    """As the cluster-version operator words it; messages of real clusters."""
    cluster = b.version(progressing=b.cond("Progressing", "True", message=message))
    assert list(cp.awaited_operators(cluster)) == awaited
    assert cp.awaited_operators(b.version(progressing=b.cond("Progressing", "False", message=message))) == ()


def at(minutes: float) -> Any:
    """A Progressing condition that changed so long after the start."""
    return b.cond("Progressing", "False", since=b.STARTED + b.minutes(minutes))


def assessed(*operators: ClusterOperator, now: float = 30, history: Any = None) -> cp.ControlPlaneState:
    """The control plane `now` minutes after the start."""
    states = cp.assess_operators(operators, b.NEW, "")
    return cp.assess_control_plane(b.version(history), states, b.STARTED + b.minutes(now))


@pytest.mark.parametrize(
    ("operators", "minutes"),
    [
        pytest.param([b.operator("a", progressing=at(3)), b.operator("b", progressing=at(7))], 7, id="the newest"),
        pytest.param([b.operator("a", progressing=at(-60))], None, id="only older than the update"),
        pytest.param([b.operator("a", progressing=at(0))], None, id="exactly at the start"),
        pytest.param([b.operator("a", progressing=None)], None, id="none"),
        pytest.param(
            [
                b.operator("a", b.NEW, progressing=at(20)),
                b.operator("machine-config", progressing=b.cond("Progressing", "True", since=b.STARTED + b.minutes(9))),
            ],
            9,
            id="machine-config alone is left: since it began",
        ),
        pytest.param(
            [b.operator("a", b.NEW, progressing=at(20)), b.operator("machine-config", progressing=at(9))],
            20,
            id="machine-config alone is left and waits",
        ),
        pytest.param(
            [b.operator("a", progressing=at(20), payload=False), b.operator("b", progressing=at(9))],
            9,
            id="operators outside of the payload do not count",
        ),
    ],
)
def test_the_last_progress(operators: list[ClusterOperator], minutes: float | None) -> None:
    """When an operator last began or ended to progress, if that was during this update."""
    expected = None if minutes is None else b.STARTED + b.minutes(minutes)
    assert assessed(*operators).last_progress == expected


def test_without_progress_the_estimate_takes_the_present_for_it() -> None:
    """As oc does: half of the operators are updated, and none has said when."""
    states = [b.operator("a", b.NEW, progressing=None), b.operator("b", progressing=None)]
    by_curve = estimate(baseline=3600, to_last_progress_s=1800, elapsed_s=1800, completion=0.5)
    assert assessed(*states).estimate == by_curve


def test_the_end_is_that_of_the_history_once_it_is_completed() -> None:
    """Whatever the operators say."""
    done = b.entry(b.NEW, took=b.minutes(50))
    assert assessed(b.operator(), now=90, history=(done, b.entry(b.OLD))).end == b.STARTED + b.minutes(50)
    assert assessed(b.operator(), now=90).end == b.STARTED + b.minutes(90)
    assert assessed(b.operator(), history=()).end is None


@pytest.mark.parametrize(
    ("updated", "total", "percent"),
    [(0, 33, 0), (1, 8, 12), (3, 8, 38), (1, 33, 3), (32, 33, 97), (199, 200, 99), (3, 3, 100)],
)
def test_completion(updated: int, total: int, percent: int) -> None:
    """Half of a percent goes to the even neighbour, and nothing but the whole is 100."""
    operators = [b.operator(f"o{i}", b.NEW if i < updated else b.OLD) for i in range(total)]
    assert assessed(*operators).completion == percent


def history(*entries: tuple[str, float]) -> tuple[UpdateHistory, ...]:
    """Entries by state and length in minutes."""
    return tuple(b.entry(b.OLD, state, took=b.minutes(length)) for state, length in entries)


@pytest.mark.parametrize(
    ("entries", "minutes"),
    [
        pytest.param([], 60, id="no history"),
        pytest.param([("Partial", 1), ("Completed", 33)], 60, id="the installation does not count"),
        pytest.param([("Partial", 1), ("Completed", 33), ("Completed", 22)], 33, id="the one before"),
        pytest.param([("Completed", 1), ("Partial", 5), ("Completed", 44), ("Completed", 2)], 44, id="a complete one"),
        pytest.param([("Partial", 1), ("Partial", 5), ("Completed", 22)], 60, id="none but the installation"),
    ],
)
def test_the_baseline(entries: list[tuple[str, float]], minutes: float) -> None:
    """How long the last update of this cluster took, or an hour."""
    assert baseline_s(history(*entries)) == minutes * 60


@pytest.mark.parametrize(
    ("completion", "share"),
    [
        # Worked out by hand from the three polynomials.
        (0.0, -0.03078788),
        (0.1, 0.19385858),
        (0.25, 0.1851215 + 0.412485 - 0.292306125 + 0.08518475 - 0.0083018984375),
        (0.5, 0.1851215 + 0.82497 - 1.1692245 + 0.681478 - 0.132830375),
        (1.0, 25053.32 - 107394.3 + 172527.2 - 123107 + 32921.81),
    ],
)
def test_the_share_of_time(completion: float, share: float) -> None:
    """Three pieces, which do not quite meet."""
    assert share_of_time(completion) == pytest.approx(share, abs=1e-6)


@pytest.mark.parametrize(
    ("given", "remaining"),
    [
        pytest.param({"completion": 0.0}, 4320 - 0, id="nothing yet: the baseline and a fifth"),
        pytest.param({"completion": 0.0, "elapsed_s": 600.0}, 3600, id="less what has gone by"),
        pytest.param({"completion": 0.0, "elapsed_s": 3600.0}, 0, id="just at its end"),
        pytest.param({"completion": 0.0, "elapsed_s": 3612.0}, -10, id="beyond it: a sixth less"),
        pytest.param({"completion": 0.0, "elapsed_s": 3100.0}, 600, id="ten minutes are left in seconds"),
        pytest.param({"completion": 0.0, "elapsed_s": 3099.0}, 600, id="601 seconds are ten minutes"),
        pytest.param({"completion": 0.0, "elapsed_s": 3075.0}, 660, id="630 seconds are eleven"),
        pytest.param({"completion": 0.5, "to_last_progress_s": 300.0}, 4320, id="five minutes say nothing"),
        pytest.param(
            {"completion": 0.5, "to_last_progress_s": 389.515, "elapsed_s": 500.0}, 600, id="by the curve afterwards"
        ),
    ],
)
def test_estimates(given: dict[str, float], remaining: int) -> None:
    """Seconds up to ten minutes, minutes above."""
    arguments = {"baseline": 3600.0, "to_last_progress_s": 0.0, "elapsed_s": 0.0, **given}
    assert to_precision(estimate(**arguments).remaining_s) == remaining


@pytest.mark.parametrize(
    ("remaining", "words"),
    [
        (1, "Progressing"),
        (0, "Progressing"),
        (-1, "Progressing - Slow"),
        (-600, "Progressing - Slow"),
        (-601, "Stalled"),
    ],
)
def test_the_words_for_an_estimate(remaining: int, words: str) -> None:
    """Late is slow, and ten minutes late is stalled."""
    assert assessment_of(remaining) == words


@pytest.mark.parametrize(("seconds", "rounded"), [(600, 600), (629, 600), (630, 660), (-700, -700), (59, 59)])
def test_precision(seconds: int, rounded: int) -> None:
    """Only what is above ten minutes is rounded."""
    assert to_precision(seconds) == rounded


def test_the_fraction_of_a_second_counts() -> None:
    """oc's examples are looked at a fraction after a whole second, which truncates to one second less."""
    arguments: dict[str, float] = {"baseline": 3600.0, "to_last_progress_s": 0.0, "completion": 0.0}
    elapsed = timedelta(minutes=55, microseconds=368).total_seconds()
    assert estimate(elapsed_s=3300.0, **arguments).remaining_s == 360
    assert estimate(elapsed_s=elapsed, **arguments).remaining_s == 359
