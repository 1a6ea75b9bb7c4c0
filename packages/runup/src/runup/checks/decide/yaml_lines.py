"""Finds the line of a field in a YAML text, for errors; `kubekit.lang.yaml` reads the values themselves."""

from __future__ import annotations

import re

import yaml

_PART = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def line_of(text: str, path: str) -> int:
    """Returns the line, from 1, of `path` (such as `spec.reads[0].version`) or of its nearest parent; 0 if unknown."""
    if not text:
        return 0
    try:
        # Composed and not loaded, because only nodes know their lines.
        node = next(iter(yaml.compose_all(text, Loader=yaml.CSafeLoader)), None)
    except yaml.YAMLError:
        return 0
    line = node.start_mark.line + 1 if node is not None else 0
    for match in _PART.finditer(path):
        child = _child(node, match)
        if child is None:
            break
        line, node = child
    return line


def _child(node: yaml.Node | None, match: re.Match[str]) -> tuple[int, yaml.Node] | None:
    """Returns the line and the node of one part of a path below `node`, or None if there is no such part."""
    if match[2] is not None and isinstance(node, yaml.SequenceNode) and int(match[2]) < len(node.value):
        item: yaml.Node = node.value[int(match[2])]
        return item.start_mark.line + 1, item
    if match[1] is not None and isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == match[1]:
                return key.start_mark.line + 1, value
    return None
