"""Reads the `Warning` headers of a list (RFC 7234 5.5, code 299) that say that it is incomplete.

kube-apiserver sends each as `299 - "text"`, most of them about deprecated versions. A text that begins with
`incomplete: ` says that the list does not contain all objects. It is meant for readers who would conclude from a
missing object that it does not exist (docs/decisions/0037).
"""

from __future__ import annotations

from collections.abc import Iterable

from kubekit.lang.pattern import Pattern

INCOMPLETE = "incomplete: "
# Maximum length of a reason: it is for people, and several end up in one message.
MAX_REASON = 400
_WARNING = Pattern(r'299 \S+ "((?:[^"\\]|\\.)*)"')
_ESCAPED = Pattern(r"\\(.)")


def reasons_incomplete(headers: Iterable[str]) -> tuple[str, ...]:
    """Returns the reasons why the list with these `Warning` headers is incomplete, each once; none if it is not."""
    reasons = (text.removeprefix(INCOMPLETE) for text in texts_of(headers) if text.startswith(INCOMPLETE))
    return tuple(dict.fromkeys(reason[:MAX_REASON] for reason in reasons))


def texts_of(headers: Iterable[str]) -> list[str]:
    """Returns the texts of `Warning` headers, in order."""
    return [_ESCAPED.sub(r"\1", text) for header in headers for text in _WARNING.findall(header)]
