"""How each step of an update of Kubernetes is done: in whose words, what is paused around it, and what leads back."""

from __future__ import annotations

import pytest
from msgspec.structs import replace as with_fields
from tests.factories import node, pod, snapshot

from kubekit.api.pod_parts import PlacedPod, PodDemands, PodOwner
from kubekit.lang.version import Version
from runup.checks.decide.addon_images import is_addon
from runup.checks.decide.kubernetes_path import step_plans
from runup.checks.decide.model import Snapshot
from runup.checks.decide.removal_tables import document
from runup.report.report import CONTROL_PLANE, MAX_LINES, NODES, ReportedStep

MINOR = Version("1.35.0")
UP = ((CONTROL_PLANE, MINOR), (NODES, MINOR))
GROUP = "eks.amazonaws.com/nodegroup"


def addon(image: str, owner: str, kind: str = "ReplicaSet", namespace: str = "kube-system") -> PlacedPod:
    """A pod of what works against an update."""
    made = with_fields(pod("it-1", namespace), demands=PodDemands(addons=(image,)))
    metadata = with_fields(made.metadata, owner_references=(PodOwner(kind=kind, name=owner, controller=True),))
    return with_fields(made, metadata=metadata)


def on_eks(*groups: str) -> list[object]:
    """Nodes of EKS in these groups."""
    return [node(f"n-{number}", kubelet="v1.34.2-eks-1", labels={GROUP: group}) for number, group in enumerate(groups)]


def steps(*objects: object) -> tuple[ReportedStep, ...]:
    """The plan of one minor version."""
    return step_plans(snapshot(*objects), UP)  # type: ignore[arg-type]


def test_each_group_by_its_name() -> None:
    """In the words of the service; the control plane once."""
    plane, nodes = steps(*on_eks("b", "a", "b"))
    assert plane.how == ("aws eks update-cluster-version --name CLUSTER --kubernetes-version 1.35",)
    assert [line.rpartition(" ")[2] for line in nodes.how] == ["a", "b"]
    assert ("7 days" in plane.back, nodes.back) == (True, "")


def test_a_label_that_no_api_server_takes_is_not_typed_into_a_shell() -> None:
    """A dump may have anything; and a cluster more groups than a plan has lines."""
    (line,) = steps(*on_eks("a; rm -rf /", "$(x)"))[1].how
    assert line.endswith("--nodegroup-name GROUP")
    assert len(steps(*on_eks(*(f"g{number}" for number in range(MAX_LINES + 1))))[1].how) == MAX_LINES


AUTOSCALER = "registry.k8s.io/autoscaling/cluster-autoscaler:v1.34.1"


@pytest.mark.parametrize(
    ("made", "before", "after"),
    [
        pytest.param(
            addon(AUTOSCALER, "scaler-aws-5d9c"),
            [[], ["kubectl scale deployment scaler-aws --replicas=0 -n kube-system"]],
            [[], ["kubectl scale deployment scaler-aws --replicas=1 -n kube-system"]],
            id="what takes nodes away, around the nodes",
        ),
        pytest.param(
            addon("quay.io/argoproj/argocd:v3.1.0", "argocd-server-1", namespace="argocd"),
            [["argocd app set APP --sync-policy none"], []],
            [[], ["argocd app set APP --sync-policy automated"]],
            id="what undoes a change, around all",
        ),
        pytest.param(
            addon("ghcr.io/kubereboot/kured:1.20.0", "my-kured", "DaemonSet"),
            [[], ["kubectl annotate daemonset my-kured "]],
            [[], ["kubectl annotate daemonset my-kured weave.works/kured-node-lock- -n kube-system"]],
            id="a daemon set",
        ),
        pytest.param(
            addon("public.ecr.aws/karpenter/controller:1.8.1", "karpenter-1", namespace="a b"),
            [[], ['{"spec":{"disruption":{"budgets":[{"nodes":"0"}]}}}']],
            [[], ["spec.disruption.budgets again"]],
            id="braces of its own",
        ),
        pytest.param(addon("example.com/shop:1", "shop-1"), [[], []], [[], []], id="anything else"),
    ],
)
def test_what_is_paused(made: PlacedPod, before: list[list[str]], after: list[list[str]]) -> None:
    """With the names that it has in this cluster."""
    plan = steps(node(), made)
    for shown, wanted in ((tuple(step.before for step in plan), before), (tuple(step.after for step in plan), after)):
        assert [len(lines) for lines in shown] == [len(lines) for lines in wanted]
        for lines, words in zip(shown, wanted, strict=True):
            assert all(word in line for line, word in zip(lines, words, strict=True))


def test_what_a_dump_names_is_not_typed_into_a_shell() -> None:
    """A name that no API server accepts is replaced by a placeholder."""
    _, nodes = steps(node(), addon(AUTOSCALER, "x;reboot-1", namespace="$(id)"))
    assert "kubectl scale deployment NAME --replicas=0 -n NAMESPACE" in nodes.before[0]


def test_the_way_back() -> None:
    """By what the service has for it, after the nodes."""
    nodes, plane = step_plans(snapshot(*on_eks("a")), ((NODES, MINOR), (CONTROL_PLANE, MINOR)), is_back=True)  # type: ignore[arg-type]
    assert "replace the nodes" in nodes.how[0]
    assert ("7 days" in plane.how[0], plane.back) == (True, "")


def test_nothing_is_known_of_the_cluster() -> None:
    """The steps are the same, in words that fit any."""
    plane, nodes = step_plans(Snapshot(), UP)
    assert (len(plane.how), len(nodes.how), plane.before, nodes.before) == (1, 1, (), ())


def test_every_pause_has_its_source() -> None:
    """And what is paused is known from the images that are kept of pods."""
    for row in document("addons")["pauses"]:
        assert {"name", "image", "during", "why", "before", "after", "source", "date"} == {*row} - {"notNamed"}
        assert row["source"].startswith("https://")
        assert is_addon(f"registry.example/{row['image'].strip('/')}:v1")
