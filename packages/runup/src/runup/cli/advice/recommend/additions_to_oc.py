"""The parts of `recommend` beyond oc: the findings of preflights, and who accepted which risk until when.

If a cluster has neither, the output is only oc's, and no module for them is imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from runup.api.clusterversion_json import JSON, mapping, mappings, text
from runup.cli.render.text import Output

HISTORY_MAP, ACCEPTED_MAP = "preflight-history", "accepted-risks"


class Extras(msgspec.Struct, frozen=True):
    """The lines to print, and the same for programs."""

    output: tuple[Output, ...] = ()
    preflights: list[JSON] = []
    acceptances: list[JSON] = []


def additional_output(cluster: JSON, config_maps: Sequence[JSON], version: str, now: datetime | None) -> Extras:
    """Returns the additional output; `version` limits preflights to one target, `now` is None for files."""
    by_name = {text(mapping(config_map, "metadata"), "name"): config_map for config_map in config_maps}
    names = accepted_names(cluster)
    output: list[Output] = []
    preflights: list[JSON] = []
    acceptances: list[JSON] = []
    if HISTORY_MAP in by_name or _speaks_of_preflights(cluster):
        from runup.cli.advice.recommend import preflight_lines as found

        preflight_lines, preflights = found.preflight_lines(
            cluster, by_name.get(HISTORY_MAP), by_name.get(ACCEPTED_MAP), version, now
        )
        output.extend(preflight_lines)
    if names or ACCEPTED_MAP in by_name:
        from runup.cli.advice.recommend import acceptances as taken

        acceptance_lines, acceptances = taken.acceptance_lines(cluster, names, by_name.get(ACCEPTED_MAP), now)
        output.extend(acceptance_lines)
    return Extras(tuple(output), preflights, acceptances)


def accepted_names(cluster: JSON) -> tuple[str, ...]:
    """Returns the names in `spec.desiredUpdate.acceptRisks`, in their order."""
    desired = mapping(mapping(cluster, "spec"), "desiredUpdate")
    return tuple(name for accepted_risk in mappings(desired, "acceptRisks") if (name := text(accepted_risk, "name")))


def _speaks_of_preflights(cluster: JSON) -> bool:
    """Returns whether ClusterVersion has a mode, a condition or a risk from a preflight."""
    status = mapping(cluster, "status")
    if text(mapping(mapping(cluster, "spec"), "desiredUpdate"), "mode"):
        return True
    risks = [risk for update in mappings(status, "conditionalUpdates") for risk in mappings(update, "risks")]
    return any(_is_preflights(condition) for condition in _conditions(risks)) or any(
        text(condition, "type").startswith("Preflight") for condition in mappings(status, "conditions")
    )


def _conditions(risks: Iterable[JSON]) -> Iterable[JSON]:
    return (condition for risk in risks for condition in mappings(risk, "conditions"))


def _is_preflights(condition: JSON) -> bool:
    return text(condition, "reason").startswith(("Preflight", "ReportStale"))
