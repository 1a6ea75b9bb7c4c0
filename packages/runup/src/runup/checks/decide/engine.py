"""Runs checks on a snapshot for one update, and returns one outcome for each check.

A check may be third-party code. Whatever it does (raise, request a kind that could not be read, report an invalid risk)
affects its own outcome only. The outcome of a check that could not tell is Unknown, carried by a risk, never "fine". If
a kind that it requested has an object which could not be read, that object alone is Unknown; if the kind may have
objects that were not listed, these are.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import msgspec
from msgspec.structs import replace as with_fields

from kubekit.api.scheme import Resource
from kubekit.lang.text import count
from runup.checks.decide import model
from runup.checks.decide.model import DEFINITIONS, Applies, Check, CheckFailure, Context, Finding, Snapshot
from runup.checks.decide.reads import Slim
from runup.checks.decide.wording import MAX_NAMED
from runup.report.report import MAX_NAME, NAME, CheckResult, ReportedResource, is_url

PARTIAL = "PreflightPartial"
# Set by tests: a check that raises raises out of `run_check`, too. Elsewhere one bad check must not stop the others.
reraise_bugs = False


class CheckOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check. `duration_seconds` is wall time, measured by the caller.

    `asked` holds the kinds that the check looked at: as long as none of them changes, the outcome stays the same.
    `traceback` is that of a check that raised something unexpected; the caller logs it.
    """

    check: Check
    result: CheckResult
    findings: tuple[Finding, ...] = ()
    message: str = ""
    duration_seconds: float = 0.0
    asked: frozenset[Resource] = frozenset()
    traceback: str = ""


class BadFinding(CheckFailure):
    """Error raised if a check reports a risk that ClusterVersion could not carry."""


def evaluate(checks: Iterable[Check], snapshot: Snapshot, context: Context) -> tuple[CheckOutcome, ...]:
    """Returns the outcome of every check, in the order given."""
    return tuple(run_check(check, snapshot, context) for check in checks)


def run_check(check: Check, snapshot: Snapshot, context: Context) -> CheckOutcome:
    """Runs one check and returns its outcome; never raises what the check raised, unless `reraise_bugs` is set.

    Findings that a check yielded before it failed are kept: a risk that was found does not go away.
    """
    # A separate set, because each outcome records only the kinds that its own check requested.
    snapshot = replace(snapshot, asked=set())
    findings: list[Finding] = []
    lacking_object: model.UnreadableObject | None = None
    try:
        if check.applies_to(context):
            findings.extend(_require_valid(finding) for finding in check.run(snapshot, context))
            outcome = None
        else:
            why = f"Not for an update from {context.source} to {context.target}."
            outcome = CheckOutcome(check=check, result="Skipped", message=why)
    # Before model.Unreadable, of which it is a case: one unreadable object leaves the other findings standing.
    except model.UnreadableObject as lacking:
        lacking_object, outcome = lacking, None
    except model.Unreadable as lacking:
        outcome = could_not_tell(check, str(lacking), tuple(findings))
    except CheckFailure as failure:
        outcome = could_not_tell(check, f"the check failed: {one_line(failure)}", tuple(findings))
    except Exception as error:
        if reraise_bugs:
            raise
        # Imported here: a check that raises is rare, and every command that evaluates pays for an import.
        from traceback import format_exception

        outcome = could_not_tell(check, f"the check failed: {one_line(error)}{_place(error)}", tuple(findings))
        outcome = with_fields(outcome, traceback="".join(format_exception(error)))
    if outcome is None:
        findings += _gap_findings(check, snapshot, lacking_object)
        applying = sum(finding.applies is Applies.YES for finding in findings)
        undecided = len(findings) - applying
        result: CheckResult = "Applies" if applying else "Unknown" if undecided else "Clear"
        counts = [f"{applying} found"] * bool(applying) + [f"{undecided} unknown"] * bool(undecided)
        outcome = CheckOutcome(check=check, result=result, findings=tuple(findings), message=", ".join(counts))
    with_kinds = with_lacking_kinds(outcome.findings, unknown_risk(check), check.reads, snapshot)
    return with_fields(outcome, findings=with_kinds, asked=frozenset(snapshot.asked))


def _place(error: Exception) -> str:
    """Returns in words the file and the line of the check that raised the error; empty if that is not known."""
    from traceback import extract_tb

    # The first frame is the engine's own.
    frames = [frame for frame in extract_tb(error.__traceback__) if frame.filename != __file__]
    if not frames:
        return ""
    return f" ({'/'.join(frames[-1].filename.replace(os.sep, '/').split('/')[-2:])}, line {frames[-1].lineno})"


def could_not_tell(check: Check, why: str, findings: tuple[Finding, ...] = ()) -> CheckOutcome:
    """Returns the Unknown outcome of a check that did not finish, with its findings so far and its Unknown risk."""
    why = why.rstrip(".")
    risk = Finding(
        name=unknown_risk(check),
        message=f"Whether {check.name} applies is unknown: {why}.",
        applies=Applies.UNKNOWN,
        reason=PARTIAL,
        remediation="Give the check what it lacked, then look at the preflight again; or accept the risk by name.",
    )
    return CheckOutcome(check=check, result="Unknown", findings=(*findings, risk), message=f"{why}.")


