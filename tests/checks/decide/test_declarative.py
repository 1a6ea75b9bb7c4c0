"""Tests PreflightCheck: the input of an expression, the use of its result, and the errors of invalid files."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace
from tests.factories import context

from kubekit.api import codec
from kubekit.lang import yaml as kyaml
from kubekit.lang.version import Version
from runup.advice.decide.promql import NOTHING, Answer, PrometheusState
from runup.checks.decide.declarative import DeclarativeError, declared_check
from runup.checks.decide.declared_checks import declared_checks
from runup.checks.decide.engine import run_check
from runup.checks.decide.model import Check, Context, Finding, Snapshot
from runup.checks.decide.ranges import RangeError, parse_range
from runup.checks.decide.reads import Read, as_dict, shape
from runup.release.decide.inclusion import Filters

TEXT = """\
apiVersion: preflight.runup.dev/v1alpha1
kind: PreflightCheck
metadata:
  name: legacy-cipher
  annotations:
    include.release.openshift.io/self-managed-high-availability: "true"
spec:
  component: ingress
  sources: ">=5.0 <5.2"
  targets: ">=5.2.0-0"
  reads:
  - name: routers
    version: v1
    kind: ConfigMap
    namespace: openshift-ingress
    fields: [data]
  for: routers
  expression: object.data["ciphers"].contains("RC4")
  risk:
    name: IngressLegacyCipher
    message: A router offers a cipher that the target lacks.
    messageExpression: object.metadata.name + " offers RC4, which " + update.target + " lacks."
    severity: critical
    remediation: Take RC4 out of the router's ciphers.
"""
FILE = "0000_60_ingress.yaml"

# Without words of its own for each object, and the parts that tests replace.
PLAIN = "".join(line for line in TEXT.splitlines(keepends=True) if "messageExpression" not in line)
FOR = "  for: routers\n"
EXPRESSION = '  expression: object.data["ciphers"].contains("RC4")\n'
WHEN = "  when: has(object.data)\n"
CLASS = "is not a PreflightCheck of preflight.runup.dev/v1alpha1"


def check(text: str = TEXT) -> Check:
    """The check that `text` declares."""
    return declared_check(kyaml.load(text), file=FILE, text=text)


def objects(read: Read, *documents: dict[str, Any]) -> tuple[Any, ...]:
    """Objects as the target's process keeps them for a read."""
    return tuple(codec.decode(shape(read.fields), codec.encode(document)) for document in documents)


def config_map(name: str, data: dict[str, str] | None) -> dict[str, Any]:
    """A ConfigMap in the namespace that is read."""
    metadata = {"name": name, "namespace": "openshift-ingress"}
    return {"metadata": metadata} if data is None else {"metadata": metadata, "data": data}


def findings(text: str, *documents: dict[str, Any], to: Context | None = None) -> tuple[Finding, ...]:
    """What the check finds in a cluster of these objects."""
    found = check(text)
    snapshot = Snapshot(objects={read: objects(read, *documents) for read in found.reads if isinstance(read, Read)})
    return run_check(found, snapshot, to or context()).findings


RC4 = config_map("old", {"ciphers": "AES,RC4"})
AES = config_map("new", {"ciphers": "AES"})
NO_DATA = config_map("empty", None)


def test_what_is_read() -> None:
    """A check names its lists, one namespace and the fields that are kept; the plural of a known kind is known."""
    (read,) = check().reads
    assert read == Read(
        group="",
        version="v1",
        kind="ConfigMap",
        plural="configmaps",
        namespaced=True,
        namespace="openshift-ingress",
        fields=("data",),
    )


@pytest.mark.parametrize(
    ("documents", "expected"),
    [
        ((), []),
        ((AES,), []),
        ((AES, RC4), [("True", "old offers RC4, which 5.2.0 lacks.", ["old"])]),
        (
            (NO_DATA, RC4),
            [
                ("True", "old offers RC4, which 5.2.0 lacks.", ["old"]),
                (
                    "Unknown",
                    "Whether IngressLegacyCipher applies is unknown: the expression failed for 1 object:",
                    ["empty"],
                ),
            ],
        ),
        (
            tuple(config_map(f"m{index}", {"ciphers": "RC4"}) for index in range(7)),
            [("True", "m0 offers RC4, which 5.2.0 lacks. m1 offers", [f"m{index}" for index in range(7)])],
        ),
    ],
    ids=["empty cluster", "clear", "one of two applies", "one cannot be shown", "many are named up to five"],
)
def test_evaluated_per_object(
    documents: tuple[dict[str, Any], ...], expected: list[tuple[str, str, list[str]]]
) -> None:
    """Every object has its own answer; all that apply are one risk, all that is unknown another finding."""
    found = findings(TEXT, *documents)
    assert [(f.applies.value, [r.name for r in f.resources]) for f in found] == [(a, names) for a, _, names in expected]
    for finding, (_, message, _names) in zip(found, expected, strict=True):
        assert finding.message.startswith(message)
        assert finding.name == "IngressLegacyCipher"
        assert finding.severity == "critical"
    if len(documents) == 7:
        assert found[0].message.endswith("m4 offers RC4, which 5.2.0 lacks. And 2 more.")


