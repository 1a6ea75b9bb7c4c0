"""The report format `preflight-v1-json`: the only interface between the target's process and the managing operator.

The target writes a report (`encode`). The managing operator reads it as untrusted input (`read`), and reads it again
from the history. The format changes by additions only: unknown fields are ignored, an unknown `format` is rejected.
`docs/reference/spec/preflight-v1.schema.json` is the same contract as a JSON Schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from kubekit.api import codec
from kubekit.api.meta_v1 import Wire
from kubekit.error_types import Terminal
from kubekit.lang.formats import is_uri
from kubekit.lang.text import cut, escape_in_json, printable
from runup.report import documentation

FORMAT = "preflight-v1-json"
FILE_NAME = "report.json"
# The risk that replaces those for which the list has no room.
OMITTED = "PreflightRisksOmitted"
# The reader's limits (docs/decisions/0072 D4). The API allows at most 200 risks per update and 500 in all.
MAX_BYTES = 1 << 20
MAX_RISKS = 200
MAX_NAME = 256
MAX_URL = 2048
MAX_CHECKS = 2000
MAX_REASON = 1024
# Maximum number of check containers of a preflight, and the maximum seconds for one of them.
MAX_CONTAINERS = 10
MAX_CONTAINER_S = 300
MAX_STEPS = 100
# Lines of one part of a step's plan, and the characters of each.
MAX_LINES = 50
MAX_LINE = 1024
NAME = re.compile(r"[A-Z][A-Za-z0-9.-]*")
URL = re.compile(r"https?://[!-~]+")
# A preflight's ID is used as a folder's name and a ConfigMap's key; an image is a pull spec.
ID = re.compile(r"[A-Za-z0-9._-]{0,200}")
VERSION = re.compile(r"[!-~]{0,256}")
IMAGE = re.compile(r"[!-~]{0,1024}")
# The name of a check, and that of an image in image-references.
TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
_TIMES = ("started_time", "completion_time", "observed_time", "heartbeat_time")
# Characters of untrusted text that an error message quotes.
_MAX_ECHO = 100
# A host that all URL parsers read alike: a name, an IPv4 address, or an IPv6 address in brackets.
_HOST = re.compile(r"https?://(?:[^/?#@]*@)?(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?(?:[/?#]|$)")

CheckResult = Literal["Clear", "Applies", "Unknown", "Skipped"]
RiskApplies = Literal["True", "Unknown"]
ExecutionStatus = Literal["running", "completed", "failed"]
Severity = Literal["critical", "warning", "info"]
# The gravest first. A risk without a severity that is known counts as a warning.
SEVERITIES: tuple[Severity, ...] = ("critical", "warning", "info")


def severity_rank(severity: str) -> int:
    """Returns the place of a severity from the gravest, 0, on."""
    return SEVERITIES.index(severity) if severity in SEVERITIES else SEVERITIES.index("warning")


Kind = Literal["OpenShift", "Kubernetes"]
Part = Literal["control plane", "nodes"]
CONTROL_PLANE: Part = "control plane"
NODES: Part = "nodes"


class ReportedCheck(Wire, frozen=True, kw_only=True):
    """What became of one check. `duration_seconds` is wall time."""

    name: str
    component: str = ""
    result: CheckResult
    message: str = ""
    duration_seconds: float = 0.0


class ReportedResource(Wire, frozen=True, kw_only=True):
    """An object that a risk is about."""

    group: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    # When a stored report of this target first named the object; the managing operator sets it, UTC.
    since: datetime | None = None

    @property
    def text(self) -> str:
        """The object as people write it: `Node worker-0`, `Pod apps/db-0`."""
        kind = f"{self.kind}.{self.group}" if self.group else self.kind
        return f"{kind} {self.namespace}/{self.name}" if self.namespace else f"{kind} {self.name}"


class ReportedRisk(Wire, frozen=True, kw_only=True):
    """A risk that applies, or whose answer is unknown. Checks that found nothing report no risk.

    Without a `url` a reader uses the page of the documentation for the name (docs/decisions/0010). `cause` is the name
    of the risk that this one follows from or stands with, empty if it has a separate cause. `lacking` are the kinds,
    as `PLURAL.GROUP`, that the check needs and that could not be read in full (docs/decisions/0072 D38).
    `resources_omitted`: how many objects there are for which `resources` has no room.
    """

    name: str
    message: str
    url: str = ""
    applies: RiskApplies = "True"
    reason: str = ""
    severity: Severity = "warning"
    resources: tuple[ReportedResource, ...] = ()
    resources_omitted: int = 0
    remediation: str = ""
    cause: str = ""
    lacking: tuple[str, ...] = ()


class ReportedContainer(Wire, frozen=True, kw_only=True):
    """A check that wants a component's image run: `image` is its name in the release's image-references.

    `run` counts up: another number asks for the same again. `timeout_seconds` is what it may take.
    """

    check: str
    image: str
    run: int = 1
    timeout_seconds: int = 120


class ReportedStep(Wire, frozen=True, kw_only=True):
    """A step of an update of Kubernetes: a part of the cluster goes to a minor version, such as 1.36.

    `risks` are the names of those that it is the first to meet. `how` says what does the step, in the words of the
    cluster's distribution; `before` what is paused for it, `after` what is let go on again, and `back` what leads back.
    """

    part: Part
    version: str
    risks: tuple[str, ...] = ()
    how: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    back: str = ""


class Report(Wire, frozen=True, kw_only=True):
    """One evaluation of a target's checks on this cluster. Times are UTC.

    `observed_time` is when the checks were evaluated, `heartbeat_time` when the target last wrote the same again;
    `risks_omitted`: how many were found that `risks` had no room for; one of those represents them.
    `documentation_base`: where the target's release has its documentation, if it says so.
    `containers`: what the managing operator must run for the target's checks, which may then say more.
    `cluster_id` is that of ClusterVersion, else the UID of namespace kube-system; empty if it is not known.
    `cluster_kind` is Kubernetes for a cluster without a ClusterVersion, whose versions are those of Kubernetes; `steps`
    are then those of the update, in their order.
    `others` and `accepted` are added by the process that stores the report: the risks of the same update that come from
    elsewhere, and the names that were accepted. What a target writes there is replaced. Reports that `--store` of 0.1.0
    kept name no accepted risk.
    `signature_waived`: the image ran without a verified signature. The managing operator sets it, whatever the target
    says.
    """

    format: str
    preflight_id: str = msgspec.field(default="", name="preflightID")
    source_version: str = ""
    target_version: str
    target_image: str = ""
    execution_status: ExecutionStatus
    started_time: datetime | None = None
    completion_time: datetime | None = None
    observed_time: datetime | None = None
    heartbeat_time: datetime | None = None
    engine_version: str = ""
    documentation_base: str = ""
    message: str = ""
    checks: tuple[ReportedCheck, ...] = ()
    risks: tuple[ReportedRisk, ...] = ()
    risks_omitted: int = 0
    containers: tuple[ReportedContainer, ...] = ()
    others: tuple[ReportedRisk, ...] = ()
    accepted: tuple[str, ...] = ()
    signature_waived: bool = False
    cluster_kind: Kind = "OpenShift"
    cluster_id: str = msgspec.field(default="", name="clusterID")
    steps: tuple[ReportedStep, ...] = ()

    @property
    def counted(self) -> tuple[ReportedRisk, ...]:
        """Returns the risks that counted for the update when the report was stored, by name."""
        risk_names = {risk.name for risk in self.risks}
        other_risks = (risk for risk in self.others if risk.name not in risk_names)
        return tuple(sorted((*self.risks, *other_risks), key=lambda risk: risk.name))


def is_of(report: Report, name: str) -> bool:
    """Returns whether `name` is the report's target or preflight ID; of Kubernetes a minor version is its first one."""
    minor = report.cluster_kind == "Kubernetes" and report.target_version == f"{name}.0"
    return minor or name in (report.target_version, report.preflight_id)


