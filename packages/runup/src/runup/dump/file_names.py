"""Reads the resource that a file is named after: `poddisruptionbudgets.yaml`, `NAME-node.yaml`, `PLURAL.GROUP.yaml`.

The name determines the kind of a list without items, if the list itself does not state its kind. A name never proves
that a list has all objects.
"""

from __future__ import annotations

import re
from pathlib import Path

Resource = tuple[str, str]  # group, plural
_CORE_KINDS = """configmaps endpoints events limitranges namespaces nodes persistentvolumeclaims persistentvolumes pods
podtemplates replicationcontrollers resourcequotas secrets serviceaccounts services"""
_STEMS: dict[str, Resource] = {
    plural: (group, plural)
    for group, plurals in {
        "config.openshift.io": ("clusterversions", "clusteroperators", "featuregates", "infrastructures", "networks"),
        "machineconfiguration.openshift.io": ("machineconfigpools", "machineconfigs"),
        "policy": ("poddisruptionbudgets",),
        "apps": ("deployments",),
        "": _CORE_KINDS.split(),
    }.items()
    for plural in plurals
}
_PLURAL = re.compile("[a-z][a-z0-9]*")
# Short names of kubectl by which files are named, too.
_SHORT = {
    "node": "nodes",
    "co": "clusteroperators",
    "mcp": "machineconfigpools",
    "mc": "machineconfigs",
    "pdb": "poddisruptionbudgets",
    "pdbs": "poddisruptionbudgets",
}


def resource_named(file: Path) -> Resource | None:
    """Returns the resource that a file is named after, or None."""
    for word in (file.stem, file.stem.rpartition("-")[2]):
        plural, _, group = word.lower().partition(".")
        plural = _SHORT.get(plural, plural)
        if plural in _STEMS and group in ("", _STEMS[plural][0]):
            return _STEMS[plural]
    plural, _, group = file.stem.partition(".")
    return (group, plural) if group and _PLURAL.fullmatch(plural) else None
