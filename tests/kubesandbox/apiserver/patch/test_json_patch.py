"""JSON patches beyond the contract's rows: indices from the end, and pointers that lead nowhere."""

from __future__ import annotations

from typing import Any

import pytest

from kubesandbox.apiserver.patch.json import apply_json_patch
from kubesandbox.apiserver.status_errors import ApiError


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        pytest.param({"op": "move", "from": "/0", "path": "/-1"}, [2, {"a": 3}, 1], id="moves to the end"),
        pytest.param({"op": "remove", "path": "/-1"}, [1, 2], id="removes the last item"),
        pytest.param({"op": "copy", "from": "/-1", "path": "/0"}, [{"a": 3}, 1, 2, {"a": 3}], id="copies an item"),
        pytest.param({"op": "replace", "path": "/2/b", "value": 4}, [1, 2, {"a": 3, "b": 4}], id="adds a field"),
        pytest.param({"op": "replace", "path": "", "value": {}}, {}, id="replaces the whole object"),
    ],
)
def test_applies_what_the_servers_library_accepts(operation: dict[str, Any], expected: Any) -> None:
    """The original stays as it is."""
    words = [1, 2, {"a": 3}]
    assert apply_json_patch(words, [operation]) == expected
    assert words == [1, 2, {"a": 3}]


@pytest.mark.parametrize("path", ["/--1", "/-4", "/01", "/1/a", "/~2", "1", "/3", "/-"])
def test_rejects_a_path_that_leads_nowhere(path: str) -> None:
    """The answer is the server's, whatever is wrong with the pointer."""
    with pytest.raises(ApiError, match="the server rejected our request"):
        apply_json_patch([1, 2, {"a": 3}], [{"op": "replace", "path": path, "value": 0}])
