"""JSON-like values written as YAML: block style, no anchors, quotes where a YAML 1.1 reader would misread."""

from __future__ import annotations

import re
from typing import Any

import yaml

from kubekit.lang.yaml_scalars import scalar

_STR = "tag:yaml.org,2002:str"
# What YAML 1.1 reads as something else though Kubernetes does not: quoted on the way out, for other readers.
_SEXAGESIMAL_OR_DATE = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?\Z|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}")


def written(value: Any) -> str:
    """`value` as one document."""
    return yaml.dump(value, Dumper=_Dumper, default_flow_style=False, sort_keys=False, width=4096, allow_unicode=True)


class _Dumper(yaml.CSafeDumper):
    """Writes JSON-like values; never an anchor, however often one object appears."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True


def _write_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = None
    if "\n" in text:
        style = "|"
    elif scalar(text) is not text or _SEXAGESIMAL_OR_DATE.match(text):
        style = '"'
    return dumper.represent_scalar(_STR, text, style=style)


_Dumper.add_representer(str, _write_text)
