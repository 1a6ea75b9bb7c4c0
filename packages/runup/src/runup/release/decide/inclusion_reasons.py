"""Describes a live cluster as the input of the inclusion rules, and explains why it gets a manifest or not.

An absent object differs from one that may not be read: an absent FeatureGate means the default set
(docs/reference/upstream.md 2.4), a forbidden one means unknown. A rule whose input could not be read is Unknown, and so
is the answer, unless another rule excludes the manifest in any case.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from runup.api.cluster_settings_v1 import FeatureGate
from runup.api.config_v1 import ClusterVersion
from runup.release.decide import capabilities, inclusion
from runup.release.decide.manifest import Manifest

PROFILE_VARIABLE = "CLUSTER_PROFILE"
EXCLUDE_VARIABLE = "EXCLUDE_MANIFESTS"
OPERATOR = "cluster-version-operator"
"""The name of the operator's Deployment, and of its container."""
_FROM_GATE = ("feature set", "feature gates")
_FROM_OPERATOR = ("excluded identifier", "profile")


def environment_of(deployment: Mapping[str, Any]) -> dict[str, str]:
    """Returns the environment of the operator's container in its Deployment, without values from other objects."""
    containers: Any = deployment
    for key in ("spec", "template", "spec", "containers"):
        containers = containers.get(key) if isinstance(containers, Mapping) else None
    return {
        str(entry["name"]): str(entry["value"])
        for container in (containers if isinstance(containers, list) else ())
        if isinstance(container, dict) and container.get("name") == OPERATOR
        for entry in container.get("env") or ()
        if isinstance(entry, dict) and "value" in entry
    }


def profile_in(environment: Mapping[str, str]) -> str:
    """Returns the cluster profile that the operator's environment names, the default if it names none."""
    return environment.get(PROFILE_VARIABLE) or inclusion.DEFAULT_PROFILE


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """The objects that were read. `environment` is the operator container's; `errors` has keys `gate`, `operator`."""

    cluster_version: ClusterVersion
    feature_gate: FeatureGate | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DescribedCluster:
    """The cluster as filters. `unreadable` maps the name of a rule to the reason why it cannot be evaluated."""

    filters: inclusion.Filters
    unreadable: Mapping[str, str]


def describe(facts: ClusterFacts, *, major: int) -> DescribedCluster:
    """Returns the cluster's filters for a release of `major`; gates are those of the desired version.

    An operator that loads another release also uses its own version's gates, until the other operator has taken over.
    """
    version = facts.cluster_version
    feature_set, gates = inclusion.feature_set_and_gates(facts.feature_gate, version.status.desired.version)
    unreadable: dict[str, str] = {}
    if why := facts.errors.get("gate"):
        unreadable |= dict.fromkeys(_FROM_GATE, f"FeatureGate cluster could not be read: {why}")
    if why := facts.errors.get("operator"):
        unreadable |= dict.fromkeys(_FROM_OPERATOR, f"the operator's Deployment could not be read: {why}")
    # Capabilities that the status says are enabled are never disabled again.
    reported = version.status.capabilities
    computed = capabilities.enabled_capabilities(version.spec.capabilities, gates, keep=reported.enabled_capabilities)
    filters = inclusion.Filters(
        exclude_identifier=facts.environment.get(EXCLUDE_VARIABLE) or None,
        feature_set=feature_set,
        gates=gates,
        major=major,
        profile=profile_in(facts.environment),
        capabilities=capabilities.Capabilities(
            computed.known | frozenset(reported.known_capabilities), computed.enabled, computed.implicit
        ),
        overrides=version.spec.overrides,
    )
    return DescribedCluster(filters, unreadable)


Verdict = Literal["passes", "fails", "unknown", "not asked"]
Answer = Literal["in", "out", "unknown"]

ANNOTATIONS = "annotations"
_ASKED_BY = {
    "excluded identifier": inclusion.EXCLUDE_PREFIX,
    "feature set": inclusion.FEATURE_SET,
    "feature gates": inclusion.FEATURE_GATE,
    "major version": inclusion.MAJOR_VERSION,
    "profile": inclusion.INCLUDE_PREFIX,
    "capabilities": inclusion.CAPABILITY,
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


def explain_manifest(
    manifest: Manifest, filters: inclusion.Filters, unreadable: Mapping[str, str] | None = None
) -> Explained:
    """Returns the verdict of every rule about `manifest`, in the order of evaluation.

    `unreadable` maps the name of a rule to the reason why its input is not known.
    """
    annotations = manifest.annotations
    if annotations is None:
        return Explained(manifest, "out", (Ruling(ANNOTATIONS, "fails", "no annotations"),))
    unknown = unreadable or {}
    rulings = [Ruling(ANNOTATIONS, "passes")]
    for name, objection in inclusion.RULES.items():
        # A key that ends in `/` is a prefix.
        prefix = _ASKED_BY.get(name, "")
        if name == "set and gates together":
            applies = inclusion.FEATURE_SET in annotations and inclusion.FEATURE_GATE in annotations
        else:
            applies = name in _ALWAYS or any(
                key == prefix or (prefix.endswith("/") and key.startswith(prefix)) for key in annotations
            )
        if not applies:
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
    matching = []
    for manifest in manifests:
        identity = manifest.identity
        lower = identity.kind.lower()
        plural = (
            f"{lower[:-1]}ies" if lower.endswith("y") else f"{lower}{'es' if lower.endswith(('s', 'x', 'ch')) else 's'}"
        )
        if (
            identity.name == name
            and kind_name in (lower, plural)
            and group in ("", identity.group)
            and namespace in ("", identity.namespace)
        ):
            matching.append(manifest)
    return tuple(matching)
