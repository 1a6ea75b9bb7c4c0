"""Explains why a cluster gets a manifest or not: every rule with its verdict, not only the first that objects.

Takes the manifests of a release, the known facts of the cluster, and what could not be read. A rule whose input could
not be read is Unknown, and so is the answer, unless another rule excludes the manifest in any case.
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
"""The annotation by which a rule applies to a manifest; the profile rule applies to every manifest."""

# Rules that apply to every manifest, whatever its annotations.
_ALWAYS = frozenset({"profile", "overrides"})


@dataclass(frozen=True, slots=True)
class Ruling:
    """The verdict of one rule; `why` has the objection, or what could not be read."""

    rule: str
    verdict: Verdict
    why: str = ""


@dataclass(frozen=True, slots=True)
class Explained:
    """The answer for one manifest: whether the cluster gets it, and the verdict of each rule."""

    manifest: Manifest
    answer: Answer
    rulings: tuple[Ruling, ...]

    @property
    def decided_by(self) -> Ruling | None:
        """The first rule that excludes it or that could not be evaluated, None if all include it."""
        return next((ruling for ruling in self.rulings if ruling.verdict == _DECIDES.get(self.answer)), None)


_DECIDES: dict[Answer, Verdict] = {"out": "fails", "unknown": "unknown"}


def explain_manifest(manifest: Manifest, filters: Filters, unreadable: Mapping[str, str] | None = None) -> Explained:
    """Returns the verdict of every rule about `manifest`, in the order of evaluation.

    `unreadable` maps the name of a rule to the reason why its input is not known.
    """
    annotations = manifest.annotations
    if annotations is None:
        return Explained(manifest, "out", (Ruling(ANNOTATIONS, "fails", "no annotations"),))
    unknown = unreadable or {}
    rulings = [Ruling(ANNOTATIONS, "passes")]
    for name, objection in RULES.items():
        if not _rule_decides(name, annotations):
            rulings.append(Ruling(name, "not asked"))
        elif why := unknown.get(name):
            rulings.append(Ruling(name, "unknown", why))
        else:
            objection_text = objection(manifest, annotations, filters)
            rulings.append(Ruling(name, "fails" if objection_text else "passes", objection_text))
    verdicts = {ruling.verdict for ruling in rulings}
    answer: Answer = "out" if "fails" in verdicts else "unknown" if "unknown" in verdicts else "in"
    return Explained(manifest, answer, tuple(rulings))


def manifests_named(manifests: Iterable[Manifest], kind: str, name: str, namespace: str = "") -> tuple[Manifest, ...]:
    """Returns the manifests that `KIND NAME` means: `Kind` or `Kind.group`, in any case; a `namespace` narrows.

    A plural is accepted too, since users type it.
    """
    kind_name, _, group = kind.lower().partition(".")
    return tuple(
        manifest
        for manifest in manifests
        if manifest.identity.name == name
        and kind_name in _spellings(manifest.identity.kind.lower())
        and (not group or manifest.identity.group == group)
        and (not namespace or manifest.identity.namespace == namespace)
    )


def _spellings(kind: str) -> tuple[str, ...]:
    plural = f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}es" if kind.endswith(("s", "x", "ch")) else f"{kind}s"
    return (kind, plural)


def _rule_decides(name: str, annotations: Mapping[str, str]) -> bool:
    """Returns whether a rule decides about a manifest with these annotations.

    Those in `_ALWAYS` do; another does if the manifest has the rule's annotation, whose key ending in `/` is a prefix.
    """
    if name in _ALWAYS:
        return True
    if name == "set and gates together":
        return FEATURE_SET in annotations and FEATURE_GATE in annotations
    prefix = _ASKED_BY[name]
    return any(key == prefix or (prefix.endswith("/") and key.startswith(prefix)) for key in annotations)
