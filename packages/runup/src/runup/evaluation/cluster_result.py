"""The result of one cluster, which every output form is made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from runup.facts.dump_places import Place
from runup.preflight.decide.findings import Findings
from runup.report.report import ReportedResource

_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ClusterResult:
    """The findings about one cluster; `name` stands in tables.

    For a dump, `lacking` are the kinds that it does not have in full, `collect` is the command that collects them, and
    `places` says where the objects are by their text; the empty text is the dump itself. `tried` is when the command
    ran: what could not be evaluated was not observed at any time.
    """

    name: str
    findings: Findings
    lacking: tuple[str, ...] = ()
    collect: str = ""
    places: Mapping[str, Place] = field(default_factory=dict)
    tried: datetime = _NEVER

    def place(self, item: ReportedResource | None = None) -> Place | None:
        """Returns where an object is, or where the dump is if that is not known or no object is given."""
        return self.places.get(item.text if item else "") or self.places.get("")
