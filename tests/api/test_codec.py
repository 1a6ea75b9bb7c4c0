"""Bytes in, wire types out, and what must never get lost on the way."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kubekit.api import codec
from kubekit.api.meta_v1 import LabelSelector, LabelSelectorRequirement, Status
from runup.api.config_v1 import ClusterVersion, Update


def test_camel_case_names_decode_to_their_fields() -> None:
    """`clusterID` and `desiredUpdate.acceptRisks` are spelled as the API spells them."""
    cv = codec.decode(
        ClusterVersion,
        b'{"spec":{"clusterID":"a","desiredUpdate":{"mode":"Preflight","acceptRisks":[{"name":"A"}]}}}',
    )
    assert cv.spec.cluster_id == "a"
    assert cv.spec.desired_update is not None
    assert cv.spec.desired_update.mode == "Preflight"
    assert [risk.name for risk in cv.spec.desired_update.accept_risks] == ["A"]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"metadata":{"creationTimestamp":null,"labels":null}}', id="null metadata members"),
        pytest.param(b'{"status":{"conditions":null,"history":null}}', id="null lists"),
        pytest.param(b'{"spec":{"desiredUpdate":{"acceptRisks":null}}}', id="null inside a struct"),
    ],
)
def test_null_means_left_out(body: bytes) -> None:
    """Go writes empty lists and times as null; they decode as if they were not there."""
    decoded = codec.decode(ClusterVersion, body)
    assert decoded.metadata.labels == {}
    assert decoded.status.conditions == ()


def test_available_updates_keep_null_apart_from_empty() -> None:
    """Null means that the advice is unknown; an empty list means that no updates exist."""
    assert codec.decode(ClusterVersion, b'{"status":{"availableUpdates":null}}').status.available_updates is None
    assert codec.decode(ClusterVersion, b'{"status":{"availableUpdates":[]}}').status.available_updates == ()


@pytest.mark.parametrize(
    ("body", "named"),
    [
        pytest.param(b'{"spec":{"channel":5}}', "$.spec.channel", id="wrong type names the field"),
        pytest.param(b'{"spec":', "truncated", id="cut off"),
        pytest.param(b"[]", "object", id="not an object"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(body: bytes, named: str) -> None:
    """A DecodeError says what is wrong, so that the caller can say it to a person."""
    with pytest.raises(codec.DecodeError, match=None) as caught:
        codec.decode(ClusterVersion, body)
    assert named in str(caught.value)


def test_defaults_are_left_out_on_the_wire() -> None:
    """An apply must not claim fields that nobody set."""
    assert codec.to_dict(Update(version="5.2.0", mode="Preflight")) == {"version": "5.2.0", "mode": "Preflight"}


def test_times_are_utc_and_written_as_the_api_writes_them() -> None:
    """RFC 3339 with a Z, whole seconds."""
    when = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert codec.encode(when) == b'"2026-01-02T03:04:05Z"'


def test_status_details_carry_causes() -> None:
    """A 422 names its fields."""
    status = codec.decode(
        Status, b'{"kind":"Status","code":422,"details":{"causes":[{"reason":"FieldValueRequired","field":"spec"}]}}'
    )
    assert status.details is not None
    assert status.details.causes[0].field == "spec"


@pytest.mark.parametrize(
    ("selector", "labels", "expected"),
    [
        pytest.param(LabelSelector(), {}, True, id="an empty selector selects everything"),
        pytest.param(LabelSelector(match_labels={"a": "1"}), {"a": "1", "b": "2"}, True, id="labels match"),
        pytest.param(LabelSelector(match_labels={"a": "1"}), {"a": "2"}, False, id="another value"),
        pytest.param(
            LabelSelector(match_expressions=(LabelSelectorRequirement(key="a", operator="In", values=("1",)),)),
            {},
            False,
            id="In needs the key",
        ),
        pytest.param(
            LabelSelector(match_expressions=(LabelSelectorRequirement(key="a", operator="NotIn", values=("1",)),)),
            {},
            True,
            id="NotIn is satisfied by absence",
        ),
        pytest.param(
            LabelSelector(match_expressions=(LabelSelectorRequirement(key="a", operator="Exists"),)),
            {"a": ""},
            True,
            id="Exists looks at the key alone",
        ),
        pytest.param(
            LabelSelector(match_expressions=(LabelSelectorRequirement(key="a", operator="DoesNotExist"),)),
            {"a": ""},
            False,
            id="DoesNotExist looks at the key alone",
        ),
        pytest.param(
            LabelSelector(match_expressions=(LabelSelectorRequirement(key="a", operator="Gt", values=("1",)),)),
            {"a": "2"},
            False,
            id="an unknown operator selects nothing",
        ),
    ],
)
def test_label_selectors(selector: LabelSelector, labels: dict[str, str], expected: bool) -> None:
    """Selectors mean what they mean to the API server."""
    assert selector.matches(labels) is expected


def test_text_that_only_starts_like_json_is_a_decode_error() -> None:
    """`404: Not Found`, as a proxy answers, is reported like any other text that is no JSON."""
    with pytest.raises(codec.DecodeError):
        codec.decode(dict[str, object], b"404: Not Found")


@pytest.mark.parametrize(
    ("body", "identity"),
    [
        pytest.param(
            b'{"metadata":{"namespace":"a","name":"b","resourceVersion":"7","generation":"x"}}',
            ("a", "b", "7"),
            id="whole",
        ),
        pytest.param(b'{"metadata":{"name":7,"namespace":"a"}}', ("a", "", ""), id="a name that is no text"),
        pytest.param(b'{"metadata":[]}', ("", "", ""), id="metadata that is none"),
        pytest.param(b"[]", ("", "", ""), id="no object at all"),
    ],
)
def test_an_object_that_does_not_fit_is_named_as_far_as_it_says(body: bytes, identity: tuple[str, str, str]) -> None:
    """A person can look it up; what cannot be read of its identity either is left out, and never raises."""
    bad = codec.identify_undecodable(body, codec.DecodeError("odd"))
    assert (bad.namespace, bad.name, bad.resource_version) == identity
    assert bad.problem == "odd"


def test_a_long_value_does_not_make_a_long_error() -> None:
    """The decoder quotes the value; the field at the end must survive."""
    body = b'{"status":{"conditions":[{"type":"A","status":"%s"}]}}' % (b"x" * 100_000)
    with pytest.raises(codec.DecodeError) as caught:
        codec.decode(ClusterVersion, body)
    assert len(str(caught.value)) <= codec.LONGEST_WORDS
    assert str(caught.value).endswith("`$.status.conditions[0].status`")


DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"x":' + DEEP + b"}", id="lists in lists beyond what is counted, in a field that nobody reads"),
        pytest.param(b'{"metadata":null,"spec":5,"x":' + DEEP + b"}", id="the same beside a null and a wrong type"),
        pytest.param(b'{"metadata":{"name":"\xff"}}', id="bytes that are no UTF-8"),
        pytest.param(b'{"spec":null,"metadata":{"name":"\xff"}}', id="the same beside a null"),
        pytest.param('{"metadata":{"name":"\ud800"}}', id="half of a surrogate pair in a text"),
    ],
)
def test_what_nobody_can_decode_is_a_decode_error(body: bytes | str) -> None:
    """A reader of untrusted JSON catches one error type; another type would end the reader."""
    with pytest.raises(codec.DecodeError):
        codec.decode(ClusterVersion, body)


def test_a_value_that_is_nested_too_deep_to_convert_is_a_decode_error() -> None:
    """YAML and annotations come as dicts."""
    value: object = None
    for _ in range(100_000):
        value = [value]
    with pytest.raises(codec.DecodeError):
        codec.convert(ClusterVersion, {"spec": {"channel": value}})