@pytest.mark.parametrize(
    ("old", "new", "applies"),
    [
        (EXPRESSION, f"{WHEN}  expression: object.data['ciphers'].split(',').exists(c, c == 'RC4')\n", 1),
        (FOR + EXPRESSION, "  expression: routers.exists(r, has(r.data) && r.data['ciphers'].contains('RC4'))\n", 1),
        (FOR + EXPRESSION, "  expression: update.source == '5.0.0' && size(routers) == 9\n", 0),
    ],
    ids=["only objects that `when` admits", "a short list as a whole", "which update is judged"],
)
def test_forms_of_expressions(old: str, new: str, applies: int) -> None:
    """`when` skips objects, lists without `for` are variables, and `update` says which update is evaluated."""
    assert old in PLAIN
    found = findings(PLAIN.replace(old, new), NO_DATA, RC4)
    assert [finding.applies.value for finding in found] == ["True"] * applies
    assert all(finding.message == "A router offers a cipher that the target lacks." for finding in found)


def test_a_list_that_is_too_long_is_unknown() -> None:
    """An evaluation has a budget; running out of it is said, and is not clear."""
    text = PLAIN.replace(FOR + EXPRESSION, "  expression: routers.all(a, routers.all(b, a.metadata.name != 'x'))\n")
    (finding,) = findings(text, *(config_map(f"m{index}", {}) for index in range(150)))
    assert finding.applies.value == "Unknown"
    assert "CelBudgetError" in finding.message


GREEDY = """  expression: "object.data['ciphers'].replace('a', object.data['ciphers']).contains('RC4')"\n"""


def test_an_object_that_costs_too_much_is_unknown() -> None:
    """The results for the other objects stay valid."""
    documents = (config_map("huge", {"ciphers": "a" * 20_000}), RC4, AES)
    found = findings(PLAIN.replace(EXPRESSION, GREEDY), *documents)
    shown = [(each.applies.value, [resource.name for resource in each.resources]) for each in found]
    assert shown == [("True", ["old"]), ("Unknown", ["huge"])]
    assert "operation cancelled: actual cost limit exceeded" in found[1].message


def test_a_check_has_one_budget_for_all_its_objects() -> None:
    """Each is below the limit of one evaluation, all of them are above that of a check: the last ones are Unknown."""
    documents = [config_map(f"m{number:02}", {"ciphers": "a" * 2000}) for number in range(40)]
    (found,) = findings(PLAIN.replace(EXPRESSION, GREEDY), *documents)
    assert found.applies.value == "Unknown"
    assert [resource.name for resource in found.resources][-1] == "m39"
    assert len(found.resources) == 40 - 12


READS = PLAIN[PLAIN.index("  reads:") : PLAIN.index("  for:")]
QUERY = PLAIN.replace(READS + FOR + EXPRESSION, "  promql:\n    query: up\n")
CONTAINER = PLAIN.replace(READS + FOR + EXPRESSION, "  container:\n    image: ingress-operator\n")
NOW = context().now


def known(**answer: Any) -> PrometheusState:
    """A Prometheus that has answered."""
    return PrometheusState(configured=True, answers={"up": Answer(**{"at": NOW} | answer)})


