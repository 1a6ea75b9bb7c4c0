"""Small requests that represent much: aliases of YAML, copies of a JSON patch, warnings about every pair."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest

from kubesandbox.apiserver.http.body import load_yaml
from kubesandbox.apiserver.http.messages import Warnings
from kubesandbox.apiserver.patch.json import MAX_COPIED_BYTES, apply_json_patch
from kubesandbox.apiserver.status_errors import ApiError
from kubesandbox.apiserver.validation.write_warnings import warnings_of_write

PODS: Any = SimpleNamespace(custom=False, resource="pods", kind="Pod")


def doubling(levels: int, width: int = 10) -> bytes:
    """YAML with `width` to the power of `levels` values."""
    rows = ["a0: &a0 [" + ", ".join("1" * width) + "]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * width)}]" for n in range(1, levels)]
    return "\n".join(rows).encode()


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        pytest.param(doubling(2), "", id="a hundred values"),
        pytest.param(doubling(9), "document contains excessive aliasing", id="a billion values"),
        pytest.param(b"a: &a [*a]", "anchor value contains itself", id="a list in itself"),
        pytest.param(b"a: &a {b: {c: *a}}", "anchor value contains itself", id="an object in itself"),
        # go-yaml: at most 99 % of up to 400,000 values, at most 100 of them in any case.
        pytest.param(b"a: &a [1]\nb: [" + b"*a, " * 50 + b"1]", "", id="a hundred aliased values"),
        pytest.param(b"a: [" + b"1, " * 60_000 + b"1]\nb: &b [1]\nc: [*b, *b]", "", id="few aliases in much"),
    ],
)
def test_aliases_of_yaml(text: bytes, refused: str) -> None:
    """As many as go-yaml allows."""
    if not refused:
        assert load_yaml(text)
        return
    with pytest.raises(ValueError, match=refused):
        load_yaml(text)


def test_copies_of_a_json_patch() -> None:
    """Three mebibytes in all, as the real server has it."""
    text = "x" * (MAX_COPIED_BYTES // 3 - 2)
    copies = [{"op": "copy", "from": "/a", "path": f"/b{n}"} for n in range(3)]
    assert len(apply_json_patch({"a": text}, copies)) == 4
    with pytest.raises(ApiError, match="the server rejected our request") as caught:
        apply_json_patch({"a": text, "c": ""}, [*copies, {"op": "copy", "from": "/c", "path": "/d"}])
    assert caught.value.code == 422
    doubles = [{"op": "copy", "from": "", "path": f"/n{n}"} for n in range(200)]
    with pytest.raises(ApiError):
        apply_json_patch({"a": "x"}, doubles)


@pytest.mark.parametrize(
    ("texts", "sent"),
    [
        pytest.param(["a", "b", "a", ""], ["a", "b"], id="each once"),
        pytest.param(["a" * 4096], ["a" * 4096], id="just room"),
        pytest.param(["a" * 4000, "b" * 97], ["a" * 256, "b" * 97], id="too much: each is cut"),
        pytest.param(
            [f"{n:04}" + "c" * 300 for n in range(100)], [f"{n:04}" + "c" * 252 for n in range(16)], id="many"
        ),
    ],
)
def test_room_for_warnings(texts: list[str], sent: list[str]) -> None:
    """4096 characters; what is beyond them is not even asked for."""
    warnings = Warnings()
    warnings.extend(texts)
    assert warnings.sent() == sent


@pytest.mark.slow
def test_warnings_that_have_no_room_are_not_made() -> None:
    """A pod with 20,000 containers that all have the same port."""
    containers = [{"name": f"c{n}", "ports": [{"containerPort": 80, "name": "p"}]} for n in range(20_000)]
    warnings = Warnings()
    warnings.extend(warnings_of_write(PODS, {"spec": {"containers": containers}}, None))
    assert warnings.is_full
    assert warnings[0] == "spec.containers[1].ports[0]: duplicate port definition with spec.containers[0].ports[0]"


def pairs(ports: list[tuple[str, dict[str, Any]]]) -> list[str]:
    """What clashes, by comparing every two (pkg/api/pod/warnings.go)."""
    found = []
    for index, (path, port) in enumerate(ports):
        for other_path, other in ports[:index]:
            if port["containerPort"] != other["containerPort"]:
                continue
            ours, theirs = ((each.get("hostIP", ""), each.get("hostPort", 0)) for each in (port, other))
            if ours == theirs:
                found.append(f"{path}: duplicate port definition with {other_path}")
            elif not ours[1] or not theirs[1]:
                found.append(f"{path}: overlapping port definition with {other_path}")
            elif ours[1] == theirs[1] and bool(ours[0]) != bool(theirs[0]):
                found.append(f"{path}: dangerously ambiguous port definition with {other_path}")
    return found


def test_ports_that_clash_are_those_of_every_pair() -> None:
    """In the same order."""
    rng = random.Random(5)
    for _ in range(300):
        ports = [
            {
                "containerPort": rng.choice((80, 81)),
                "hostPort": rng.choice((0, 1, 2)),
                "hostIP": rng.choice(("", "a", "b")),
            }
            for _ in range(rng.randint(0, 9))
        ]
        spec = {"containers": [{"ports": [port]} for port in ports]}
        paths = [(f"spec.containers[{n}].ports[0]", port) for n, port in enumerate(ports)]
        assert list(warnings_of_write(PODS, {"spec": spec}, None)) == pairs(paths)


@pytest.mark.parametrize(("length", "is_read"), [(1022, True), (1023, False)])
def test_a_long_key_is_refused_as_in_yaml(length: int, is_read: bool) -> None:
    """JSON that was sent as YAML, too: `python -m bench random_requests` found it on kube-apiserver."""
    body = b'{"spec": {"%s": 1}}' % (b"k" * length)
    if is_read:
        assert load_yaml(body) == {"spec": {"k" * length: 1}}
    else:
        with pytest.raises(ValueError, match="did not find expected ',' or '}'"):
            load_yaml(body)
