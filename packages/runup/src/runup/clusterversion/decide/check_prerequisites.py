"""Judges the prerequisites of the commands: `Facts` in, one row for each prerequisite out.

A fact that could not be read makes its row Unknown, with the reason and the way out. Nothing is read here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum

import msgspec

from kubekit.api.conditions import find
from runup.api.cluster_settings_v1 import FeatureGate
from runup.api.config_v1 import ClusterVersion
from runup.clusterversion.decide import gates
from runup.install.decide.component import COMPONENTS


class Result(Enum):
    """The result of one row; its value is printed."""

    OK = "ok"
    PROBLEM = "problem"
    UNKNOWN = "unknown"


class PrerequisiteRow(msgspec.Struct, frozen=True):
    """A line of output: what was checked, its result, what was seen, and the way out if there is something to do."""

    name: str
    result: Result
    says: str
    way_out: str = ""


class Right(msgspec.Struct, frozen=True):
    """A right that a command needs, such as `patch clusterversions.config.openshift.io`, and what it is needed for."""

    verb: str
    resource: str
    why: str
    needed: bool = True


class Installed(msgspec.Struct, frozen=True, kw_only=True):
    """A component's Deployment, wherever it is.

    `by_install`: it is of an inventory of `runup install`, which has `version`; of others `image` tells it. `why` is
    the Deployment's own message if it is not available, `lacking` the rights that its account lacks. A text that ends
    in `_error` says why the fact of that name is missing.
    """

    component: str
    namespace: str
    deployment: str
    image: str = ""
    by_install: bool = True
    version: str = ""
    version_error: str = ""
    wanted: int = 1
    ready: int = 1
    rolled_out: bool = True
    why: str = ""
    lacking: tuple[str, ...] = ()
    rights_error: str = ""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """The collected facts. A text in `errors` says why the fact of that name is missing.

    `mode` is the result of a strict dry run of a preflight request: "" if the server would accept it, else its
    message. `is_plain`: the cluster has no ClusterVersion, and is one of Kubernetes alone. `rights`: whether each is
    allowed, None if the server did not say. `reached`: URL -> "" or why it was not reached. `components`: those that
    are installed, None if that could not be read.
    """

    server: str = ""
    kubernetes: str = ""
    cluster: ClusterVersion | None = None
    gates: FeatureGate | None = None
    mode: str | None = None
    rights: Mapping[Right, bool | None] = msgspec.field(default_factory=dict)
    stores: tuple[str, ...] = ()
    reached: Mapping[str, str] = msgspec.field(default_factory=dict)
    errors: Mapping[str, str] = msgspec.field(default_factory=dict)
    is_plain: bool = False
    components: tuple[Installed, ...] | None = None


OK, PROBLEM, UNKNOWN = Result.OK, Result.PROBLEM, Result.UNKNOWN
CLUSTER = "ClusterVersion"
# The same codes as --wait: 0 no problem, 2 something to do, 3 could not tell; 1 (no answer) is decided in `exit_code`.
EXIT = {OK: 0, PROBLEM: 2, UNKNOWN: 3}


def rows(facts: Facts) -> tuple[PrerequisiteRow, ...]:
    """Returns every row, in an order in which a failure explains the ones below it."""
    if not facts.kubernetes:
        why = facts.errors.get("server", "no answer")
        return (
            PrerequisiteRow(
                "server", PROBLEM, f"{facts.server}: {why}", "choose another with --kubeconfig or --context"
            ),
        )
    checked_rows = [PrerequisiteRow("server", OK, f"{facts.server} answers: Kubernetes {facts.kubernetes}")]
    checked_rows += [_plain_cluster_row(facts) if facts.is_plain else _cluster_row(facts)]
    if facts.cluster is not None:
        checked_rows += [_operator_row(facts), _preflight_field_row(facts), *_gate_rows(facts)]
        checked_rows += [_update_service_row(facts), *_registry_rows(facts)]
    if facts.cluster is not None or facts.is_plain:
        checked_rows += component_rows(facts)
    return (*checked_rows, *_rights_rows(facts.rights.items()))


def exit_code(checked_rows: Sequence[PrerequisiteRow]) -> int:
    """Returns the exit code of the worst row; 1 if the server did not answer."""
    results = {row.result for row in checked_rows}
    if PROBLEM in results:
        return 1 if any(row.name == "server" and row.result is PROBLEM for row in checked_rows) else EXIT[PROBLEM]
    return EXIT[UNKNOWN] if UNKNOWN in results else EXIT[OK]


def _cluster_row(facts: Facts) -> PrerequisiteRow:
    """Returns the row about the ClusterVersion, a problem if there is none."""
    if facts.cluster is not None:
        version = facts.cluster.status.desired.version or "no version yet"
        return PrerequisiteRow("cluster", OK, f"its ClusterVersion says {version}")
    why = facts.errors.get(CLUSTER, "there is no ClusterVersion")
    way_out = "runup needs an OpenShift-style cluster; `runup sandbox start` makes one on this machine"
    return PrerequisiteRow("cluster", PROBLEM, why, way_out)


def _plain_cluster_row(facts: Facts) -> PrerequisiteRow:
    says = f"it has no ClusterVersion: a cluster of Kubernetes {facts.kubernetes} itself, for `runup preflight run`"
    return PrerequisiteRow("cluster", OK, says)


def _operator_row(facts: Facts) -> PrerequisiteRow:
    """Returns the row about the managing operator: whether it has observed the newest generation."""
    assert facts.cluster is not None
    generation, observed = facts.cluster.metadata.generation, facts.cluster.status.observed_generation
    if observed >= generation:
        return PrerequisiteRow("operator", OK, f"it has observed the newest request (generation {generation})")
    text = f"it has not observed the newest request: generation {generation}, observed {observed}"
    return PrerequisiteRow("operator", PROBLEM, text, "check that the cluster-version operator runs, and read its log")


def _preflight_field_row(facts: Facts) -> PrerequisiteRow:
    """Returns the row about the server's support of `spec.desiredUpdate.mode`."""
    if facts.mode is None:
        why = facts.errors.get("mode", "the server was not asked")
        way_out = "run this again as a user who may patch clusterversions"
        return PrerequisiteRow(
            "preflight field", UNKNOWN, f"whether the server takes spec.desiredUpdate.mode: {why}", way_out
        )
    if facts.mode == "":
        return PrerequisiteRow("preflight field", OK, "the server takes spec.desiredUpdate.mode (asked by a dry run)")
    way_out = (
        f"enable the feature gate {gates.PREFLIGHT}, or update to a release that has it in its Default feature set"
    )
    return PrerequisiteRow(
        "preflight field", PROBLEM, f"the server does not take spec.desiredUpdate.mode: {facts.mode}", way_out
    )


