"""Describes a declarative check in Markdown, like the pages of the built-in ones, from its own fields. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def updates(sources: str, targets: str) -> str:
    """Returns in words which updates the check is for."""
    ranges = (("from", sources.strip()), ("to", targets.strip()))
    return " ".join(f"{word} {text}" for word, text in ranges if text) or "all"


def describe_check(spec: Mapping[str, Any]) -> str:
    """Returns the paragraphs about a check, from a `spec` that is known to be valid."""
    return "\n\n".join(_paragraphs(spec))


def _paragraphs(spec: Mapping[str, Any]) -> Iterator[str]:
    """Yields the paragraphs of a declared check's page, from its spec."""
    risk = spec["risk"]
    if message := risk.get("message") or risk.get("messageExpression"):
        yield message
    yield f"A check of component {spec['component']}; its risk is `{risk['name']}`."
    yield "**Applies when** " + _applies_when(spec)
    if text := risk.get("remediation"):
        yield f"**What to do** {text}"
    if url := risk.get("url"):
        yield f"**More** {url}"


def _applies_when(spec: Mapping[str, Any]) -> str:
    """Returns in words when the risk applies: the container's answer, the query or the expression."""
    if container := spec.get("container"):
        return f"the release's image `{container['image']}`, run with `preflight --format=preflight-v1-json`, says so."
    if query := spec.get("promql"):
        return f"Prometheus answers 1 to\n\n```\n{query['query'].strip()}\n```"
    subject = f" of one of its `{spec['for']}`" if spec.get("for") else ""
    only = f", where `{spec['when'].strip()}`" if spec.get("when") else ""
    return f"this is true{subject}{only}:\n\n```\n{spec['expression'].strip()}\n```"
