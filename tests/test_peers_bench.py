"""What other tools publish as their rules, runup finds, too, or says why not."""

from __future__ import annotations

from bench.real.peers import GOOD_PRACTICE, codes_of, of_rules, told_of


def test_every_rule_of_theirs_is_ours_or_explained() -> None:
    """From the minor version that removes it on, and not before."""
    table = of_rules()
    assert {tool: counts["missed"] for tool, counts in table.items()} == {"pluto": [], "kubent": [], "kubepug": []}
    assert all(counts["rules"] == counts["alike"] + counts["explained"] for counts in table.values())
    assert all(counts["alike"] > counts["explained"] for counts in table.values())


def test_what_popeye_tells_of() -> None:
    """Objects with a warning or an error (levels 2 and 3); what is fine or information does not count."""
    issues = {
        "shop/web": [{"level": 3, "message": "[POP-206] PDB has no disruptions allowed"}],
        "shop/info": [{"level": 1, "message": "information"}],
        "shop/fine": [],
    }
    sections = [{"gvr": "policy/v1/poddisruptionbudgets", "issues": issues}, {"gvr": "v1/pods", "issues": None}]
    assert list(told_of({"popeye": {"sections": sections}})) == ["PodDisruptionBudget shop/web"]
    assert codes_of({"popeye": {"sections": sections}}) == {"[POP-206] PDB has no disruptions allowed": 1}


def test_good_practice_is_left_out() -> None:
    """What popeye says about nearly every object; an object of which it says something else, too, stays."""
    limits = {"level": 2, "message": "[POP-107] No resource limits defined"}
    issues = {"shop/web": [limits], "shop/down": [limits, {"level": 3, "message": "[POP-501] Unhealthy"}]}
    report = {"popeye": {"sections": [{"gvr": "apps/v1/deployments", "issues": issues}]}}
    assert list(told_of(report)) == ["Deployment shop/web", "Deployment shop/down"]
    assert list(told_of(report, GOOD_PRACTICE)) == ["Deployment shop/down"]