def _gate_rows(facts: Facts) -> Iterator[PrerequisiteRow]:
    """Yields a row for each feature gate that the commands depend on."""
    assert facts.cluster is not None
    for gate, needed in ((gates.PREFLIGHT, "preflights"), (gates.ACCEPT_RISKS, "accepting risks by name")):
        name = f"gate {gate}"
        # The operator treats an unreadable gate as closed, but here it is not known.
        if facts.gates is None:
            why = facts.errors.get("FeatureGate", "there is no FeatureGate cluster")
            yield PrerequisiteRow(
                name, UNKNOWN, f"{why}; the operator counts it as closed", "make FeatureGate cluster readable"
            )
            continue
        version = facts.cluster.status.desired.version
        if gate in gates.open_gates(facts.gates, version):
            yield PrerequisiteRow(name, OK, f"open for {version}: {needed}")
        else:
            why = gates.why_closed(facts.gates, version, gate)
            yield PrerequisiteRow(name, PROBLEM, f"{why}: no {needed}", "choose a feature set that enables it")


def _update_service_row(facts: Facts) -> PrerequisiteRow:
    """Returns the row about the update service, from RetrievedUpdates."""
    assert facts.cluster is not None
    if not facts.cluster.spec.channel:
        return PrerequisiteRow(
            "update service", PROBLEM, "no channel is set, so no updates are known", "`oc adm upgrade channel NAME`"
        )
    retrieved = find(facts.cluster.status.conditions, "RetrievedUpdates")
    if retrieved is None:
        return PrerequisiteRow(
            "update service", UNKNOWN, "the operator does not report whether it was reached", "run this again later"
        )
    if retrieved.status == "True":
        return PrerequisiteRow(
            "update service", OK, f"the operator reached it, in channel {facts.cluster.spec.channel}"
        )
    way_out = "check spec.upstream and spec.channel of the ClusterVersion, and the proxy"
    result = PROBLEM if retrieved.status == "False" else UNKNOWN
    return PrerequisiteRow("update service", result, f"{retrieved.reason}: {retrieved.message}", way_out)


