"""Compiles `PreflightCheck` (preflight.runup.dev/v1alpha1), a check as one YAML file next to a release's manifests.

In: an object of the file. Out: a `Check` like any other, or a `DeclarativeError` that names file, line, field and the
way out. The expression is evaluated for each object of the list named by `for`, because one evaluation has a budget of
10,000 iterations; whole lists are available as variables, for short ones. If the expression fails for an object, that
object is Unknown and the others are answered all the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, get_args

import msgspec

from kubekit.api.meta_v1 import Object, Wire, key_of
from kubekit.api.scheme import Resource
from kubekit.lang.cel import Budget, CelError, CelSyntaxError, Program, compile_cel
from kubekit.lang.text import count
from runup.advice.decide import promql
from runup.api.kinds import RESOURCES
from runup.checks.decide import check_page
from runup.checks.decide.engine import PARTIAL, one_line
from runup.checks.decide.model import Applies, Check, Container, Context, Finding, Snapshot
from runup.checks.decide.ranges import Range, RangeError, parse_range
from runup.checks.decide.reads import Read, as_dict
from runup.checks.decide.wording import names
from runup.report.report import MAX_CONTAINER_S, MAX_NAME, NAME, TAG, URL, ReportedResource, Severity

API_VERSION = "preflight.runup.dev/v1alpha1"
KIND = "PreflightCheck"
# The query must fit into a URL, because it is sent by GET.
MAX_QUERY = 4096
# Variables of an expression besides those of its reads.
OBJECT_VARIABLE, UPDATE_VARIABLE = "object", "update"
NOT_HERE = "a component's container answers it, and those run in a cluster that its operator preflights"
NO_PROMETHEUS = "it is a query, and no Prometheus is asked here: --prometheus-url names one"
# How many messages of single objects a risk's message holds at most.
MAX_OWN_MESSAGES = 5
# As of a CustomResourceDefinition's rule: MaxEvaluatedMessageExpressionSizeBytes of k8s.io/apiserver/pkg/apis/cel.
MAX_MESSAGE_LENGTH = 5 * 1024


class DeclarativeError(ValueError):
    """Error raised if a PreflightCheck cannot be used; the message names file, line and field."""


class _Strict(Wire, frozen=True, forbid_unknown_fields=True):
    """A struct without unknown fields: a typo in a check must not make it a check of something else."""


class ReadSpec(_Strict, frozen=True):
    """One list: `name` is its variable, `fields` is all that is kept.

    A `kind` that runup knows is enough; what it does not know wants group, version and `resource` (the plural).
    """

    name: str
    fields: tuple[str, ...] = ()
    group: str = ""
    version: str = ""
    resource: str = ""
    kind: str = ""
    namespace: str = ""


class RiskSpec(_Strict, frozen=True):
    """The risk that is reported when the expression is true; `message_expression` is evaluated per object."""

    name: str
    message: str = ""
    message_expression: str = ""
    url: str = ""
    severity: Severity = "warning"
    remediation: str = ""


class PromQLSpec(_Strict, frozen=True):
    """A query whose one sample is 1 where the risk applies, and 0 where it does not."""

    query: str


class ContainerSpec(_Strict, frozen=True):
    """A component's image, by its name in the release's image-references; it is run with `preflight --format=...`."""

    image: str
    timeout_seconds: int = 120


class PreflightCheckSpec(_Strict, frozen=True):
    """`spec` of a PreflightCheck; exactly one of `expression`, `promql` and `container`."""

    component: str
    risk: RiskSpec
    sources: str = ""
    targets: str = ""
    reads: tuple[ReadSpec, ...] = ()
    for_: str = msgspec.field(default="", name="for")
    when: str = ""
    expression: str = ""
    promql: PromQLSpec | None = None
    container: ContainerSpec | None = None


class _Compiled(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a spec that are parsed only once."""

    spec: PreflightCheckSpec
    reads: dict[str, Read]
    sources: Range
    targets: Range
    expression: Program | None = None
    when: Program | None = None
    message: Program | None = None

    def applies_to(self, context: Context) -> bool:
        """Returns whether the check is for this update."""
        return context.source in self.sources and context.target in self.targets

    def run(self, snapshot: Snapshot, context: Context) -> Iterator[Finding]:
        """Yields the findings of the check: of its query, or of its expressions on one object after the other."""
        spec = self.spec
        if spec.container is not None:
            yield _unknown_finding(spec, NOT_HERE)
            return
        if spec.promql is not None:
            if not context.prometheus.configured:
                yield _unknown_finding(spec, NO_PROMETHEUS)
                return
            answer = promql.evaluate(spec.promql.query, context.prometheus, context.now)
            if isinstance(answer, str):
                yield _unknown_finding(spec, f"its query could not be answered: {answer}")
            elif answer:
                yield _applying_finding(spec, spec.risk.message)
            return
        lists = {name: snapshot.listed(read_resource) for name, read_resource in self.reads.items()}
        shared = {name: [as_dict(obj) for obj in objects] for name, objects in lists.items() if name != spec.for_}
        variables: dict[str, Any] = {
            UPDATE_VARIABLE: {
                "source": str(context.source),
                "target": str(context.target),
                "kubernetes": context.target_kubernetes,
            },
            **shared,
        }
        # One object at a time becomes a dict: all of them at once would take the memory that `reads` saves.
        objects: Sequence[Any] = lists[spec.for_] if spec.for_ else (None,)
        # One budget for all objects together: with one for each, a check over five thousand objects could take five
        # thousand times as long.
        budget = Budget()
        answers = [self._answer(obj, variables, budget) for obj in objects]
        risk = spec.risk
        applying = [(obj, answer) for obj, answer in zip(objects, answers, strict=True) if answer.applies]
        if applying:
            own_messages = [answer.message for _, answer in applying if answer.message]
            more = f" And {len(own_messages) - MAX_OWN_MESSAGES} more." if len(own_messages) > MAX_OWN_MESSAGES else ""
            yield _applying_finding(
                spec,
                " ".join(own_messages[:MAX_OWN_MESSAGES]) + more if own_messages else risk.message,
                (obj for obj, _ in applying),
            )
        failed = [(obj, answer) for obj, answer in zip(objects, answers, strict=True) if answer.error]
        if failed:
            about = f" for {count(len(failed), 'object')}" if spec.for_ else ""
            yield _unknown_finding(
                spec, f"the expression failed{about}: {failed[0][1].error}", (obj for obj, _ in failed)
            )

    def _answer(self, obj: Object | None, variables: dict[str, Any], budget: Budget) -> _Answer:
        """Evaluates the expressions for one object, or without any if `obj` is None."""
        assert self.expression is not None
        values = variables if obj is None else {**variables, OBJECT_VARIABLE: as_dict(obj)}
        try:
            if self.when is not None and not _evaluate_bool(self.when, values, budget):
                return _CLEAR
            if not _evaluate_bool(self.expression, values, budget):
                return _CLEAR
        except CelError as error:
            return _Answer(error=one_line(error))
        try:
            message = str(self.message.evaluate(values, budget)) if self.message else ""
            if len(message) > MAX_MESSAGE_LENGTH:
                raise CelError(f"it has {len(message)} characters, and {MAX_MESSAGE_LENGTH} at most are shown")
            return _Answer(True, message)
        except CelError as error:
            # The risk applies, and a message that could not be computed is no reason to hide it.
            return _Answer(True, f"(no message: {one_line(error)})")


