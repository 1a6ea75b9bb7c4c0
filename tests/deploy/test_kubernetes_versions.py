"""docs/reference/compatibility.md has one row for each version of Kubernetes that can be built."""

from __future__ import annotations

import re

import pytest
from tests.controlplane import build
from tests.install.pages import DOCS

CHOSEN = r"`(?:RUNUP_KUBERNETES=(?P<name>\S+) )?make e2e`"
ROW = re.compile(rf"^\| (?P<server>1\.[0-9.]+) \| (?P<etcd>[0-9.]+) \| {CHOSEN} \|", re.MULTILINE)


def test_the_table_has_what_can_be_built() -> None:
    """The versions of server and etcd that the module of each pins, under the name that chooses it."""
    page = (DOCS / "reference" / "compatibility.md").read_text()
    shown = {row["name"] or "": (row["server"], row["etcd"]) for row in ROW.finditer(page)}
    pinned = {}
    for name in ("", *build.others()):
        environ = {build.KUBERNETES: name}
        etcd = re.search(r"go\.etcd\.io/etcd/server/v3 v([0-9.]+)", build.mod_file(environ).read_text())
        assert etcd is not None
        pinned[name] = (build.version(environ).removeprefix("v"), etcd[1])
    assert shown == pinned


@pytest.mark.parametrize("name", build.others())
def test_each_is_a_folder_of_its_own(name: str) -> None:
    """So that none replaces another; the name of a minor version is that of what it builds."""
    environ = {"HOME": "/home/x", build.KUBERNETES: name}
    assert build.cache(environ) != build.cache({"HOME": "/home/x"})
    if name != "newest":
        assert build.version(environ).startswith(f"v{name}.")


def test_a_version_that_cannot_be_built() -> None:
    """The error names those that can."""
    with pytest.raises(build.Unavailable, match=r"^RUNUP_KUBERNETES=1\.28 is not .*: 1\.29, .*newest"):
        build.mod_file({build.KUBERNETES: "1.28"})
