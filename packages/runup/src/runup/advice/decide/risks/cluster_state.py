"""The risks from the state of ClusterVersion and ClusterOperators, which block updates to another minor version."""

from __future__ import annotations

from collections.abc import Iterable

from kubekit.api.conditions import find, status_of
from kubekit.lang.text import join_within
from runup.advice.decide import risk_names
from runup.advice.decide.risks.risk_source import Cluster, SourceRisk, docs_url

OPERATORS_UNKNOWN = "ClusterOperatorUpgradeableUnknown"
_PAGE = "understanding-openshift-updates-1"
_OPERATORS_PAGE = f"{_PAGE}#understanding_clusteroperator_conditiontypes_understanding-openshift-updates"
# The maximum length of the list of objects, in bytes.
_MAX_NAMES = 4096


def update_risks(cluster: Cluster) -> Iterable[SourceRisk]:
    """Yields one risk while Progressing is True: an update must finish before another leaves the minor version."""
    status = cluster.version.status
    if status_of(status.conditions, "Progressing") == "True":
        yield SourceRisk(
            name=risk_names.UPDATING,
            message="An update is already in progress and the details are in the Progressing condition.",
            url=docs_url(status.desired.version, _PAGE),
        )


def override_risks(cluster: Cluster) -> Iterable[SourceRisk]:
    """Yields one risk while an administrator has excluded manifests from the operator's control."""
    if any(override.unmanaged for override in cluster.version.spec.overrides):
        yield SourceRisk(
            name=risk_names.OVERRIDES,
            message="Disabling ownership via cluster version overrides prevents updates between minor or major "
            "versions. "
            "Please remove overrides before requesting a minor or major version update.",
            url=docs_url(cluster.version.status.desired.version, _PAGE),
        )


def deletion_risks(cluster: Cluster) -> Iterable[SourceRisk]:
    """Yields one risk while objects that a release removes still exist: the next release may not expect them."""
    if cluster.deleting:
        names = join_within(sorted(cluster.deleting), ",", _MAX_NAMES)
        yield SourceRisk(
            name=risk_names.DELETION,
            message="Cluster minor or major version upgrades are not allowed while resource deletions are in progress; "
            f"resources={names}",
            url=docs_url(cluster.version.status.desired.version, _PAGE),
        )


def operator_risks(cluster: Cluster) -> Iterable[SourceRisk]:
    """Yields one risk for each operator that is not upgradeable, or one if the operators could not be listed."""
    url = docs_url(cluster.version.status.desired.version, _OPERATORS_PAGE)
    prefix = risk_names.OPERATOR
    if cluster.operators is None:
        why = f"ClusterOperators could not be listed: {cluster.unreadable}"
        message = f"Whether ClusterOperators allow the update is not known. {why}"
        yield SourceRisk(name=OPERATORS_UNKNOWN, message=message, url=url, unknown=why)
        return
    for bad in cluster.unread:
        why = f"ClusterOperator {bad}"
        yield SourceRisk(
            name=prefix + bad.name, message=f"Whether it allows the update is not known. {why}", url=url, unknown=why
        )
    for operator in cluster.operators:
        condition = find(operator.status.conditions, "Upgradeable")
        # A missing or Unknown condition does not block an update: only an explicit False does.
        if condition is not None and condition.status == "False":
            message = condition.message or condition.reason or "The operator says that it is not upgradeable."
            yield SourceRisk(name=f"{prefix}{operator.metadata.name}", message=message, url=url)
