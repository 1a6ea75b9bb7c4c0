"""Manifests in files and in Helm's records: what is read, where it stands, and what could not be read."""

from __future__ import annotations

import base64
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest
from tests.kubekit.kube.apiscript import reply, scripted_api, status

from kubekit.kube.client import Client
from kubekit.kube.config import ClusterConfig
from runup.facts import manifest_texts
from runup.facts.helm_releases import read_helm_manifests
from runup.facts.manifest_texts import helm_manifests_of_dump, read_manifests, unpack_release

BUDGET = "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: web, namespace: shop}\n"
SEVERAL = f"# a comment\n---\n# Source: web/templates/pdb.yaml\n{BUDGET}---\n\n---\nkind: A\napiVersion: v1\n"
LIST = {"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "B", "metadata": {"name": "b"}}]}


def places(folder: Path, *typed: str) -> list[tuple[str, str, str]]:
    """Kind, name and place of each object, with the place in the folder."""
    read = read_manifests(typed)
    assert not read.problems
    return [(each.kind, each.name, each.place.removeprefix(f"{folder}/")) for each in read.objects]


def test_documents_have_their_lines(tmp_path: Path) -> None:
    """Of the first line that is no comment; folders are read below, other files are not."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.yaml").write_text(SEVERAL)
    (tmp_path / "sub" / "b.json").write_text(json.dumps(LIST))
    (tmp_path / "values.txt").write_text("kind: C")
    assert places(tmp_path, str(tmp_path)) == [
        ("PodDisruptionBudget", "web", "a.yaml:4"),
        ("A", "", "a.yaml:10"),
        ("B", "b", "sub/b.json:1"),
    ]


@pytest.mark.parametrize(
    ("name", "text", "lines"),
    [
        pytest.param(
            "a.yaml",
            "---\nkind: List\napiVersion: v1\nitems:\n- {apiVersion: v1, kind: A}\n-\n  kind: B\n  apiVersion: v1\n",
            ["a.yaml:5", "a.yaml:7"],
            id="YAML",
        ),
        pytest.param(
            "a.json",
            '{\n "metadata": {"items": [1]},\n "items": [\n  {"apiVersion": "v1", "kind": "A"},\n  {\n   '
            '"apiVersion": "v1", "kind": "B"}], "kind": "List", "apiVersion": "v1"}',
            ["a.json:4", "a.json:5"],
            id="JSON, with other items",
        ),
        pytest.param(
            "a.yaml",
            "kind: List\napiVersion: v1\nitems:\n- kind: AList\n  items:\n  - {apiVersion: v1, kind: A}\n",
            ["a.yaml:4"],
            id="a list in a list",
        ),
    ],
)
def test_items_of_a_list_have_their_lines(name: str, text: str, lines: list[str], tmp_path: Path) -> None:
    """Editors and code scanning show the line of the object, not of the list."""
    (tmp_path / name).write_text(text)
    assert [place for _, _, place in places(tmp_path, str(tmp_path))] == lines


def test_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What helm or kustomize printed."""
    monkeypatch.setattr("sys.stdin", io.StringIO(BUDGET))
    assert places(tmp_path, "-") == [("PodDisruptionBudget", "web", "standard input:1")]


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        pytest.param("t.yaml", "kind: A\nx: {{ .Values.a }}\n", "t.yaml:1 (it is a template)", id="a template"),
        pytest.param("t.yaml", "kind: b: c\n", "t.yaml:1 (", id="no YAML"),
        pytest.param("t.json", '{"apiVersion": ', "t.json:1 (", id="no JSON"),
    ],
)
def test_what_is_none_is_named(name: str, text: str, why: str, tmp_path: Path) -> None:
    """And the other documents are read all the same."""
    (tmp_path / name).write_text(text)
    (tmp_path / "u.yaml").write_text(BUDGET)
    read = read_manifests((str(tmp_path),))
    assert [each.name for each in read.objects] == ["web"]
    (problem,) = read.problems
    assert problem.removeprefix(f"{tmp_path}/").startswith(why)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param("settings.json", '// of an editor\n{"editor.tabSize": 2, /* two */}\n', id="JSON with comments"),
        pytest.param("ci.yaml", "steps: [build, test]\n", id="YAML of another tool"),
        pytest.param("ci.yaml", "a: b: c\n", id="no YAML of another tool"),
        pytest.param("empty.yaml", "# nothing\n---\n", id="comments"),
    ],
)
def test_texts_of_other_tools_are_counted_alone(name: str, text: str, tmp_path: Path) -> None:
    """They are neither manifests nor problems."""
    (tmp_path / name).write_text(text)
    read = read_manifests((str(tmp_path),))
    assert (read.objects, read.problems, read.summary) == ((), (), "0 objects in 1 text")
    (tmp_path / "u.yaml").write_text(SEVERAL)
    assert read_manifests((str(tmp_path),)).summary == "2 objects in 2 texts (1 A, 1 PodDisruptionBudget)"


