"""The administrator's ConfigMap: what is taken, what is named as unusable, and that the pages report every key."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kubekit.api.core_v1 import ConfigMap
from runup.preflight.decide import preflight_settings
from runup.preflight.decide.preflight_deployment import PodSettings, Quantities

DEFAULTS = PodSettings(namespace="ns", node_name="node-1")
OPERATOR_PAGE = Path(__file__).parents[3] / "docs" / "reference" / "operator.md"


def read(**data: str) -> preflight_settings.Settings:
    """What holds with those keys set."""
    return preflight_settings.read(ConfigMap(data=data), DEFAULTS)


def fits(weight: int, **requirement: Any) -> str:
    """An affinity that prefers nodes by one requirement, as JSON, which is YAML."""
    term = {"weight": weight, "preference": {"matchExpressions": [requirement]}}
    return json.dumps({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}})


def needs(**requirement: Any) -> str:
    """An affinity that needs nodes by one requirement."""
    terms = [{"matchExpressions": [requirement]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return json.dumps({"nodeAffinity": required})


TAKEN: list[Any] = [
    pytest.param({"timeout": "30s"}, "timeout_s", 30.0, id="the shortest time"),
    pytest.param({"timeout": "24h"}, "timeout_s", 86400.0, id="the longest time"),
    pytest.param({"memoryRequest": "1Mi"}, "quantities", Quantities(memory_request="1Mi"), id="the least memory"),
    *(
        pytest.param({"affinity": text}, "node_affinity", json.loads(text)["nodeAffinity"], id=name)
        for name, text in (
            ("the least weight", fits(1, key="a", operator="Exists")),
            ("the greatest weight", fits(100, key="a", operator="DoesNotExist")),
            ("one of two values", needs(key="a/b", operator="In", values=["x", "y"])),
            ("none of a value", needs(key="a", operator="NotIn", values=["x"])),
            ("more than a number", needs(key="a", operator="Gt", values=["10"])),
            ("less than a number", needs(key="a", operator="Lt", values=["3"])),
        )
    ),
    pytest.param(
        {"tolerations": "- {operator: Exists}"}, "tolerations", ({"operator": "Exists"},), id="every taint at all"
    ),
    pytest.param(
        {"tolerations": "- {key: x, effect: NoExecute, tolerationSeconds: 0}"},
        "tolerations",
        ({"key": "x", "effect": "NoExecute", "tolerationSeconds": 0},),
        id="a taint for no time",
    ),
    pytest.param({"cpuLimit": "1"}, "quantities", Quantities(cpu_limit="1"), id="a limit"),
    pytest.param({"memoryRequest": " 64Mi\n"}, "quantities", Quantities(memory_request="64Mi"), id="a block's newline"),
    pytest.param({"timeout": "1h30m"}, "timeout_s", 5400.0, id="hours and minutes"),
    pytest.param({"timeout": "90"}, "timeout_s", 90.0, id="seconds alone"),
    pytest.param({"tolerations": "[]"}, "tolerations", (), id="no toleration at all"),
    pytest.param(
        {"tolerations": "- {key: dedicated, operator: Equal, value: infra, effect: NoSchedule}"},
        "tolerations",
        ({"key": "dedicated", "operator": "Equal", "value": "infra", "effect": "NoSchedule"},),
        id="one toleration",
    ),
    pytest.param(
        {"cpuRequest": "900m"}, "quantities", Quantities(cpu_request="900m"), id="a request that is all of its limit"
    ),
    pytest.param({"priorityClassName": ""}, "priority_class", "", id="no priority class"),
    pytest.param({"priorityClassName": "a" * 253}, "priority_class", "a" * 253, id="the longest priority class"),
    pytest.param({"catalogs": "skip"}, "catalogs", "skip", id="no catalogs of operators"),
    pytest.param({"innerRegistries": ""}, "inner_registries", (), id="no registry of the cluster's own"),
    pytest.param(
        {"plainHttpRegistries": "mirror.lan:5000, 10.0.0.1:80,[fd00::1]:5000"},
        "plain_http_registries",
        ("mirror.lan:5000", "10.0.0.1:80", "[fd00::1]:5000"),
        id="registries without TLS",
    ),
    pytest.param({"rehearse": "true"}, "rehearses", True, id="a rehearsal"),
    pytest.param({"rehearse": "false"}, "rehearses", False, id="no rehearsal"),
    pytest.param({"timeout": "1m1s"}, "timeout_s", 61.0, id="a minute and a second"),
    pytest.param({"serviceAccount": "dedicated"}, "service_account", "dedicated", id="an account of its own"),
    pytest.param({"reportSink": "configmap"}, "report_sink", "configmap", id="no folder of the node"),
    pytest.param(
        {"documentationBase": "http://docs.lan:8080/x/"}, "documentation_base", "http://docs.lan:8080/x", id="a mirror"
    ),
]


@pytest.mark.parametrize(("data", "field", "expected"), TAKEN)
def test_a_setting_that_is_taken(data: dict[str, str], field: str, expected: Any) -> None:
    """It replaces its default, and nothing else."""
    found = read(**data)
    assert found.unusable == ()
    taken = getattr(found.pods, field)
    assert (json.loads(json.dumps(taken)) if field == "node_affinity" else taken) == expected


UNUSABLE: list[Any] = [
    *(
        pytest.param({"affinity": text}, words, id=name)
        for name, text, words in (
            ("none of no values", needs(key="x", operator="NotIn"), "has operator NotIn without values, for x"),
            (
                "there, and a value",
                needs(key="x", operator="Exists", values=["y"]),
                "has values with operator Exists, for x",
            ),
            (
                "not there, and a value",
                needs(key="x", operator="DoesNotExist", values=["y"]),
                "has values with operator DoesNotExist, for x",
            ),
            (
                "more than a word",
                needs(key="x", operator="Gt", values=["y"]),
                "has operator Gt without one whole number, for x",
            ),
            (
                "less than two numbers",
                needs(key="x", operator="Lt", values=["1", "2"]),
                "has operator Lt without one whole number, for x",
            ),
            (
                "no label's value",
                needs(key="x", operator="In", values=["a b"]),
                "has the value 'a b', which is not valid for a label",
            ),
            ("a term of nothing", needs().replace("[{}]", "[]"), "has a term without matchExpressions"),
            ("a preferred term of nothing", fits(1).replace("[{}]", "[]"), "has a term without matchExpressions"),
            (
                "less than what no label has",
                needs(key="x", operator="Lt", values=["-3"]),
                "has the value '-3', which is not valid for a label",
            ),
            ("more than all the weight", fits(101, key="a", operator="Exists"), "not between 1 and 100"),
        )
    ),
    pytest.param({"tolerations": "- {key: x, value: a b}"}, "value 'a b', which is not valid", id="no taint's value"),
    pytest.param({"tolerations": "- {operator: Exists, value: z}"}, "for all keys", id="a value for all keys"),
    pytest.param({"timeout": "24h1s"}, "is not between 30s and 24h", id="a second longer than a day"),
    pytest.param({"memoryLimit": "1048575"}, "is less than 1Mi", id="a byte less than a mebibyte"),
    pytest.param({"cpuLimit": "lots"}, "cpuLimit 'lots' is not a quantity", id="no quantity"),
    pytest.param({"cpuLimit": ""}, "cpuLimit '' is not a quantity", id="nothing"),
    pytest.param({"cpuLimit": "-1"}, "is not more than zero", id="less than nothing"),
    pytest.param({"cpuLimit": "0"}, "is not more than zero", id="nothing at all"),
    pytest.param({"cpuRequest": "901m"}, "cpuRequest 901m is more than cpuLimit 900m", id="a thousandth too many"),
    pytest.param({"cpuLimit": f"1e{'9' * 5000}"}, "is not a quantity", id="an exponent that nobody counts"),
    pytest.param({"memoryLimit": "512m"}, "is less than 1Mi", id="half a byte"),
    pytest.param(
        {"memoryRequest": "1Gi"}, "memoryRequest 1Gi is more than memoryLimit 512Mi", id="more than its limit"
    ),
    pytest.param({"timeout": "soon"}, "is not a duration", id="no duration"),
    pytest.param({"timeout": ""}, "is not a duration", id="an empty duration"),
    pytest.param({"timeout": "29s"}, "is not between 30s and 24h", id="too short to start in"),
    pytest.param({"timeout": "25h"}, "is not between 30s and 24h", id="longer than a day"),
    pytest.param({"tolerations": "all"}, "is not a list of tolerations", id="no list"),
    pytest.param({"tolerations": "- {keys: x}"}, "unknown field `keys`", id="a typo in a toleration"),
    pytest.param({"tolerations": "- {key: x, effect: NoRun}"}, "Invalid enum value 'NoRun'", id="no such effect"),
    pytest.param({"tolerations": "- {value: x}"}, "without key", id="a toleration of nothing"),
    pytest.param({"tolerations": "- {key: x, operator: Exists, value: z}"}, "value with", id="a value too many"),
    pytest.param({"tolerations": "- {key: a b}"}, "which is not valid for a taint", id="no taint's key"),
    pytest.param(
        {"tolerations": "- {key: x, effect: NoSchedule, tolerationSeconds: 1}"}, "tolerationSeconds", id="for a while"
    ),
    pytest.param(
        {"tolerations": "- {key: x, operator: Exists, effect: NoExecute, tolerationSeconds: 9223372036854775808}"},
        "Expected `int` <= 9223372036854775807",
        id="for longer than the API counts",
    ),
    pytest.param(
        {"tolerations": f"- {{key: {'a' * 254}/b, operator: Exists}}"},
        "which is not valid for a taint",
        id="too long a prefix",
    ),
    pytest.param(
        {
            "affinity": "nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
            f"[{{matchExpressions: [{{key: {'a' * 254}/b, operator: Exists}}]}}]}}}}"
        },
        "which is not valid for a label",
        id="too long a prefix of a label",
    ),
    pytest.param({"tolerations": "["}, "is not a list of tolerations", id="no YAML"),
    pytest.param({"affinity": "podAffinity: {}"}, "is not an affinity with nodeAffinity", id="a pod's affinity"),
    pytest.param(
        {"affinity": "nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}"},
        "which selects no node",
        id="no term",
    ),
    pytest.param(
        {
            "affinity": "nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
            "[{matchExpressions: [{key: x, operator: In}]}]}}"
        },
        "operator In without values",
        id="one of no values",
    ),
    pytest.param(
        {
            "affinity": "nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 0, preference: "
            "{matchExpressions: [{key: x, operator: Exists}]}}]}"
        },
        "weight",
        id="a weight of nothing",
    ),
    pytest.param({"priorityClassName": "No Class"}, "is not a valid name of a PriorityClass", id="no class's name"),
    pytest.param(
        {"priorityClassName": "a" * 254}, "is not a valid name of a PriorityClass", id="too long a class's name"
    ),
    pytest.param({"rehearse": "yes"}, "is neither true nor false", id="a rehearsal in other words"),
    pytest.param({"catalogs": "some"}, "is neither read nor skip", id="some of the catalogs"),
    pytest.param(
        {"plainHttpRegistries": "http://mirror.lan:5000"},
        "is not a comma-separated list of registries (for example registry.example:5000)",
        id="an address for a registry without TLS",
    ),
    pytest.param(
        {"affinity": needs(key="x", operator="Gt", values=["1" * 19])},
        "has operator Gt without one whole number, for x",
        id="more than a number that nobody counts",
    ),
    pytest.param({"serviceAccount": "admin"}, "is neither operator nor dedicated", id="anybody's account"),
    pytest.param({"reportSink": "s3"}, "is neither volume nor configmap", id="another sink"),
    pytest.param({"documentationBase": "ftp://x"}, "is not an http or https URL", id="no web page"),
    pytest.param(
        {"documentationBase": "https://x/?q"}, "is not an http or https URL", id="a query that swallows paths"
    ),
    pytest.param({"documentationBase": "https://[x"}, "is not an http or https URL", id="no URL at all"),
    pytest.param({"cpuLimits": "1"}, "'cpuLimits' is not a setting (there are cpuRequest, ", id="a typo in a key"),
]


@pytest.mark.parametrize(("data", "words"), UNUSABLE)
def test_a_setting_that_cannot_be_used(data: dict[str, str], words: str) -> None:
    """It is named with its value and why, and the default counts; what is good next to it is taken."""
    found = read(**{"reportSink": "configmap"} | data)
    assert len(found.unusable) == 1
    assert words in found.unusable[0]
    expected = DEFAULTS.report_sink if "reportSink" in data else "configmap"
    assert found.pods == replace(DEFAULTS, report_sink=expected)  # type: ignore[arg-type]


def test_binary_data_is_no_setting() -> None:
    """`kubectl create configmap --from-file` with a binary file makes such keys."""
    found = preflight_settings.read(ConfigMap(binary_data={"cpuLimit": b"1"}), DEFAULTS)
    assert found.unusable == ("'cpuLimit' is binary data; every setting is text",)


def test_a_long_value_is_cut_where_it_is_named() -> None:
    """A ConfigMap holds a mebibyte, a condition 32 KiB."""
    (seen,) = read(cpuLimit="x" * 10**6).unusable
    assert len(seen) < 200


@pytest.mark.parametrize(
    ("length", "shown"),
    [
        pytest.param(60, f"cpuLimit '{'x' * 60}' is", id="as long as is shown whole"),
        pytest.param(61, f"cpuLimit '{'x' * 60}...' is", id="a character more"),
    ],
)
def test_how_much_of_a_value_is_shown(length: int, shown: str) -> None:
    """Sixty characters show which one it is."""
    (seen,) = read(cpuLimit="x" * length).unusable
    assert seen.startswith(shown)


def test_no_config_map_leaves_the_defaults() -> None:
    """Nor does an empty one change anything."""
    assert preflight_settings.read(None, DEFAULTS) == read() == preflight_settings.Settings(DEFAULTS)


def test_every_setting_is_on_the_operators_page_and_every_one_of_that_page_exists() -> None:
    """The table of docs/reference/operator.md and the table of the code are one."""
    section = OPERATOR_PAGE.read_text().partition("## Settings of preflights")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == set(preflight_settings.KEYS)


def test_a_default_that_is_no_quantity_is_the_api_servers_to_refuse() -> None:
    """It came from a flag; what is set next to it is compared with nothing."""
    defaults = replace(DEFAULTS, quantities=replace(DEFAULTS.quantities, cpu_limit="lots", cpu_request="0"))
    found = preflight_settings.read(ConfigMap(data={"reportSink": "configmap"}), defaults)
    assert (found.unusable, found.pods.quantities.cpu_limit) == ((), "lots")


@pytest.mark.parametrize(
    ("request_", "limit", "seen"),
    [
        pytest.param("lots", "1m", (), id="a request that is none is no more than any limit"),
        pytest.param("1m", "lots", ("cpuRequest 1m is more than cpuLimit lots; the defaults are used",), id="a limit"),
        pytest.param("lots", "more", (), id="both"),
    ],
)
def test_what_is_no_quantity_counts_as_nothing(request_: str, limit: str, seen: tuple[str, ...]) -> None:
    """Where it is compared with another."""
    defaults = replace(DEFAULTS, quantities=replace(DEFAULTS.quantities, cpu_limit=limit, cpu_request=request_))
    assert preflight_settings.read(ConfigMap(data={"reportSink": "configmap"}), defaults).unusable == seen
