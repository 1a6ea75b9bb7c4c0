"""Writes `examples/rehearsal`: a cluster at 5.0.0 as a dump, and release 5.1.0 as a folder.

    python -m tests.rehearse.example examples/rehearsal

The cluster has what users add to one: Widgets, a binding, a policy, a webhook, and a separate value.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from tests.applying.control.release_folders import NAMESPACE, config_map, deployment, manifest, write_release
from tests.rehearse.control.test_seeded_releases import (
    BINDING,
    DENY,
    POLICY,
    WEBHOOK,
    changed,
    role,
    widget,
    widgets,
)
from tests.rehearse.rehearsed_world import TARGET, cluster_at_source, release_files

from runup.dump.documents import identity
from runup.dump.dump_files import COLLECTED

JSON = dict[str, Any]
SETTINGS = config_map("settings", {"log-level": "info", "owner": "platform"})
LIMITS = config_map("limits", {"pods": "250"})
SIZE_AND_COLOUR = {"properties": {"size": {"type": "integer"}, "colour": {"type": "string"}}}
AT_MOST_FIVE = {"properties": {"size": {"type": "integer", "maximum": 5}}, "required": ["size"]}
WEB = deployment("web", "registry.example/web:5.0.0")
RELEASE = [widgets(**SIZE_AND_COLOUR), role("get", "list"), SETTINGS, LIMITS, WEB]
CHANGED_RELEASE = [
    widgets(**AT_MOST_FIVE),
    role("get"),
    changed(SETTINGS, "data.log-level", "warning"),
    changed(LIMITS, "data.pods", "500"),
    changed(
        changed(
            deployment("web", f"registry.example/web:{TARGET}"),
            "spec.selector.matchLabels",
            {"app": "web", "tier": "ui"},
        ),
        "spec.template.metadata.labels",
        {"app": "web", "tier": "ui"},
    ),
    manifest("v1", "ServiceAccount", "reporter", NAMESPACE),
]
USERS = [
    BINDING,
    widget("small", size=1),
    widget("red", size=3, colour="red"),
    widget("large", size=9),
    widget("unsized"),
]
_MOMENT = "2026-11-23T08:00:00Z"


async def write(folder: Path) -> None:
    """Writes the dump and the release."""
    with tempfile.TemporaryDirectory() as scratch:
        async with cluster_at_source(Path(scratch), *RELEASE) as cluster:
            await cluster.apply(*USERS, manager="shop")
            await cluster.edit(SETTINGS, {"data": {"log-level": "debug"}}, "kubectl-edit")
            await cluster.apply(POLICY, DENY, WEBHOOK, manager="security-team")
            source = await cluster.source()
    lists: dict[tuple[str, str], list[JSON]] = defaultdict(list)
    for obj in source.objects:
        lists[identity(obj)[:2]].append(obj)
    target = folder / "cluster"
    target.mkdir(parents=True, exist_ok=True)
    for (group, kind), plural in source.plurals.items():
        objects = lists[group, kind]
        version = objects[0]["apiVersion"] if objects else f"{group}/v1" if group else "v1"
        document = {
            "apiVersion": version,
            "kind": f"{kind}List",
            "metadata": {"resourceVersion": "1"},
            "items": objects,
        }
        name = f"{plural}.{group}" if group else plural
        if kind != "Secret":
            (target / f"{name}.json").write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")
    rows = [
        {"resource": f"{plural}.{group}" if group else plural, "state": "complete", "count": len(lists[group, kind])}
        for (group, kind), plural in source.plurals.items()
        if kind != "Secret"
    ]
    record = {"collectedBy": "runup", "collectedTime": _MOMENT, "kubernetesVersion": "v1.34.0", "kinds": rows}
    (target / COLLECTED).write_text(json.dumps(record, indent=1) + "\n")
    write_release(folder / "release", TARGET, release_files(*CHANGED_RELEASE))


if __name__ == "__main__":
    asyncio.run(write(Path(sys.argv[1])))
