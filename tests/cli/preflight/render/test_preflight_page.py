"""The page of a preflight: risks by severity, evidence, remedies, why some are accepted; nothing of this machine."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace
from tests.cli.commands import cluster
from tests.cli.preflight.render import samples
from tests.cli.render.reading import Reader, read

from runup.advice.decide.acceptance import Growth
from runup.api.config_v1 import InfrastructureStatus
from runup.cli.preflight.render.preflight_page import page
from runup.preflight.decide.findings import Findings
from runup.process.names import cluster_name
from runup.report.documentation import BUILT_IN
from runup.report.report import ReportedResource

NAMES = {"DualStackIncompatible": "bad", "EtcdMembers": "idle", "NodeCordoned": "idle"}
NAME = "prod-x7k2p (api.prod.example.com)"


def shown(found: Findings, **how: Any) -> Reader:
    """The page of `found` as it is read."""
    return read(page(found, samples.WHEN, **{"cluster": NAME, **how}))


def test_the_page_says_all_that_is_known() -> None:
    """Whose cluster and when on top, the verdict, then each risk with evidence, remedy, and what must be done."""
    text = shown(samples.FOUND).text
    assert text.startswith(
        f"Preflight of 5.2.0 from 5.0.0: {NAME} Cluster {NAME} As of 2026-11-21 07:30 UTC "
        "Preflight of 5.2.0 from 5.0.0 Risks apply "
        "Verdict: 5 risks apply, 1 unknown, 2 accepted. Fix them, or accept them by name: "
        "runup upgrade accept DualStackIncompatible,"
    )
    for said in (
        "In the way 1 critical, 2 warning, 1 info, 1 of unknown severity; 1 not known",
        "Checks 3 done, 1 not for this update",
        f"Release image: {samples.IMAGE}",
        "1. DualStackIncompatible applies critical Cluster uses dual-stack networking",
        "Remedy Convert clusterNetwork and serviceNetwork to one IP family before the update. See the guide.",
        "Evidence Network.config.openshift.io cluster",
        "Found by the preflight, PreflightValidation, since 2026-11-21 07:30 UTC",
        "Read on https://docs.example/checks/DualStackIncompatible",
        "Accept it runup upgrade accept DualStackIncompatible",
        "Node ip-10-0-0-19.eu-central-1.compute.internal and 4 more",
        "NodeName-e\u0301 unknown warning Node cafe\u0301",
        "3. SlowNodeDrain applies Draining is slow. Found by the update service or the cluster, Match",
        "Unknown Etcd etcds cannot be read: forbidden",
        "All times are UTC.",
    ):
        assert said in text, said


def test_what_was_found_comes_first_and_what_is_accepted_last() -> None:
    """Headings in the order of what has to be done, none left out between two levels."""
    html = page(samples.FOUND, samples.WHEN)
    headings = re.findall(r"<(h[1-6])>(.*?)</h", html)
    assert [text for level, text in headings if level == "h2"] == [
        "Findings (5)",
        "Unknown results (1)",
        "Accepted (2)",
        "Checks (4)",
    ]
    levels = [int(level[1]) for level, _ in headings]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_accepted_ones_say_why() -> None:
    """Shows the recorded reason, or how to record one; never offers an accepted risk again."""
    text = shown(samples.FOUND).text.partition("Accepted (2)")[2]
    assert "NodeCordoned accepted warning Node worker-7 is cordoned. Why accepted network team, CHG-7712 Found" in text
    assert "EtcdMembers accepted critical etcd has 5 members. Why accepted No reason was recorded. Give one:" in text
    assert "Accept it" not in text


def test_what_an_acceptance_does_not_cover() -> None:
    """Shows risks that are new, and risks that cannot be accepted without offering acceptance."""
    one = samples.risk("A", "It is so.")
    grown = replace(one, accepted=True, grown=Growth(added=("Node b",), more=0, since=None, accepted_for=1))
    seen = [shown(replace(samples.FOUND, risks=(each,))).text for each in (grown, replace(one, acceptable=False), one)]
    assert "Covers more Accepted for 1, and has grown: Node b" in seen[0]
    assert "still counts for runup upgrade . An update policy waits until the risk is accepted again" in seen[0]
    assert "also if it names further objects later" in seen[2]
    assert ["Accepting it does not lift it." in text for text in seen] == [False, True, False]


def test_what_is_settled_is_not_coloured_as_if_it_were_not() -> None:
    """An accepted critical risk is drawn like what needs nobody; one that is open as grave as it is."""
    html = page(samples.FOUND, samples.WHEN)
    tones = {
        name: tone
        for tone, name in re.findall(r'class="card issue (\w+)[^>]*>.*?<h3>(?:\d+\. )?([^<]+)', html, re.DOTALL)
    }
    assert {name: tones[name] for name in NAMES} == NAMES


@pytest.mark.parametrize(
    ("found", "badge", "said"),
    [
        pytest.param(samples.CLEAR, "Nothing in the way", "nothing blocks an update to 5.2.0.", id="clear"),
        pytest.param(samples.FAILED, "Could not run", "TargetUnsupported: 5.2.0 has no such command.", id="failed"),
        pytest.param(samples.RUNNING, "No result yet", "the preflight of 5.2.0 has no result yet.", id="running"),
        pytest.param(replace(samples.FOUND, risks=(samples.COMBINING,)), "Not all known", "1 unknown.", id="unknown"),
        pytest.param(
            replace(samples.FOUND, risks=(samples.ACCEPTED,)), "Nothing in the way", "(1 accepted).", id="all accepted"
        ),
    ],
)
def test_every_result_has_its_word(found: Findings, badge: str, said: str) -> None:
    """No result is never shown as a good one."""
    text = shown(found).text
    assert f"from 5.0.0 {badge} Verdict: " in text
    assert said in text


def test_tables_have_captions_and_can_be_reached_by_keys() -> None:
    """Who hears the page knows what a table lists, and who has no mouse can move it."""
    reader = shown(samples.FOUND)
    tags = [tag for tag, _ in reader.tags]
    assert tags.count("caption") == tags.count("table") == 1
    regions = [attrs for _, attrs in reader.tags if attrs.get("class") == "scroll"]
    assert regions
    assert all(attrs["tabindex"] == "0" and attrs["role"] == "region" and attrs["aria-label"] for attrs in regions)


def test_checks_that_found_something_come_first() -> None:
    """Whatever the order of the report."""
    text = shown(replace(samples.FOUND, checks=samples.CHECKS[::-1])).text.partition("Checks (4)")[2]
    places = [text.index(check.name) for check in samples.CHECKS]
    assert places == sorted(places)


ABOUT = """# Broken

