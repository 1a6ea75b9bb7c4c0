"""Where the clusters of a fleet are found: contexts, folders of kubeconfigs and of dumps, inventories; and what is said
of what is none.
"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from runup.fleet.control import cluster_sources
from runup.fleet.decide.members import BadFleet, Member

# Context to server; the one without a server names a cluster that is not there.
CONTEXTS = {
    "b": "https://one.example:6443",
    "a": "https://one.example:6443",
    "c": "https://two.example:6443",
    "broken": "",
}


def kubeconfig(file: Path, contexts: dict[str, str], current: str) -> str:
    """A kubeconfig with these contexts, as a path."""
    servers = {server: f"cluster-{number}" for number, server in enumerate(contexts.values())}
    made = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": current,
        "clusters": [{"name": name, "cluster": {"server": server}} for server, name in servers.items() if server],
        "contexts": [
            {"name": name, "context": {"cluster": servers[server], "user": "it"}} for name, server in contexts.items()
        ],
        "users": [{"name": "it", "user": {"token": "t"}}],
    }
    file.write_text(json.dumps(made))
    return str(file)


@pytest.mark.parametrize(
    ("current", "kept", "left_out"),
    [
        pytest.param("b", "b", "a", id="the current context stands for its server"),
        pytest.param("c", "a", "b", id="of others the first by name"),
        pytest.param("not there", "a", "b", id="a current context that is not there"),
    ],
)
def test_all_contexts_are_one_a_server(tmp_path: Path, current: str, kept: str, left_out: str) -> None:
    """People have a context for each namespace; a context that cannot be used is a cluster that cannot be read."""
    path = kubeconfig(tmp_path / "config", CONTEXTS, current)
    members, notes = cluster_sources.members_of_contexts(["all"], path)
    assert {member.name for member in members} == {kept, "c", "broken"}
    by_name = {member.name: member for member in members}
    assert by_name[kept] == Member(name=kept, kubeconfig=path, context=kept)
    assert by_name["broken"].problem
    assert (by_name["broken"].kubeconfig, by_name["broken"].context) == (path, "broken")
    assert notes == [
        f"context {left_out} leads to the server of {kept} (https://one.example:6443), and is left out",
    ]
    if current in CONTEXTS:
        assert members[0].name == current


def test_contexts_are_taken_as_they_are_named(tmp_path: Path) -> None:
    """In that order, also two of one server: who names them means them."""
    path = kubeconfig(tmp_path / "config", CONTEXTS, "b")
    members, notes = cluster_sources.members_of_contexts(["c", "a", "b"], path)
    assert members == [Member(name=name, kubeconfig=path, context=name) for name in ("c", "a", "b")]
    assert notes == []


@pytest.mark.parametrize(
    ("names", "says"),
    [
        pytest.param(["all", "c"], "--contexts all has every context; leave out c", id="all and one"),
        pytest.param(["c", "c"], "--contexts names c twice; a cluster counts once, so name it once", id="twice"),
        pytest.param(["d"], 'context "d" does not exist; there is a, b, broken, c', id="none of that name"),
    ],
)
def test_contexts_that_are_refused(tmp_path: Path, names: list[str], says: str) -> None:
    """With what there is."""
    path = kubeconfig(tmp_path / "config", dict(sorted(CONTEXTS.items())), "b")
    with pytest.raises(BadFleet) as raised:
        cluster_sources.members_of_contexts(names, path)
    assert str(raised.value) == says


def test_a_folder_of_kubeconfigs(tmp_path: Path) -> None:
    """Each is named after its file; what is none is a cluster that cannot be read, and hidden files are left alone."""
    for name in ("east.yaml", "west.kubeconfig", "north.conf", "south", "v1.2"):
        kubeconfig(tmp_path / name, {"admin": "https://it.example"}, "admin")
    (tmp_path / "notes.yaml").write_text("kind: A")
    (tmp_path / "old").mkdir()
    (tmp_path / ".hidden").write_text("")
    members, notes = cluster_sources.members_of_kubeconfigs(tmp_path)
    assert [member.name for member in members] == ["east", "north", "notes", "south", "v1.2", "west"]
    assert members[0] == Member(name="east", kubeconfig=str(tmp_path / "east.yaml"), context="admin")
    assert [member.name for member in members if member.problem] == ["notes"]
    assert notes == [f"{tmp_path / 'old'} is a folder, not a kubeconfig, and is left out"]


@pytest.mark.parametrize(("name", "what"), [("none", "does not exist"), ("file", "is not a folder")])
def test_what_is_no_folder_is_named(tmp_path: Path, name: str, what: str) -> None:
    """With its flag."""
    (tmp_path / "file").write_text("")
    with pytest.raises(BadFleet) as raised:
        cluster_sources.members_of_kubeconfigs(tmp_path / name)
    assert str(raised.value) == f"--kubeconfigs {tmp_path / name}: {what}; give the folder that they are in"


def of_dumps(path: Path) -> tuple[list[tuple[str, str]], list[str]]:
    """Names of the dumps with the last part of where they are, and notes."""
    with cluster_sources.members_of_dumps(path) as (members, notes):
        return [(member.name, Path(member.dump).name) for member in members], notes


def test_a_folder_of_dumps(tmp_path: Path) -> None:
    """Folders, archives without their suffixes, and the files of cases; of what is left out the first three."""
    for name in ("b", "a.tar.d"):
        (tmp_path / name).mkdir()
    for name in ("c.tar.gz", "d.tgz", "e.tar", "f-cv.yaml", "f-co.yaml", "1.txt", "2.txt", "3.txt", "4.txt", "5.txt"):
        (tmp_path / name).write_text("")
    members, notes = of_dumps(tmp_path)
    assert members == [
        ("a.tar.d", "a.tar.d"),
        ("b", "b"),
        ("c", "c.tar.gz"),
        ("d", "d.tgz"),
        ("e", "e.tar"),
        ("f", "f"),
    ]
    left_out = "1.txt, 2.txt, 3.txt and 2 more"
    assert notes == [f"{tmp_path}: not a folder or a tar archive, and left out: {left_out}"]
    for name in ("4.txt", "5.txt"):
        (tmp_path / name).unlink()
    assert of_dumps(tmp_path)[1][0].endswith(": 1.txt, 2.txt, 3.txt")


@pytest.mark.parametrize(
    "inside",
    [
        pytest.param(("all/east/x.yaml", "all/west/x.yaml"), id="in one folder"),
        pytest.param(("east/x.yaml", "west/x.yaml"), id="at its top"),
    ],
)
def test_an_archive_of_dumps(tmp_path: Path, inside: tuple[str, ...]) -> None:
    """Unpacked meanwhile; a single folder that is itself a dump is one."""
    for name in inside:
        (tmp_path / "from" / name).parent.mkdir(parents=True)
        (tmp_path / "from" / name).write_text("")
    with tarfile.open(tmp_path / "fleet.tar.gz", "w:gz") as packed:
        for entry in (tmp_path / "from").iterdir():
            packed.add(entry, entry.name)
    assert of_dumps(tmp_path / "fleet.tar.gz") == ([("east", "east"), ("west", "west")], [])


@pytest.mark.parametrize(
    ("names", "typed", "says"),
    [
        pytest.param(
            ("it/namespaces/x",),
            "it",
            "--dumps {path}: is one dump; give the folder that it is in, or `preflight run --dump {path}`",
            id="one dump",
        ),
        pytest.param(
            ("it/event-filter.html",),
            "it",
            "--dumps {path}: has no dump (a folder or a tar archive)"
            "; if it is itself a dump: runup preflight run --dump {path}",
            id="files alone",
        ),
        pytest.param(("it/.hidden",), "it", "--dumps {path}: has no dump (a folder or a tar archive)", id="empty"),
        pytest.param(
            ("one.yaml",), "one.yaml", "--dumps {path}: is one file; give the folder that the dumps are in", id="a file"
        ),
        pytest.param(
            ("x",), "none", "--dumps {path}: does not exist; give the folder that they are in", id="not there"
        ),
    ],
)
def test_what_is_no_folder_of_dumps(tmp_path: Path, names: tuple[str, ...], typed: str, says: str) -> None:
    """With the way out."""
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    with pytest.raises(BadFleet) as raised, cluster_sources.members_of_dumps(tmp_path / typed):
        pass
    assert str(raised.value) == says.format(path=tmp_path / typed)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        pytest.param(None, "cannot be read: No such file or directory", id="not there"),
        pytest.param(b"a: b: c", ", line 1, column 5: mapping values are not allowed", id="no YAML"),
    ],
)
def test_an_inventory_that_cannot_be_read(tmp_path: Path, content: bytes | None, says: str) -> None:
    """The flag and the file are named."""
    file = tmp_path / "fleet.yaml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(BadFleet) as raised:
        cluster_sources.members_of_inventory(file)
    assert str(raised.value).startswith("--inventory ")
    assert says in str(raised.value)
    assert str(raised.value).count(str(file)) == 1
