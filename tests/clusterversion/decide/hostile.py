"""Reports, answers of the update service and operators as nobody would wish for, out of a seed."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from tests.clusterversion.decide.world import image

from kubekit.api.meta_v1 import Condition, ObjectMeta
from runup.api.config_v1 import ClusterOperator
from runup.report.report import FORMAT

_BITS = (
    *"abcXYZ09 .,:;-_/@=%&<>\"'`\\\n\t\r\x00\x1b\x07\x7f\x85\x9b\u202e\u2066\u200f\u061c\u2028\ufeff\uffff",
    "€", "👩‍🚀", "שלום", "更新", "\\x1b", "\\u202e", "Preflight=5.2.0: ", "\x1b]0;x\x07", "... and 3 more",
)  # fmt: skip
_LENGTHS = (0, 1, 3, 20, 20, 150, 150, 700, 5000, 33000, 120000)
# How often there is much of everything: most of what is distinguished is distinguished by little.
_MUCH = 0.02
_URLS = (
    "https://example.com/x", "http://[::1]:80/", "https://example.com/?a=<b>&c=%41", "http://", "http://[", "mailto:x",
    "https://example.com/%zz", "https://example.com:port/", "https://a b/", "javascript:alert(1)", "/path", "", "x",
    "https://[fe80::1%25en0]/", "http://::1/", "https://u:p@example.com", "https://example.com/\u202e", "https://x\x9b/",
    "https://" + "x" * 2000, "https://example.com/" + "&" * 2020, "https://example.com/" + "y" * 9000,
)  # fmt: skip
_URLS_OF_GO = (*_URLS[:4], "mailto:x", "javascript:alert(1)", "/path", "x", *_URLS[-6:-4], *_URLS[-3:])


def text(random: Random, most: int = len(_LENGTHS)) -> str:
    """Any text, mostly short."""
    length = random.choice(_LENGTHS[: random.randint(1, most)])
    length = length if length < 5000 or random.random() < 0.1 else 300
    seed = "".join(random.choices(_BITS, k=min(length, 40)))
    return (seed * (length // max(len(seed), 1) + 1))[:length]


def much(random: Random) -> bool:
    """Whether there is much of something this time."""
    return random.random() < _MUCH


def name(random: Random) -> str:
    """A risk's name as a report may have it."""
    tail = "".join(random.choices("abcXYZ019.-", k=random.choice((0, 1, 8, 30, 255))))
    return random.choice("ABX") + tail


def report(random: Random, preflight_id: str) -> bytes:
    """A report of 5.2.0 from 5.0.0, as its target might write it; the reader may refuse it all the same."""
    number = random.choice((20, 180, 199, 200) if much(random) else (0, 1, 1, 2, 3))
    most = 6 if number > 20 else len(_LENGTHS)
    names = {f"{name(random)[:250]}{index}" if number > 3 else name(random) for index in range(number)}
    document = {
        "format": FORMAT,
        "preflightID": preflight_id,
        "sourceVersion": "5.0.0",
        "targetVersion": "5.2.0",
        "targetImage": image("5.2.0"),
        "executionStatus": random.choice(("completed", "completed", "running", "failed")),
        "observedTime": "2026-01-14T10:00:01Z",
        "message": text(random),
        "risksOmitted": random.choice((0, 0, 101)),
        "checks": [
            {"name": text(random, 5), "result": random.choice(("Clear", "Applies", "Unknown")), "message": text(random)}
            for _ in range(random.choice((0, 1, 7)))
        ],
        "risks": [
            {
                "name": random.choice((risk, risk, risk, "PreflightRisksOmitted")) if number == 1 else risk,
                "message": f"M{text(random, most)}",
                "url": random.choice(_URLS) if number < 4 else random.choice(_URLS[:3]),
                "applies": random.choice(("True", "Unknown")),
                "reason": text(random, 5)[:1024],
                "remediation": text(random, 5),
            }
            for risk in sorted(names)
        ],
    }
    return json.dumps(document, ensure_ascii=random.random() < 0.5).encode("utf-8", "replace")


def graph(random: Random) -> dict[str, Any]:
    """An answer of the update service; the target is always among its nodes."""
    versions = [
        "5.0.0",
        "5.2.0",
        *(f"5.1.{index}" for index in range(random.choice((30, 700) if much(random) else (0, 1, 3)))),
    ]
    nodes = [_graph_node(random, version) for version in versions]
    edges = [[0, index] for index in range(1, len(nodes)) if index == 1 or random.random() < 0.7]
    number = random.choice((5, 20) if much(random) and len(nodes) < 100 else (0, 1, 1, 2))
    return {
        "nodes": nodes,
        "edges": edges,
        "conditionalEdges": [
            {
                "edges": [{"from": "5.0.0", "to": random.choice(versions[1:])} for _ in range(random.randint(1, 3))],
                "risks": [_risk(random) for _ in range(random.choice((20, 250) if much(random) else (1, 1, 2)))],
            }
            for _ in range(number)
        ],
    }


def _graph_node(random: Random, version: str) -> dict[str, Any]:
    """Returns a node as a service may send it; other values of its metadata make the whole answer invalid."""
    known = version in ("5.0.0", "5.2.0")
    payload = image(version) if known or random.random() < 0.8 else text(random, 6)
    channel = f"c{text(random, 7)}".replace(",", "-")
    metadata = {} if random.random() < 0.6 else {
        "url": random.choice(_URLS_OF_GO),
        "release.openshift.io/architecture": "multi",
        "io.openshift.upgrades.graph.release.channels": random.choice(("a,a,b", channel)),
    }  # fmt: skip
    return {"version": version, "payload": payload, "metadata": metadata}


def _risk(random: Random) -> dict[str, Any]:
    rules: list[dict[str, Any]] = [{"type": "Always"}]
    if random.random() < 0.5:
        rules = [{"type": "PromQL", "promql": {"promql": f"q{text(random, 7)}"}}] * random.choice((1, 9))
    return {
        "name": random.choice((text(random, 6), f"Risk{random.randrange(10**6)}", "Same")),
        "message": text(random, 7),
        "url": random.choice(_URLS),
        "matchingRules": rules,
    }


def operators(random: Random) -> tuple[ClusterOperator, ...]:
    """ClusterOperators, some of which say that they cannot be updated, at length."""
    number = random.choice((30, 300) if much(random) else (0, 0, 1, 2))
    most = 5 if number > 30 else 8
    found = []
    for index in range(number):
        condition = Condition(type="Upgradeable", status="False", reason=text(random, 4), message=text(random, most))
        status = {"conditions": (condition,)} if random.random() < 0.8 else {}
        found.append(
            ClusterOperator(
                metadata=ObjectMeta(name=f"operator-{index}"), status=type(ClusterOperator().status)(**status)
            )
        )
    return tuple(found)
