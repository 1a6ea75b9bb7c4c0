"""The limits of the update service's answer, checked before the step that each of them keeps small.

The service is not trusted to be modest: an answer of 63 MiB can decode to 3 GiB, and one of 1 MB can name 40 million
pairs of an update and a risk. Whatever a pass does with a graph within these limits takes a second at most. The largest
public channel has 270 releases, 27,000 updates and 0.9 MB; all channels together 1,369, 128,000 and 4 MB
(openshift/cincinnati-graph-data, 2026).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kubekit.error_types import Terminal
from kubekit.lang.text import shorten
from runup.api.config_v1 import ConditionalUpdateRisk

MAX_BYTES = 16 << 20
# Values of the JSON document, which is some 100 bytes of memory each.
MAX_VALUES = 800_000
MAX_NODES = 5_000
MAX_EDGES = 150_000
MAX_GROUPS = 5_000
# As many as the API has in `status.conditionalUpdateRisks`; an update carries 200, and counts the others.
MAX_RISKS_A_GROUP = 500
MAX_RULES_A_RISK = 16
MAX_VERSION = 256
# Channels of a release that count, as many as its status may list.
MAX_CHANNELS = 200
# Of the updates that lead on from one release, with each risk once for each update.
MAX_UPDATES = 1_000
MAX_RISKS = 10_000
MAX_QUERIES = 500
MAX_TEXT = 4 << 20
# Characters of a name of the answer's that messages quote.
_MAX_QUOTED = 100


RiskGroup = tuple[int, Sequence[ConditionalUpdateRisk]]
"""A number of updates, and the risks that these share."""


class BadGraph(Terminal):
    """The answer is not a usable graph; the reasons are ResponseInvalid and VersionNotFound."""


def check_graph_size(nodes: int, edges: int, groups: Sequence[RiskGroup]) -> None:
    """Raises BadGraph if the graph exceeds one of the limits above."""
    risks = [risk for _, shared in groups for risk in shared]
    _at_most(nodes, MAX_NODES, "nodes")
    _at_most(edges, MAX_EDGES, "edges")
    _at_most(sum(number for number, _ in groups), MAX_EDGES, "conditional edges")
    _at_most(len(groups), MAX_GROUPS, "groups of conditional edges")
    _at_most(max((len(shared) for _, shared in groups), default=0), MAX_RISKS_A_GROUP, "risks of one update")
    _at_most(max((len(risk.matching_rules) for risk in risks), default=0), MAX_RULES_A_RISK, "matching rules of a risk")


def updates(origin: str, plain: int, groups: Iterable[RiskGroup]) -> None:
    """Raises BadGraph if more leads on from `origin` than a pass may judge; `plain` updates have no risk."""
    risky, pairs, text, queries = 0, 0, 0, set[str]()
    for number, risks in groups:
        risky += number
        pairs += number * len(risks)
        for risk in risks:
            promql = [rule.promql.promql for rule in risk.matching_rules if rule.promql]
            text += number * sum(map(len, (risk.name, risk.message, risk.url, *promql)))
            queries.update(promql)
    of = f"from {origin}"
    _at_most(plain, MAX_UPDATES, f"updates {of}")
    _at_most(risky, MAX_UPDATES, f"updates with risks {of}")
    _at_most(pairs, MAX_RISKS, f"risks of updates {of}")
    _at_most(text, MAX_TEXT, f"characters in the risks of updates {of}")
    _at_most(len(queries), MAX_QUERIES, f"PromQL queries for updates {of}")


def quote_name(text: str) -> str:
    """Returns a name of the answer's as messages quote it."""
    return repr(shorten(text, _MAX_QUOTED, keep=_MAX_QUOTED))


def bad_graph(message: str) -> BadGraph:
    """Returns the error for an answer that is not a usable graph."""
    return BadGraph(message, reason="ResponseInvalid")


def _at_most(number: int, limit: int, subject: str) -> None:
    if number > limit:
        raise bad_graph(f"the update service's answer has {number} {subject}; the limit is {limit}")
