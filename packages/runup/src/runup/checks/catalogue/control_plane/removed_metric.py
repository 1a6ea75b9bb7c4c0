"""Alerts use a metric that Kubernetes' components of the target do not have, or hide.

Applies when an expression of a PrometheusRule names a metric of a component of Kubernetes that a minor version between
the running one and the target's removes or hides. A component hides a deprecated metric from the minor version after
the deprecation on. An expression that also names a metric that the target has, after `or`, does not count. The table
has the metrics of kube-apiserver, kube-controller-manager, kube-scheduler, kubelet, kube-proxy and their libraries, by
the names that the sources state as constants; it does not have those of cAdvisor, etcd and kube-state-metrics. Labels
that change are not known; names that a regular expression with wildcards selects (`{__name__=~"volume_.*"}`),
dashboards and the relabelings of a ServiceMonitor are not read. Where the target is newer than the table, metrics of
the table are Unknown.

Why it matters: the series ends with the update, so an alert on it never fires again, and one on its absence fires for
ever.

Remedy: name the metric that replaces it; the help text of the old one and the changelog of the minor version say which.
A hidden metric is shown for one more minor version by `--show-hidden-metrics-for-version`.

Accepting it is right where nobody needs the alert.

Source of the rule: <https://kubernetes.io/docs/concepts/cluster-administration/system-metrics/#metric-lifecycle>; the
sources of the components, as `data/removed-metrics.yaml` has them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

import msgspec

from kubekit.api.meta_v1 import Object, Wire
from runup.checks.catalogue.shared.kubernetes_versions import least_source_minor, target_minor, target_unknown
from runup.checks.decide.removal_tables import document, table
from runup.checks.writing import (
    DEFINITIONS,
    Context,
    Findings,
    Slim,
    Snapshot,
    declared,
    full_name,
    names,
    risk,
    slim_metadata,
    unknown,
)

NAME = "RemovedMetric"
EXAMPLE = """
update: {from: 1.36.3, to: 1.37.0}
---
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata: {name: volumes, namespace: monitoring}
spec:
  groups:
  - name: volumes
    rules: [{alert: VolumeOperationsFail, expr: "rate(volume_operation_total_errors[5m]) > 0"}]
"""
_TABLE = "removed-metrics"
# What is no name of a metric: comments, texts and the matchers of labels, which may contain texts with braces.
_NAMED = re.compile(r"""__name__\s*=~?\s*(?:"([^"]*)"|'([^']*)')""")
_TEXT = re.compile(r"""#[^\n]*|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`""")
_WORD = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
# The series of a histogram or summary.
_SERIES = ("_bucket", "_count", "_sum")


class Rule(Wire, frozen=True):
    """A rule of a group: an alert, or a series that is recorded."""

    alert: str = ""
    record: str = ""
    expr: str | int | float = ""


class RuleGroup(Wire, frozen=True):
    """Rules that are evaluated together."""

    rules: tuple[Rule, ...] = ()