def declared_check(document: Any, *, file: str, text: str = "") -> Check:
    """Returns the check that `document`, an object of `file`, declares. Raises DeclarativeError.

    `text` is the file's text, for line numbers.
    """
    try:
        name, spec = _spec_of(document)
        compiled = _parse_spec(spec)
    except _Problem as problem:
        line = line_of(text, problem.path)
        location = f"{file}, line {line}" if line else file
        with_location = f"{location}: {problem.path}: {problem.problem}"
        raise DeclarativeError(with_location) from problem
    return Check(
        name=name,
        component=spec.component,
        reads=tuple(compiled.reads.values()),
        run=compiled.run,
        applies_to=compiled.applies_to,
        unknown_risk=spec.risk.name,
        severity=spec.risk.severity,
        updates=check_page.updates_in_words(spec.sources, spec.targets),
        about=check_page.describe_declared(document["spec"]),
        query=spec.promql.query if spec.promql else "",
        container=Container(spec.container.image, spec.container.timeout_seconds) if spec.container else None,
    )


class _Problem(Exception):
    """Error in one field: the message, and the field as a path such as `spec.reads[0].version`."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(problem)
        self.path = path
        self.problem = problem


def _spec_of(document: Any) -> tuple[str, PreflightCheckSpec]:
    """Returns the name and the spec of a PreflightCheck. Raises _Problem."""
    if not isinstance(document, dict) or (document.get("apiVersion"), document.get("kind")) != (API_VERSION, KIND):
        raise _Problem("kind", f"is not a {KIND} of {API_VERSION}")
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str) or not name:
        raise _Problem("metadata.name", "is missing")
    try:
        spec = msgspec.convert(document.get("spec") or {}, PreflightCheckSpec)
    except msgspec.ValidationError as error:
        # msgspec puts the path of the field at the end of its message: " - at `$.risk.name`".
        problem, _, path = str(error).partition(" - at `$")
        if path.rstrip("`") == ".risk.severity":
            problem += f"; use one of {', '.join(get_args(Severity))}"
        raise _Problem("spec" + path.rstrip("`"), problem) from error
    if spec.container is not None and not TAG.fullmatch(name):
        raise _Problem("metadata.name", f"{name[:MAX_NAME]!r} does not match ^{TAG.pattern}$")
    risk = spec.risk
    if not NAME.fullmatch(risk.name) or len(risk.name) > MAX_NAME:
        raise _Problem("spec.risk.name", f"{risk.name[:MAX_NAME]!r} does not match ^{NAME.pattern}$")
    if not risk.message:
        raise _Problem("spec.risk.message", "is missing; say what will go wrong, for the case without an own message")
    if risk.url and not URL.fullmatch(risk.url):
        raise _Problem("spec.risk.url", f"{risk.url!r} is not an http or https URL")
    return name, spec


def _parse_spec(spec: PreflightCheckSpec) -> _Compiled:
    """Returns the spec with its ranges, reads and expressions parsed. Raises _Problem."""
    reads = {
        read_spec.name: _parse_read(read_spec, f"spec.reads[{index}]") for index, read_spec in enumerate(spec.reads)
    }
    if len(reads) != len(spec.reads):
        raise _Problem("spec.reads", "two of them have one name")
    if spec.for_ and spec.for_ not in reads:
        listed = names(sorted(reads)) or "it has no reads"
        raise _Problem("spec.for", f"{spec.for_!r} is not one of the reads ({listed})")
    _require_one_answer(spec)
    sources, targets = _parse_range(spec.sources, "spec.sources"), _parse_range(spec.targets, "spec.targets")
    # The list of `for` is no variable: an expression sees one of its objects at a time, as `object`.
    variables = {name: "list" for name in reads if name != spec.for_} | {UPDATE_VARIABLE: "map"}
    variables |= {OBJECT_VARIABLE: "dyn"} if spec.for_ else {}
    programs: dict[str, Program] = {}
    for path, expression, result in (
        ("spec.expression", spec.expression, "bool"),
        ("spec.when", spec.when, "bool"),
        ("spec.risk.messageExpression", spec.risk.message_expression, "string"),
    ):
        if not expression:
            continue
        try:
            programs[path] = compile_cel(expression, variables)
        except CelSyntaxError as error:
            raise _Problem(path, str(error)) from error
        if programs[path].result_type not in (result, "dyn"):
            raise _Problem(path, f"is a {programs[path].result_type}, expected a {result}")
    return _Compiled(
        spec=spec,
        reads=reads,
        sources=sources,
        targets=targets,
        expression=programs.get("spec.expression"),
        when=programs.get("spec.when"),
        message=programs.get("spec.risk.messageExpression"),
    )


def _require_one_answer(spec: PreflightCheckSpec) -> None:
    """Raises _Problem unless one expression, query or container answers, and nothing else is given for another one."""
    query, container = spec.promql, spec.container
    if [bool(spec.expression), bool(query), bool(container)].count(True) != 1:
        raise _Problem("spec.expression", "give one of expression, promql and container")
    if container is not None:
        if not TAG.fullmatch(container.image):
            hint = "give the image's name in the release's image-references, such as cluster-network-operator"
            problem = f"{container.image[:MAX_NAME]!r} is not the name of an image: {hint}"
            raise _Problem("spec.container.image", problem)
        if not 1 <= container.timeout_seconds <= MAX_CONTAINER_S:
            problem = f"is {container.timeout_seconds}, not 1 to {MAX_CONTAINER_S}"
            raise _Problem("spec.container.timeoutSeconds", problem)
        if spec.reads or spec.for_:
            problem = "a check with a container reads the cluster with a separate service account; leave spec.reads out"
            raise _Problem("spec.reads", problem)
    if query is not None:
        if not query.query.strip() or len(query.query) > MAX_QUERY:
            raise _Problem("spec.promql.query", f"has {len(query.query)} characters, not 1 to {MAX_QUERY}")
        if spec.reads or spec.for_:
            problem = "a check with a query reads no objects from the API server; leave spec.reads out"
            raise _Problem("spec.reads", problem)
    if (spec.when or spec.risk.message_expression) and not spec.expression:
        raise _Problem("spec.when", "when and messageExpression go with an expression")


def _parse_read(spec: ReadSpec, path: str) -> Read:
    """Returns the resource that a read names, with the fields to be kept. Raises _Problem with the field's path."""
    if not spec.name.isidentifier() or spec.name in (OBJECT_VARIABLE, UPDATE_VARIABLE):
        raise _Problem(f"{path}.name", f"{spec.name!r} cannot be a variable")
    if not spec.fields or not all(all(part for part in item.split(".")) for item in spec.fields):
        raise _Problem(f"{path}.fields", "list the fields that the check needs, such as spec.nodeName")
    if not spec.kind and not spec.resource:
        raise _Problem(path, f"give a kind, one of {_known_kinds()}; or group, version and resource (the plural)")
    known_type = _known_resource(spec)
    group, version, plural = (
        (known_type.group, spec.version or known_type.version, spec.resource or known_type.plural)
        if known_type
        else (spec.group, spec.version, spec.resource)
    )
    missing = [field for field, value in (("version", version), ("resource (the plural)", plural)) if not value]
    if missing:
        read_text = f"kind {spec.kind!r}" if spec.kind else f"resource {spec.resource!r}"
        of_group = f" of group {spec.group!r}" if spec.group else ""
        raise _Problem(
            path,
            f"{read_text}{of_group} is not a kind that runup knows ({_known_kinds()}), so give {names(missing)} too"
            + ("" if spec.group else ", and the group unless it is the core's"),
        )
    # Fields are sorted, so that reads of the same fields are one key in a snapshot and share one list.
    kind = spec.kind or (known_type.kind if known_type else "")
    return Read(
        group=group,
        version=version,
        kind=kind,
        plural=plural,
        namespaced=bool(spec.namespace),
        namespace=spec.namespace,
        fields=tuple(sorted(set(spec.fields))),
    )


