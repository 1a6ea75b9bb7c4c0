"""Renders the part of Go's text/template that manifests in `/manifests` use: three values, `index`, and escaped text.

`{{.ReleaseImage}}`, `{{.ClusterProfile}}`, `{{.Images.name}}`, `{{index .Images "some-name"}}`, and text literals, by
which Prometheus rules write braces of their own: `{{ "{{ $labels.pod }}" }}`. Anything else is a `TemplateError`: an
operator that reads a newer release skips such a file and says so, rather than guessing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

import msgspec

from kubekit.lang.pattern import Pattern


class TemplateError(ValueError):
    """The text uses an unsupported action, or names an image that the release does not have."""


class Values(msgspec.Struct, frozen=True):
    """The values that a template may refer to; `images` maps short names to pull specs."""

    release_image: str = ""
    cluster_profile: str = ""
    images: Mapping[str, str] = msgspec.field(default_factory=dict)


_TEXT = r'"(?:[^"\\\n]|\\.)*"|`[^`]*`'
# Text literals come first: braces inside a literal do not close the action.
_ACTION = Pattern(rf"\{{\{{(-\s)?((?:{_TEXT}|[^\"`{{}}])*?)(\s-)?\}}\}}", re.DOTALL)
_FIELD = Pattern(r"\.([A-Za-z_][A-Za-z0-9_]*)(?:\.([A-Za-z_][A-Za-z0-9_]*))?\Z")
_INDEX = Pattern(rf"index\s+\.Images\s+({_TEXT})\Z")
_LITERAL = Pattern(rf"(?:{_TEXT})\Z")


def render(text: str, values: Values) -> str:
    """Returns `text` with its actions evaluated; raises TemplateError naming the line."""
    return "".join(_pieces(text, values))


def _pieces(text: str, values: Values) -> Iterator[str]:
    """Yields the rendered pieces of a template. Raises TemplateError with the line."""
    position = 0
    trim_next = False
    while (start := text.find("{{", position)) >= 0:
        match = _ACTION.match(text, start)
        line = text.count("\n", 0, start) + 1
        if match is None:
            raise TemplateError(f"line {line}: an action is not closed, or is more than this reads")
        before = text[position:start]
        before = before.lstrip() if trim_next else before
        yield before.rstrip() if match[1] else before
        yield _evaluate(match[2].strip(), values, line)
        trim_next = bool(match[3])
        position = match.end()
    remaining = text[position:]
    yield remaining.lstrip() if trim_next else remaining


def _evaluate(expression: str, values: Values, line: int) -> str:
    """Returns the value of one action of a template. Raises TemplateError with the line."""
    if expression.startswith("/*") and expression.endswith("*/"):
        return ""
    if _LITERAL.match(expression):
        return _unquote(expression, line)
    if index := _INDEX.match(expression):
        return _image(_unquote(index[1], line), values, line)
    name = _FIELD.match(expression)
    if name and name[1] == "Images" and name[2]:
        return _image(name[2], values, line)
    simple = {".ReleaseImage": values.release_image, ".ClusterProfile": values.cluster_profile}
    if expression in simple:
        return simple[expression]
    raise TemplateError(f"line {line}: {{{{{expression}}}}} is more than this reads")


def _image(name: str, values: Values, line: int) -> str:
    if name not in values.images:
        raise TemplateError(f"line {line}: image {name!r} is not in image-references")
    return values.images[name]


def _unquote(literal: str, line: int) -> str:
    """Returns the text of a Go string literal. Raises TemplateError with the line."""
    if literal[0] == "`":
        return literal[1:-1].replace("\r", "")
    try:
        # Go's escapes inside double quotes mean the same in Python.
        return str(ast.literal_eval(literal))
    except (SyntaxError, ValueError) as error:
        raise TemplateError(f"line {line}: {literal} is not text") from error
