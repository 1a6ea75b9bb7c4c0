"""Evaluates manifests that are stored as text: files that are not applied yet, and the manifests of Helm releases.

The version in the text decides whether the target serves a manifest: the API server converts stored objects, but
refuses a write in a version that it does not serve. Only the CustomResourceDefinitions of widely used add-ons are
known, by the add-on's version.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from kubekit.lang.text import count
from runup.checks.decide.built_in_groups import is_built_in
from runup.checks.decide.cluster_kinds import BOTH
from runup.checks.decide.model import Check, Context, Finding, Snapshot
from runup.checks.decide.removal_tables import (
    AddonRemoval,
    addon_groups,
    addon_removal,
    built_in_types,
    config_groups,
    config_removal,
    document,
    life_of,
    removal_of,
    table,
)
from runup.checks.decide.wording import could_not_tell_finding, names
from runup.report.report import ReportedResource, Severity

# How many minor versions ahead a removal is reported of.
MINORS_AHEAD = 3
IN_FILES, SOON_IN_FILES = "RemovedAPIInManifest", "DeprecatedAPIInManifest"
IN_HELM = "RemovedAPIInHelmRelease"
_IN_MINOR = "1.{}"
# The groups of definitions whose contents are looked at: of Cluster API, of autoscalers and of Prometheus.
_INSPECTED_GROUPS = frozenset(
    {
        *("controlplane.cluster.x-k8s.io", "bootstrap.cluster.x-k8s.io", "keda.sh", "autoscaling.k8s.io"),
        "monitoring.coreos.com",
    }
)
_RENDER_FIRST = "Render templates first (`helm template`, `kustomize build`)."


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """An object as a text has it. `place` says where, in words: a file and a line, or the release of a chart.

    `content` is all of it, if it is of a file.
    """

    api_version: str
    kind: str
    namespace: str
    name: str
    place: str
    content: Any = None

    @property
    def group(self) -> str:
        """The API group, empty for the core."""
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        """The version without the group."""
        return self.api_version.rpartition("/")[2]

    @property
    def reference(self) -> ReportedResource:
        """The object, as a report refers to it."""
        return ReportedResource(group=self.group, kind=self.kind, namespace=self.namespace, name=self.name)


ContentFindings = Callable[[Sequence[Manifest], Context], Iterable[Finding]]


class Manifests(msgspec.Struct, frozen=True):
    """Manifests that were read from so many `texts`, and in `problems` why others could not be read.

    A text without any Kubernetes object, such as the settings of another tool, is only counted. `forbidden` are lists
    of texts for which a right is missing.
    """

    objects: tuple[Manifest, ...] = ()
    problems: tuple[str, ...] = msgspec.field(default=())
    texts: int = 0
    forbidden: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """A text about what was read: `3 objects in 2 texts (1 ConfigMap, 2 Secrets)`."""
        kinds = Counter(manifest.kind for manifest in self.objects)
        of_kinds = f" ({', '.join(count(number, kind) for kind, number in sorted(kinds.items()))})" if kinds else ""
        return f"{count(len(self.objects), 'object')} in {count(self.texts, 'text')}{of_kinds}"


def file_check(manifests_read: Manifests, contents: ContentFindings = lambda _manifests, _context: ()) -> Check:
    """Returns the check of manifests in files; `contents` returns the findings about what the manifests contain."""

    def run(_snapshot: Snapshot, context: Context) -> Iterator[Finding]:
        """Yields the findings about manifests in files that the target, or a release soon after it, does not serve."""
        target = _target_minor(context)
        yield from _findings_by_type(
            [manifest for manifest in manifests_read.objects if _is_gone(manifest, target)],
            IN_FILES,
            outcome=f"{context.target} does not serve, so that applying {{them}} fails",
            severity="critical",
            fix="Write {them} in {replacement}: `oc api-resources` lists the versions of a cluster.",
        )
        yield from _early_findings(manifests_read.objects, target, context)
        yield from _findings_by_type(
            [manifest for manifest in manifests_read.objects if _is_deprecated(manifest, target)],
            SOON_IN_FILES,
            outcome=f"{context.target} still serves",
            severity="info",
            fix="Nothing for this version; plan to write {them} in {replacement}.",
        )
        yield from _config_findings(manifests_read.objects, target, context)
        yield from contents(manifests_read.objects, context)
        yield from _addon_findings(manifests_read.objects, IN_FILES, "applying {them} fails")
        yield from _unread_finding(manifests_read, IN_FILES, f"{_RENDER_FIRST} Correct the other texts.")
        yield from _beyond_table_findings(manifests_read.objects, target, IN_FILES, context)
        yield from _unlisted_finding(manifests_read.objects, IN_FILES)
        if not manifests_read.problems and not any(map(_is_evaluated, manifests_read.objects)):
            why = f"no object of a kind that is evaluated was read: {manifests_read.summary}"
            yield could_not_tell_finding(IN_FILES, why, f"Give the files that have the objects. {_RENDER_FIRST}")

    return _manifest_check(IN_FILES, "manifests", run)


def helm_checks(manifests_read: Manifests, *, is_required: bool = False) -> tuple[Check, ...]:
    """Returns the check of the releases that Helm keeps in the cluster, if any were found.

    If it `is_required`, the check also exists without releases, and a missing right makes it Unknown.
    """
    if is_required:
        problems = (*manifests_read.problems, *manifests_read.forbidden)
        return (helm_check(replace(manifests_read, problems=problems)),)
    return (helm_check(manifests_read),) if manifests_read.texts or manifests_read.problems else ()


def helm_check(manifests_read: Manifests) -> Check:
    """Returns the check of the releases that Helm keeps in the cluster."""

    def run(_snapshot: Snapshot, context: Context) -> Iterator[Finding]:
        """Yields the findings about manifests of Helm releases that the target does not serve."""
        if not context.target_kubernetes:
            why = f"which Kubernetes {context.target} ships is not known"
            yield could_not_tell_finding(IN_HELM, why, "Name it with --to, for example 1.36, or ask the publisher.")
            return
        target = _target_minor(context)
        yield from _findings_by_type(
            [manifest for manifest in manifests_read.objects if _is_gone(manifest, target)],
            IN_HELM,
            outcome=(
                f"{context.target} does not serve, so that the next `helm upgrade` or `helm rollback` of {{them}} fails"
            ),
            severity="warning",
            fix="Upgrade to a chart that writes {them} in {replacement} before the update; later only "
            "`helm mapkubeapis "
            "RELEASE` fixes the stored objects.",
        )
        yield from _addon_findings(
            manifests_read.objects, IN_HELM, "the next `helm upgrade` or `helm rollback` of {them} fails"
        )
        yield from _unread_finding(manifests_read, IN_HELM, "Give the right to list what is named.")
        yield from _beyond_table_findings(manifests_read.objects, target, IN_HELM, context)

    return _manifest_check(IN_HELM, "helm", run)


def _manifest_check(name: str, component: str, run: Callable[[Snapshot, Context], Iterator[Finding]]) -> Check:
    return Check(
        name=name,
        component=component,
        reads=(),
        run=run,
        unknown_risk=f"{name}Unknown",
        severity="critical",
        clusters=BOTH,
    )


def _target_minor(context: Context) -> int:
    return int(context.target_kubernetes.split(".")[1])


def _is_evaluated(manifest: Manifest) -> bool:
    """Returns whether the tables of removed versions have the manifest's group."""
    return is_built_in(manifest.group) or manifest.group in addon_groups() | config_groups() | _INSPECTED_GROUPS


