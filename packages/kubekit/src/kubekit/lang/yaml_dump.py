"""Writes JSON-like values as YAML: block style, no anchors, quotes where a YAML 1.1 reader would misread the text."""

from __future__ import annotations

import re
from typing import Any

import yaml

from kubekit.lang.yaml_scalars import scalar

_STR = "tag:yaml.org,2002:str"
# Text that YAML 1.1 reads as a number or date, but Kubernetes as text: quoted for other readers.
_SEXAGESIMAL_OR_DATE = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?\Z|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}")


def dump_document(value: Any) -> str:
    """Returns `value` as one document."""
    return yaml.dump(value, Dumper=_Dumper, default_flow_style=False, sort_keys=False, width=4096, allow_unicode=True)


class _Dumper(yaml.CSafeDumper):
    """A dumper of JSON-like values that never writes an anchor, however often an object appears."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True


def _write_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    """Represents a text: as a block if it has several lines, quoted if YAML 1.1 would read another type."""
    style = None
    if "\n" in text:
        style = "|"
    elif scalar(text) is not text or _SEXAGESIMAL_OR_DATE.match(text):
        style = '"'
    return dumper.represent_scalar(_STR, text, style=style)


_Dumper.add_representer(str, _write_text)
