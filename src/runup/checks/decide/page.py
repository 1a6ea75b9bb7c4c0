"""The page of a check, made of its docstring, what it reads and its example; `docs/checks` holds them as files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from kubekit.api.scheme import Resource
from kubekit.lang import yaml as kyaml
from kubekit.lang.version import Version
from runup.checks.decide.engine import run_check
from runup.checks.decide.file_based_catalog import parse
from runup.checks.decide.model import Check, Context, Snapshot
from runup.checks.decide.objects import snapshot_of
from runup.checks.decide.reads import namespace_of
from runup.checks.decide.target_catalogs import NONE_READ, Catalogs, TargetCatalog

OPENINGS = ("Applies when", "Why it matters", "What to do", "Accepting it", "Source of the rule")
# An example is judged for this update, at this moment. Objects with annotation `example: target` are the target's.
_NOW = datetime(2026, 1, 14, 10, 0, tzinfo=UTC)
_SOURCE, _TARGET, _KUBERNETES = "5.0.0", "5.2.0", "1.38.1"
_IMAGE = "quay.io/example/release@sha256:5"
# Documents with a `schema` are what this image has: the catalog of operators that the target brings.
_CATALOG = "registry.example/redhat-operator-index:v5.2"


def page(check: Check) -> str:
    """The page about the check's risk, in Markdown."""
    summary, *rest = check.about.split("\n\n")
    parts = [f"# {check.name}", summary, f"**Reads** {_reads(check.reads)}.", *(_bold(part) for part in rest)]
    said = "\n".join(f"> {message}" for message in messages(check))
    parts += [f"**For example** this, before an update from {_SOURCE} to {_TARGET}:"]
    parts += [f"```yaml\n{check.example.strip()}\n```", f"is told as\n\n{said}"]
    return "\n\n".join(parts) + "\n"


def declared_page(check: Check) -> str:
    """The page of a check that a release declares."""
    reads = f"\n\n**Reads** {_reads(check.reads)}." if check.reads else ""
    return f"# {check.name}\n\n{check.about}{reads}\n\n**Updates** {check.updates}; **severity** {check.severity}.\n"


def unknown_page(check: Check) -> str:
    """The page about what the check could not tell."""
    return (
        "\n\n".join(
            [
                f"# {check.unknown_risk}",
                f"Whether [{check.name}]({check.name}.md) applies could not be told.",
                f"**Reads** {_reads(check.reads)}.",
                "**Applies when** a kind could not be listed, an object of it could not be read, or something "
                "does not say "
                "what\nthe check needs. It is always Unknown.",
                "**What to do** give the check what its message says that it lacked: a right, an API, a field. "
                "The answer comes "
                "by itself\nthen.",
                "**Accepting it** means to go on without that answer.",
            ]
        )
        + "\n"
    )


def example(check: Check) -> tuple[Snapshot, Context]:
    """The check's example as it is judged."""
    documents = [each for each in kyaml.load_all(check.example) if isinstance(each, dict)]
    target = [each for each in documents if _is_targets(each)]
    cluster = (each for each in documents if not _is_targets(each) and "schema" not in each)
    return snapshot_of(check.reads, cluster), Context(
        Version(_SOURCE),
        Version(_TARGET),
        _NOW,
        _KUBERNETES,
        manifests=tuple(target),
        target_image=_IMAGE,
        catalogs=_catalogs([each for each in documents if "schema" in each]),
    )


def messages(check: Check) -> list[str]:
    """What the check says of its example."""
    snapshot, context = example(check)
    return [finding.message for finding in run_check(check, snapshot, context).findings]


def problems(check: Check) -> Iterator[str]:
    """What a docstring or example lacks to become a page."""
    paragraphs = check.about.split("\n\n")[1:]
    for opening in OPENINGS:
        if not any(part.startswith(opening) for part in paragraphs):
            yield f"its docstring has no paragraph that begins with {opening!r}"
    if not messages(check):
        yield "it does not apply to its own example"


def _catalogs(parts: Sequence[dict[str, Any]]) -> Catalogs:
    if not parts:
        return NONE_READ
    found = parse({"catalog.json": b"\n".join(msgspec.json.encode(part) for part in parts)})
    return Catalogs(read={_CATALOG: TargetCatalog(_CATALOG, found, looked_for=frozenset(found))})


def _is_targets(obj: dict[str, Any]) -> bool:
    return ((obj.get("metadata") or {}).get("annotations") or {}).get("example") == "target"


def _bold(part: str) -> str:
    opening = next((each for each in OPENINGS if part.startswith(each)), "")
    return f"**{opening}**{part.removeprefix(opening)}"


def _reads(reads: Sequence[Resource]) -> str:
    """`pods`, `nodes` and `configmaps` of `openshift-config`, each once."""
    named = list(dict.fromkeys(_named(read) for read in reads))
    return _joined(named)


def _named(read: Resource) -> str:
    namespace = namespace_of(read)
    return f"`{read.name}`" + (f" of namespace `{namespace}`" if namespace else "")


def _joined(items: Iterable[str]) -> str:
    *most, last = items
    return f"{', '.join(most)} and {last}" if most else last
