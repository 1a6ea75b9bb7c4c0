"""What the image is made of besides its base: read from deploy/Containerfile, so that both ways build one image."""

from __future__ import annotations

import re
import shlex
from typing import NamedTuple

from tools.packages import ROOT

CONTAINERFILE = ROOT / "deploy" / "Containerfile"


class Recipe(NamedTuple):
    """The Containerfile's words."""

    linked: tuple[str, ...]
    """Programs that are in /usr/bin, too."""
    labels: dict[str, str]
    env: tuple[str, ...]
    entrypoint: tuple[str, ...]


def recipe(arguments: dict[str, str]) -> Recipe:
    """Returns what the Containerfile says; `arguments` are the values of its `ARG`s."""
    text = CONTAINERFILE.read_text(encoding="utf-8").replace("\\\n", " ")
    for name, value in arguments.items():
        text = text.replace(f"${{{name}}}", value)
    labels = (word.split("=", 1) for line in _lines(text, "LABEL") for word in shlex.split(line))
    (entrypoint,) = _lines(text, "ENTRYPOINT")
    (links,) = re.findall(r"ln -s (.+?) /usr/bin\b", text)
    return Recipe(
        linked=tuple(links.split()),
        labels=dict(labels),
        env=tuple(word for line in _lines(text, "ENV") for word in shlex.split(line)),
        entrypoint=tuple(re.findall(r'"([^"]+)"', entrypoint)),
    )


def _lines(text: str, instruction: str) -> list[str]:
    return re.findall(rf"^{instruction} (.+)$", text, re.MULTILINE)
