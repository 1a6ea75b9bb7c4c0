"""The input and output of a source of in-cluster risks. Most of these risks concern minor and major updates."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kubekit.api.codec import Undecodable
from kubekit.api.core_v1 import ConfigMap
from kubekit.api.meta_v1 import Condition
from runup.advice.decide import promql
from runup.advice.decide.candidates import ALWAYS, JudgedRisk
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

    `unknown` is the reason why the source could not decide. `found` is the source's own condition, if it has more
    details.
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
        return self.everywhere or bool(self.unknown)

    def judged(self) -> JudgedRisk:
        """Returns the risk as an update carries it."""
        risk = ConditionalUpdateRisk(name=self.name, message=self.message, url=self.url, matching_rules=ALWAYS)
        return JudgedRisk(risk=risk, applies=self.applies(risk), acceptable=self.acceptable)

    def applies(self, risk: ConditionalUpdateRisk) -> Condition:
        """Returns the source's own condition or a match, or Unknown if the source could not decide."""
        if self.unknown:
            return promql.unevaluated_condition(risk, self.unknown)
        return self.found or promql.match()


Source = Callable[[Cluster], Iterable[SourceRisk]]

_DOCS = "https://docs.redhat.com/en/documentation/openshift_container_platform"


def docs_url(version: str, page: str) -> str:
    """Returns the address of a page of the product documentation for the running minor version."""
    # The documentation has one set of pages for each minor version.
    minor = ".".join(version.split(".")[:2]) or "latest"
    return f"{_DOCS}/{minor}/html/updating_clusters/{page}"
