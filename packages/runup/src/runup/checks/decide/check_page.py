"""Builds a check's page from its docstring, reads and example; `docs/reference/checks` holds the pages as files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from kubekit.api.scheme import Resource
from kubekit.lang import yaml as kyaml
from kubekit.lang.version import Version
from runup.advice.decide.promql import Answer, PrometheusState
from runup.checks.decide.cluster_kinds import ClusterKind
from runup.checks.decide.engine import run_check
from runup.checks.decide.file_based_catalog import parse
from runup.checks.decide.model import Check, Context, Snapshot
from runup.checks.decide.reads import namespace_of
from runup.checks.decide.snapshots import snapshot_of
from runup.checks.decide.target_catalogs import NONE_READ, Catalogs, TargetCatalog

OPENINGS = ("Applies when", "Why it matters", "Remedy", "Accepting it", "Source of the rule")
# The update and the time for which examples are evaluated. Objects annotated `example: target` are the target's.
_NOW = datetime(2026, 1, 14, 10, 0, tzinfo=UTC)
_SOURCE, _TARGET, _KUBERNETES = "5.0.0", "5.2.0", "1.38.1"
_IMAGE = "quay.io/example/release@sha256:5"
# The image of the target's operator catalog, whose content is the example's documents with a `schema`.
_CATALOG = "registry.example/redhat-operator-index:v5.2"


def page(check: Check) -> str:
    """Returns the page about the check's risk, in Markdown."""
    summary, *paragraphs = check.about.split("\n\n")
    parts = [f"# {check.name}", summary, f"**Reads** {reads_in_words(check.reads)}."]
    for paragraph in paragraphs:
        # The opening, if it has one, is in bold type instead of with a colon.
        opening = next((opening for opening in OPENINGS if paragraph.startswith(opening)), "")
        parts.append(f"**{opening}**{paragraph.removeprefix(opening).removeprefix(':')}")
    quoted_messages = "\n".join(f"> {message}" for message in messages(check))
    parts += [f"**For example**, before an update from {_SOURCE} to {_TARGET}, the following:"]
    parts += [f"```yaml\n{check.example.strip()}\n```", f"is reported as\n\n{quoted_messages}"]
    return "\n\n".join(parts) + "\n"


def declared_page(check: Check) -> str:
    """Returns the page of a check that a release declares, in Markdown."""
    reads = f"\n\n**Reads** {reads_in_words(check.reads)}." if check.reads else ""
    return f"# {check.name}\n\n{check.about}{reads}\n\n**Updates** {check.updates}; **severity** {check.severity}.\n"


def example(check: Check) -> tuple[Snapshot, Context]:
    """Returns the snapshot and the context of the check's example."""
    documents = [document for document in kyaml.load_all(check.example) if isinstance(document, dict)]
    target = [document for document in documents if _is_targets(document)]
    cluster = [
        document
        for document in documents
        if not _is_targets(document) and "schema" not in document and "update" not in document
    ]
    snapshot = snapshot_of(check.reads, cluster)
    if update := next((document["update"] for document in documents if "update" in document), None):
        # Between versions of Kubernetes that the example names itself, such as the way back.
        source, to = Version(update["from"]), Version(update["to"])
        return snapshot, Context(
            source=source, target=to, now=_NOW, target_kubernetes=str(to), cluster=ClusterKind.KUBERNETES
        )
    catalogs = NONE_READ
    if parts := [document for document in documents if "schema" in document]:
        packages = parse({"catalog.json": b"\n".join(msgspec.json.encode(part) for part in parts)})
        catalogs = Catalogs(read={_CATALOG: TargetCatalog(_CATALOG, packages, looked_for=frozenset(packages))})
    return snapshot, Context(
        source=Version(_SOURCE),
        target=Version(_TARGET),
        now=_NOW,
        target_kubernetes=_KUBERNETES,
        manifests=tuple(target),
        target_image=_IMAGE,
        catalogs=catalogs,
        # The example's cluster answers that the check applies.
        prometheus=PrometheusState(configured=True, answers={check.query: Answer(at=_NOW, applies=True)}),
    )


def messages(check: Check) -> list[str]:
    """Returns the messages of the check's findings on its example."""
    snapshot, context = example(check)
    return [finding.message for finding in run_check(check, snapshot, context).findings]


def problems(check: Check) -> Iterator[str]:
    """Yields what a docstring or example lacks to become a page."""
    paragraphs = check.about.split("\n\n")[1:]
    for opening in OPENINGS:
        if not any(part.startswith(opening) for part in paragraphs):
            yield f"its docstring has no paragraph that begins with {opening!r}"
    if not messages(check):
        yield "it does not apply to its own example"


def _is_targets(obj: dict[str, Any]) -> bool:
    """Returns whether the example's object belongs to the target rather than to the cluster."""
    return ((obj.get("metadata") or {}).get("annotations") or {}).get("example") == "target"


def reads_in_words(reads: Sequence[Resource]) -> str:
    """Returns the reads in words, each once: `pods`, `nodes` and `configmaps` of namespace `openshift-config`."""
    places = [(resource, namespace_of(resource)) for resource in reads]
    texts = [f"`{resource.name}`{f' of namespace `{place}`' if place else ''}" for resource, place in places]
    *most, last = dict.fromkeys(texts)
    return f"{', '.join(most)} and {last}" if most else last


def updates_in_words(sources: str, targets: str) -> str:
    """Returns in words which updates a check that a release declares is for."""
    ranges = (("from", sources.strip()), ("to", targets.strip()))
    return " ".join(f"{word} {text}" for word, text in ranges if text) or "all"


def describe_declared(spec: Mapping[str, Any]) -> str:
    """Returns the paragraphs about a check that a release declares, from a `spec` that is known to be valid."""
    risk = spec["risk"]
    message = risk.get("message") or risk.get("messageExpression")
    paragraphs = [message] if message else []
    paragraphs.append(f"A check of component {spec['component']}; its risk is `{risk['name']}`.")
    if container := spec.get("container"):
        image = container["image"]
        applies = f"the release's image `{image}`, run with `preflight --format=preflight-v1-json`, says so."
    elif query := spec.get("promql"):
        applies = f"Prometheus answers 1 to\n\n```\n{query['query'].strip()}\n```"
    else:
        subject = f" of one of its `{spec['for']}`" if spec.get("for") else ""
        only = f", where `{spec['when'].strip()}`" if spec.get("when") else ""
        applies = f"this is true{subject}{only}:\n\n```\n{spec['expression'].strip()}\n```"
    paragraphs.append(f"**Applies when** {applies}")
    if text := risk.get("remediation"):
        paragraphs.append(f"**Remedy** {text}")
    if url := risk.get("url"):
        paragraphs.append(f"**More** {url}")
    return "\n\n".join(paragraphs)