@pytest.mark.parametrize(
    ("prometheus", "result", "words"),
    [
        pytest.param(known(applies=True), "Applies", "A router offers a cipher", id="1 is that it applies"),
        pytest.param(known(applies=False), "Clear", "", id="0 is that it does not"),
        pytest.param(
            NOTHING, "Unknown", "no Prometheus is asked here: --prometheus-url names one", id="nobody is asked"
        ),
        pytest.param(
            PrometheusState(configured=True), "Unknown", "Prometheus has not answered yet", id="no answer yet"
        ),
        pytest.param(known(error="parse error"), "Unknown", "could not be answered: parse error", id="a bad query"),
        pytest.param(known(applies=True, at=NOW - timedelta(seconds=61)), "Unknown", "is too old", id="an old answer"),
    ],
)
def test_a_query_is_what_prometheus_says_now(prometheus: PrometheusState, result: str, words: str) -> None:
    """As a conditional risk's is evaluated; without an answer it is not fine."""
    asked = check(QUERY)
    assert asked.query == "up"
    outcome = run_check(asked, Snapshot(), replace(context(), prometheus=prometheus))
    assert outcome.result == result
    assert words in " ".join(finding.message for finding in outcome.findings)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        pytest.param(QUERY.replace("query: up", "query: ' '"), "spec.promql.query: has 1 characters", id="no query"),
        pytest.param(
            QUERY.replace("  promql:", READS + "  promql:"),
            "spec.reads: a check with a query reads no objects",
            id="a query that reads",
        ),
        pytest.param(
            CONTAINER.replace("ingress-operator", "evil.example/x:latest"),
            "spec.container.image: 'evil.example/x:latest' is not the name of an image",
            id="a container of a pull spec",
        ),
        pytest.param(
            CONTAINER.replace("image:", "timeoutSeconds: 301\n    image:"),
            "spec.container.timeoutSeconds: is 301, not 1 to 300",
            id="a container that takes its time",
        ),
        pytest.param(
            CONTAINER.replace("  container:", READS + "  container:"),
            "spec.reads: a check with a container reads the cluster",
            id="a container with reads",
        ),
        pytest.param(
            QUERY.replace("query: up", f"query: {'u' * 4097}"),
            "spec.promql.query: has 4097 characters, not 1 to 4096",
            id="a query that is a character too long",
        ),
        pytest.param(
            CONTAINER.replace("image:", "timeoutSeconds: 0\n    image:"),
            "spec.container.timeoutSeconds: is 0, not 1 to 300",
            id="a container that takes no time",
        ),
        pytest.param(
            QUERY.replace("  promql:", "  for: x\n  promql:"),
            "spec.for: 'x' is not one of the reads (it has no reads)",
            id="a query for each of nothing",
        ),
        pytest.param(
            QUERY.replace("  promql:", '  when: "true"\n  promql:'),
            "spec.when: when and messageExpression go with an expression",
            id="a query with a condition",
        ),
        pytest.param(
            QUERY.replace("    severity", "    messageExpression: '\"a\"'\n    severity"),
            "spec.when: when and messageExpression go with an expression",
            id="a query with words for each",
        ),
        pytest.param(
            CONTAINER.replace("legacy-cipher", "legacy/cipher"), "metadata.name: 'legacy/cipher'", id="a name of a path"
        ),
        pytest.param(
            CONTAINER.replace("  container:", "  promql:\n    query: up\n  container:"),
            "spec.expression: give one of expression, promql and container",
            id="two ways to answer",
        ),
    ],
)
def test_what_a_query_or_container_may_not_say(text: str, error: str) -> None:
    """Said when it is written."""
    with pytest.raises(DeclarativeError, match=re.escape(error)):
        check(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(QUERY.replace("query: up", f"query: {'u' * 4096}"), id="the longest query"),
        pytest.param(QUERY.replace("query: up", "query: u"), id="the shortest query"),
        pytest.param(CONTAINER.replace("image:", "timeoutSeconds: 1\n    image:"), id="the least time"),
        pytest.param(CONTAINER.replace("image:", "timeoutSeconds: 300\n    image:"), id="the most time"),
        pytest.param(TEXT.replace("IngressLegacyCipher", "X" * 256), id="the longest name of a risk"),
        pytest.param(QUERY.replace("legacy-cipher", "legacy/cipher"), id="a name of a path, of what is no container's"),
    ],
)
def test_what_is_just_taken(text: str) -> None:
    """Limits refuse what is beyond them, and nothing else."""
    assert check(text).component == "ingress"


@pytest.mark.parametrize(
    ("count", "end"),
    [
        pytest.param(1, "m0 offers RC4, which 5.2.0 lacks.", id="one"),
        pytest.param(5, "m4 offers RC4, which 5.2.0 lacks.", id="as many as are shown"),
        pytest.param(6, "m4 offers RC4, which 5.2.0 lacks. And 1 more.", id="one more"),
    ],
)
def test_how_many_objects_have_their_own_words(count: int, end: str) -> None:
    """Five, then how many more."""
    (found,) = findings(TEXT, *(config_map(f"m{index}", {"ciphers": "RC4"}) for index in range(count)))
    assert found.message.endswith(end)


