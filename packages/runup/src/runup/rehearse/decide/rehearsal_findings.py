"""Finds in a rehearsal's outcome what an update would break."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import takewhile

from msgspec.structs import replace

from kubekit.lang.text import shorten
from runup.checks.decide.engine import CheckOutcome
from runup.checks.decide.model import Applies, Check, Context, Finding, Snapshot
from runup.checks.decide.results import Header, completed_report
from runup.checks.decide.wording import count, names
from runup.preflight.decide.findings import Findings
from runup.rehearse.decide import real_server_findings
from runup.rehearse.decide.real_server_findings import namespaced_name, risk_name, shortened
from runup.rehearse.decide.rehearsal_outcome import (
    Action,
    DefinitionOutcome,
    FieldChange,
    ObjectChange,
    Refusal,
    RefusalKind,
    Rehearsal,
    RightsChange,
    StoredObject,
    Unserved,
    Webhook,
    Weight,
)
from runup.release.decide.manifest import Identity
from runup.report import documentation
from runup.report.report import CheckResult, Report, ReportedResource, Severity

PAGE = "rehearsal"
COMPONENT = "rehearsal"
# Faults, fields and objects that a message names; the resources and the plan have the others.
_NAMED = 3
_LONGEST = 600
# Of two long texts: how much of a beginning that both have is left out, and how much of it stays.
_LONG_START, _SHARED = 30, 12
_REMEDIES = {
    RefusalKind.IMMUTABLE: "Delete the object before the update, so that the release creates it anew, or set it back "
    "to what the running release has.",
    RefusalKind.POLICY: "Leave the platform's namespaces and the operator's account out of the policy's binding.",
    RefusalKind.QUOTA: "Raise the quota, or remove it from a namespace of the platform.",
    RefusalKind.STORED_VERSION: "Migrate the stored objects to the new storage version, then remove the old one from "
    "status.storedVersions of the definition.",
    RefusalKind.NOT_SERVED: "Ask the publisher of the release: it brings objects of a kind that neither it nor the "
    "cluster defines.",
    RefusalKind.INVALID: "Set the fields that the server names back to what the running release has.",
}
_NAME_OF_REFUSAL = {
    RefusalKind.IMMUTABLE: "RehearsalImmutableField",
    RefusalKind.POLICY: "RehearsalRefusedByPolicy",
    RefusalKind.QUOTA: "RehearsalRefusedByQuota",
    RefusalKind.STORED_VERSION: "RehearsalStoredVersion",
    RefusalKind.NOT_SERVED: "RehearsalKindNotServed",
    RefusalKind.INVALID: "RehearsalRefused",
}
# Changes that are worth a finding though nothing is refused.
_GRAVE = frozenset({Weight.FIXED, Weight.SELECTOR})


def report_of(rehearsal: Rehearsal, *, now: datetime, engine_version: str, documentation_base: str = "") -> Report:
    """Returns the report of a rehearsal."""
    header = Header(
        source_version=rehearsal.source,
        target_version=rehearsal.target,
        started_time=now,
        target_image=rehearsal.image,
        engine_version=engine_version,
        documentation_base=documentation_base,
        cluster_kind="Kubernetes" if rehearsal.kubernetes else "OpenShift",
    )
    base = documentation_base or documentation.BUILT_IN
    return completed_report(header, tuple(outcomes_of(rehearsal, f"{base}/{PAGE}")), now)


def outcomes_of(rehearsal: Rehearsal, url: str) -> Iterator[CheckOutcome]:
    """Yields the outcome of each part of the rehearsal."""
    if rehearsal.kubernetes:
        findings_by_check: tuple[tuple[str, Iterable[Finding]], ...] = (
            ("RehearsalCopy", _unknown_kind_findings(rehearsal)),
            ("RehearsalServedVersions", map(_unserved_version_finding, rehearsal.unserved)),
            *_findings_of_server(rehearsal),
        )
    else:
        findings_by_check = (
            ("RehearsalCopy", _unknown_kind_findings(rehearsal)),
            ("RehearsalApply", _refusal_and_wait_findings(rehearsal)),
            ("RehearsalOverwritten", _overwritten_field_findings(rehearsal.changes)),
            ("RehearsalVanishes", _deletion_findings(rehearsal)),
            ("RehearsalRights", _rights_findings(rehearsal.rights)),
            ("RehearsalStoredObjects", _stored_object_findings(rehearsal.definitions)),
            ("RehearsalWebhooks", map(_webhook_finding, rehearsal.webhooks)),
            *_findings_of_server(rehearsal),
        )
    for name, findings in findings_by_check:
        yield _check_outcome(name, tuple(findings), url)


def _findings_of_server(rehearsal: Rehearsal) -> Iterator[tuple[str, Iterable[Finding]]]:
    if rehearsal.server is not None:
        yield "RehearsalServer", real_server_findings.findings(rehearsal.server)


def without_acceptance(findings: Findings) -> Findings:
    """Returns the findings as risks that cannot be accepted on the cluster: its ClusterVersion has none of them."""
    return replace(findings, risks=tuple(replace(risk, suppressed_only=True) for risk in findings.risks))


def _check_outcome(name: str, findings: Sequence[Finding], url: str) -> CheckOutcome:
    """Returns the outcome of a check: Applies if a finding does, else Unknown if there is one, else Clear."""
    result: CheckResult = "Clear"
    if any(finding.applies is Applies.YES for finding in findings):
        result = "Applies"
    elif findings:
        result = "Unknown"
    check = Check(name=name, component=COMPONENT, reads=(), run=_find_nothing)
    linked = tuple(replace(each, url=url) for each in findings)
    return CheckOutcome(
        check=check, result=result, findings=linked, message=findings[0].message if result == "Unknown" else ""
    )


def _find_nothing(_snapshot: Snapshot, _context: Context) -> Iterator[Finding]:
    """Yields nothing: a rehearsal's findings come from its copy."""
    return iter(())