def _removal(manifest: Manifest) -> int | None:
    return removal_of(manifest.group, manifest.version, manifest.kind)


def _is_gone(manifest: Manifest, target: int) -> bool:
    removal = _removal(manifest)
    return removal is not None and removal <= target


def _is_deprecated(manifest: Manifest, target: int) -> bool:
    """Returns whether the target still serves the version, but has it deprecated or is close to its removal.

    Close is at most `MINORS_AHEAD` minor versions before. A version without a known removal does not count.
    """
    removal = _removal(manifest)
    if removal is None or removal <= target:
        return False
    deprecated = life_of(manifest.group, manifest.version, manifest.kind).deprecated
    return removal <= target + MINORS_AHEAD or (deprecated is not None and deprecated <= target)


def _findings_by_type(
    manifests: Sequence[Manifest], name: str, outcome: str, severity: Severity, fix: str
) -> Iterator[Finding]:
    """Yields one finding for each kind and version."""
    for kind, version, of_type in _group_by_type(manifests):
        removed = _IN_MINOR.format(_removal(of_type[0]))
        places = _places(of_type)
        pronoun = "it" if len(of_type) == 1 else "them"
        manifest = of_type[0]
        replacement = (
            life_of(manifest.group, manifest.version, manifest.kind).replacement
            or "another way: no version of this kind stays"
        )
        yield Finding(
            name=f"{name}-{kind}",
            message=f"{count(len(of_type), kind)} in {version} ({places}), removed in {removed}, which "
            f"{outcome.format(them=pronoun)}.",
            reason=name,
            severity=severity,
            resources=tuple(dict.fromkeys(manifest.reference for manifest in of_type)),
            remediation=fix.format(them=pronoun, replacement=replacement),
        )