OWN = 'messageExpression: object.metadata.name + " offers RC4, which " + update.target + " lacks."'


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param('messageExpression: object.data["nothing"]', "(no message: ", id="words that fail"),
        pytest.param(
            f"""messageExpression: '"{"a" * 5121}"'""",
            "(no message: CelError: it has 5121",
            id="more words than are shown",
        ),
        pytest.param("messageExpression: '\"\"'", "A router offers a cipher that the target lacks.", id="no words"),
    ],
)
def test_a_risk_without_words_of_its_own_applies_all_the_same(words: str, message: str) -> None:
    """That they could not be made is no reason to keep it back."""
    assert OWN in TEXT
    (found,) = findings(TEXT.replace(OWN, words), RC4)
    assert found.applies.value == "True"
    assert found.message.startswith(message)


def test_what_cannot_be_told_of_a_whole_list_names_no_object() -> None:
    """Without `for` a finding has no object; a result that is not a boolean is Unknown."""
    text = PLAIN.replace(FOR + EXPRESSION, "  expression: routers[0].data['ciphers']\n")
    (found,) = findings(text, RC4)
    assert (found.applies.value, found.resources) == ("Unknown", ())
    assert "the expression failed: CelError: the expression's value is 'AES,RC4', not true or false" in found.message


@pytest.mark.parametrize(
    ("source", "target", "result"),
    [
        ("5.0.0", "5.2.0", "Clear"),
        ("5.0.0", "5.2.0-rc.1", "Clear"),
        ("4.22.1", "5.2.0", "Skipped"),
        ("5.0.0", "5.1.9", "Skipped"),
    ],
)
def test_for_which_updates(source: str, target: str, result: str) -> None:
    """A check outside its ranges is skipped, not clear."""
    found = check()
    outcome = run_check(found, Snapshot(objects=dict.fromkeys(found.reads, ())), context(source, target))
    assert result == outcome.result


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("  component: ingress\n", "", "line 7: spec: Object missing required field `component`"),
        ("  sources:", "  source:", "line 7: spec: Object contains unknown field `source`"),
        (
            "severity: critical",
            "severity: fatal",
            "line 23: spec.risk.severity: Invalid enum value 'fatal'; use one of critical, warning, info",
        ),
        ("version: v1\n", "version: 1\n", "line 13: spec.reads[0].version: Expected `str`, got `int`"),
        ("fields: [data]", "fields: []", "line 16: spec.reads[0].fields: list the fields that the check needs"),
        (
            "kind: ConfigMap",
            "kind: Frob",
            "line 12: spec.reads[0]: kind 'Frob' is not a kind that runup knows (APIRequestCount",
        ),
        ("    kind: ConfigMap\n", "", "line 12: spec.reads[0]: give a kind, one of APIRequestCount"),
        ("    fields: [data]\n", "", "line 12: spec.reads[0].fields: list the fields that the check needs"),
        ("name: routers", "name: object", "line 12: spec.reads[0].name: 'object' cannot be a variable"),
        ("for: routers", "for: pods", "line 17: spec.for: 'pods' is not one of the reads (routers)"),
        ("IngressLegacyCipher", "ingress_cipher", "line 20: spec.risk.name: 'ingress_cipher' does not match"),
        (
            "    severity",
            "    url: ftp://x\n    severity",
            "line 23: spec.risk.url: 'ftp://x' is not an http or https URL",
        ),
        ("IngressLegacyCipher", "X" * 257, f"line 20: spec.risk.name: '{'X' * 256}' does not match"),
        ("A router offers a cipher that the target lacks.", '""', "line 21: spec.risk.message: is missing"),
        (
            "  for: routers",
            "  - {name: routers, kind: Pod, fields: [spec]}\n  for: routers",
            "line 11: spec.reads: two of them have one name",
        ),
        ("name: routers", "name: update", "line 12: spec.reads[0].name: 'update' cannot be a variable"),
        ("fields: [data]", "fields: [data..x]", "line 16: spec.reads[0].fields: list the fields that the check needs"),
        ('">=5.0 <5.2"', "5.x", "line 9: spec.sources: '5.x' is not a range of versions"),
        ('.contains("RC4")', '.contains("RC4"', "line 18: spec.expression: "),
        ("expression: object.data", "expression: objekt.data", "line 18: spec.expression: "),
        (EXPRESSION, "  expression: size(object.data)\n", "line 18: spec.expression: is a int, expected a bool"),
        (EXPRESSION, "", "line 7: spec.expression: give one of expression, promql and container"),
        ("kind: PreflightCheck", "kind: PrefligthCheck", f"line 2: kind: {CLASS}"),
    ],
    ids=lambda value: value[:60] if value.startswith("line") else "",
)
def test_errors_name_file_line_and_field(old: str, new: str, error: str) -> None:
    """The check's author sees where to look."""
    assert old in TEXT
    text = TEXT.replace(old, new, 1)
    with pytest.raises(DeclarativeError) as caught:
        check(text)
    assert str(caught.value).startswith(f"{FILE}, {error}")


