"""Finds in a rehearsal's outcome what an update would break."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import chain, takewhile
from typing import Any

from msgspec.structs import replace

from kubekit.lang.text import count, shorten
from runup.checks.decide.engine import CheckOutcome
from runup.checks.decide.model import Applies, Check, Finding
from runup.checks.decide.results import Header, completed_report
from runup.checks.decide.wording import names
from runup.preflight.decide.findings import Findings
from runup.rehearse.decide import real_server_findings
from runup.rehearse.decide import rehearsal_outcome as outcome
from runup.rehearse.decide.real_server_findings import namespaced_name, reported_resources, risk_name, shortened
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
# Name of the finding, and remedy.
_REFUSALS = {
    outcome.RefusalKind.IMMUTABLE: (
        "RehearsalImmutableField",
        "Delete the object before the update, so that the release creates it again, or set it back to what the running "
        "release has.",
    ),
    outcome.RefusalKind.POLICY: (
        "RehearsalRefusedByPolicy",
        "Leave the platform's namespaces and the operator's account out of the policy's binding.",
    ),
    outcome.RefusalKind.QUOTA: (
        "RehearsalRefusedByQuota",
        "Raise the quota, or remove it from a namespace of the platform.",
    ),
    outcome.RefusalKind.STORED_VERSION: (
        "RehearsalStoredVersion",
        "Migrate the stored objects to the new storage version, then remove the old one from status.storedVersions of "
        "the definition.",
    ),
    outcome.RefusalKind.NOT_SERVED: (
        "RehearsalKindNotServed",
        "Ask the publisher of the release: it brings objects of a kind that neither it nor the cluster defines.",
    ),
    outcome.RefusalKind.INVALID: (
        "RehearsalRefused",
        "Set the fields that the server names back to what the running release has.",
    ),
}
# Of stored objects under a definition of the target: field of StoredObject, name of the finding, what would happen,
# severity and remedy.
_EFFECTS: tuple[tuple[str, str, str, Severity, str], ...] = (
    (
        "refused",
        "RehearsalObjectRefused",
        "would be refused at the next write under the target's definition {}",
        "warning",
        "Set these fields to what the target's definition allows, before the update.",
    ),
    (
        "pruned",
        "RehearsalFieldsPruned",
        "would silently lose fields under the target's definition {}",
        "warning",
        "Move what these fields say to where the target's definition has it; keep a copy of them.",
    ),
    (
        "tolerated",
        "RehearsalObjectTolerated",
        "would not be valid under the target's definition {}, which updates that leave these fields alone pass, and "
        "restores from a backup do not",
        "info",
        "Set these fields to what the target's definition allows.",
    ),
)
# Changes that are worth a finding though nothing is refused.
_GRAVE = frozenset({outcome.Weight.FIXED, outcome.Weight.SELECTOR})


def report_of(
    rehearsal: outcome.Rehearsal, *, now: datetime, engine_version: str, documentation_base: str = ""
) -> Report:
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


def outcomes_of(rehearsal: outcome.Rehearsal, url: str) -> Iterator[CheckOutcome]:
    """Yields the outcome of each part of the rehearsal."""
    if rehearsal.kubernetes:
        findings_by_check: tuple[tuple[str, Iterable[Finding]], ...] = (
            ("RehearsalCopy", _unknown_kind_findings(rehearsal)),
            ("RehearsalServedVersions", map(_unserved_version_finding, rehearsal.unserved)),
        )
    else:
        findings_by_check = (
            ("RehearsalCopy", _unknown_kind_findings(rehearsal)),
            ("RehearsalApply", _refusal_and_wait_findings(rehearsal)),
            ("RehearsalOverwritten", _overwritten_field_findings(rehearsal.changes)),
            ("RehearsalVanishes", _deletion_findings(rehearsal)),
            ("RehearsalRights", _rights_findings(rehearsal.rights)),
            ("RehearsalStoredObjects", chain.from_iterable(map(_definition_findings, rehearsal.definitions))),
            ("RehearsalWebhooks", map(_webhook_finding, rehearsal.webhooks)),
        )
    if rehearsal.server is not None:
        findings_by_check += (("RehearsalServer", real_server_findings.findings(rehearsal.server)),)
    for name, made in findings_by_check:
        findings = tuple(replace(each, url=url) for each in made)
        result: CheckResult = "Clear"
        if any(finding.applies is Applies.YES for finding in findings):
            result = "Applies"
        elif findings:
            result = "Unknown"
        # It runs nothing: a rehearsal's findings come from its copy.
        check = Check(name=name, component=COMPONENT, reads=(), run=lambda _snapshot, _context: iter(()))
        message = findings[0].message if result == "Unknown" else ""
        yield CheckOutcome(check=check, result=result, findings=findings, message=message)


def as_rehearsed(findings: Findings) -> Findings:
    """Returns the findings as those of a rehearsal, whose risks no ClusterVersion has, so that none can be accepted."""
    risks = tuple(replace(risk, suppressed_by="runup rehearse --suppressions FILE") for risk in findings.risks)
    return replace(findings, risks=risks, rehearsed=True)


def _finding_about(name: str, identity: Identity, message: str, remediation: str, **fields: Any) -> Finding:
    """Returns a finding about one object, which is its resource and completes its name."""
    return Finding(
        name=risk_name(name, identity.kind, identity.namespace, identity.name),
        message=message,
        resources=reported_resources((identity,)),
        remediation=remediation,
        **fields,
    )


# -- what could not be known -------------------------------------------------------------------------------------------


def _unknown_kind_findings(rehearsal: outcome.Rehearsal) -> Iterator[Finding]:
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
            message=f"What {left_out.kind} would refuse or change of the release's writes is not known: "
            f"{left_out.why}.",
            applies=Applies.UNKNOWN,
            remediation="Look whether it matches objects of the platform.",
        )
    if rehearsal.too_late:
        untried = rehearsal.tasks - rehearsal.tried
        yield Finding(
            name="RehearsalEndedEarly",
            message=f"The rehearsal ended early, {rehearsal.too_late}: {count(untried, 'object')} of the release were "
            "not tried.",
            applies=Applies.UNKNOWN,
            remediation="Give it more time: --timeout.",
        )


# -- what the server refuses -------------------------------------------------------------------------------------------


def _refusal_and_wait_findings(rehearsal: outcome.Rehearsal) -> Iterator[Finding]:
    """Yields the refused writes, the waits, and the changes of selectors."""
    for refusal in rehearsal.refusals:
        yield _refusal_finding(refusal, rehearsal.tasks)
    for wait in rehearsal.waits:
        rest = f"{count(wait.behind, 'object')} of the release come after it" if wait.behind else "it is the last"
        yield Finding(
            name=risk_name("RehearsalWaits", wait.identity.kind, wait.identity.name),
            message=f"The update waits at {wait.identity} ({wait.index} of {rehearsal.tasks}): "
            f"{shortened(wait.message, _LONGEST)}; {rest}.",
            severity="critical",
            resources=reported_resources((wait.identity,)),
            remediation="See why its operator would not come to the target's version.",
        )
    for change in rehearsal.changes:
        grave = [field for field in change.fields if field.weight in _GRAVE]
        if grave:
            paths = names([field.path for field in grave], _NAMED)
            text = f"The release changes {paths} of {change.identity}."
            remediation = "Look whether others count on it: Services, budgets, network policies, monitors."
            yield _finding_about("RehearsalSelectorChanges", change.identity, text, remediation, severity="info")


def _refusal_finding(refusal: outcome.Refusal, tasks: int) -> Finding:
    """Returns the finding about one write that the copy refused."""
    position, message = f"{refusal.identity} ({refusal.index} of {tasks})", shortened(refusal.message, _LONGEST)
    if refusal.kind is outcome.RefusalKind.NOT_KNOWN:
        text = f"Whether {position} can be applied is not known: {message}."
        remediation = "A copy has one API server and calls no webhooks; look at these by hand."
        return _finding_about("RehearsalNotTried", refusal.identity, text, remediation, applies=Applies.UNKNOWN)
    refuser = f"policy {refusal.by}" if refusal.by else "the API server"
    text = f"Applying {position} is refused by {refuser}: {message}."
    if refusal.behind:
        text += f" An update would stop here, with {count(refusal.behind, 'object')} of the release still to come."
    name, remediation = _REFUSALS[refusal.kind]
    finding = _finding_about(name, refusal.identity, text, remediation, severity="critical")
    return replace(finding, name=risk_name(name, refusal.by)) if refusal.by else finding


# -- what changes ------------------------------------------------------------------------------------------------------


def _overwritten_field_findings(changes: Sequence[outcome.ObjectChange]) -> Iterator[Finding]:
    """Yields the fields set by others that the release overwrites, and where owners are not known."""
    without_owners = [
        change.identity for change in changes if change.action is outcome.Action.UPDATE and not change.owned
    ]
    if without_owners:
        yield Finding(
            name="RehearsalOwnersUnknown",
            message=f"{count(len(without_owners), 'object')} that the release changes came without managedFields: "
            "whose values it overwrites, and which fields of the running release go, is not known: "
            f"{names([str(each) for each in without_owners], _NAMED)}.",
            applies=Applies.UNKNOWN,
            resources=reported_resources(without_owners),
            remediation="Rehearse on the cluster itself, or on a dump with managedFields: "
            "`oc adm inspect`, `oc get -o json --show-managed-fields`.",
        )
    for change in changes:
        if lost := [field for field in change.fields if field.others]:
            managers = tuple(dict.fromkeys(name for field in lost for name in field.others))
            values_text = shortened("; ".join(map(value_change, lost[:_NAMED])), _LONGEST)
            more_text = f" and {len(lost) - _NAMED} more" if len(lost) > _NAMED else ""
            yield _finding_about(
                "RehearsalOverwritten",
                change.identity,
                f"The release overwrites what {names(managers)} set in {change.identity}: {values_text}{more_text}.",
                "Note these values before the update; where the release must not decide them, see whether its "
                "operator has a setting for it.",
            )


def value_change(field: outcome.FieldChange) -> str:
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


def _deletion_findings(rehearsal: outcome.Rehearsal) -> Iterator[Finding]:
    """Yields what the release deletes, and what vanishes with it."""
    deleted = [change.identity for change in rehearsal.changes if change.action is outcome.Action.DELETE]
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
            resources=reported_resources(identities),
            remediation="Keep a copy of them, and move what uses them away first.",
        )
    if deleted:
        yield Finding(
            name="RehearsalDeletes",
            message=f"The release deletes {count(len(deleted), 'object')}: {names(list(map(str, deleted)), _NAMED)}.",
            severity="info",
            resources=reported_resources(deleted),
            remediation="Look whether anything of yours uses them.",
        )


# -- rights ------------------------------------------------------------------------------------------------------------


def _rights_findings(changes: Sequence[outcome.RightsChange]) -> Iterator[Finding]:
    """Yields the rights that each role or binding loses, then those that it gains."""
    for change in changes:
        have = "has" if len(change.subjects) == 1 else "have"
        nobody = ", which nobody has now" if change.all_known else "; who has it is not known"
        subjects_text = f", which {names(change.subjects)} {have}" if change.subjects else nobody
        if change.lost:
            rights = f"loses {count(len(change.lost), 'right')}: {names(change.lost, _NAMED)}"
            yield _finding_about(
                "RehearsalRightsNarrow",
                change.identity,
                f"{change.identity}{subjects_text}, {rights}.",
                "Give those who need them a separate role before the update.",
                severity="warning" if change.subjects or not change.all_known else "info",
            )
        if change.gained:
            rights = f"gains {count(len(change.gained), 'right')}: {names(change.gained, _NAMED)}"
            yield _finding_about(
                "RehearsalRightsWiden",
                change.identity,
                f"{change.identity}{subjects_text}, {rights}.",
                "Look whether all of them may have these rights.",
                severity="info",
            )


# -- stored objects ----------------------------------------------------------------------------------------------------


def _definition_findings(definition: outcome.DefinitionOutcome) -> Iterator[Finding]:
    """Yields what a definition of the target refuses, drops or no longer serves of stored objects."""
    for field, name, effect, severity, remediation in _EFFECTS:
        affected = [each for each in definition.objects if getattr(each, field)]
        if affected:
            texts = [
                f"{namespaced_name(stored.identity)}: {', '.join(getattr(stored, field)[:_NAMED])}"
                for stored in affected[:_NAMED]
            ]
            more_text = f" and {len(affected) - _NAMED} more" if len(affected) > _NAMED else ""
            yield Finding(
                name=risk_name(name, definition.name),
                message=f"{_share_of(affected, definition)} {effect.format(definition.name)}: "
                f"{shortened('; '.join(texts), _LONGEST)}{more_text}.",
                severity=severity,
                resources=reported_resources(each.identity for each in affected),
                remediation=remediation,
            )
    if unknown := [each for each in definition.objects if each.unknown]:
        yield Finding(
            name=risk_name("RehearsalObjectUnknown", definition.name),
            message=f"What becomes of {_share_of(unknown, definition)} under the target's definition "
            f"{definition.name} is not known: {unknown[0].unknown}.",
            applies=Applies.UNKNOWN,
            resources=reported_resources(each.identity for each in unknown),
            remediation="Try the conversion on a cluster where the webhook runs.",
        )
    if definition.gone and definition.writers:
        managers = sorted({manager for manager, _ in definition.writers})
        written = list(dict.fromkeys(identity for _, identity in definition.writers))
        yield Finding(
            name=risk_name("RehearsalVersionUnserved", definition.name),
            message=f"The target's definition {definition.name} no longer serves {names(definition.gone)}, in which "
            f"{names(managers)} wrote {_share_of(written, definition)}.",
            resources=reported_resources(written),
            remediation="Change these clients to a version that the target serves, before the update.",
        )


def _share_of(objects: Sequence[object], definition: outcome.DefinitionOutcome) -> str:
    return f"{len(objects)} of {count(definition.tried, f'stored {definition.kind}')}"


# -- webhooks, and versions of Kubernetes ------------------------------------------------------------------------------


def _webhook_finding(webhook: outcome.Webhook) -> Finding:
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
            *reported_resources(webhook.writes),
        ),
        remediation="Ask its owner, or leave the platform's objects out of its rules by a namespaceSelector.",
    )


def _unserved_version_finding(unserved: outcome.Unserved) -> Finding:
    """Returns the finding about objects that are written in a version that the target does not serve."""
    version = f"{unserved.group}/{unserved.version}" if unserved.group else unserved.version
    writers_text = f", written by {names(unserved.writers)}" if unserved.writers else ""
    return Finding(
        name=risk_name("RehearsalNotServed", unserved.kind, version),
        message=f"Kubernetes 1.{unserved.minor} no longer serves {unserved.kind} in {version}: "
        f"{count(len(unserved.objects), 'object')} of the cluster{writers_text}: "
        f"{names([namespaced_name(identity) for identity in unserved.objects], _NAMED)}.",
        severity="warning",
        resources=reported_resources(unserved.objects),
        remediation="Write them in a version that the target serves, and apply them once before the update.",
    )
