"""Rewrites texts of checks and pages, which are written for OpenShift, in terms of plain Kubernetes.

Checks name commands as administrators of OpenShift type them, between backquotes. `kubectl` has the same commands,
without the word `adm` that some have in `oc`. Sentences about OpenShift alone are left out of a page.
"""

from __future__ import annotations

import re
from itertools import takewhile

# Words of a sentence that is about OpenShift, or about what only it has.
OPENSHIFT_WORDS = re.compile(
    r"openshift|\boc\b|cluster-?version|cluster-?operators?\b|cluster operators?\b|machine-?config|machine config"
    r"|\bMCO\b|must-gather|\bOLM\b|control plane's topology|infrastructures\.config|\brelease's?\b.*\boperators?\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"`[^`]*`")
_COMMAND = re.compile(r"\boc (?:adm )?(?=[a-z-])")
# What is said about acceptance: without a ClusterVersion there is nothing that could carry it.
_ACCEPT = (("accept the risk by name", "suppress the risk by name (--suppressions)"),)
_SENTENCE = re.compile(r"(?<=\.)\s+(?=[A-Z`(\[])")
_CLAUSE = re.compile(r"(?<=;)\s+")
# A kind in the list of what a check reads (`check_page`).
_KIND = re.compile(r"`[a-z.0-9-]+`(?: of namespace `[^`]+`)?")
_LEAD = re.compile(r"\*\*[A-Z][^*]*\*\*")
# The releases of the examples on pages, and the Kubernetes that they ship.
_EXAMPLE = ((", before an update from 5.0.0 to 5.2.0", ""), ("5.2.0", "1.38.1"))


def for_kubernetes(text: str) -> str:
    """Returns a check's text with its commands as `kubectl` has them."""
    for words, replacement in _ACCEPT:
        text = text.replace(words, replacement)
    return _QUOTED.sub(lambda quoted: _COMMAND.sub("kubectl ", quoted[0]), text)


def page_for_kubernetes(page: str) -> str:
    """Returns a page without what it says about OpenShift alone; a section that has nothing else is left out."""
    if not page:
        return ""
    for words, replacement in _EXAMPLE:
        page = page.replace(words, replacement)
    text, mark, example = for_kubernetes(page).strip().partition("**For example**")
    paragraphs = text.strip().split("\n\n")
    kept_paragraphs = [
        paragraph
        if (paragraph.startswith(("#", "```", ">", "|", "    ")) or "```" in paragraph)
        else _without_openshift(paragraph)
        for paragraph in paragraphs
    ]
    kept_paragraphs += [mark + example] if mark and not OPENSHIFT_WORDS.search(example) else []
    return "\n\n".join(paragraph for paragraph in kept_paragraphs if paragraph) + "\n"


def _without_openshift(paragraph: str) -> str:
    """Returns the paragraph without its parts about OpenShift, or an empty string if only its opening is left."""
    # The list of what a check reads goes without the kinds of OpenShift.
    items = re.split(r", | and ", " ".join(paragraph.removeprefix("**Reads** ").rstrip(".").split()))
    kept_items = [item for item in items if not OPENSHIFT_WORDS.search(item)]
    if kept_items and all(_KIND.fullmatch(item) for item in items):
        *most, last = kept_items
        paragraph = f"**Reads** {' and '.join(part for part in (', '.join(most), last) if part)}."
    opening = _LEAD.match(paragraph)
    lead = opening[0] if opening else ""
    sentences = []
    for sentence in _SENTENCE.split(paragraph[len(lead) :].strip()):
        # Up to its first part about OpenShift: the parts after it may be about OpenShift, too.
        text = " ".join(takewhile(lambda clause: not OPENSHIFT_WORDS.search(clause), _CLAUSE.split(sentence)))
        if text:
            sentences.append(f"{text[:-1]}." if text.endswith(";") else text)
    return f"{lead} {' '.join(sentences)}".strip() if sentences else ""
