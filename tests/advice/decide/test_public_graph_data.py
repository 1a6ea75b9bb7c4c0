"""The public graph data, counted a second time, by other means."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubekit.api import codec
from runup.advice.decide import build_graph
from runup.advice.decide.graph import parse_graph

CORPUS = Path(__file__).parents[4] / "shared" / "corpus" / "graph-data"


def _files(folder: str) -> list[Any]:
    return [yaml.load(file.read_text(), yaml.CSafeLoader) for file in sorted((CORPUS / folder).glob("*.yaml"))]


def _key(version: str) -> tuple[int, int]:
    major, minor, _ = version.split(".", 2)
    return int(major), int(minor)


@pytest.mark.skipif(not CORPUS.exists(), reason="the corpus of graph data is not beside this checkout")
@pytest.mark.slow
def test_the_public_data_against_an_independent_count() -> None:
    """Releases, updates, updates with risks and risks of every channel."""
    listed, blocks = _files("channels"), _files("blocked-edges")
    channels = {
        f["name"]: {n.partition("+")[0] for n in f["versions"] if n.endswith("amd64") or "+" not in n} for f in listed
    }
    blocked = defaultdict(list)
    for file in blocks:
        name, _, arch = file["to"].partition("+")
        if arch in ("", "amd64"):
            blocked[name].append((re.compile(file["from"]), file.get("name") if file.get("matchingRules") else None))
    raw = yaml.safe_load((CORPUS / "raw" / "metadata.json").read_text())
    added = {
        (old, new)
        for new, shown in raw.items()
        for old in shown.get("io.openshift.upgrades.graph.previous.add", "").split(",")
    }

    data = build_graph.read(
        (CORPUS / "version").read_text(),
        {f["name"]: f for f in listed},
        {str(number): f for number, f in enumerate(blocks)},
        raw,
    )
    built = build_graph.build(data, None, "amd64")
    assert built.assumed
    # Versions of one file are compared by position in the graph alone: that is the order of all of them.
    order = {node["version"]: place for place, node in enumerate(built.document["nodes"])}

    @cache
    def evaluated(old: str, new: str) -> set[str | None] | None:
        """Returns the evaluation of a hop, or None if the graph lacks it."""
        near = _key(old) in (_key(new), (_key(new)[0], _key(new)[1] - 1))
        if not (near and order[old] < order[new]) and (old, new) not in added:
            return None
        return {name for origin, name in blocked[new] if origin.search(f"{old}+amd64")}

    for channel, names in channels.items():
        free, risky, risks = 0, 0, set()
        for new in names:
            for old in names:
                found = evaluated(old, new)
                if found is None or None in found:
                    continue
                risky += bool(found)
                free += not found
                risks |= set(found)
        part = build_graph.graph_of_channel(built.document, channel)
        groups = part["conditionalEdges"]
        assert len(part["nodes"]) == len(names), channel
        assert len(part["edges"]) == free, channel
        assert sum(len(group["edges"]) for group in groups) == risky, channel
        assert {risk["name"] for group in groups for risk in group["risks"]} == risks, channel
    assert len(parse_graph(codec.encode(built.document)).releases) == len(set().union(*channels.values()))