def _registry_rows(facts: Facts) -> Iterator[PrerequisiteRow]:
    """Yields a row for each registry and signature store, as reached from here; the cluster's view may differ."""
    for url, why in facts.reached.items():
        name = "signature store" if url in facts.stores else "registry"
        if not why:
            yield PrerequisiteRow(name, OK, f"{url} answers from here")
        else:
            way_out = "nothing to do if the cluster reaches it, or a mirror of it"
            yield PrerequisiteRow(name, UNKNOWN, f"{url} does not answer from here: {why}", way_out)
    if not facts.stores:
        why = facts.errors.get("stores", "neither spec.signatureStores nor a verification ConfigMap is there")
        yield PrerequisiteRow(
            "signature store", UNKNOWN, f"not known: {why}", "the operator uses those of the running release"
        )


def _rights_rows(rights: Iterable[tuple[Right, bool | None]]) -> Iterator[PrerequisiteRow]:
    """Yields a row for each right that the caller lacks, or one row if none is lacking."""
    for right, allowed in rights:
        action = f"{right.verb} {right.resource}"
        if allowed is None:
            yield PrerequisiteRow("rights", UNKNOWN, f"{action}: the server does not say", f"needed for {right.why}")
        elif not allowed:
            result = PROBLEM if right.needed else UNKNOWN
            yield PrerequisiteRow(
                "rights", result, f"you may not {action}", f"needed for {right.why}; ask for a role that has it"
            )
    if rights and all(allowed for _, allowed in rights):
        yield PrerequisiteRow("rights", OK, "you may do everything that the commands need")


_ROW = "components"


def component_rows(facts: Facts) -> Iterator[PrerequisiteRow]:
    """Yields a row for each component that is installed, and one for those that are not."""
    if facts.components is None:
        why = facts.errors.get(_ROW, "they were not asked for")
        yield PrerequisiteRow(
            _ROW, Result.UNKNOWN, f"which are installed: {why}", "ask again as somebody who may list Deployments"
        )
        return
    for component in facts.components:
        yield _component_row(component)
    absent = [name for name in COMPONENTS if name not in {component.component for component in facts.components}]
    if absent:
        yield PrerequisiteRow(_ROW, Result.OK, f"not installed as a Deployment: {', '.join(absent)}")


def _component_row(installed: Installed) -> PrerequisiteRow:
    """Returns the row of one installed component: its version, where it runs, and how many of its pods are ready."""
    name = f"component {installed.component}"
    place = f"Deployment {installed.namespace}/{installed.deployment}"
    pods = f"{installed.ready} of {installed.wanted} pods ready"
    says = f"{_version_text(installed)} in namespace {installed.namespace}, {pods}"
    if not installed.wanted:
        way_out = f"kubectl -n {installed.namespace} scale deployment/{installed.deployment} --replicas=1"
        return PrerequisiteRow(name, Result.PROBLEM, f"{says}: it is scaled to 0 replicas", f"`{way_out}`")
    if installed.ready < installed.wanted or not installed.rolled_out:
        why = installed.why or "its newest pods are not available yet"
        return PrerequisiteRow(
            name, Result.PROBLEM, f"{says}: {why}", f"see `kubectl -n {installed.namespace} describe pods`"
        )
    if installed.lacking:
        text = f"{says}; its account may not {', '.join(installed.lacking)}"
        return PrerequisiteRow(
            name, Result.PROBLEM, text, f"`runup install {installed.component}` gives it its roles again"
        )
    if installed.rights_error:
        text = f"{says}; whether its account has its rights: {installed.rights_error}"
        return PrerequisiteRow(name, Result.UNKNOWN, text, "ask again as somebody who may create subjectaccessreviews")
    if not installed.by_install:
        return PrerequisiteRow(name, Result.OK, f"{says}; {place} was not made by `runup install`")
    return PrerequisiteRow(name, Result.OK, f"{says}, its account has its rights")


def _version_text(installed: Installed) -> str:
    """Returns the installed component's version in words."""
    if not installed.by_install:
        return installed.image or "no image"
    if installed.version:
        return f"runup {installed.version}"
    return f"a version that could not be read ({installed.version_error or 'its inventory names none'})"