def _early_findings(manifests: Iterable[Manifest], target: int, context: Context) -> Iterator[Finding]:
    """Yields the findings about manifests in a version that only later versions of Kubernetes than the target serve."""
    early = [
        manifest
        for manifest in manifests
        if (life_of(manifest.group, manifest.version, manifest.kind).introduced or 0) > target
    ]
    for kind, version, of_type in _group_by_type(early):
        since = life_of(of_type[0].group, of_type[0].version, kind).introduced
        pronoun = "it" if len(of_type) == 1 else "them"
        yield Finding(
            name=f"{IN_FILES}-{kind}",
            message=f"{count(len(of_type), kind)} in {version} ({_places(of_type)}), which 1.{since} is the first to "
            f"serve, so that applying {pronoun} to {context.target} fails.",
            reason=IN_FILES,
            severity="critical",
            resources=tuple(dict.fromkeys(manifest.reference for manifest in of_type)),
            remediation=f"Leave {pronoun} out, or update to 1.{since} or later.",
        )


def _unlisted_finding(manifests: Iterable[Manifest], name: str) -> Iterator[Finding]:
    """Yields an Unknown finding that names the built-in types that no minor version of the table has."""
    unlisted = [
        manifest
        for manifest in manifests
        if is_built_in(manifest.group) and (manifest.group, manifest.version, manifest.kind) not in built_in_types()
    ]
    if unlisted:
        types = sorted({f"{manifest.kind} in {manifest.api_version}" for manifest in unlisted})
        yield could_not_tell_finding(
            name,
            f"no version of Kubernetes up to 1.{table('removed-apis').last} has {names(types)} ({_places(unlisted)})",
            "See `kubectl api-resources`, or correct apiVersion and kind.",
        )


def _places(manifests: Iterable[Manifest]) -> str:
    return names(sorted({manifest.place for manifest in manifests}))


def _group_by_type(manifests: Iterable[Manifest]) -> Iterator[tuple[str, str, list[Manifest]]]:
    by_type: dict[tuple[str, str], list[Manifest]] = {}
    for manifest in manifests:
        by_type.setdefault((manifest.kind, manifest.api_version), []).append(manifest)
    return ((kind, version, of_type) for (kind, version), of_type in sorted(by_type.items()))