class BadReport(Terminal):
    """The report cannot be used: `reason` is a CamelCase word, the message a sentence."""


def encode(report: Report) -> bytes:
    """Returns the report as it is written to the volume, or into a ConfigMap that people print."""
    return escape_in_json(codec.encode(report).decode()).encode() + b"\n"


def is_url(text: str) -> bool:
    """Returns whether ClusterVersion accepts `text` as a risk's url (format `uri`), and a browser can open it."""
    if len(text) > MAX_URL or not URL.fullmatch(text) or not _HOST.match(text):
        return False
    return is_uri(text)


def read(data: bytes, *, for_request: bool = False) -> Report:
    """Returns the report in `data` after checking every limit. Raises BadReport if it cannot be used.

    `for_request`: the caller knows the request and supplies the target, so that a report needs no
    field beyond those of the proposal: `format`, `preflightID`, and `risks` with `name`, `message` and `url`.
    """
    if len(data) > MAX_BYTES:
        raise BadReport(f"the report has {len(data)} bytes; at most {MAX_BYTES} are read", reason="ReportTooLarge")
    try:
        # The format is checked first: another version's report may not fit the types at all.
        head = msgspec.json.decode(data, type=dict)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise BadReport(f"the report is not a JSON object: {_decoder_text(error)}", reason="ReportInvalid") from error
    if head.get("format") != FORMAT:
        problem = f"the report's format is {_quote_beginning(head.get('format'))}; this operator reads {FORMAT!r}"
        raise BadReport(problem, reason="UnknownFormat")
    supplied = _supplied(head) if for_request else {}
    try:
        report = codec.convert(Report, head | supplied) if supplied else codec.decode(Report, data)
    except codec.DecodeError as error:
        raise BadReport(f"the report does not fit {FORMAT}: {_decoder_text(error)}", reason="ReportInvalid") from error
    _check_report(report)
    # A target may write times with another offset.
    times = {name: getattr(report, name) for name in _TIMES}
    try:
        utc_times = {name: time and time.astimezone(UTC) for name, time in times.items()}
    except OverflowError as error:  # in UTC it is before the year 1, or after 9999
        raise BadReport("a time of the report is out of range", reason="ReportInvalid") from error
    return msgspec.structs.replace(report, **utc_times)