def _known_resource(spec: ReadSpec) -> Resource | None:
    """Returns what runup knows about the kind, or of the plural of that very group, that a read names.

    A kind without group and version may be of any group; with a version alone, as manifests have it, of the core group.
    """
    matching = (
        item for item in RESOURCES.values() if spec.kind in ("", item.kind) and spec.resource in ("", item.plural)
    )
    anywhere = bool(spec.kind) and not (spec.group or spec.version or spec.resource)
    return next((item for item in matching if anywhere or item.group == spec.group), None)


def _known_kinds() -> str:
    kinds = sorted({item.kind for item in RESOURCES.values()})
    return names(kinds, len(kinds))


def _parse_range(text: str, path: str) -> Range:
    try:
        return parse_range(text)
    except RangeError as error:
        raise _Problem(path, str(error)) from error


def _applying_finding(spec: PreflightCheckSpec, message: str, objects: Iterable[Any] = ()) -> Finding:
    """Returns the finding that the risk applies."""
    risk = spec.risk
    return Finding(
        name=risk.name,
        message=message,
        url=risk.url,
        reason=spec.component.title().replace("-", ""),
        severity=risk.severity,
        resources=_resources(spec, objects),
        remediation=risk.remediation,
    )


class _Answer(msgspec.Struct, frozen=True):
    """The result of evaluating one object: whether the risk applies, with a separate message, or the error."""

    applies: bool = False
    message: str = ""
    error: str = ""


