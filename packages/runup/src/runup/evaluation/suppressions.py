"""Suppressions: a file that lists the risks that a team accepts, why, and until when. Pure except for reading the text.

    suppressions:
    - risk: MachineConfigPoolPaused-*
      reason: the GPU pool is updated by hand after the release
      until: 2027-03-31

A suppressed risk is still listed, as accepted, with the reason. An expired entry counts no more, and one that matched
nothing is named: nobody else would notice either mistake.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from fnmatch import fnmatchcase
from typing import Any

from kubekit.error_types import InputError
from kubekit.lang import yaml as kyaml
from runup.preflight.decide.findings import Risk

_FIELDS = frozenset({"risk", "reason", "until", "cluster"})


@dataclass(frozen=True, slots=True)
class Suppression:
    """An entry; `risk` and `cluster` are globs, `until` is its last day (None: it does not expire)."""

    risk: str
    reason: str
    until: date | None = None
    cluster: str = "*"

    def __str__(self) -> str:
        return f"{self.risk}{f' ({self.cluster})' if self.cluster != '*' else ''}"


def parse(text: str, name: str) -> tuple[Suppression, ...]:
    """Returns the entries of the file `name`. Raises InputError with the entry and the field."""
    try:
        document = kyaml.load(text, name=name)
    except kyaml.YamlError as error:
        raise InputError(str(error)) from error
    entries = document.get("suppressions") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise InputError(
            f"--suppressions {name}: has no list `suppressions`, of which an item is for example "
            "{risk: NAME, reason: WHY, until: 2026-12-31}"
        )
    parsed = []
    for number, entry in enumerate(entries):
        place = f"{name}: suppressions[{number}]"
        if not isinstance(entry, dict):
            raise InputError(f"{place}: is not a map")
        if unknown := sorted(map(str, entry.keys() - _FIELDS)):
            raise InputError(f"{place}: does not know {', '.join(unknown)}; it has {', '.join(sorted(_FIELDS))}")
        risk, reason = _required_text(entry, "risk", place), _required_text(entry, "reason", place)
        until = entry.get("until")
        if isinstance(until, datetime):
            until = until.date()
        elif until is not None and not isinstance(until, date):
            try:
                until = date.fromisoformat(str(until))
            except ValueError as error:
                raise InputError(f"{place}: until {str(until)!r} is not a day such as 2027-03-31") from error
        parsed.append(Suppression(risk, reason, until, str(entry.get("cluster") or "*")))
    return tuple(parsed)


def _required_text(entry: dict[Any, Any], key: str, entry_place: str) -> str:
    value = entry.get(key)
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{entry_place}: {key} is missing")
    return value


def apply_suppressions(
    risks: Iterable[Risk], suppressions: Sequence[Suppression], cluster: str, today: date
) -> tuple[tuple[Risk, ...], tuple[str, ...]]:
    """Returns the risks, with suppressed ones marked accepted, and warnings about entries without effect."""
    marked: list[Risk] = []
    warnings: set[str] = set()
    for risk in risks:
        matching = [entry for entry in suppressions if _fits_risk(entry, risk, cluster)]
        valid = [entry for entry in matching if entry.until is None or today <= entry.until]
        warnings |= {
            f"{entry} was suppressed until {entry.until}, and counts again" for entry in matching if entry not in valid
        }
        if valid and not risk.acceptable:
            warnings.add(f"{risk.name} cannot be suppressed: the update is refused while it applies")
        elif valid and not risk.accepted:
            until = f" (until {valid[0].until})" if valid[0].until else ""
            risk = risk.accept(f"suppressed: {valid[0].reason}{until}")
        marked.append(risk)
    return tuple(marked), tuple(sorted(warnings))


def unused_entries(suppressions: Iterable[Suppression], cluster: str, risks: Sequence[Risk]) -> list[Suppression]:
    """Returns the entries that match no risk of the cluster."""
    return [entry for entry in suppressions if not any(_fits_risk(entry, risk, cluster) for risk in risks)]


def _fits_risk(suppression: Suppression, risk: Risk, cluster: str) -> bool:
    # `fnmatchcase` and not `fnmatch`, whose case sensitivity depends on the platform.
    return fnmatchcase(risk.name, suppression.risk) and fnmatchcase(cluster, suppression.cluster)