def _supplied(head: Mapping[str, Any]) -> dict[str, Any]:
    """Returns required fields that a report for a request may lack. Only a list of risks is a complete result."""
    lacking = {} if "targetVersion" in head else {"targetVersion": ""}
    if "executionStatus" not in head and isinstance(head.get("risks"), list):
        lacking["executionStatus"] = "completed"
    return lacking


def _check_report(report: Report) -> None:
    """Raises BadReport if the report, which is untrusted, exceeds a limit or has a wrong name."""
    _check_head(report)
    if (count := len(report.checks)) > MAX_CHECKS:
        raise BadReport(f"the report has {count} checks; {MAX_CHECKS} are read", reason="TooManyChecks")
    if (count := len(report.risks)) > MAX_RISKS:
        raise BadReport(f"the report has {count} risks; an update can carry {MAX_RISKS}", reason="TooManyRisks")
    if (count := len(report.containers)) > MAX_CONTAINERS:
        problem = f"the report wants {count} containers; {MAX_CONTAINERS} are run"
        raise BadReport(problem, reason="TooManyContainers")
    for container in report.containers:
        for field_name, text in (("check", container.check), ("image", container.image)):
            if not TAG.fullmatch(text):
                problem = f"a container's {field_name} {_quote_beginning(text)} does not match ^{TAG.pattern}$"
                raise BadReport(problem, reason="ReportInvalid")
        if not 1 <= container.timeout_seconds <= MAX_CONTAINER_S or container.run < 1:
            wanted = f"run {container.run} within {container.timeout_seconds} s"
            problem = f"the container of {container.check} wants {wanted}"
            raise BadReport(f"{problem}; runs count from 1, and have 1 to {MAX_CONTAINER_S} s", reason="ReportInvalid")
    if len(report.steps) > MAX_STEPS:
        raise BadReport(f"the report has {len(report.steps)} steps; {MAX_STEPS} are read", reason="TooManySteps")
    for step in report.steps:
        if not VERSION.fullmatch(step.version):
            raise BadReport(
                f"a step's version {_quote_beginning(step.version)} is not a version", reason="ReportInvalid"
            )
        if len(step.risks) > MAX_RISKS:
            raise BadReport(f"a step has {len(step.risks)} risks", reason="TooManyRisks")
        for name in step.risks:
            if len(name) > MAX_NAME or not NAME.fullmatch(name):
                raise BadReport(f"a step's risk {_quote_beginning(name)} is not a name", reason="InvalidRiskName")
        for lines in (step.before, step.how, step.after, (step.back,)):
            if len(lines) > MAX_LINES or any(len(line) > MAX_LINE for line in lines):
                limits = f"a part of its plan has {MAX_LINES} lines of {MAX_LINE} characters at most"
                raise BadReport(f"the step to {step.version} says too much: {limits}", reason="TooManySteps")
    risk_names: set[str] = set()
    for risk in report.risks:
        _check_risk(risk)
        if risk.name in risk_names:
            raise BadReport(f"risk {risk.name} is reported twice", reason="DuplicateRisk")
        risk_names.add(risk.name)