def _gap_findings(check: Check, snapshot: Snapshot, asked_for: model.UnreadableObject | None) -> Iterator[Finding]:
    """Yields a finding about objects of the requested kinds that could not be read, and one about unlisted ones.

    `asked_for` is the object that the check requested by name, if that could not be read.
    """
    # A kind that the check did not request on this cluster has no part in its answer.
    requested = [resource for resource in check.reads if resource in snapshot.asked]
    bad = {(resource, undecoded): None for resource in requested for undecoded in snapshot.undecoded.get(resource, ())}
    bad |= {(asked_for.resource, asked_for.bad): None} if asked_for else {}
    if bad:
        problems = [f"{resource.kind} {undecoded}".rstrip(".") for resource, undecoded in bad]
        more = f"; and {len(problems) - MAX_NAMED} more" if len(problems) > MAX_NAMED else ""
        subject = "the object" if len(problems) == 1 else count(len(problems), "object")
        listing = "; ".join(problems[:MAX_NAMED])
        yield Finding(
            name=unknown_risk(check),
            message=f"Whether {check.name} applies to {subject} is unknown: {listing}{more}.",
            applies=Applies.UNKNOWN,
            reason=PARTIAL,
            resources=tuple(
                ReportedResource(
                    group=resource.group, kind=resource.kind, namespace=undecoded.namespace, name=undecoded.name
                )
                for resource, undecoded in bad
            ),
            remediation="Correct the field that is named, or what writes it; the answer comes by itself then.",
        )
    gaps = [
        f"{resource.kind}: {'; '.join(why).rstrip('.')}"
        for resource, why in snapshot.incomplete.items()
        if resource in snapshot.asked
    ]
    if gaps:
        yield Finding(
            name=unknown_risk(check),
            message=f"Whether {check.name} applies to what was not listed is unknown: {'; '.join(gaps)}.",
            applies=Applies.UNKNOWN,
            reason=PARTIAL,
            remediation="Look at the rest in the cluster itself; or accept the risk by name.",
        )


def unknown_risk(check: Check) -> str:
    """Returns the name of the risk that represents a check that could not tell."""
    # A check's own name need not be a valid name of a risk, which ClusterVersion would refuse.
    for name in (check.unknown_risk, check.name):
        if NAME.fullmatch(name) and len(name) <= MAX_NAME:
            return name
    return "PreflightCheckUnknown"


def one_line(error: BaseException) -> str:
    """Returns an error's type and the first line of its text, at most 300 characters."""
    text = next(iter(str(error).splitlines()), "")
    return f"{type(error).__name__}: {text}"[:300] if text else type(error).__name__


def _require_valid(finding: Finding) -> Finding:
    """Returns the finding unchanged. Raises BadFinding if ClusterVersion could not carry it."""
    # A check may be third-party code, whose types nobody has checked.
    if not isinstance(finding, Finding):
        raise BadFinding(f"it yielded {type(finding).__name__}, not a Finding")
    if not NAME.fullmatch(finding.name) or len(finding.name) > MAX_NAME:
        raise BadFinding(f"risk name {finding.name[:MAX_NAME]!r} does not match ^{NAME.pattern}$")
    if not finding.message.strip():
        raise BadFinding(f"risk {finding.name} has no message")
    if finding.url and not is_url(finding.url):
        raise BadFinding(f"risk {finding.name} has the url {finding.url[:MAX_NAME]!r}, which is not http or https")
    return finding


def with_lacking_kinds(
    findings: Sequence[Finding], risk: str, reads: Iterable[Resource], snapshot: Snapshot
) -> tuple[Finding, ...]:
    """Returns `findings`, with `lacking` set in each Unknown finding named `risk`: the kinds that the check lacked.

    These are the kinds of `reads` that the snapshot does not have in full. If it has everything that the check asked
    for, nothing is set: the content of an object left the check in doubt.
    """
    unsure = [finding for finding in findings if finding.applies is Applies.UNKNOWN and finding.name == risk]
    if not unsure or all(is_whole(snapshot, resource) for resource in snapshot.asked):
        return tuple(findings)
    # What is read only for some updates counts if this one is among them.
    relevant = (read for read in reads if not (isinstance(read, Slim) and read.changes) or read in snapshot.asked)
    lacking = tuple(sorted({resource.name for resource in relevant if not is_whole(snapshot, resource)}))
    return tuple(with_fields(finding, lacking=lacking) if finding in unsure else finding for finding in findings)


def is_whole(snapshot: Snapshot, resource: Resource) -> bool:
    """Returns whether the snapshot has all objects of the kind, or proof that the cluster has no such kind."""
    if resource not in snapshot.unreadable and resource in snapshot.objects:
        return resource not in snapshot.incomplete
    # The proof: all definitions are known, and none makes the kind.
    if (
        resource not in snapshot.absent
        or DEFINITIONS not in snapshot.objects
        or any(DEFINITIONS in lacking for lacking in (snapshot.unreadable, snapshot.undecoded, snapshot.incomplete))
    ):
        return False
    specs = [definition.spec for definition in snapshot.objects[DEFINITIONS]]
    return not any((spec.group, spec.names.plural) == (resource.group, resource.plural) for spec in specs)
