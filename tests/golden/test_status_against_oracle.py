"""`upgrade status` against a second writing of its rules, on clusters that no example shows.

`RUNUP_STATUS_CASES=20000` compares more than `make test` does; a failure names its seed, and
`RUNUP_STATUS_SEED=<seed>` runs that one alone.
"""

from __future__ import annotations

import contextlib
import difflib
import io
import os
import random
import re
import time
import unicodedata
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.few_or_many import first_and_rest
from tests.golden import status_clusters as clusters
from tests.golden import status_oracle as oracle

from runup.cli.main import main

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "oc-status"
EXAMPLES = sorted(file.name.removesuffix("-cv.yaml") for file in CORPUS.glob("*-cv.yaml"))
BATCHES = 8
BIDI = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
CASES = int(os.environ.get("RUNUP_STATUS_CASES", "240"))
ONE_SEED = os.environ.get("RUNUP_STATUS_SEED", "")
NO_ALERTS = "Unable to fetch alerts, ignoring alerts in 'Update Health':  "
BEYOND_OC = {
    "stderr": (
        # oc says that nothing is updating, though it cannot know.
        r"warning: whether the control plane is updating is not known: .*\n(?:  .*\n)*",
    ),
    "stdout": (),
}
"""All lines that the command prints and oc does not, as patterns, by stream."""
BAD_ALERTS = "Ignoring alerts in 'Update Health'. Error unmarshaling alerts: %w "


@pytest.fixture(scope="module")
def examples() -> list[dict[str, Any]]:
    """The visible examples to change, where the corpus is next to this checkout."""
    return [clusters.brought_to_newest(clusters.example(CORPUS, name)) for name in EXAMPLES]


@pytest.mark.slow
@pytest.mark.parametrize("batch", first_and_rest(range(BATCHES)))
def test_both_writings_print_the_same(
    batch: int, examples: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Standard output byte for byte, the exit code and the error, for every seed."""
    monkeypatch.delenv("KUBECONFIG", raising=False)
    seeds = [int(ONE_SEED)] if ONE_SEED else range(batch, CASES, BATCHES)
    failures = [found for seed in seeds if (found := difference(seed, examples, tmp_path))]
    assert not failures, f"{len(failures)} of {len(seeds)} differ; the first:\n{failures[0]}"


@pytest.mark.parametrize("details", oracle.DETAILS)
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_oracle_on_the_examples(name: str, details: str) -> None:
    """The second writing itself prints what oc's command does; a single word of details shows a part of all."""
    text = oracle.status(clusters.example(CORPUS, name), details, time.time_ns())
    everything = (CORPUS / f"{name}.detailed-output").read_text()
    if details in ("none", "all"):
        assert text == (CORPUS / f"{name}.{'output' if details == 'none' else 'detailed-output'}").read_text()
    elif details != "health":
        assert text.split("\n= Update Health")[0] in everything or "\nUpdating Cluster Operators" in everything


def to_unknown_version(files: dict[str, Any]) -> None:
    """An update of which only the image is known yet."""
    files["cv"]["status"]["history"][0]["version"] = ""


def pause_infra_before_master(files: dict[str, Any]) -> None:
    """Two paused pools, the custom one before the control plane's, as a list by name has them."""
    for pool in files["mcp"]:
        pool["spec"]["paused"] = True
    files["mcp"].sort(key=lambda pool: str(pool["metadata"]["name"]))


def same_alert_twice(files: dict[str, Any]) -> None:
    """Two alerts with the same labels, told apart by their text only."""
    labels = {"alertname": "PodDisruptionBudgetAtLimit", "severity": "warning", "namespace": "default"}
    alert = {"labels": labels, "state": "firing", "activeAt": "2025-02-01T00:00:00.123456789Z", "value": "1e+00"}
    files["alerts"] = {"data": {"alerts": [alert | {"annotations": {"summary": text}} for text in ("one", "two")]}}


def no_status(files: dict[str, Any]) -> None:
    """An operator whose condition says neither True, False nor Unknown."""
    clusters.set_condition(
        files["co"][1], {"type": "Progressing", "status": "", "lastTransitionTime": "2025-03-01T11:00:00Z"}
    )


def long_summary(files: dict[str, Any]) -> None:
    """A reason of a length that the summary of a stored insight has no room for."""
    failing = {"type": "Failing", "status": "True", "reason": "R" * 1200, "message": "m"}
    clusters.set_condition(files["cv"], failing | {"lastTransitionTime": "2025-03-01T11:00:00Z"})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param(
            to_unknown_version, "Target Version:   (from 4.16.9)\n", id="a version that is not known is empty"
        ),
        pytest.param(
            pause_infra_before_master,
            "'infra' will not be updated\n-       Warning   Update Stalled   Outdated nodes in a paused pool 'master'",
            id="findings that are equal stand in the order of the pools",
        ),
        pytest.param(
            same_alert_twice,
            "Alert is firing: one\n682h59m59s   Warning   Unknown   Alert is firing: two\n",
            id="alerts of the same labels are all listed",
        ),
        pytest.param(
            no_status, "(1 operators updated, 0 updating, 0 waiting)", id="a condition without a status is Unknown"
        ),
        pytest.param(long_summary, f"({'R' * 1200})\n", id="what is printed is not cut as what is stored"),
    ],
)
def test_what_once_differed(change: Callable[[dict[str, Any]], None], said: str, tmp_path: Path) -> None:
    """A row for each difference that was found: what the command must say, which the oracle says too."""
    files = update_in_the_middle()
    change(files)
    path = clusters.write(files, tmp_path, 0)
    actual = said_by_command("none", path)
    assert actual == said_by_oracle(files, "none", path)
    assert said in actual


