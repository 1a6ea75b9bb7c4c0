"""Why a cluster gets a manifest, or does not: every rule with its verdict, not only the first that objects.

In: the manifests of a release, what is known of the cluster, and what of it could not be read. A rule that asks what
nobody could read is Unknown, and so is then the answer, unless another rule keeps the manifest out in any case.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from runup.release.decide.inclusion import (
    CAPABILITY,
    EXCLUDE_PREFIX,
    FEATURE_GATE,
    FEATURE_SET,
    INCLUDE_PREFIX,
    MAJOR_VERSION,
    RULES,
    Filters,
)
from runup.release.decide.manifest import Manifest

Verdict = Literal["passes", "fails", "unknown", "not asked"]
Answer = Literal["in", "out", "unknown"]

ANNOTATIONS = "annotations"
_ASKED_BY = {
    "excluded identifier": EXCLUDE_PREFIX,
    "feature set": FEATURE_SET,
    "feature gates": FEATURE_GATE,
    "major version": MAJOR_VERSION,
    "profile": INCLUDE_PREFIX,
    "capabilities": CAPABILITY,
}
"""What a manifest has to carry for a rule to look at the cluster; the profile is asked of every manifest."""

_ALWAYS = frozenset({"profile", "overrides"})


@dataclass(frozen=True, slots=True)
class Ruling:
    """One rule's verdict; `why` has the words of the objection, or what could not be read."""

    rule: str
    verdict: Verdict
    why: str = ""


@dataclass(frozen=True, slots=True)
class Explained:
    """One manifest: whether the cluster gets it, and by which rules."""

    manifest: Manifest
    answer: Answer
    rulings: tuple[Ruling, ...]

    @property
    def decided_by(self) -> Ruling | None:
        """The first rule that keeps it out or that could not be asked, None where all let it in."""
        return next((ruling for ruling in self.rulings if ruling.verdict == _DECIDES.get(self.answer)), None)


_DECIDES: dict[Answer, Verdict] = {"out": "fails", "unknown": "unknown"}


def explain(manifest: Manifest, filters: Filters, unreadable: Mapping[str, str] | None = None) -> Explained:
    """Every rule about `manifest` in the order in which they are asked.

    `unreadable` has, for the name of a rule, why what it asks of the cluster is not known.
    """
    annotations = manifest.annotations
    if annotations is None:
        return Explained(manifest, "out", (Ruling(ANNOTATIONS, "fails", "no annotations"),))
    unknown = unreadable or {}
    rulings = [Ruling(ANNOTATIONS, "passes")]
    for name, objection in RULES.items():
        if not _asked(name, annotations):
            rulings.append(Ruling(name, "not asked"))
        elif why := unknown.get(name):
            rulings.append(Ruling(name, "unknown", why))
        else:
            said = objection(manifest, annotations, filters)
            rulings.append(Ruling(name, "fails" if said else "passes", said))
    verdicts = {ruling.verdict for ruling in rulings}
    answer: Answer = "out" if "fails" in verdicts else "unknown" if "unknown" in verdicts else "in"
    return Explained(manifest, answer, tuple(rulings))


def named(manifests: Iterable[Manifest], kind: str, name: str, namespace: str = "") -> tuple[Manifest, ...]:
    """Those of `manifests` that `KIND NAME` means: `Kind` or `Kind.group`, in any case; a `namespace` narrows.

    A plural is taken as well, since that is what people type.
    """
    wanted, _, group = kind.lower().partition(".")
    return tuple(
        manifest
        for manifest in manifests
        if manifest.identity.name == name
        and wanted in _spellings(manifest.identity.kind.lower())
        and (not group or manifest.identity.group == group)
        and (not namespace or manifest.identity.namespace == namespace)
    )


def _spellings(kind: str) -> tuple[str, ...]:
    plural = f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}es" if kind.endswith(("s", "x", "ch")) else f"{kind}s"
    return (kind, plural)


def _asked(name: str, annotations: Mapping[str, str]) -> bool:
    if name in _ALWAYS:
        return True
    if name == "set and gates together":
        return FEATURE_SET in annotations and FEATURE_GATE in annotations
    prefix = _ASKED_BY[name]
    return any(key == prefix or (prefix.endswith("/") and key.startswith(prefix)) for key in annotations)