@pytest.mark.parametrize(
    ("read", "group", "version", "plural"),
    [
        pytest.param("kind: Node", "", "v1", "nodes", id="of the core"),
        pytest.param("kind: ClusterOperator", "config.openshift.io", "v1", "clusteroperators", id="of another group"),
        pytest.param("resource: pods", "", "v1", "pods", id="a plural"),
        pytest.param(
            "group: policy\n    resource: poddisruptionbudgets",
            "policy",
            "v1",
            "poddisruptionbudgets",
            id="with its group",
        ),
        pytest.param(
            "kind: Deployment\n    group: apps\n    version: v2", "apps", "v2", "deployments", id="of a version"
        ),
        pytest.param(
            "kind: Frob\n    group: a.example\n    version: v1\n    resource: frobs",
            "a.example",
            "v1",
            "frobs",
            id="unknown",
        ),
    ],
)
def test_what_is_known_of_a_kind_need_not_be_said(read: str, group: str, version: str, plural: str) -> None:
    """A kind alone is enough; whatever is said counts."""
    [found] = check(TEXT.replace("    version: v1\n    kind: ConfigMap\n", f"    {read}\n")).reads
    assert isinstance(found, Read)
    assert (found.group, found.version, found.plural) == (group, version, plural)


@pytest.mark.parametrize(
    ("read", "wants"),
    [
        pytest.param("kind: Frob", "give version and resource (the plural) too", id="a kind"),
        pytest.param("kind: Frob\n    version: v1", "give resource (the plural) too", id="a kind and a version"),
        pytest.param("group: a.example\n    resource: frobs", "give version too", id="a plural"),
    ],
)
def test_what_is_not_known_of_a_kind_is_asked_for(read: str, wants: str) -> None:
    """The error says what is missing, and what would have been known."""
    with pytest.raises(DeclarativeError) as caught:
        check(TEXT.replace("    version: v1\n    kind: ConfigMap\n", f"    {read}\n"))
    assert wants in str(caught.value)
    assert "PodDisruptionBudget" in str(caught.value)


FILTERS = Filters(profile="self-managed-high-availability", feature_set="", gates=frozenset())


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (TEXT, ["legacy-cipher"]),
        (TEXT.replace("self-managed-high-availability", "hypershift"), []),
        (TEXT.replace("  annotations:\n", "  annotations:\n    release.openshift.io/feature-gate: Frob\n"), []),
        (TEXT.replace("include.release.openshift.io/", "example.com/"), ["legacy-cipher"]),
        (TEXT.replace("  component: ingress\n", ""), ["legacy-cipher"]),
        ("a: [", ["preflight-checks/x.yaml"]),
        (TEXT + "---\n" + TEXT.replace("legacy-cipher", "another"), ["legacy-cipher", "another"]),
    ],
    ids=[
        "included",
        "for another profile",
        "behind a gate",
        "for no profile",
        "unusable",
        "no YAML",
        "two in one file",
    ],
)
def test_the_checks_of_a_release(text: str, names: list[str]) -> None:
    """The rules of manifests decide which checks a cluster gets; one that cannot be used is Unknown, never absent."""
    checks = declared_checks({"preflight-checks/x.yaml": text}, FILTERS)
    assert names == [found.name for found in checks]


def test_a_check_for_no_profile_says_what_is_missing() -> None:
    """It would run nowhere, so nobody would miss what it might have found."""
    text = TEXT.replace("include.release.openshift.io/", "example.com/")
    (never,) = declared_checks({"preflight-checks/x.yaml": text}, FILTERS)
    (finding,) = run_check(never, Snapshot(), context()).findings
    assert finding.name == "PreflightCheckUnusable-legacy-cipher"
    assert "preflight-checks/x.yaml: metadata.annotations names no profile" in finding.message
    assert 'include.release.openshift.io/<profile>: "true"' in finding.message