def update_in_the_middle() -> dict[str, Any]:
    """One of two operators updated an hour after the start; three pools of one waiting node each."""
    at = {"lastTransitionTime": "2025-03-01T11:00:00Z"}

    def conditions(**statuses: str) -> dict[str, Any]:
        return {"conditions": [{"type": kind, "status": status} | at for kind, status in statuses.items()]}

    names = ("master", "worker", "infra")
    old = {f"{clusters.MCO}{kind}Config": "old" for kind in ("current", "desired")}
    history = [
        {"version": "4.17.0", "image": "b", "state": "Partial", "startedTime": "2025-03-01T10:00:00Z"},
        {"version": "4.16.9", "image": "a", "state": "Completed", "startedTime": "2025-01-01T10:00:00Z"}
        | {"completionTime": "2025-01-01T11:00:00Z"},
    ]
    operators = [
        {"apiVersion": "config.openshift.io/v1", "kind": "ClusterOperator"}
        | {"metadata": {"name": name, "annotations": clusters.INCLUDED}}
        | {
            "status": {"versions": [{"name": "operator", "version": version}]}
            | conditions(Progressing="False", Available="True", Degraded="False")
        }
        for name, version in (("etcd", "4.17.0"), ("network", "4.16.9"))
    ]
    return {
        "cv": {"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion", "metadata": {"name": "version"}}
        | {
            "status": {"desired": {"version": "4.17.0"}, "history": history}
            | conditions(Progressing="True", Failing="False")
        },
        "co": operators,
        "mcp": [clusters.pool(name, f"node-role.kubernetes.io/{name}") for name in names],
        "mc": [clusters.config("old", "old")],
        "node": [
            {"apiVersion": "v1", "kind": "Node", "status": conditions(Ready="True")}
            | {
                "metadata": {"name": f"{name}-0.example.com", "labels": {f"node-role.kubernetes.io/{name}": ""}}
                | {"annotations": old | {f"{clusters.MCO}state": "Done"}}
            }
            for name in names
        ],
    }


DRAWN = {
    "cv": ("spec.desiredUpdate", "status.availableUpdates", "status.desired.version", "status.history"),
    "co": ("status.versions", "metadata.annotations"),
    "mcp": ("spec.paused", "spec.configuration.name", "spec.nodeSelector", *(f"status.{c}" for c in clusters.COUNTS)),
    "mc": ("metadata.annotations",),
    "node": ("metadata.annotations", "metadata.labels", "spec.unschedulable", "spec.taints"),
}
CONDITIONS = {
    "cv": ("Failing", "Progressing", *clusters.VERSION_CONDITIONS),
    "co": ("Available", "Degraded", "Progressing"),
    "mcp": clusters.POOL_CONDITIONS,
    "node": ("Ready", "DiskPressure", "NetworkUnavailable"),
}


