"""What of ClusterVersion's spec cannot be: each field in the API server's form."""

from __future__ import annotations

import pytest

from runup.advice.decide.service import query_for
from runup.api.config_v1 import AcceptRisk, ClusterVersionSpec, Release, Update
from runup.clusterversion.decide import gates, validation

GOOD = "6f1c1a4e-1b5a-4f0e-9d5e-0f2b9f6f7a11"


def of_id(text: str, what: str) -> str:
    """Returns the error about a cluster's ID."""
    return f'spec.clusterID: Invalid value: "{text}": must be {what}'


@pytest.mark.parametrize(
    ("cluster_id", "what"),
    [
        pytest.param(GOOD, "", id="as they are made"),
        pytest.param(GOOD.upper(), "", id="in capitals"),
        pytest.param("", "", id="none"),
        pytest.param(GOOD.replace("-9d5e", "-8d5e"), "", id="the variant's first number"),
        pytest.param(GOOD.replace("-9d5e", "-bd5e"), "", id="the variant's last number"),
        pytest.param(GOOD.replace("-9d5e", "-7d5e"), "an RFC4122-variant UUID", id="a variant before"),
        pytest.param(GOOD.replace("-9d5e", "-cd5e"), "an RFC4122-variant UUID", id="a variant after"),
        pytest.param(GOOD[:-1], "an RFC4122-variant UUID", id="a number too few"),
        pytest.param(GOOD.replace("-4f0e", "-1f0e"), "a version-4 UUID", id="made of a clock"),
        pytest.param(GOOD.replace("-4f0e", "-7f0e"), "a version-4 UUID", id="of version 7"),
    ],
)
def test_the_cluster_s_id(cluster_id: str, what: str) -> None:
    """A random UUID or nothing (RFC 4122, 4.1)."""
    found = validation.errors(ClusterVersionSpec(cluster_id=cluster_id), frozenset())
    assert found == ((of_id(cluster_id, what),) if what else ())


DESIRED = "spec.desiredUpdate"
FORBIDDEN = f"{DESIRED}.acceptRisks: Forbidden: acceptRisks must not be specified"
RISKS = (AcceptRisk(name="R"),)


@pytest.mark.parametrize(
    ("desired", "open_gates", "said"),
    [
        pytest.param(None, (), "", id="nothing is asked for"),
        pytest.param(Update(version="5.0.1"), (), "", id="a version"),
        pytest.param(Update(image="i@sha256:1"), (), "", id="an image"),
        pytest.param(Update(architecture="Multi"), (), "", id="an architecture"),
        pytest.param(Update(accept_risks=RISKS), (gates.ACCEPT_RISKS,), "", id="accepted risks alone"),
        pytest.param(
            Update(version="5.0.1", accept_risks=RISKS), (), FORBIDDEN, id="accepted risks, and a closed gate"
        ),
        pytest.param(
            Update(),
            (),
            f"{DESIRED}: Required value: must specify architecture, version, or image",
            id="an empty request",
        ),
        pytest.param(
            Update(force=True),
            (gates.ACCEPT_RISKS,),
            f"{DESIRED}: Required value: must specify architecture, version, image, or acceptRisks",
            id="an empty request where risks can be accepted",
        ),
        pytest.param(
            Update(version="five"),
            (),
            f'{DESIRED}.version: Invalid value: "five": must be a semantic version (1.2.3[-...])',
            id="no version",
        ),
    ],
)
def test_the_desired_update(desired: Update | None, open_gates: tuple[str, ...], said: str) -> None:
    """Something must be asked for, and it must be what can be."""
    found = validation.errors(ClusterVersionSpec(cluster_id=GOOD, desired_update=desired), frozenset(open_gates))
    assert found == ((said,) if said else ())


@pytest.mark.parametrize(
    ("upstream", "valid"),
    [
        ("", True),
        ("graph", True),
        ("http://host/?q=%zz", True),
        ("1abc:x", False),
        (":x", False),
        ("http://host/%zz", False),
        ("http://host:port/", False),
        ("http://a b/", False),
    ],
)
def test_the_upstream_is_a_url_as_in_go(upstream: str, *, valid: bool) -> None:
    """The rows of tests/kubekit/lang/test_go_urls.py in short."""
    found = validation.errors(ClusterVersionSpec(cluster_id=GOOD, upstream=upstream), frozenset())
    said = f'spec.upstream: Invalid value: "{upstream}": must be a valid URL or empty'
    assert found == (() if valid else (said,))


@pytest.mark.parametrize("form", ["urn:uuid:{}", "{{{}}}"])
def test_a_cluster_id_may_have_the_forms_that_go_parses(form: str) -> None:
    """The query has its canonical form."""
    cluster_id = form.format(GOOD)
    spec = ClusterVersionSpec(cluster_id=cluster_id, channel="c")
    assert validation.errors(spec, frozenset()) == ()
    query = query_for(spec, Release(version="5.0.0", image="i"), configured_url="", architecture="amd64")
    assert query.cluster_id == GOOD


def test_several_are_told_in_the_order_of_the_fields() -> None:
    """As one condition: a list from two on."""
    spec = ClusterVersionSpec(cluster_id="x", upstream="https://[x")
    found = validation.errors(spec, frozenset())
    upstream = 'spec.upstream: Invalid value: "https://[x": must be a valid URL or empty'
    assert found == (upstream, of_id("x", "an RFC4122-variant UUID"))
    several, one = validation.condition(found), validation.condition(found[:1])
    assert several is not None
    assert several.message == f"The cluster version is invalid:\n* {found[0]}\n* {found[1]}\n"
    assert one is not None
    assert one.message == f"The cluster version is invalid: {upstream}"
    assert validation.condition(()) is None
