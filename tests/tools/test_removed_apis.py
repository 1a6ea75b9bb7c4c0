"""The table of removed API versions is what Kubernetes' modules say of themselves."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tools.removed_apis import Registered, Unavailable, made, registered, removals, text

from tools import removed_apis

OLD, NEW, STAYS = ("g", "v1beta1", "Old"), ("g", "v1beta1", "New"), ("g", "v1", "Stays")
REGISTER = 'package v1beta1\nconst GroupName = "g.example"\nfunc add() { known(&Widget{}, &WidgetList{}, &Scale{}) }\n'
METHOD = """package v1beta1
func (in *Widget) APILifecycleDeprecated() (major, minor int) {
\treturn 1, 20
}
func (in *Widget) APILifecycleRemoved() (major, minor int) {
\treturn 1, 25
}
"""


@pytest.mark.parametrize(
    ("modules", "dated", "found"),
    [
        pytest.param({36: {OLD: 35}, 37: {OLD: 38}}, {}, {OLD: 38}, id="the newest module's word counts"),
        pytest.param({36: {OLD: 39}, 37: {}}, {}, {OLD: 37}, id="what a module lacks is gone, whatever was planned"),
        pytest.param({36: {OLD: 30}, 37: {}}, {}, {OLD: 30}, id="its type stayed for longer"),
        pytest.param({36: {OLD: None}, 37: {OLD: None}}, {}, {}, id="nothing said"),
        pytest.param({36: {STAYS: None}, 37: {STAYS: None}}, {OLD: 22}, {OLD: 22}, id="of another module"),
        pytest.param({36: {OLD: 33}, 37: {}}, {OLD: 31}, {OLD: 31}, id="not served before its date"),
        pytest.param({37: {NEW: 43}}, {}, {NEW: 43}, id="planned"),
    ],
)
def test_when_a_kind_goes(modules: dict[int, Registered], dated: dict[removed_apis.Kind, int], found: object) -> None:
    """By the method, by the module that lacks it, or by what is dated: whichever comes first."""
    assert removals(modules, dated) == found


def test_what_a_module_says(tmp_path: Path) -> None:
    """Its objects with the minor version of the method; lists and bodies of subresources are none."""
    folder = tmp_path / "widgets" / "v1beta1"
    folder.mkdir(parents=True)
    (folder / "register.go").write_text(REGISTER)
    assert removed_apis.read_module(tmp_path) == {("g.example", "v1beta1", "Widget"): None}
    (folder / "zz_generated.prerelease-lifecycle.go").write_text(METHOD)
    assert removed_apis.read_module(tmp_path) == {("g.example", "v1beta1", "Widget"): 25}


def test_what_is_planned_stands_apart() -> None:
    """Each minor version up to the newest has a row."""
    told = text({OLD: 20, NEW: 43}, 37).partition("planned:")
    assert told[0].count('  "1.') == 37 - 16 + 1
    assert "New" not in told[0]
    assert "New" in told[2]


def test_without_go_it_says_what_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing is kept."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match=r"k8s.io/api@v0.37.2 needs the go command"):
        registered("v0.37.2", {"XDG_CACHE_HOME": str(tmp_path)})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_table_is_current() -> None:
    """`python tools/removed_apis.py` writes it."""
    try:
        wanted = made()
    except Unavailable as error:
        if os.environ.get("RUNUP_E2E") == "required":
            raise
        pytest.skip(str(error))
    assert removed_apis.OUTPUT.read_text() == wanted
