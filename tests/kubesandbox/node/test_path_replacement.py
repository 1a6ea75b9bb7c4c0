"""The plain runner: container paths in arguments become folders of the host."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubesandbox.node.runner_interface import Bind
from kubesandbox.node.runners import replace_paths

# A data folder below /tmp, which is itself mounted: what was replaced must not be replaced again.
BINDS = (Bind(Path("/tmp/sb/pods/v"), "/tmp"), Bind(Path("/tmp/sb/nodes/n/etc/cvo"), "/etc/cvo"))


@pytest.mark.parametrize(
    ("text", "result"),
    [
        pytest.param("/etc/cvo/report.json", "/tmp/sb/nodes/n/etc/cvo/report.json", id="below a mount"),
        pytest.param("--file=/etc/cvo", "--file=/tmp/sb/nodes/n/etc/cvo", id="in a flag"),
        pytest.param("/etc/cvo2/x", "/etc/cvo2/x", id="a longer name is another path"),
        pytest.param("/var/etc/cvo", "/var/etc/cvo", id="inside another path"),
        pytest.param("/tmp/x:/etc/cvo", "/tmp/sb/pods/v/x:/tmp/sb/nodes/n/etc/cvo", id="several, each once"),
        pytest.param("text", "text", id="no path"),
    ],
)
def test_replacement(text: str, result: str) -> None:
    """Whole paths and starts of paths, once."""
    assert replace_paths(text, BINDS) == result
