"""The table of removed API versions is what Kubernetes' modules say about themselves."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tools.removed_apis import Kind, Life, Unavailable, lives, lives_text, made, registered, removals, text

from tools import removed_apis

OLD, NEW, STAYS = ("g", "v1beta1", "Old"), ("g", "v1beta1", "New"), ("g", "v1", "Stays")
REGISTER = 'package v1beta1\nconst GroupName = "g.example"\nfunc add() { known(&Widget{}, &WidgetList{}, &Scale{}) }\n'
METHOD = """package v1beta1
func (in *Widget) APILifecycleIntroduced() (major, minor int) {
\treturn 1, 17
}
func (in *Widget) APILifecycleReplacement() schema.GroupVersionKind {
\treturn schema.GroupVersionKind{Group: "g.example", Version: "v1", Kind: "Widget"}
}
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
def test_when_a_kind_goes(modules: dict[int, dict[Kind, int | None]], dated: dict[Kind, int], found: object) -> None:
    """By the method, by the module that lacks it, or by what is dated: whichever comes first."""
    named = {minor: {kind: Life(removed=each) for kind, each in kinds.items()} for minor, kinds in modules.items()}
    assert removals(named, dated) == found


@pytest.mark.parametrize(
    ("modules", "removed", "replacement"),
    [
        pytest.param({37: {OLD: Life(replacement=STAYS)}}, {}, STAYS, id="as its method says"),
        pytest.param(
            {37: {OLD: Life(replacement=NEW), NEW: Life(replacement=STAYS)}}, {NEW: 40}, STAYS, id="what goes itself"
        ),
        pytest.param({37: {OLD: Life(), ("g", "v1", "Old"): Life()}}, {}, ("g", "v1", "Old"), id="none is named"),
        pytest.param({37: {OLD: Life()}}, {}, None, id="nothing takes its place"),
        pytest.param(
            {37: {("g", "v1alpha3", "Old"): Life(), OLD: Life()}},
            {},
            None,
            id="an alpha version takes no beta's place",
        ),
        pytest.param({36: {OLD: Life(replacement=STAYS)}, 37: {}}, {OLD: 37}, STAYS, id="gone since"),
        pytest.param(
            {37: {OLD: Life(replacement=("g", "v1", "OldList"))}}, {}, ("g", "v1", "Old"), id="a list is named"
        ),
    ],
)
def test_what_takes_its_place(
    modules: dict[int, dict[Kind, Life]], removed: dict[Kind, int], replacement: Kind | None
) -> None:
    """The replacement is one that stays."""
    assert lives(modules, {OLD: 43, **removed})[OLD].replacement == replacement


def test_a_life_in_the_table() -> None:
    """Kinds that live alike share a row; another kind as replacement is named."""
    row = lives_text({OLD: Life(1, 2, 3, ("g", "v1", "Old")), NEW: Life(1, 2, 3, ("g", "v1", "New"))}, 37)
    alike = "introduced: 1, deprecated: 2, removed: 3, replacement: g/v1, kinds: [New, Old]}"
    assert row.splitlines()[-1] == f"- {{group: g, version: v1beta1, {alike}"
    assert "replacement: v1, as: Stays, kinds: [Old]}" in lives_text({OLD: Life(replacement=("", "v1", "Stays"))}, 37)


def test_what_a_module_says(tmp_path: Path) -> None:
    """Its objects with the minor version of the method; lists and bodies of subresources are none."""
    folder = tmp_path / "widgets" / "v1beta1"
    folder.mkdir(parents=True)
    (folder / "register.go").write_text(REGISTER)
    assert removed_apis.read_module(tmp_path) == {("g.example", "v1beta1", "Widget"): Life()}
    (folder / "zz_generated.prerelease-lifecycle.go").write_text(METHOD)
    life = Life(17, 20, 25, ("g.example", "v1", "Widget"))
    assert removed_apis.read_module(tmp_path) == {("g.example", "v1beta1", "Widget"): life}


def test_what_is_planned_stands_apart() -> None:
    """Each minor version up to the newest has a row."""
    shown = text({OLD: 20, NEW: 43}, 37).partition("planned:")
    assert shown[0].count('  "1.') == 37 - 16 + 1
    assert "New" not in shown[0]
    assert "New" in shown[2]


def test_without_go_it_says_what_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing is kept."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match=r"k8s.io/api@v0.37.2 needs the go command"):
        registered("v0.37.2", {"XDG_CACHE_HOME": str(tmp_path)})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_tables_are_current() -> None:
    """`python tools/removed_apis.py` writes both."""
    try:
        wanted = made()
    except Unavailable as error:
        if os.environ.get("RUNUP_E2E") == "required":
            raise
        pytest.skip(str(error))
    assert {file: file.read_text() for file in wanted} == wanted