def test_a_folder_without_manifests_is_named(tmp_path: Path) -> None:
    """Nothing found is not nothing wrong."""
    assert read_manifests((str(tmp_path),)).problems == (f"{tmp_path} holds no YAML or JSON file",)


@pytest.mark.parametrize(("data", "why"), [(None, "No such file"), (b"\xff", "can't decode byte 0xff")])
def test_a_file_that_cannot_be_read_is_named(data: bytes | None, why: str, tmp_path: Path) -> None:
    """With the system's reason; the others are read."""
    (tmp_path / "good.yaml").write_text(BUDGET)
    bad = tmp_path / "bad.yaml"
    if data is not None:
        bad.write_bytes(data)
    read = read_manifests((str(bad), str(tmp_path / "good.yaml")))
    assert [each.name for each in read.objects] == ["web"]
    (problem,) = read.problems
    assert (problem.startswith(f"{bad} ("), why in problem) == (True, True), problem


DEPLOYED = {"owner": "helm", "status": "deployed"}


def packed(release: Any, *, zipped: bool = True, twice: bool = True) -> str:
    """A release as Helm stores it."""
    data = json.dumps(release).encode()
    data = base64.b64encode(gzip.compress(data) if zipped else data)
    return (base64.b64encode(data) if twice else data).decode()


@pytest.mark.parametrize("twice", [True, False], ids=["a Secret", "a ConfigMap"])
@pytest.mark.parametrize("zipped", [True, False], ids=["packed", "as it is"])
def test_a_record_of_helm(zipped: bool, twice: bool) -> None:
    """Early releases of Helm did not pack it."""
    assert unpack_release(packed({"name": "web"}, zipped=zipped, twice=twice), twice=twice) == {"name": "web"}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("%%%", id="no base64"),
        pytest.param(base64.b64encode(base64.b64encode(b"\x1f\x8b\x08no")).decode(), id="no gzip"),
        pytest.param(packed([]), id="a list"),
        pytest.param(base64.b64encode(base64.b64encode(b"\xff\xfe{")).decode(), id="no text"),
    ],
)
def test_records_that_are_none(text: str) -> None:
    """They are somebody's, and may hold anything."""
    with pytest.raises(ValueError):
        unpack_release(text, twice=True)


def test_a_record_does_not_unpack_to_more_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few kilobytes may be gigabytes of zeros."""
    monkeypatch.setattr(manifest_texts, "MAX_BYTES", 1000)
    with pytest.raises(ValueError, match="more than 1000 bytes"):
        unpack_release(packed({"manifest": "0" * 100_000}), twice=True)


@pytest.mark.parametrize(
    ("release", "place"),
    [
        pytest.param({"chart": "x"}, "release shop/web.v1 of chart ?-?", id="a chart that is a text"),
        pytest.param({"chart": [1]}, "release shop/web.v1 of chart ?-?", id="a chart that is a list"),
        pytest.param({"chart": {"metadata": "x"}}, "release shop/web.v1 of chart ?-?", id="metadata that are a text"),
        pytest.param(
            {"name": {}, "namespace": [1], "chart": {"metadata": {"name": [], "version": {"a": 1}}}},
            "release shop/web.v1 of chart ?-?",
            id="names and a version that are no text",
        ),
        pytest.param(
            {"name": "web", "namespace": "b", "chart": {"metadata": {"name": "c", "version": 1.5}}},
            "release b/web of chart c-1.5",
            id="a version that is a number",
        ),
    ],
)
async def test_a_release_that_somebody_made_up_ends_nobodys_preflight(release: dict[str, Any], place: str) -> None:
    """Whoever may create a Secret may label it as Helm's."""
    metadata = {"namespace": "shop", "name": "web.v1", "labels": DEPLOYED}
    item = {"metadata": metadata, "data": {"release": packed(release | {"manifest": BUDGET})}}
    async with scripted_api() as api:
        api.answers(reply({"metadata": {}, "items": [item]}), reply({"metadata": {}, "items": []}))
        async with Client(ClusterConfig(server=api.url)) as client:
            read = await read_helm_manifests(client)
    assert [(each.name, each.place) for each in read.objects] == [("web", place)]
    assert read.problems == ()