It is **bad**: see [the guide](https://docs.example/guide) or [Other](Other.md), and `oc get nodes`.

```yaml
kind: Node

metadata: {}
```
"""


def test_what_a_risk_means_is_in_the_page() -> None:
    """Folded, as text: code is code, links lead to the web, and the placeholder of the documentation is no link."""
    risk = samples.risk(
        "Broken", "Run `oc get nodes`.", fix="Then `oc adm uncordon NAME`.", url=f"{BUILT_IN}/checks/Broken"
    )
    html = page(
        replace(samples.FOUND, risks=(risk,)), samples.WHEN, explain=lambda name: ABOUT if name == "Broken" else ""
    )
    assert (
        '<details class="about"><summary>What this risk means</summary><p>It is <strong>bad</strong>: see '
        '<a href="https://docs.example/guide" rel="noreferrer noopener">the guide</a> or Other, and '
        "<code>oc get nodes</code>.</p><pre><code>kind: Node\n\nmetadata: {}</code></pre></details>"
    ) in html
    assert '<p class="body">Run <code>oc get nodes</code>.</p>' in html
    assert '<dd>Then <code class="command">oc adm uncordon NAME</code>.</dd>' in html
    assert BUILT_IN not in html


def test_a_cause_has_its_risks_in_one_card() -> None:
    """Consequences are folded, risks with a separate remedy are not; unsupported updates are not offered."""
    dns = (ReportedResource(group="config.openshift.io", kind="ClusterOperator", namespace="", name="dns"),)
    down = samples.risk("ClusterOperatorNotAvailable-dns", "dns is down: Down: no pods", resources=dns)
    held = samples.risk("ClusterOperatorUpgradeable-dns", "dns is held: Zone: a zone", resources=dns)
    worse = samples.risk("ClusterOperatorDegraded-dns", "dns is bad", resources=dns)
    old = samples.risk("CgroupV1", "1 node runs cgroup v1.")
    html = page(replace(samples.FOUND, risks=(down, held, worse, old), checks=()), samples.WHEN, explain=lambda _: "")
    assert re.findall(r"<h3>(.*?)</h3>", html) == ["1. ClusterOperatorNotAvailable-dns", "2. CgroupV1"]
    assert re.findall(r"<h4>(.*?)</h4>", html) == ["ClusterOperatorUpgradeable-dns", "ClusterOperatorDegraded-dns"]
    assert "<summary>1 risk follows from it: ClusterOperatorDegraded-dns</summary>" in html
    assert "Accept it Nobody supports an update with it: the nodes do not come back." in read(html).text
    assert "runup upgrade accept CgroupV1" not in read(html).text
    only_told = replace(samples.FOUND, risks=(replace(old, severity="info"),), checks=())
    assert "Nobody supports" not in read(page(only_told, samples.WHEN, explain=lambda _: "")).text


def test_what_is_missing_is_told_once() -> None:
    """With every kind; each risk that is unknown for want of it is a line, folded."""
    lacks = [
        samples.risk(name, "No pods.", applies="Unknown", lacking=("pods", "services"))
        for name in ("UnmanagedPodsUnknown", "StuckTerminatingUnknown")
    ]
    text = shown(replace(samples.FOUND, risks=tuple(lacks), checks=(), of_dump=True)).text
    said = "Unknown results (1) 2 checks have no result: the dump does not have all pods, services. Not fully"
    assert said in text
    assert "UnmanagedPodsUnknown pods, services" in text


EVIL = '"><script>alert(1)</script>\x1b[2J'


def test_texts_of_others_stay_texts() -> None:
    """Whatever a target or an administrator wrote."""
    risk = samples.risk(EVIL, EVIL, fix=EVIL, url=f"javascript:{EVIL}", reason=EVIL)
    evil = replace(samples.FOUND, target=EVIL, source=EVIL, image=EVIL, risks=(risk,))
    reader = shown(evil, cluster=EVIL)
    assert "a" not in {tag for tag, _ in reader.tags}
    assert [attributes for tag, attributes in reader.tags if tag == "script"] == [{}]
    assert "\x1b" not in reader.text
    assert reader.text.count("<script>alert(1)</script>\\x1b[2J") >= 8


@pytest.mark.parametrize(
    ("infrastructure", "spec", "server", "name"),
    [
        pytest.param(
            ("prod-x7k2p", "https://api.prod.example:6443"), {}, "", "prod-x7k2p (api.prod.example)", id="all"
        ),
        pytest.param(("prod-x7k2p", ""), {}, "https://127.0.0.1:6443", "prod-x7k2p", id="behind a tunnel"),
        pytest.param(("", ""), {}, "https://api.prod.example:6443", "api.prod.example", id="an address alone"),
        pytest.param(("", ""), {"clusterID": "c0ffee"}, "https://localhost:1", "c0ffee", id="an ID alone"),
        pytest.param(("", ""), {}, "https://[::1]:1", "a cluster without a name", id="nothing"),
        pytest.param(("", "https://["), {}, "", "a cluster without a name", id="an address that is none"),
    ],
)
def test_what_a_page_calls_the_cluster(
    infrastructure: tuple[str, str], spec: dict[str, str], server: str, name: str
) -> None:
    """By what its people know it; an address of this machine says nothing to the reader."""
    known = InfrastructureStatus(infrastructure_name=infrastructure[0], api_server_url=infrastructure[1])
    assert cluster_name(known, cluster({"spec": spec}), server) == name


def test_allows_its_script_alone() -> None:
    """By the hash of the only script; a page without commands has and allows no script."""
    html = page(samples.FOUND, samples.WHEN)
    (script,) = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    digest = b64encode(sha256(script.encode()).digest()).decode()
    assert (
        f"default-src &#x27;none&#x27;; style-src &#x27;unsafe-inline&#x27;; script-src &#x27;sha256-{digest}" in html
    )
    assert "script" not in page(samples.FAILED, samples.WHEN)


@pytest.mark.parametrize(
    ("fix", "commands"),
    [
        pytest.param("Run `oc adm uncordon n`, then `kubectl get nodes`.", ["oc adm uncordon n", "kubectl get nodes"],
                     id="commands"),
        pytest.param("Set `spec.paused` of `oc` to `false`.", [], id="names and values"),
    ],
)  # fmt: skip
def test_offers_commands_of_remedies_for_copying(fix: str, commands: list[str]) -> None:
    """A message may quote anybody, so only what a remedy has in backticks is offered, and the acceptance."""
    risk = samples.risk("Broken", "It says `oc delete ns all`.", fix=fix)
    html = page(replace(samples.FOUND, risks=(risk,)), samples.WHEN).partition("<article")[2]
    offered = [*commands, "runup upgrade accept Broken"]
    assert re.findall(r'<code class="command">([^<]*)</code>', html) == offered
    assert "Every report lists it, with the reason, and says if it has grown." in html


def test_shows_the_most_severe_first() -> None:
    """Among equals those that stop the update first: a refused request before a node."""
    risks = (
        samples.risk("AdminAck-x", "m", "warning"),
        samples.risk("Other", "m", "info"),
        samples.risk("NodeNotReady", "m", "critical"),
        samples.risk("SlowNodeDrain", "m", ""),
    )
    html = page(replace(samples.FOUND, risks=risks), samples.WHEN)
    assert re.findall(r"<h3>\d\. ([\w-]+)</h3>", html) == ["NodeNotReady", "AdminAck-x", "SlowNodeDrain", "Other"]
