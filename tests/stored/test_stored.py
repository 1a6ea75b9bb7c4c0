"""Each released version has a folder of what it stored, written once by `python -m tests.stored`; all of it is read."""

from __future__ import annotations

import json
import lzma
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.commands import Run
from tests.stored.__main__ import REASON, RISK, TARGET

from kubekit.api import codec
from kubekit.api.core_v1 import ConfigMap
from kubekit.kube import calls
from kubekit.kube.client import Client
from kubekit.kube.config import load
from kubesandbox.apiserver.schema.crd import compile_crd
from kubesandbox.apiserver.server import ApiServer
from runup.advice.decide import acceptance
from runup.preflight.decide import packed_reports, stored_reports
from runup.report import report as reports
from runup.sandbox import crds

JSON = dict[str, Any]
VERSIONS = sorted(path for path in Path(__file__).parent.iterdir() if path.name[0].isdigit())
pytestmark = pytest.mark.parametrize("folder", VERSIONS, ids=[path.name for path in VERSIONS])


def risks(folder: Path) -> set[str]:
    """The risks that the version's checks have found, as its `-o json` lists them."""
    found = json.loads((folder / "preflight.json").read_text())["risks"]
    return {each["name"] for each in found if each["fromPreflight"]}


def stored(folder: Path, name: str) -> JSON:
    """The object of a file."""
    found: JSON = yaml.safe_load((folder / f"{name}.yaml").read_text())
    return found


@pytest.mark.parametrize("store", ["sqlite:reports.db", "reports"])
def test_reads_a_store(folder: Path, store: str, run: Run, tmp_path: Path) -> None:
    """The store's file is read by a copy: an open database writes."""
    copy = shutil.copytree(folder, tmp_path / "stored")
    kind, _, path = store.rpartition(":")
    ran = run("fleet", "history", "--store", f"{kind}:{copy / path}" if kind else copy / path, "-o", "json")
    assert ran.code == 0, ran.err
    (row,) = json.loads(ran.out)
    assert (row["cluster"], row["target"], row["completed"]) == ("sandbox", TARGET, True)
    assert row["applies"] + row["unknown"] == len(risks(folder))


def test_reads_the_reports_of_a_config_map(folder: Path) -> None:
    """One is the store of `--store configmap:`, the other the operator's record."""
    kept = stored(folder, "kept")
    (packed,) = codec.convert(ConfigMap, kept).binary_data.values()
    report = reports.read(packed_reports.unpack(packed))
    assert {risk.name for risk in report.risks} == risks(folder)
    history = stored_reports.read(codec.convert(ConfigMap, stored(folder, "preflight-history")))
    assert [report.target_version for report in history.reports] == [TARGET]
    assert RISK in {risk.name for risk in history.reports[0].risks}


def test_reads_an_accepted_risk(folder: Path) -> None:
    """With its reason and its end."""
    record = acceptance.read(stored(folder, "accepted-risks")["data"])[RISK]
    assert record.reason == REASON
    assert record.until is not None


@pytest.mark.parametrize("name", ["clusterversion", "updatestatus"])
def test_the_definition_still_accepts_an_object(folder: Path, name: str) -> None:
    """An object that a newer definition refuses could not be changed any more."""
    found = stored(folder, name)
    definitions = [yaml.safe_load(file.read_text()) for file in crds.definition_files(generally_available=True)]
    (definition,) = [each for each in definitions if each["spec"]["names"]["kind"] == found["kind"]]
    errors, schemas = compile_crd(definition)
    assert (errors, schemas[found["apiVersion"].partition("/")[2]].validate(found)) == ([], [])


def test_compares_with_an_earlier_result(folder: Path, run: Run) -> None:
    """`preflight compare` and `--baseline` take the file."""
    file = folder / "preflight.json"
    compared = run("preflight", "compare", file, file, "-o", "json")
    assert {each["name"] for each in json.loads(compared.out)["both"]} >= risks(folder)
    ran = run("preflight", "run", "--dump", folder / "dump.tar.gz", "--to", TARGET, "--baseline", file, "-o", "json")
    accepted = {each["name"] for each in json.loads(ran.out)["risks"] if each["accepted"]}
    assert "DualStackIncompatible" in accepted, ran.err


async def test_serves_what_a_sandbox_has_stored(folder: Path, tmp_path: Path) -> None:
    """The server of this version opens the store of that one."""
    (tmp_path / "store.db").write_bytes(lzma.decompress((folder / "kubesandbox.db.xz").read_bytes()))
    async with ApiServer(tmp_path) as server, Client(load(str(server.kubeconfig))) as client:
        found = await client.send(calls.get(ConfigMap, "kept", "default"))
    assert found.data == {"key": "value"}
