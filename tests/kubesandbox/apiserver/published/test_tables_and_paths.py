"""Ages as kubectl shortens them, the cells of tables, and JSONPath as columns write it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from kubesandbox.apiserver.published.tables.cells import PathError, find_values, human_duration
from kubesandbox.apiserver.published.tables.columns import Tables
from kubesandbox.apiserver.served_kinds import BUILTIN, Kind

NOW = datetime(2026, 1, 2, tzinfo=UTC)
MINUTE, HOUR, DAY = 60, 3600, 86400
POD = next(kind for kind in BUILTIN if kind.kind == "Pod")
CONTAINERS = {"spec": {"containers": [{"name": "a", "port": 1, "on": True}, {"name": "b", "port": 2}]}}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-2, "<invalid>"), (-1, "0s"), (0, "0s"), (119, "119s"), (120, "2m"), (150, "2m30s"), (10 * MINUTE + 5, "10m"),
        (179 * MINUTE, "179m"), (3 * HOUR, "3h"), (3 * HOUR + 5 * MINUTE, "3h5m"), (8 * HOUR + 5 * MINUTE, "8h"),
        (47 * HOUR, "47h"), (2 * DAY, "2d"), (2 * DAY + 3 * HOUR, "2d3h"), (8 * DAY + HOUR, "8d"), (729 * DAY, "729d"),
        (730 * DAY, "2y"), (830 * DAY, "2y100d"), (3000 * DAY, "8y"),
    ],
)  # fmt: skip
def test_ages(seconds: float, text: str) -> None:
    """apimachinery's HumanDuration, at its edges."""
    assert human_duration(seconds) == text


def day_old_pod(status: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    """A pod of two containers, a day old."""
    created = {"name": "p", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {"metadata": {**created, **metadata}, "spec": {"containers": [{}, {}]}, "status": status}


@pytest.mark.parametrize(
    ("obj", "cells"),
    [
        pytest.param(day_old_pod({}), ["p", "0/2", "Pending", "0", "24h"], id="a new pod is pending"),
        pytest.param(
            day_old_pod({
                "phase": "Running",
                "containerStatuses": [
                    {"ready": True, "restartCount": 2},
                    {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "restartCount": 1},
                ],
            }),
            ["p", "1/2", "CrashLoopBackOff", "3", "24h"],
            id="a waiting container speaks for the pod",
        ),
        pytest.param(
            day_old_pod({"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 3}}}]}),
            ["p", "0/2", "ExitCode:3", "0", "24h"],
            id="an exit code without a reason",
        ),
        pytest.param(
            day_old_pod({"phase": "Running"}, deletionTimestamp="2026-01-02T00:00:00Z"),
            ["p", "0/2", "Terminating", "0", "24h"],
            id="a deleted pod is terminating",
        ),
    ],
)  # fmt: skip
def test_rows_of_pods(obj: dict[str, Any], cells: list[Any]) -> None:
    """Name, ready, status, restarts, age; address, node and gates for those who ask for more."""
    assert Tables().cells(POD, obj, NOW) == [*cells, "<none>", "<none>", "<none>", "<none>"]


def custom(*columns: dict[str, Any]) -> Kind:
    """A custom kind with printer columns."""
    crd = {"spec": {"versions": [{"name": "v1", "additionalPrinterColumns": list(columns)}]}}
    return Kind(group="x.io", version="v1", kind="Thing", plural="things", crd=crd)


@pytest.mark.parametrize(
    ("type_", "value", "cell"),
    [
        pytest.param("string", "text", "text", id="text"),
        pytest.param("string", True, "true", id="a boolean as text"),
        pytest.param("string", {"a": [1]}, '{"a":[1]}', id="a structure as JSON"),
        pytest.param("integer", 3, 3, id="a number stays one"),
        pytest.param("date", "2026-01-01T23:58:00Z", "2m", id="a time as an age"),
        pytest.param("date", "yesterday", "<invalid>", id="no time"),
    ],
)
def test_columns_of_custom_kinds(type_: str, value: Any, cell: Any) -> None:
    """A column's type decides how a value is shown."""
    kind = custom({"name": "V", "type": type_, "jsonPath": ".spec.v"})
    assert Tables().cells(kind, {"metadata": {"name": "t"}, "spec": {"v": value}}, NOW) == ["t", cell]


def test_a_custom_kind_without_columns_has_name_and_age() -> None:
    """Tests columns that the definition does not describe."""
    assert [column["name"] for column in Tables().columns(custom())] == ["Name", "Age"]


def test_a_path_that_leads_nowhere_is_an_empty_cell() -> None:
    """Null, never an error."""
    kind = custom({"name": "V", "type": "string", "jsonPath": ".spec.other"})
    assert Tables().cells(kind, {"metadata": {"name": "t"}}, NOW) == ["t", None]


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.containers[0].name", ["a"]),
        (".spec.containers[-1].name", ["b"]),
        (".spec.containers[*].name", ["a", "b"]),
        ("{.spec.containers[?(@.name=='b')].port}", [2]),
        ('.spec.containers[?(@.port!=2)]["name"]', ["a"]),
        (".spec.containers[?(@.on==true)].name", ["a"]),
        (".spec.containers[?(@.on)].name", ["a"]),
        (".spec.containers[7].name", []),
        (".status.absent", []),
        ("spec.containers[1].port", [2]),
    ],
)
def test_paths(path: str, found: list[Any]) -> None:
    """Members, indexes, wildcards and filters; what is absent is nothing."""
    assert find_values(path, CONTAINERS) == found


def test_an_escaped_dot_is_part_of_a_name() -> None:
    """As labels and annotations need it."""
    assert find_values(r".metadata.labels.app\.io/name", {"metadata": {"labels": {"app.io/name": "x"}}}) == ["x"]


@pytest.mark.parametrize("path", [".a[", ".a[?(@.b)", ".a[x]"])
def test_a_path_that_cannot_be_read_is_an_error(path: str) -> None:
    """It names the path."""
    with pytest.raises(PathError, match="cannot be read"):
        find_values(path, {})