def _reported_resource(identity: Identity) -> ReportedResource:
    return ReportedResource(group=identity.group, kind=identity.kind, namespace=identity.namespace, name=identity.name)


def _reported_resources(identities: Iterable[Identity]) -> tuple[ReportedResource, ...]:
    return tuple(map(_reported_resource, dict.fromkeys(identities)))


# -- what could not be known -------------------------------------------------------------------------------------------


def _unknown_kind_findings(rehearsal: Rehearsal) -> Iterator[Finding]:
    """Yields what the rehearsal does not know: kinds not copied, policies not evaluated, no time left."""
    for left_out in rehearsal.unknown:
        number = f" ({count(left_out.count, 'object')} of the release)" if left_out.count else ""
        yield Finding(
            name=risk_name("RehearsalIncomplete", left_out.kind),
            message=f"The copy does not have all {left_out.kind}{number}: {left_out.why}.",
            applies=Applies.UNKNOWN,
            remediation="Rehearse on the cluster itself, or on a dump that has them: runup dump collect.",
            lacking=(left_out.kind,),
        )
    for left_out in rehearsal.not_evaluated:
        yield Finding(
            name=risk_name("RehearsalPolicyNotEvaluated", left_out.kind.replace(" ", "-")),
            message=(
                f"What {left_out.kind} would refuse or change of the release's writes is not known: {left_out.why}."
            ),
            applies=Applies.UNKNOWN,
            remediation="Look whether it matches objects of the platform.",
        )
    if rehearsal.too_late:
        untried = rehearsal.tasks - rehearsal.tried
        yield Finding(
            name="RehearsalEndedEarly",
            message=f"The rehearsal ended early, {rehearsal.too_late}: {count(untried, 'object')} of the "
            "release were not "
            "tried.",
            applies=Applies.UNKNOWN,
            remediation="Give it more time: --timeout.",
        )


# -- what the server refuses -------------------------------------------------------------------------------------------


def _refusal_and_wait_findings(rehearsal: Rehearsal) -> Iterator[Finding]:
    """Yields the refused writes, the waits, and the changes of selectors."""
    for refusal in rehearsal.refusals:
        yield _refusal_finding(refusal, rehearsal.tasks)
    for wait in rehearsal.waits:
        remaining_text = (
            f"{count(wait.behind, 'object')} of the release come after it" if wait.behind else "it is the last"
        )
        yield Finding(
            name=risk_name("RehearsalWaits", wait.identity.kind, wait.identity.name),
            message=f"The update waits at {wait.identity} ({wait.index} of {rehearsal.tasks}): "
            f"{shortened(wait.message, _LONGEST)}; {remaining_text}.",
            severity="critical",
            resources=(_reported_resource(wait.identity),),
            remediation="See why its operator would not come to the target's version.",
        )
    for change in rehearsal.changes:
        grave = [field for field in change.fields if field.weight in _GRAVE]
        if grave:
            yield Finding(
                name=risk_name(
                    "RehearsalSelectorChanges", change.identity.kind, change.identity.namespace, change.identity.name
                ),
                message=f"The release changes {names([field.path for field in grave], _NAMED)} of {change.identity}.",
                severity="info",
                resources=(_reported_resource(change.identity),),
                remediation="Look whether others count on it: Services, budgets, network policies, monitors.",
            )