_CLEAR = _Answer()


def _evaluate_bool(program: Program, values: dict[str, Any], budget: Budget) -> bool:
    value = program.evaluate(values, budget)
    if not isinstance(value, bool):
        raise CelError(f"the expression's value is {value!r}, not true or false")
    return value


def _resources(spec: PreflightCheckSpec, objects: Iterable[Any]) -> tuple[ReportedResource, ...]:
    """Returns the objects that a finding is about, sorted by namespace and name; none for a check without `for`."""
    if not spec.for_:
        return ()
    for_read = next(read_spec for read_spec in spec.reads if read_spec.name == spec.for_)
    known_type = _known_resource(for_read)
    kind = for_read.kind or (known_type.kind if known_type else for_read.resource)
    return tuple(
        ReportedResource(
            group=known_type.group if known_type else for_read.group,
            kind=kind,
            namespace=obj.metadata.namespace,
            name=obj.metadata.name,
        )
        for obj in sorted(objects, key=key_of)
    )


def _unknown_finding(spec: PreflightCheckSpec, why: str, objects: Iterable[Any] = ()) -> Finding:
    """Returns the Unknown finding of the check, with the reason `why`."""
    return Finding(
        name=spec.risk.name,
        message=f"Whether {spec.risk.name} applies is unknown: {why.rstrip('.')}.",
        applies=Applies.UNKNOWN,
        url=spec.risk.url,
        reason=PARTIAL,
        severity=spec.risk.severity,
        resources=_resources(spec, objects),
        remediation=spec.risk.remediation,
    )


_PART = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def line_of(text: str, path: str) -> int:
    """Returns the line, from 1, of `path` (such as `spec.reads[0].version`) or of its nearest parent; 0 if unknown."""
    if not text:
        return 0
    # Imported here: only a check with a mistake needs it.
    import yaml

    try:
        # Composed and not loaded, because only nodes know their lines.
        node = next(iter(yaml.compose_all(text, Loader=yaml.CSafeLoader)), None)
    except yaml.YAMLError:
        return 0
    line = node.start_mark.line + 1 if node is not None else 0
    for name, index in _PART.findall(path):
        if index and isinstance(node, yaml.SequenceNode) and int(index) < len(node.value):
            node = node.value[int(index)]
            line = node.start_mark.line + 1
        elif name and isinstance(node, yaml.MappingNode):
            found = next(((key, value) for key, value in node.value if key.value == name), None)
            if found is None:
                break
            line, node = found[0].start_mark.line + 1, found[1]
        else:
            break
    return line