async def test_records_that_may_not_be_read_are_named() -> None:
    """Helm's Secrets often may not be; its ConfigMaps are looked at all the same."""
    item = {
        "metadata": {"namespace": "shop", "name": "web.v1", "labels": DEPLOYED},
        "data": {"release": packed({"manifest": BUDGET}, twice=False)},
    }
    async with scripted_api() as api:
        api.answers(
            reply(status(403, "Forbidden", message="secrets is forbidden"), 403),
            reply({"metadata": {}, "items": [item]}),
        )
        async with Client(ClusterConfig(server=api.url)) as client:
            read = await read_helm_manifests(client)
    assert [each.name for each in read.objects] == ["web"]
    assert read.forbidden == ("secrets labelled owner=helm,status in (deployed,failed) (secrets is forbidden)",)
    assert read.problems == ()


async def test_a_record_that_cannot_be_read_costs_itself_alone() -> None:
    """It is named with why; the records next to it are read."""
    bad, good = (
        {"metadata": {"namespace": "shop", "name": f"{name}.v1", "labels": DEPLOYED}, "data": {"release": data}}
        for name, data in (("bad", "%%%"), ("web", packed({"manifest": BUDGET})))
    )
    async with scripted_api() as api:
        api.answers(reply({"metadata": {}, "items": [bad, good]}), reply({"metadata": {}, "items": []}))
        async with Client(ClusterConfig(server=api.url)) as client:
            read = await read_helm_manifests(client)
    assert [each.name for each in read.objects] == ["web"]
    (problem,) = read.problems
    assert problem.startswith("Secret shop/bad.v1 (")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        pytest.param("{kind: A, apiVersion: v1, metadata: x}", [("", "")], id="metadata that are a text"),
        pytest.param("{kind: A, apiVersion: v1, metadata: {name: [1], namespace: {}}}", [("", "")], id="odd names"),
        pytest.param("{kind: A, apiVersion: v1, metadata: {name: 7}}", [("", "7")], id="a number"),
        pytest.param("{kind: [A], apiVersion: v1}", [], id="a kind that is a list"),
        pytest.param("{kind: A, apiVersion: {v: 1}}", [], id="a version that is a mapping"),
    ],
)
def test_documents_that_are_no_objects(text: str, names: list[tuple[str, str]], tmp_path: Path) -> None:
    """What is no text names nothing."""
    (tmp_path / "a.yaml").write_text(text)
    assert [(each.namespace, each.name) for each in read_manifests((str(tmp_path),)).objects] == names


NEW = BUDGET.replace("PodDisruptionBudget", "Other")


def record(name: str, revision: int, status: str, manifest: str) -> dict[str, Any]:
    """A Secret in which Helm keeps one revision of a release."""
    labels = {"owner": "helm", "name": name, "status": status, "version": str(revision)}
    metadata = {"namespace": "shop", "name": f"sh.helm.release.v1.{name}.v{revision}", "labels": labels}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "data": {"release": packed({"manifest": manifest})},
    }


@pytest.mark.parametrize(
    ("revisions", "is_read"),
    [
        pytest.param([(1, "deployed", BUDGET)], True, id="one that is deployed"),
        pytest.param([(1, "deployed", BUDGET), (2, "deployed", NEW)], False, id="of two that are deployed the later"),
        pytest.param([(10, "deployed", BUDGET), (9, "deployed", NEW)], True, id="by number, not by text"),
        pytest.param([(1, "failed", BUDGET)], True, id="none that is deployed"),
        pytest.param([(1, "failed", NEW), (2, "failed", BUDGET)], True, id="of several that failed the last"),
        pytest.param([(1, "deployed", NEW), (2, "failed", BUDGET)], False, id="a later one that failed"),
        pytest.param([(1, "superseded", BUDGET), (2, "deployed", NEW)], False, id="an earlier one"),
        pytest.param([(1, "uninstalled", BUDGET)], False, id="an uninstalled one"),
        pytest.param([(1, "pending-upgrade", BUDGET)], False, id="one that is pending, which Helm refuses to upgrade"),
    ],
)
def test_the_revision_that_an_upgrade_starts_from(revisions: list[tuple[int, str, str]], is_read: bool) -> None:
    """The last deployed one, else the last one if it failed (helm, pkg/action/upgrade.go, prepareUpgrade)."""
    read = helm_manifests_of_dump([record("web", *revision) for revision in revisions])
    assert [each.kind for each in read.objects if each.kind == "PodDisruptionBudget"] == [
        "PodDisruptionBudget"
    ] * is_read