class RulesSpec(Wire, frozen=True):
    """`spec` of a PrometheusRule."""

    groups: tuple[RuleGroup, ...] = ()

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules of all groups."""
        return tuple(rule for group in self.groups for rule in group.rules)


class PrometheusRule(Object, frozen=True, kw_only=True):
    """Rules of Prometheus, as its operator takes them."""

    spec: RulesSpec = RulesSpec()


def _slim_rules(rules: PrometheusRule) -> PrometheusRule:
    """Returns the rules whose expressions name a metric of the table."""
    kept = tuple(rule for rule in rules.spec.rules if metrics_in(str(rule.expr)))
    return PrometheusRule(metadata=slim_metadata(rules), spec=RulesSpec((RuleGroup(kept),) if kept else ()))


RULES = Slim(
    group="monitoring.coreos.com",
    version="v1",
    kind="PrometheusRule",
    plural="prometheusrules",
    namespaced=True,
    type=PrometheusRule,
    keep=_slim_rules,
)


class Ended(msgspec.Struct, frozen=True, order=True):
    """A metric that a minor version of Kubernetes removes or hides."""

    metric: str
    minor: int
    verb: str

    def __str__(self) -> str:
        return f"{self.metric} ({table(_TABLE).when(self.minor)} {self.verb} it)"


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields one risk of the rules with metrics that the target lacks, and one Unknown of those beyond the table."""
    rules = sorted(snapshot.listed_or_none(RULES), key=full_name)
    used = [(each, rule) for each in rules for rule in each.spec.rules]
    target = target_minor(context)
    if target is None:
        if used:
            yield target_unknown(NAME, [each for each, _ in used], RULES)
        return
    ended: dict[Ended, None] = {}
    hit: list[tuple[PrometheusRule, Rule]] = []
    for each, rule in used:
        if of_rule := ended_metrics(str(rule.expr), least_source_minor(context), target):
            ended.update(dict.fromkeys(of_rule))
            hit.append((each, rule))
    if hit:
        listed = names([f"{full_name(each)} {rule.alert or rule.record}" for each, rule in hit])
        yield risk(
            NAME,
            f"{listed}: the target does not have {names(sorted(map(str, ended)))}.",
            list({full_name(each): each for each, _ in hit}.values()),
            severity="warning" if any(rule.alert for _, rule in hit) else "info",
            fix="Name the metric that replaces it, after `or` for the time of the update; see the changelog of that "
            "version of Kubernetes.",
            kind=RULES,
        )
    rows = table(_TABLE)
    beyond = [each for each, rule in used if metrics_in(str(rule.expr)) & present_metrics() and (each, rule) not in hit]
    if beyond and not rows.knows(target):
        yield unknown(
            NAME,
            f"the table of metrics ends with Kubernetes 1.{rows.last} (as of {rows.date})",
            list({full_name(each): each for each in beyond}.values()),
            fix="See the changelog of the target's Kubernetes.",
            kind=RULES,
        )


def metrics_in(expression: str) -> frozenset[str]:
    """Returns the metrics of the table that a PromQL expression names.

    Names of labels count as well; no label has the name of a metric.
    """
    return frozenset(metric for alternative in _alternatives(expression) for metric in alternative)


def _alternatives(expression: str) -> list[set[str]]:
    """Returns the metrics of the table in each operand of `or`, and in each name that `__name__` may have."""
    named = [{part} for match in _NAMED.findall(expression) for text in match for part in text.split("|")]
    words = [{*_WORD.findall(part)} for part in re.split(r"\bor\b", _TEXT.sub(" ", expression))]
    return [{metric for word in part for metric in _metrics_of(word)} for part in (*words, *named)]


def _metrics_of(word: str) -> Iterable[str]:
    """Returns the metric of a series, if the table has it."""
    stems = [word.removesuffix(suffix) for suffix in _SERIES if word.endswith(suffix)]
    return [name for name in (word, *stems) if name in _all_metrics()]


def ended_metrics(expression: str, source: int, target: int) -> list[Ended]:
    """Returns the metrics of an expression that a minor version above `source` and up to `target` ends.

    The list is empty if an alternative of the expression (`new or old`) has only metrics that stay.
    """
    alternatives = _alternatives(expression)
    ended: dict[str, Ended] = {}
    for minor, row in table(_TABLE).until(target):
        for verb in ("hides", "removes"):
            for metric in row.get(verb, ()):
                # A metric that is hidden first and removed later ends once.
                ended.setdefault(metric, Ended(metric, minor, verb))
    if any(metrics and not metrics & ended.keys() for metrics in alternatives):
        return []
    used = {metric for metrics in alternatives for metric in metrics}
    return sorted(ended[metric] for metric in used & ended.keys() if ended[metric].minor > source)


@cache
def present_metrics() -> frozenset[str]:
    """Returns the metrics that the newest released minor version of the table has."""
    return frozenset(table(_TABLE).base)


@cache
def _all_metrics() -> frozenset[str]:
    """Returns the metrics that a minor version of the table has or removes."""
    rows = document(_TABLE)
    ended = {
        name
        for section in ("removed", "planned")
        for row in rows.get(section, {}).values()
        for of_verb in row.values()
        for name in of_verb
    }
    return present_metrics() | ended


CHECK = declared(run, NAME, "monitoring", reads=(RULES, DEFINITIONS), rank=645, clusters="Kubernetes")