def test_the_clusters_differ_in_every_field_that_is_read() -> None:
    """A field that is the same in all of them would be compared with nothing; a condition has each of its statuses."""
    values: dict[str, set[str]] = {}
    for seed in range(120):
        files = clusters.cluster(seed, [], datetime.now(UTC))
        for kind in CONDITIONS | DRAWN:
            for one in [files["cv"]] if kind == "cv" else files[kind]:
                for path in DRAWN.get(kind, ()):
                    value: Any = one
                    for name in path.split("."):
                        value = (value or {}).get(name)
                    values.setdefault(f"{kind} {path}", set()).add(str(value))
                for row in (one.get("status") or {}).get("conditions") or []:
                    values.setdefault(f"{kind} {row['type']}", set()).add(row.get("status"))
    fields = {f"{kind} {path}": 2 for kind, paths in DRAWN.items() for path in paths}
    fields |= {f"{kind} {type_}": 3 for kind, types in CONDITIONS.items() for type_ in types}
    assert {field: len(values.get(field, ())) for field, least in fields.items() if len(values[field]) < least} == {}


@pytest.mark.parametrize("suffix", ["cv", "co", "mcp", "mc", "node"])
def test_a_file_that_is_missing(suffix: str, tmp_path: Path) -> None:
    """Each of the five is needed, and its path is said."""
    path = clusters.write(update_in_the_middle(), tmp_path, 0)
    missing = tmp_path / f"case-{suffix}.yaml"
    missing.unlink()
    assert said_by_command("all", path) == report(1, "", f"error: open {missing}: no such file or directory\n")


def test_details_that_are_none(tmp_path: Path) -> None:
    """A word that names no part is refused before any file is read."""
    path = tmp_path / "none-cv.yaml"
    assert said_by_command("everything", path) == said_by_oracle({"cv": {}, "co": []}, "everything", path)


def difference(seed: int, examples: list[dict[str, Any]], folder: Path) -> str:
    """Returns the diff for a seed from the oracle to the command, or ""."""
    details = random.Random(-seed).choice((*oracle.DETAILS, "all", "none"))
    files = clusters.cluster(seed, examples, datetime.now(UTC))
    path = clusters.write(files, folder, seed)
    expected = said_by_oracle(files, details, path)
    actual = said_by_command(details, path)
    if actual == expected:
        return ""
    lines = difflib.unified_diff(expected.splitlines(True), actual.splitlines(True), "oracle", "command", n=2)
    return f"seed {seed}, --details={details}\n" + "".join(lines)


def said_by_oracle(files: dict[str, Any], details: str, path: Path) -> str:
    """Exit code, stdout and stderr that the rules ask for."""
    try:
        out = oracle.status(files, details, time.time_ns())
    except oracle.Refused as error:
        return report(1, "", f"error: {str(error).removesuffix(chr(10))}\n")
    err = ""
    if out != "The cluster is not updating.\n":
        alerts = str(path).replace("-cv.yaml", "-alerts.json")
        if "alerts" not in files and "alerts_text" not in files:
            err = f"{NO_ALERTS}open {alerts}: no such file or directory\n"
        elif files.get("alerts_text", "{}")[:1] not in ("{", "n") or files.get("alerts_text", "") in ("{", "not json"):
            err = f"{BAD_ALERTS}\n"
    return report(0, "".join(map(shown, out)), err)


def shown(character: str) -> str:
    """What a terminal would obey, as an escape: the one thing in which ours leaves oc's bytes (docs/decisions/0027)."""
    if character == "\r":
        return "\\r"
    obeyed = unicodedata.category(character) in ("Cc", "Zl", "Zp") or unicodedata.bidirectional(character) in BIDI
    if character in "\n\t" or not (obeyed or character in "\u061c\u200e\u200f\ufeff"):
        return character
    return f"\\x{ord(character):02x}" if ord(character) < 256 else f"\\u{ord(character):04x}"


def said_by_command(details: str, path: Path) -> str:
    """Exit code, stdout and stderr of the command; the parser's own words on bad JSON are left out."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(["upgrade", "status", "--mock-clusterversion", str(path), f"--details={details}"])
    said, printed = err.getvalue(), out.getvalue()
    if said.startswith(BAD_ALERTS):
        said = f"{BAD_ALERTS}\n"
    for pattern in BEYOND_OC["stderr"]:
        said = re.sub(pattern, "", said)
    for pattern in BEYOND_OC["stdout"]:
        printed = re.sub(pattern, "", printed)
    return report(code, printed, said)


def report(code: int, out: str, err: str) -> str:
    """One text of the three. When an update without history ended is left open by the rules."""
    out = re.sub(r"^(Update to unknown successfully completed) at \S+", r"\1", out, flags=re.MULTILINE)
    return f"exit {code}\n--- stdout\n{out}--- stderr\n{err}"