def _refusal_finding(refusal: Refusal, tasks: int) -> Finding:
    """Returns the finding about one write that the copy refused."""
    position = f"{refusal.identity} ({refusal.index} of {tasks})"
    remaining_text = f" An update would stop here, with {count(refusal.behind, 'object')} of the release still to come."
    if refusal.kind is RefusalKind.NOT_KNOWN:
        return Finding(
            name=risk_name(
                "RehearsalNotTried", refusal.identity.kind, refusal.identity.namespace, refusal.identity.name
            ),
            message=f"Whether {position} can be applied is not known: {shortened(refusal.message, _LONGEST)}.",
            applies=Applies.UNKNOWN,
            resources=(_reported_resource(refusal.identity),),
            remediation="A copy has no API servers beside its own and calls no webhooks; look at these by hand.",
        )
    refuser = f"policy {refusal.by}" if refusal.by else "the API server"
    name_parts = (
        (refusal.by,) if refusal.by else (refusal.identity.kind, refusal.identity.namespace, refusal.identity.name)
    )
    return Finding(
        name=risk_name(_NAME_OF_REFUSAL[refusal.kind], *name_parts),
        message=f"Applying {position} is refused by {refuser}: {shortened(refusal.message, _LONGEST)}."
        f"{remaining_text if refusal.behind else ''}",
        severity="critical",
        resources=(_reported_resource(refusal.identity),),
        remediation=_REMEDIES[refusal.kind],
    )


# -- what changes ------------------------------------------------------------------------------------------------------


def _overwritten_field_findings(changes: Sequence[ObjectChange]) -> Iterator[Finding]:
    """Yields the fields set by others that the release overwrites, and where owners are not known."""
    without_owners = [change.identity for change in changes if change.action is Action.UPDATE and not change.owned]
    if without_owners:
        yield Finding(
            name="RehearsalOwnersUnknown",
            message=f"{count(len(without_owners), 'object')} that the release changes came without "
            "managedFields: whose values "
            "it "
            f"overwrites, and which fields of the running release go, is not known: "
            f"{names([str(each) for each in without_owners], _NAMED)}.",
            applies=Applies.UNKNOWN,
            resources=_reported_resources(without_owners),
            remediation="Rehearse on the cluster itself, or on a dump with managedFields: "
            "`oc adm inspect`, `oc get -o json --show-managed-fields`.",
        )
    for change in changes:
        lost = [field for field in change.fields if field.others]
        if not lost:
            continue
        managers = tuple(dict.fromkeys(name for field in lost for name in field.others))
        values_text = "; ".join(map(value_change, lost[:_NAMED]))
        more_text = f" and {len(lost) - _NAMED} more" if len(lost) > _NAMED else ""
        yield Finding(
            name=risk_name(
                "RehearsalOverwritten", change.identity.kind, change.identity.namespace, change.identity.name
            ),
            message=f"The release overwrites what {names(managers)} set in {change.identity}: "
            f"{shortened(values_text, _LONGEST)}{more_text}.",
            resources=(_reported_resource(change.identity),),
            remediation="Note these values before the update; where the release must not decide them, see whether its "
            "operator has a setting for it.",
        )


def value_change(field: FieldChange) -> str:
    """Returns a changed field as `PATH: BEFORE -> AFTER`; of long values the part in which they differ."""
    before, after = field.before, field.after
    if isinstance(before, list) and isinstance(after, list):
        # What both have says nothing: a list of arguments differs in one of them.
        removed, added = (
            [member for member in before if member not in after],
            [member for member in after if member not in before],
        )
        if not removed and not added:
            return f"{field.path}: in another order, or as often"
        before, after = (items[0] if len(removed) == len(added) == 1 else items or None for items in (removed, added))
    if isinstance(before, str) and isinstance(after, str):
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False)))
        keep = max(shared - _SHARED, 0)
        before, after = (before, after) if shared <= _LONG_START else (f"...{before[keep:]}", f"...{after[keep:]}")
    return f"{field.path}: {value(before)} -> {value(after)}"


