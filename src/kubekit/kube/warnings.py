"""What a server says beside an answer that it gives: the `Warning` headers of a list (RFC 7234 5.5, code 299).

kube-apiserver sends each as `299 - "text"`, most of them about deprecated versions. One that begins with `incomplete: `
says that the list is not all that there is. It is for readers who would take what is absent for what does not exist
(docs/decisions/0037).
"""

from __future__ import annotations

from collections.abc import Iterable

from kubekit.lang.pattern import Pattern

INCOMPLETE = "incomplete: "
# A reason is for people, and several end up in one message.
MAX_REASON = 400
_WARNING = Pattern(r'299 \S+ "((?:[^"\\]|\\.)*)"')
_ESCAPED = Pattern(r"\\(.)")


def incompleteness(headers: Iterable[str]) -> tuple[str, ...]:
    """Why the list with these `Warning` headers is not whole, each reason once; nothing where it is."""
    texts = (_ESCAPED.sub(r"\1", text) for header in headers for text in _WARNING.findall(header))
    found = (text.removeprefix(INCOMPLETE) for text in texts if text.startswith(INCOMPLETE))
    return tuple(dict.fromkeys(reason[:MAX_REASON] for reason in found))
