"""The risks from the state of ClusterVersion and ClusterOperators, which block updates to another minor version.

`Cluster` and `SourceRisk` are the input and output of every source of risks in the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kubekit.api.codec import Undecodable
from kubekit.api.conditions import find, status_of
from kubekit.api.core_v1 import ConfigMap
from kubekit.api.meta_v1 import Condition
from kubekit.lang.text import join_within
from runup.advice.decide import candidates, promql, risk_names
from runup.api.config_v1 import ClusterOperator, ClusterVersion, ConditionalUpdateRisk


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The part of the cluster that sources read.

    `operators` is None if the list request failed, `unreadable` says why. `unread` are operators that could not be
    decoded. `deleting` are objects whose deletion is in progress. `admin_unreadable` says why the two ConfigMaps about
    acknowledgements could not be read.
    """

    version: ClusterVersion
    operators: tuple[ClusterOperator, ...] | None = ()
    unreadable: str = ""
    unread: tuple[Undecodable, ...] = ()
    deleting: tuple[str, ...] = ()
    admin_gates: ConfigMap | None = None
    admin_acks: ConfigMap | None = None
    admin_unreadable: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRisk:
    """A risk of every update that leaves the minor version, or with `everywhere` of every update at all.

    `unknown` is the reason why a source with `everywhere` could not decide. A risk that forbids minor updates applies
    in that case too: an unknown state must not allow what a known one forbids. `found` is the source's own condition,
    if it has more details.
    """

    name: str
    message: str
    url: str
    unknown: str = ""
    everywhere: bool = False
    found: Condition | None = None

    @property
    def acceptable(self) -> bool:
        """Returns whether acceptance lifts the risk: not if it makes Upgradeable False, which blocks by itself."""
        return self.everywhere

    def evaluated(self) -> candidates.EvaluatedRisk:
        """Returns the risk as an update carries it."""
        risk = ConditionalUpdateRisk(
            name=self.name, message=self.message, url=self.url, matching_rules=candidates.ALWAYS
        )
        return candidates.EvaluatedRisk(risk=risk, applies=self.applies(risk), acceptable=self.acceptable)

    def applies(self, risk: ConditionalUpdateRisk) -> Condition:
        """Returns the source's own condition or a match, or Unknown if the source could not decide."""
        if self.unknown:
            return promql.unevaluated_condition(risk, self.unknown)
        return self.found or promql.match()


Source = Callable[[Cluster], Iterable[SourceRisk]]

_DOCS = "https://docs.redhat.com/en/documentation/openshift_container_platform"


def docs_url(version: str, page: str, *, book: str = "updating_clusters") -> str:
    """Returns the address of a page of the product documentation for the running minor version."""
    # The documentation has one set of pages for each minor version.
    minor = ".".join(version.split(".")[:2]) or "latest"
    return f"{_DOCS}/{minor}/html/{book}/{page}"


# The pages that the Go operator names for each of these risks.
_PAGE = "understanding-openshift-updates-1"
_OPERATORS_PAGE = f"{_PAGE}#understanding_clusteroperator_conditiontypes_understanding-openshift-updates"
_DELETIONS_PAGE = f"{_PAGE}#update-manifest-application_how-updates-work"
_OVERRIDES_BOOK, _OVERRIDES_PAGE = "config_apis", "clusterversion-config-openshift-io-v1#spec-8"
# The maximum length of the list of objects, in bytes.
_MAX_NAMES = 4096


def update_risks(cluster: Cluster) -> Iterable[SourceRisk]:
    """Yields one risk while Progressing is True: an update must finish before another leaves the minor version."""
    status = cluster.version.status
    if status_of(status.conditions, "Progressing") == "True":
        yield SourceRisk(
            name=risk_names.UPDATING,
            message="An update is already in progress and the details are in the Progressing condition.",
            url=docs_url(status.desired.version, _OPERATORS_PAGE),
        )


def override_risks(cluster: Cluster) -> Iterable[SourceRisk]:
    """Yields one risk while an administrator has excluded manifests from the operator's control."""
    if any(override.unmanaged for override in cluster.version.spec.overrides):
        yield SourceRisk(
            name=risk_names.OVERRIDES,
            message="Disabling ownership via cluster version overrides prevents updates between minor or major "
            "versions. "
            "Please remove overrides before requesting a minor or major version update.",
            url=docs_url(cluster.version.status.desired.version, _OVERRIDES_PAGE, book=_OVERRIDES_BOOK),
        )


def deletion_risks(cluster: Cluster) -> Iterable[SourceRisk]:
    """Yields one risk while objects that a release removes still exist: the next release may not expect them."""
    if cluster.deleting:
        names = join_within(sorted(cluster.deleting), ",", _MAX_NAMES)
        yield SourceRisk(
            name=risk_names.DELETION,
            message="Cluster minor or major version upgrades are not allowed while resource deletions are in progress; "
            f"resources={names}",
            url=docs_url(cluster.version.status.desired.version, _DELETIONS_PAGE),
        )


def operator_risks(cluster: Cluster) -> Iterable[SourceRisk]:
    """Yields one risk for each operator that is not upgradeable, or one if the operators could not be listed."""
    url = docs_url(cluster.version.status.desired.version, _OPERATORS_PAGE)
    prefix = risk_names.OPERATOR
    if cluster.operators is None:
        message = f"Failed to retrieve ClusterOperators to check Upgradeable conditions: {cluster.unreadable}"
        yield SourceRisk(name=risk_names.OPERATORS_UNKNOWN, message=message, url=url)
        return
    for bad in cluster.unread:
        message = f"Failed to check its Upgradeable condition: ClusterOperator {bad}"
        yield SourceRisk(name=prefix + bad.name, message=message, url=url)
    for operator in cluster.operators:
        condition = find(operator.status.conditions, "Upgradeable")
        # A missing or Unknown condition does not block an update: only an explicit False does.
        if condition is not None and condition.status == "False":
            message = condition.message or condition.reason or "The operator says that it is not upgradeable."
            yield SourceRisk(name=f"{prefix}{operator.metadata.name}", message=message, url=url)