def value(of: object, longest: int = 60) -> str:
    """Returns a value on one line, cut where it is long."""
    if of is None:
        return "(none)"
    return shorten(" ".join(str(of).split()), longest)


def _deletion_findings(rehearsal: Rehearsal) -> Iterator[Finding]:
    """Yields what the release deletes, and what vanishes with it."""
    deleted = [change.identity for change in rehearsal.changes if change.action is Action.DELETE]
    with_them: dict[str, list[Identity]] = {}
    for identity, reason in rehearsal.vanished:
        with_them.setdefault(reason, []).append(identity)
    for reason, identities in sorted(with_them.items()):
        names_text = names([str(identity) for identity in identities], _NAMED)
        yield Finding(
            name=risk_name("RehearsalVanishes", reason.partition(" goes")[0].rpartition(" ")[2]),
            message=f"{count(len(identities), 'object')} of the cluster vanish, since {reason}: {names_text}.",
            # What an owner made goes with it as it should; others' objects in a namespace or of a kind do not.
            severity="info" if reason.startswith("its owner ") else "critical",
            resources=_reported_resources(identities),
            remediation="Keep a copy of them, and move what uses them away first.",
        )
    if deleted:
        yield Finding(
            name="RehearsalDeletes",
            message=(
                f"The release deletes {count(len(deleted), 'object')}: "
                f"{names([str(each) for each in deleted], _NAMED)}."
            ),
            severity="info",
            resources=_reported_resources(deleted),
            remediation="Look whether anything of yours uses them.",
        )


# -- rights ------------------------------------------------------------------------------------------------------------


def _rights_findings(changes: Sequence[RightsChange]) -> Iterator[Finding]:
    """Yields the rights that each role or binding loses, then those that it gains."""
    for change in changes:
        have = "has" if len(change.subjects) == 1 else "have"
        subjects_text = f", which {names(change.subjects)} {have}" if change.subjects else ", which nobody has now"
        name_parts = (change.identity.kind, change.identity.namespace, change.identity.name)
        resources = (_reported_resource(change.identity),)
        if change.lost:
            severity: Severity = "warning" if change.subjects else "info"
            yield Finding(
                name=risk_name("RehearsalRightsNarrow", *name_parts),
                message=f"{change.identity}{subjects_text}, loses {count(len(change.lost), 'right')}: "
                f"{names(change.lost, _NAMED)}.",
                severity=severity,
                resources=resources,
                remediation="Give those who need them a role of their own before the update.",
            )
        if change.gained:
            yield Finding(
                name=risk_name("RehearsalRightsWiden", *name_parts),
                message=f"{change.identity}{subjects_text}, gains {count(len(change.gained), 'right')}: "
                f"{names(change.gained, _NAMED)}.",
                severity="info",
                resources=resources,
                remediation="Look whether all of them may have these rights.",
            )


# -- stored objects ----------------------------------------------------------------------------------------------------


def _stored_object_findings(definitions: Iterable[DefinitionOutcome]) -> Iterator[Finding]:
    for definition in definitions:
        yield from _definition_findings(definition)