def _check_head(report: Report) -> None:
    """Checks times, identifiers and counters, which end up in ConfigMap keys and in lists of releases.

    Raises BadReport for the first that is invalid.
    """
    for field_name in _TIMES:
        # Times without a zone cannot be compared with the operator's times, which are UTC.
        if (time := getattr(report, field_name)) is not None and time.utcoffset() is None:
            name = f"{field_name.removesuffix('_time')}Time"
            raise BadReport(f"the report's {name} has no time zone", reason="ReportInvalid")
    for name, text, pattern in (
        ("preflightID", report.preflight_id, ID),
        ("sourceVersion", report.source_version, VERSION),
        ("targetVersion", report.target_version, VERSION),
        ("targetImage", report.target_image, IMAGE),
        ("engineVersion", report.engine_version, VERSION),
        ("clusterID", report.cluster_id, ID),
    ):
        if not pattern.fullmatch(text):
            problem = f"the report's {name} {_quote_beginning(text)} does not match ^{pattern.pattern}$"
            raise BadReport(problem, reason="ReportInvalid")
    if report.documentation_base:
        try:
            documentation.read_base(report.documentation_base)
        except documentation.BadBase as error:
            echoed = _quote_beginning(report.documentation_base)
            raise BadReport(f"the report's documentationBase {echoed} {error}", reason="ReportInvalid") from error
    for resource in (resource for risk in report.risks for resource in risk.resources):
        if resource.since is not None and resource.since.utcoffset() is None:
            raise BadReport(f"the since of {_quote_beginning(resource.name)} has no time zone", reason="ReportInvalid")
    if report.risks_omitted < 0:
        raise BadReport(f"the report's risksOmitted is {report.risks_omitted}", reason="ReportInvalid")


def _check_risk(risk: ReportedRisk) -> None:
    """Raises BadReport if a risk's name, message, reason or link is not one that ClusterVersion can carry."""
    if len(risk.name) > MAX_NAME or not NAME.fullmatch(risk.name):
        raise BadReport(
            f"risk name {_quote_beginning(risk.name)} does not match ^{NAME.pattern}$ or is longer than {MAX_NAME}",
            reason="InvalidRiskName",
        )
    if not risk.message.strip():
        raise BadReport(f"risk {risk.name} has no message", reason="ReportInvalid")
    if risk.resources_omitted < 0:
        raise BadReport(f"risk {risk.name} has resourcesOmitted {risk.resources_omitted}", reason="ReportInvalid")
    if len(risk.reason) > MAX_REASON:
        raise BadReport(f"risk {risk.name} has a reason of {len(risk.reason)} characters", reason="ReportInvalid")
    if risk.url and not is_url(risk.url):
        raise BadReport(
            f"risk {risk.name} has the url {_quote_beginning(risk.url)}; it must be http or https with a host and "
            f"whole escapes, up to {MAX_URL} long",
            reason="InvalidRiskURL",
        )


def _quote_beginning(value: object) -> str:
    """Returns the beginning of `value`, enough for its author to recognise it."""
    text = repr(value)
    return text if len(text) <= _MAX_ECHO else f"{text[:_MAX_ECHO]}... ({len(text)} characters)"


def _decoder_text(error: Exception) -> str:
    """Returns a decoder's message, cut and made printable: it quotes untrusted input, such as names of members."""
    return cut(printable(str(error)), 4 * _MAX_ECHO)


def may_be_untold(report: Report, risk: str) -> bool:
    """Returns whether a risk that is not in the report may be there all the same, because its check could not tell.

    A risk is named after its check, with what it is about after a dash; that a check could not tell is the risk
    `<check>Unknown`. Of a report that is not complete every risk may be missing.
    """
    if report.execution_status != "completed":
        return True
    return is_untold(risk, (risk.name for risk in report.risks), report.checks)


def is_untold(risk: str, names: Iterable[str], checks: Iterable[ReportedCheck]) -> bool:
    """Returns whether the check of `risk` could not tell, by the names of the risks found and the checks' results.

    A risk may have another name than its check, such as NodeCordoned, which NodeHealth finds: then every check that
    could not tell may be its own.
    """
    check, results = risk.partition("-")[0], {each.name: each.result for each in checks}
    if f"{check}Unknown" in names:
        return True
    return results[check] == "Unknown" if check in results else "Unknown" in results.values()