def _addon_findings(manifests: Iterable[Manifest], name: str, outcome: str) -> Iterator[Finding]:
    """Yields the findings about kinds in a version that the add-on which defines them does not serve any more.

    The manifests do not say which version of the add-on the cluster has, so the finding names the one that stops.
    """
    for kind, version, of_type in _group_by_type(manifest for manifest in manifests if _addon_removal(manifest)):
        removal = _addon_removal(of_type[0])
        assert removal is not None
        places = _places(of_type)
        pronoun = "it" if len(of_type) == 1 else "them"
        yield Finding(
            name=f"{name}-{kind}",
            message=f"{count(len(of_type), kind)} in {version} ({places}), which {removal.addon} {removal.removed} and "
            f"later do not serve, so that {outcome.format(them=pronoun)}.",
            reason=name,
            severity="warning",
            resources=tuple(dict.fromkeys(manifest.reference for manifest in of_type)),
            remediation=f"Write {pronoun} in {removal.replacement} ({removal.source}).",
        )


def _addon_removal(manifest: Manifest) -> AddonRemoval | None:
    return addon_removal(manifest.group, manifest.version, manifest.kind)


def _config_findings(manifests: Iterable[Manifest], target: int, context: Context) -> Iterator[Finding]:
    """Yields the findings about configuration files in a version that the target's components do not read."""
    gone = [
        manifest
        for manifest in manifests
        if (removal := config_removal(manifest.group, manifest.version)) and removal[0] <= target
    ]
    for kind, version, of_type in _group_by_type(gone):
        removal = config_removal(of_type[0].group, of_type[0].version)
        assert removal is not None
        places = _places(of_type)
        pronoun = "it" if len(of_type) == 1 else "them"
        yield Finding(
            name=f"{IN_FILES}-{kind}",
            message=f"{count(len(of_type), kind)} in {version} ({places}), removed in 1.{removal[0]}, which "
            f"{context.target} does not read.",
            reason=IN_FILES,
            severity="critical",
            resources=tuple(dict.fromkeys(manifest.reference for manifest in of_type)),
            remediation=f"Write {pronoun} in {removal[1]}; `kubeadm config migrate` does so for kubeadm's.",
        )


def _unread_finding(manifests_read: Manifests, name: str, fix: str) -> Iterator[Finding]:
    """Yields an Unknown finding that names the stored texts that could not be parsed, if any."""
    if manifests_read.problems:
        yield could_not_tell_finding(
            name,
            f"{count(len(manifests_read.problems), 'text')} could not be read: {names(manifests_read.problems)}",
            fix,
        )


def _beyond_table_findings(
    manifests: Iterable[Manifest], target: int, name: str, context: Context
) -> Iterator[Finding]:
    """Yields an Unknown finding if the target is newer than the tables of removed versions.

    It names alpha and beta versions alone, since Kubernetes removes no others, and files of components' configuration.
    """
    last, last_config = table("removed-apis").last, document("removed-config-apis")["last"]
    if target > last_config and (configs := [each for each in manifests if each.group in config_groups()]):
        kinds = names(sorted({f"{manifest.kind} in {manifest.api_version}" for manifest in configs}))
        why = f"the tables of configuration files end with 1.{last_config}, before {context.target}: {kinds}"
        yield could_not_tell_finding(name, why, "See the changelog of the target's Kubernetes.")
    if target <= last:
        return
    early = sorted(
        {
            f"{manifest.kind} in {manifest.api_version}"
            for manifest in manifests
            if (manifest.group, manifest.version, manifest.kind) in built_in_types()
            and ("alpha" in manifest.version or "beta" in manifest.version)
            and not _is_gone(manifest, target)
        }
    )
    if early:
        why = f"the table of removed versions ends with 1.{last}, before {context.target}: {names(early)}"
        yield could_not_tell_finding(
            name, why, "Look them up: https://kubernetes.io/docs/reference/using-api/deprecation-guide/."
        )