def _definition_findings(outcome: DefinitionOutcome) -> Iterator[Finding]:
    """Yields what a definition of the target refuses, drops or no longer serves of stored objects."""
    if refused := [stored for stored in outcome.objects if stored.refused]:
        yield Finding(
            name=risk_name("RehearsalObjectRefused", outcome.name),
            message=f"{_share_of(refused, outcome)} would be refused at the next write under the target's definition "
            f"{outcome.name}: {_objects_with_texts(refused, lambda each: each.refused)}.",
            resources=_reported_resources(each.identity for each in refused),
            remediation="Set these fields to what the target's definition allows, before the update.",
        )
    if pruned := [each for each in outcome.objects if each.pruned]:
        yield Finding(
            name=risk_name("RehearsalFieldsPruned", outcome.name),
            message=f"{_share_of(pruned, outcome)} would silently lose fields under the target's definition "
            f"{outcome.name}: "
            f"{_objects_with_texts(pruned, lambda each: each.pruned)}.",
            resources=_reported_resources(each.identity for each in pruned),
            remediation="Move what these fields say to where the target's definition has it; keep a copy of them.",
        )
    if tolerated := [each for each in outcome.objects if each.tolerated]:
        yield Finding(
            name=risk_name("RehearsalObjectTolerated", outcome.name),
            message=f"{_share_of(tolerated, outcome)} would not be valid under the target's definition {outcome.name}, "
            f"which updates that leave these fields alone pass, and restores from a backup do not: "
            f"{_objects_with_texts(tolerated, lambda each: each.tolerated)}.",
            severity="info",
            resources=_reported_resources(each.identity for each in tolerated),
            remediation="Set these fields to what the target's definition allows.",
        )
    if unknown := [each for each in outcome.objects if each.unknown]:
        yield Finding(
            name=risk_name("RehearsalObjectUnknown", outcome.name),
            message=f"What becomes of {_share_of(unknown, outcome)} under the target's definition "
            f"{outcome.name} is not known: "
            f"{unknown[0].unknown}.",
            applies=Applies.UNKNOWN,
            resources=_reported_resources(each.identity for each in unknown),
            remediation="Try the conversion on a cluster where the webhook runs.",
        )
    if outcome.gone and outcome.writers:
        managers = sorted({manager for manager, _ in outcome.writers})
        yield Finding(
            name=risk_name("RehearsalVersionUnserved", outcome.name),
            message=f"The target's definition {outcome.name} no longer serves {names(outcome.gone)}, in which "
            f"{names(managers)} wrote "
            f"{_share_of(list(dict.fromkeys(identity for _, identity in outcome.writers)), outcome)}.",
            resources=_reported_resources(identity for _, identity in outcome.writers),
            remediation="Change these clients to a version that the target serves, before the update.",
        )


def _share_of(objects: Sequence[object], outcome: DefinitionOutcome) -> str:
    return f"{len(objects)} of {count(outcome.tried, f'stored {outcome.kind}')}"


def _objects_with_texts(objects: Sequence[StoredObject], texts_of: Callable[[StoredObject], tuple[str, ...]]) -> str:
    """Returns the first objects with their texts, and the number of the others."""
    object_texts = [
        f"{namespaced_name(stored.identity)}: {', '.join(texts_of(stored)[:_NAMED])}" for stored in objects[:_NAMED]
    ]
    more_text = f" and {len(objects) - _NAMED} more" if len(objects) > _NAMED else ""
    return f"{shortened('; '.join(object_texts), _LONGEST)}{more_text}"


# -- webhooks, and versions of Kubernetes ------------------------------------------------------------------------------


def _webhook_finding(webhook: Webhook) -> Finding:
    """Returns the finding about a webhook that is called for writes of the release."""
    condition = ", if its match conditions hold" if webhook.conditions else ""
    ignores = "its failure is ignored" if webhook.ignores else "its failure refuses the write"
    writes_text = names([str(write) for write in webhook.writes], _NAMED)
    return Finding(
        name=risk_name("RehearsalWebhook", webhook.configuration, webhook.name),
        message=f"Webhook {webhook.name} of {webhook.kind} {webhook.configuration} is asked about "
        f"{count(len(webhook.writes), 'write')} of the release{condition}: {writes_text}; "
        f"it cannot be called from a copy, and what it would say or change is not known ({ignores}).",
        applies=Applies.UNKNOWN,
        severity="info" if webhook.ignores else "warning",
        resources=(
            ReportedResource(
                group="admissionregistration.k8s.io", kind=webhook.kind, namespace="", name=webhook.configuration
            ),
            *_reported_resources(webhook.writes),
        ),
        remediation="Ask its owner, or leave the platform's objects out of its rules by a namespaceSelector.",
    )


def _unserved_version_finding(unserved: Unserved) -> Finding:
    """Returns the finding about objects that are written in a version that the target does not serve."""
    version = f"{unserved.group}/{unserved.version}" if unserved.group else unserved.version
    writers_text = f", written by {names(unserved.writers)}" if unserved.writers else ""
    return Finding(
        name=risk_name("RehearsalNotServed", unserved.kind, version),
        message=f"Kubernetes 1.{unserved.minor} no longer serves {unserved.kind} in {version}: "
        f"{count(len(unserved.objects), 'object')} of the cluster{writers_text}: "
        f"{names([namespaced_name(identity) for identity in unserved.objects], _NAMED)}.",
        severity="warning",
        resources=_reported_resources(unserved.objects),
        remediation="Write them in a version that the target serves, and apply them once before the update.",
    )
