"""Which files of a release declare what its checks read, and catalogs and metadata that cannot be read."""

from __future__ import annotations

import json

import pytest
from tests.checks.decide.test_declarative import TEXT

from kubekit.lang import yaml as kyaml
from runup.checks.decide import cases
from runup.checks.decide.declarative import DeclarativeError, declared_check
from runup.checks.decide.file_based_catalog import BadCatalog, parse
from runup.checks.decide.rights_file_of_release import rights_of_files
from runup.release.decide.release_metadata import parse_release_metadata


@pytest.mark.parametrize(
    ("path", "counts"),
    [
        pytest.param("preflight-checks/a.yaml", True, id="a check"),
        pytest.param("preflight-checks/more/a.yaml", True, id="in a folder of it"),
        pytest.param("preflight-checks/a.test.yaml", False, id="its cases"),
        pytest.param("preflight-checks-old/a.yaml", False, id="a folder whose name begins so"),
        pytest.param("manifests/a.yaml", False, id="another folder"),
    ],
)
def test_which_files_declare_what_is_read(path: str, counts: bool) -> None:
    """Those of the folder of checks, and not their tests."""
    assert (rights_of_files({path: TEXT.encode()}) != rights_of_files({})) is counts
    assert rights_of_files({"manifests/0.yaml": b"", path: TEXT.encode()}) == rights_of_files({path: TEXT.encode()})


@pytest.mark.parametrize("metadata", [None, "a", {}, {"name": ""}, {"name": 3}])
def test_a_check_without_a_name_is_none(metadata: object) -> None:
    """Nobody could accept its risk, or find it."""
    document = kyaml.load(TEXT) | {"metadata": metadata}
    with pytest.raises(DeclarativeError, match=r"x: metadata\.name: is missing"):
        declared_check(document, file="x")


def test_the_file_of_cases_as_a_whole() -> None:
    """Lists the missing kinds of cases after each case."""
    file = {"apiVersion": cases.API_VERSION, "kind": cases.KIND, "check": "c"}
    whole = cases.parse({**file, "cases": [{"name": "c", "expect": "Clear"}]})
    check = declared_check(kyaml.load(TEXT), file="x")
    found = list(cases.evaluate_cases(check, whole))
    assert (found[0].case, found[0].problem) == ("c", "")
    assert [(each.case, each.problem) for each in found[1:]] == [
        ("all cases", lack) for lack in cases.missing_kinds(check, whole.cases)
    ]
    assert len(found) == 4


@pytest.mark.parametrize(
    ("path", "data"),
    [("a.yaml", b"schema: ["), ("a.yml", b"{"), ("a.json", b"{")],
    ids=["YAML", "YAML by a short name", "JSON"],
)
def test_a_catalog_that_cannot_be_read(path: str, data: bytes) -> None:
    """The file is named."""
    with pytest.raises(BadCatalog, match=path):
        parse({path: data})


@pytest.mark.parametrize("path", ["a.txt", "a.yaml.bak", "README"])
def test_a_file_of_another_ending_is_not_passed_over(path: str) -> None:
    """OLM reads it all the same: it was taken for one without packages."""
    with pytest.raises(BadCatalog, match=rf"{path}: its ending is not one of \.json, \.yaml, \.yml"):
        parse({path: b"{}"})


@pytest.mark.parametrize(
    ("url", "read", "problems"),
    [
        pytest.param("https://u", "https://u", (), id="a URL"),
        pytest.param("", "", (), id="empty"),
        pytest.param(3, "", ("metadata.url is not text",), id="a number"),
        pytest.param(None, "", ("metadata.url is not text",), id="null"),
        pytest.param("http://[", "", ("metadata.url 'http://[' is not a URL: missing ']' in host",), id="no URL"),
    ],
)
def test_the_url_of_a_release(url: object, read: str, problems: tuple[str, ...]) -> None:
    """An unusable check is omitted and reported."""
    document = {"kind": "cincinnati-metadata-v0", "version": "5.0.0", "metadata": {"url": url}}
    found = parse_release_metadata(json.dumps(document).encode())
    assert (found.url, tuple(found.problems)) == (read, problems)
