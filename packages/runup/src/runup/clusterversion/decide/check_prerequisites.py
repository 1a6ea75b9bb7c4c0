"""Evaluates the prerequisites of the commands: `Facts` in, one row for each prerequisite out.

A fact that could not be read makes its row Unknown, with the reason and the way out. Nothing is read here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
    """A line of output: the checked prerequisite, its result, the observation, and a remedy if needed."""

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
    checked_rows = [
        PrerequisiteRow("server", OK, f"{facts.server} answers: Kubernetes {facts.kubernetes}"),
        *_cluster_rows(facts),
    ]
    if facts.cluster is not None:
        checked_rows += [*_request_rows(facts, facts.cluster), *_source_rows(facts, facts.cluster)]
    if facts.cluster is not None or facts.is_plain:
        checked_rows += component_rows(facts)
    for right, allowed in facts.rights.items():
        action = f"{right.verb} {right.resource}"
        if allowed is None:
            says, way_out = f"{action}: the server does not say", f"needed for {right.why}"
            checked_rows.append(PrerequisiteRow("rights", UNKNOWN, says, way_out))
        elif not allowed:
            way_out = "ask for a role that has this right" if facts.is_plain else _role_for(right.verb)
            if right.needed:
                row = PrerequisiteRow("rights", PROBLEM, f"you may not {action}", f"needed for {right.why}; {way_out}")
            else:
                says = f"{right.why} may be incomplete, because you may not {action}"
                row = PrerequisiteRow("rights", UNKNOWN, says, way_out)
            checked_rows.append(row)
    if facts.rights and all(facts.rights.values()):
        checked_rows.append(PrerequisiteRow("rights", OK, "you may do everything that the commands need"))
    return tuple(checked_rows)


def _role_for(verb: str) -> str:
    """Returns which ClusterRole of OpenShift has the right to `verb` what the commands use, and how to bind it."""
    role = "cluster-reader" if verb in ("get", "list", "watch") else "cluster-admin"
    return f"ClusterRole {role} has this right: `oc adm policy add-cluster-role-to-user {role} USER`"


def exit_code(checked_rows: Sequence[PrerequisiteRow]) -> int:
    """Returns the exit code of the worst row; 1 if the server did not answer."""
    results = {row.result for row in checked_rows}
    if PROBLEM in results:
        return 1 if any(row.name == "server" and row.result is PROBLEM for row in checked_rows) else EXIT[PROBLEM]
    return EXIT[UNKNOWN] if UNKNOWN in results else EXIT[OK]


def _cluster_rows(facts: Facts) -> Iterator[PrerequisiteRow]:
    """Yields the rows about the ClusterVersion, and about its operator: whether that observed the newest generation."""
    if facts.is_plain:
        says = f"it has no ClusterVersion: a cluster of Kubernetes {facts.kubernetes} itself, for `runup preflight run`"
        yield PrerequisiteRow("cluster", OK, says)
        return
    if facts.cluster is None:
        why = facts.errors.get(CLUSTER, "its ClusterVersion could not be read")
        may_read = next((allowed for right, allowed in facts.rights.items() if right.verb == "get"), None)
        way_out = "run this again when the API server returns its ClusterVersion"
        yield PrerequisiteRow("cluster", PROBLEM, why, _role_for("get") if may_read is False else way_out)
        return
    version = facts.cluster.status.desired.version or "no version yet"
    yield PrerequisiteRow("cluster", OK, f"its ClusterVersion says {version}")
    generation, observed = facts.cluster.metadata.generation, facts.cluster.status.observed_generation
    if observed >= generation:
        yield PrerequisiteRow("operator", OK, f"it has observed the newest request (generation {generation})")
    else:
        text = f"it has not observed the newest request: generation {generation}, observed {observed}"
        way_out = "check that the cluster-version operator runs, and read its log"
        yield PrerequisiteRow("operator", PROBLEM, text, way_out)


def _request_rows(facts: Facts, cluster: ClusterVersion) -> Iterator[PrerequisiteRow]:
    """Yields the rows about requests: whether the server takes `spec.desiredUpdate.mode`, and their feature gates."""
    name = "preflight field"
    if facts.mode is None:
        why = facts.errors.get("mode", "the server was not asked")
        way_out = "run this again as a user who may patch clusterversions"
        yield PrerequisiteRow(name, UNKNOWN, f"whether the server takes spec.desiredUpdate.mode: {why}", way_out)
    elif facts.mode == "":
        yield PrerequisiteRow(name, OK, "the server takes spec.desiredUpdate.mode (asked by a dry run)")
    else:
        text = f"the server does not take spec.desiredUpdate.mode: {facts.mode}"
        way_out = (
            f"enable the feature gate {gates.PREFLIGHT}, or update to a release that has it in its Default feature set"
        )
        yield PrerequisiteRow(name, PROBLEM, text, way_out)
    version = cluster.status.desired.version
    for gate, needed in ((gates.PREFLIGHT, "preflights"), (gates.ACCEPT_RISKS, "accepting risks by name")):
        name = f"gate {gate}"
        # The operator treats an unreadable gate as closed, but here it is not known.
        if facts.gates is None:
            why = facts.errors.get("FeatureGate", "there is no FeatureGate cluster")
            text = f"{why}; the operator counts it as closed"
            yield PrerequisiteRow(name, UNKNOWN, text, "make FeatureGate cluster readable")
        elif gate in gates.open_gates(facts.gates, version):
            yield PrerequisiteRow(name, OK, f"open for {version}: {needed}")
        else:
            why = gates.why_closed(facts.gates, version, gate)
            yield PrerequisiteRow(name, PROBLEM, f"{why}: no {needed}", "choose a feature set that enables it")


def _source_rows(facts: Facts, cluster: ClusterVersion) -> Iterator[PrerequisiteRow]:
    """Yields the rows about the update service, from RetrievedUpdates, and about registries and signature stores."""
    name = "update service"
    retrieved = find(cluster.status.conditions, "RetrievedUpdates")
    if not cluster.spec.channel:
        text = "no channel is set, so no updates are known"
        yield PrerequisiteRow(name, PROBLEM, text, "`oc adm upgrade channel NAME`")
    elif retrieved is None:
        text = "the operator does not report whether it was reached"
        yield PrerequisiteRow(name, UNKNOWN, text, "run this again later")
    elif retrieved.status == "True":
        yield PrerequisiteRow(name, OK, f"the operator reached it, in channel {cluster.spec.channel}")
    else:
        way_out = "check spec.upstream and spec.channel of the ClusterVersion, and the proxy"
        result = PROBLEM if retrieved.status == "False" else UNKNOWN
        yield PrerequisiteRow(name, result, f"{retrieved.reason}: {retrieved.message}", way_out)
    # Registries and stores are asked from here; the cluster's view may differ.
    for url, why in facts.reached.items():
        name = "signature store" if url in facts.stores else "registry"
        if not why:
            yield PrerequisiteRow(name, OK, f"{url} answers from here")
        else:
            way_out = "nothing to do if the cluster reaches it, or a mirror of it"
            yield PrerequisiteRow(name, UNKNOWN, f"{url} does not answer from here: {why}", way_out)
    if not facts.stores:
        why = facts.errors.get("stores", "neither spec.signatureStores nor a verification ConfigMap is there")
        way_out = "the operator uses those of the running release"
        yield PrerequisiteRow("signature store", UNKNOWN, f"not known: {why}", way_out)


_ROW = "components"


def component_rows(facts: Facts) -> Iterator[PrerequisiteRow]:
    """Yields a row for each component that is installed, and one for those that are not."""
    if facts.components is None:
        why = facts.errors.get(_ROW, "they were not asked for")
        yield PrerequisiteRow(
            _ROW, UNKNOWN, f"which are installed: {why}", "ask again as somebody who may list Deployments"
        )
        return
    for component in facts.components:
        yield _component_row(component)
    absent = [name for name in COMPONENTS if name not in {component.component for component in facts.components}]
    if absent:
        yield PrerequisiteRow(_ROW, OK, f"not installed as a Deployment: {', '.join(absent)}")


def _component_row(installed: Installed) -> PrerequisiteRow:
    """Returns the row of one installed component: its version, where it runs, and how many of its pods are ready."""
    name = f"component {installed.component}"
    place = f"Deployment {installed.namespace}/{installed.deployment}"
    pods = f"{installed.ready} of {installed.wanted} pods ready"
    if not installed.by_install:
        version = installed.image or "no image"
    elif installed.version:
        version = f"runup {installed.version}"
    else:
        version = f"a version that could not be read ({installed.version_error or 'its inventory names none'})"
    says = f"{version} in namespace {installed.namespace}, {pods}"
    if not installed.wanted:
        way_out = f"kubectl -n {installed.namespace} scale deployment/{installed.deployment} --replicas=1"
        return PrerequisiteRow(name, PROBLEM, f"{says}: it is scaled to 0 replicas", f"`{way_out}`")
    if installed.ready < installed.wanted or not installed.rolled_out:
        why = installed.why or "its newest pods are not available yet"
        return PrerequisiteRow(name, PROBLEM, f"{says}: {why}", f"see `kubectl -n {installed.namespace} describe pods`")
    if installed.lacking:
        text = f"{says}; its account may not {', '.join(installed.lacking)}"
        return PrerequisiteRow(name, PROBLEM, text, f"`runup install {installed.component}` gives it its roles again")
    if installed.rights_error:
        text = f"{says}; whether its account has its rights: {installed.rights_error}"
        return PrerequisiteRow(name, UNKNOWN, text, "ask again as somebody who may create subjectaccessreviews")
    if not installed.by_install:
        return PrerequisiteRow(name, OK, f"{says}; {place} was not made by `runup install`")
    return PrerequisiteRow(name, OK, f"{says}, its account has its rights")