def test_an_unusable_check_has_a_risk() -> None:
    """The administrator sees which file, and can accept that it was not evaluated."""
    (broken,) = declared_checks({"preflight-checks/x.yaml": TEXT.replace("  component: ingress\n", "")}, FILTERS)
    (finding,) = run_check(broken, Snapshot(), context()).findings
    assert finding.name == "PreflightCheckUnusable-legacy-cipher"
    assert "preflight-checks/x.yaml, line 7: spec: Object missing required field `component`" in finding.message


@pytest.mark.parametrize(
    ("text", "version", "inside"),
    [
        ("", "1.2.3", True),
        (">=5.0.0 <5.2.0", "5.1.9", True),
        (">=5.0.0, <5.2.0", "5.2.0", False),
        (">= 5.0 < 5.2", "5.0.0", True),
        ("5.1.0 || =5.3.0", "5.3.0", True),
        ("5.1.0||5.3.0", "5.2.0", False),
        (">=5.2.0", "5.2.0-rc.1", False),
        (">=5.2.0-0", "5.2.0-rc.1", True),
        ("<=4.22", "4.22.0", True),
        (">4.22.0", "4.22.0", False),
    ],
)
def test_ranges(text: str, version: str, inside: bool) -> None:
    """Comparators next to each other must all hold, alternatives are parted by ||, order is SemVer's."""
    assert inside == (Version(version) in parse_range(text))


@pytest.mark.parametrize("text", ["~5.0", "5.x", ">=", ">=5.0.0 <", "||", "5.0.0 ||", "new", ">=5.0.0 ? <6"])
def test_ranges_that_are_none(text: str) -> None:
    """A range that we do not understand is no range, rather than one that takes everything."""
    with pytest.raises(RangeError):
        parse_range(text)


def test_only_the_named_fields_are_kept() -> None:
    """Fields next to a named one are not in memory, what the object lacks is absent, and metadata is always there."""
    kind = shape(("spec.nodeName", "status"))
    pod = b'{"metadata":{"name":"a"},"spec":{"nodeName":"n","containers":[{"image":"x"}]},"status":{"phase":"Running"}}'
    assert as_dict(codec.decode(kind, pod)) == {
        "metadata": {"name": "a"},
        "spec": {"nodeName": "n"},
        "status": {"phase": "Running"},
    }
    assert as_dict(codec.decode(kind, b'{"metadata":{"name":"a"},"spec":null}')) == {
        "metadata": {"name": "a"},
        "spec": None,
    }


def test_an_object_with_owners_and_finalizers_is_one_for_cel() -> None:
    """Metadata has lists; all that an expression is given are values that CEL knows."""
    found = check()
    (read,) = (read for read in found.reads if isinstance(read, Read))
    metadata = {
        "name": "web",
        "creationTimestamp": "2026-01-14T09:30:00Z",
        "ownerReferences": [{"kind": "ReplicaSet", "name": "web"}],
        "finalizers": ["a/b"],
    }
    (obj,) = objects(read, {"metadata": metadata, "data": {}})
    assert as_dict(obj)["metadata"] == metadata
    outcome = run_check(found, Snapshot(objects={read: (obj,)}), context())
    assert "Non-CEL value" not in " ".join(finding.message for finding in outcome.findings)


def test_a_shorter_path_keeps_all_below_it() -> None:
    """`spec` and `spec.nodeName` together mean `spec`, in either order."""
    for fields in (("spec", "spec.nodeName"), ("spec.nodeName", "spec")):
        assert as_dict(codec.decode(shape(fields), b'{"spec":{"x":1}}'))["spec"] == {"x": 1}


@pytest.mark.parametrize(
    ("read", "kind"),
    [
        pytest.param("resource: configmaps", "ConfigMap", id="a plural that is known"),
        pytest.param("group: apps\n    resource: deployments", "Deployment", id="of a group"),
        pytest.param(
            "group: example.com\n    resource: configmaps", "configmaps", id="the same plural of another group"
        ),
        pytest.param("resource: frobs", "frobs", id="a plural that nobody knows"),
    ],
)
def test_what_is_read_by_its_plural_is_named_by_its_kind(read: str, kind: str) -> None:
    """Where the kind is not known the plural says what is meant."""
    [found] = findings(TEXT.replace("kind: ConfigMap", read), RC4)
    assert [(resource.kind, resource.name) for resource in found.resources] == [(kind, "old")]
