"""Words that the findings of a rehearsal share: names of risks, names of objects, and texts of others cut to length."""

from __future__ import annotations

import re

from kubekit.lang.text import shorten
from runup.release.decide.manifest import Identity

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9.-]")
# Names of risks may have 256 characters (report/report.py).
_LONGEST_NAME = 250


def risk_name(name: str, *parts: str) -> str:
    """Returns the name of a finding about one thing: what a risk's name may not hold becomes a dash."""
    tail = "-".join(_NOT_IN_NAMES.sub("-", part) for part in parts if part)
    return f"{name}-{tail}"[:_LONGEST_NAME] if tail else name


def namespaced_name(identity: Identity) -> str:
    """Returns `NAMESPACE/NAME`, or the name alone of what is in no namespace."""
    return f"{identity.namespace}/{identity.name}" if identity.namespace else identity.name


def shortened(text: str, limit: int) -> str:
    """Returns a text on one line and without its last full stop, cut behind a word if it has more than `limit`."""
    return shorten(" ".join(text.split()).rstrip("."), limit, mark=" ...", at_word=True)
