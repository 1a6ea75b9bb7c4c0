"""`cluster-version-operator preflight` in this process: what flags and environment ask for, and where a report goes."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import Ran, Server

from kubekit.api.core_v1 import ConfigMap, Namespace
from kubekit.api.scheme import resource_of
from kubekit.kube import calls
from kubekit.kube.api_errors import NotFound
from runup import __version__
from runup.api.config_v1 import Release
from runup.cli.operator import entry
from runup.cli.operator.main import main
from runup.preflight.decide.preflight_deployment import report_map
from runup.target.rehearsal_process import RehearsalOrder

Operator = Callable[..., Ran]


@pytest.fixture
def operator(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, logs: None) -> Iterator[Operator]:
    """A command of the operator, free of the tester's environment; its log and its handlers are put back."""
    for name in ("PREFLIGHT_PROMETHEUS_CA", "PREFLIGHT_REPORT_SINK", "PREFLIGHT_ID", "PREFLIGHT_TARGET_IMAGE"):
        monkeypatch.delenv(name, raising=False)
    # A process whose work is over is ended a second later, whatever still runs in it.
    monkeypatch.setattr("os._exit", lambda _: None)
    obeyed = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def go(*words: str | Path) -> Ran:
        capfd.readouterr()
        code = main([str(word) for word in words])
        return Ran(code, *capfd.readouterr())

    yield go
    for number, handler in obeyed.items():
        signal.signal(number, handler)


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """The folder of a release that brings no check of its own."""
    (tmp_path / "preflight-checks").mkdir()
    return tmp_path


def test_a_report_on_stdout(operator: Operator, server: Server, release: Path) -> None:
    """Nothing else is there; versions are those of the flags."""
    words = ("preflight", "--once", "--catalogs=skip", "--release-dir", release, "--kubeconfig", server.kubeconfig)
    ran = operator(*words, "--from=5.0.0", "--to=5.2.0")
    assert ran.code == 0, ran.err
    (line,) = ran.out.splitlines()
    report = json.loads(line)
    assert (report["sourceVersion"], report["targetVersion"], report["engineVersion"]) == (
        "5.0.0",
        "5.2.0",
        __version__,
    )
    assert report["executionStatus"] == "completed"
    assert all(json.loads(line)["event"] for line in ran.err.splitlines())


@pytest.mark.slow
def test_a_rehearsal_that_cannot_be(operator: Operator, server: Server, release: Path) -> None:
    """The report waits for it, and says that what it would have told is not known."""
    words = ("preflight", "--once", "--catalogs=skip", "--release-dir", release, "--kubeconfig", server.kubeconfig)
    ran = operator(*words, "--from=5.0.0", "--to=5.2.0", "--rehearse", "--rehearse-seconds=240")
    report = json.loads(ran.out)
    (risk,) = [each for each in report["risks"] if each["name"] == "RehearsalNotRun"]
    assert (risk["applies"], "there is no file in" in risk["message"]) == ("Unknown", True)
    assert report["executionStatus"] == "completed"


def test_a_report_in_a_file(operator: Operator, server: Server, release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of whose environment says where, which preflight it is, and whose image."""
    monkeypatch.setenv("PREFLIGHT_REPORT", str(release / "out" / "report.json"))
    monkeypatch.setenv("PREFLIGHT_ID", "p7")
    monkeypatch.setenv("PREFLIGHT_TARGET_IMAGE", "q/r@sha256:1")
    monkeypatch.setenv("PREFLIGHT_SOURCE_VERSION", "5.0.0")
    monkeypatch.setenv("PREFLIGHT_TARGET_VERSION", "5.3.0")
    monkeypatch.setenv("PAYLOAD_OVERRIDE", str(release))
    ran = operator("preflight", "--once", "--catalogs=skip", "--kubeconfig", server.kubeconfig)
    assert (ran.code, ran.out) == (0, ""), ran.err
    report = json.loads((release / "out" / "report.json").read_text())
    assert (report["preflightID"], report["targetImage"]) == ("p7", "q/r@sha256:1")
    assert (report["sourceVersion"], report["targetVersion"]) == ("5.0.0", "5.3.0")


def test_a_report_in_a_config_map(
    operator: Operator, server: Server, release: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the operator's namespace, for clusters that forbid host paths."""
    monkeypatch.setenv("PREFLIGHT_REPORT_SINK", "configmap")
    monkeypatch.setenv("PREFLIGHT_ID", "p8")
    monkeypatch.setenv("CVO_NAMESPACE", "of-reports")
    try:
        server.client.send(calls.get(Namespace, "of-reports"))
    except NotFound:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "of-reports"}}
        server.client.send(calls.create(resource_of(Namespace), body))
    words = ("--once", "--catalogs=skip", "--release-dir", release, "--kubeconfig", server.kubeconfig)
    ran = operator("preflight", *words, "--from=5.0.0", "--to=5.2.0")
    assert (ran.code, ran.out) == (0, ""), ran.err
    found = server.client.send(calls.get_raw(resource_of(ConfigMap), report_map("p8"), "of-reports"))
    assert json.loads(found["data"]["report.json"])["preflightID"] == "p8"


REQUEST: dict[str, Any] = {
    "to": "",
    "from_": "5.0.0",
    "prometheus_url": "https://prom.example",
    "prometheus_ca": "",
    "catalogs": "read",
    "inner_registry": (),
    "plain_http": (),
}


def test_what_is_asked_for(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    """The release's own version unless another is named; the profile and the namespace that most clusters have."""
    from runup.target.start import request_of

    monkeypatch.delenv("CLUSTER_PROFILE", raising=False)
    monkeypatch.delenv("CVO_NAMESPACE", raising=False)
    monkeypatch.delenv("PREFLIGHT_PROMETHEUS_HOSTED", raising=False)
    shown = request_of(REQUEST, "5.1.0")
    assert (shown.target_version, shown.source_version, shown.engine_version) == ("5.1.0", "5.0.0", __version__)
    assert (shown.profile, shown.namespace) == ("self-managed-high-availability", "openshift-cluster-version-operator")
    assert (shown.prometheus_url, shown.prometheus_ca, shown.prometheus_hosted) == ("https://prom.example", "", False)
    assert (shown.preflight_id, shown.target_image, shown.reads_catalogs) == ("", "", True)
    monkeypatch.setenv("CLUSTER_PROFILE", "single-node-developer")
    monkeypatch.setenv("PREFLIGHT_PROMETHEUS_HOSTED", "true")
    shown = request_of({**REQUEST, "to": "5.2.0", "catalogs": "skip", "prometheus_ca": "ca.pem"}, "5.1.0")
    assert (shown.target_version, shown.profile, shown.reads_catalogs) == ("5.2.0", "single-node-developer", False)
    assert (shown.prometheus_hosted, shown.prometheus_ca) == (True, "ca.pem")
    assert request_of({**REQUEST, "inner_registry": ("a:1", "b")}, "5.1.0").inner_registries == {"a:1", "b"}
    assert request_of({**REQUEST, "plain_http": ("a:1", "b")}, "5.1.0").plain_http == {"a:1", "b"}
    monkeypatch.setenv("PREFLIGHT_PROMETHEUS_HOSTED", "false")
    assert request_of(REQUEST, "5.1.0").prometheus_hosted is False


def test_authorities_come_as_text_and_are_taken_from_a_file(
    operator: Operator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the environment; a file that a flag names goes before them."""
    from runup.target.start import request_of

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("PREFLIGHT_PROMETHEUS_CA", "-----BEGIN CERTIFICATE-----\n")
    shown = Path(request_of(REQUEST, "5.1.0").prometheus_ca)
    assert shown.read_text() == "-----BEGIN CERTIFICATE-----\n"
    assert shown.name.startswith("prometheus-ca-")
    assert shown.suffix == ".pem"
    assert request_of({**REQUEST, "prometheus_ca": "ca.pem"}, "5.1.0").prometheus_ca == "ca.pem"
    assert list(tmp_path.iterdir()) == [shown]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--format=v2",), 'error: unknown format "v2"; this release writes preflight-v1-json\n'),
        (
            ("--once", "--release-dir=nowhere"),
            "error: --release-dir nowhere holds neither a folder preflight-checks nor release-manifests\n",
        ),
        (("--catalogs=some",), "error: Invalid value for '--catalogs': 'some' is not one of 'read', 'skip'."),
    ],
)
def test_what_is_refused(operator: Operator, words: tuple[str, ...], said: str) -> None:
    """Before anything heavy is imported, in a line."""
    ran = operator("preflight", *words)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(said)


@pytest.mark.parametrize("name", ["preflight-checks", "release-manifests"])
def test_either_folder_makes_a_release(
    name: str, operator: Operator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one that was typed; the image's own is not looked at."""
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "gone"))
    (tmp_path / name).mkdir()
    assert "neither a folder" not in operator("preflight", "--once", f"--release-dir={tmp_path}").err
    (tmp_path / name).rmdir()
    (tmp_path / name).write_text("")
    assert "neither a folder" in operator("preflight", "--once", f"--release-dir={tmp_path}").err
    monkeypatch.setenv("PAYLOAD_OVERRIDE", str(tmp_path / "elsewhere"))
    assert "neither a folder" not in operator("preflight", "--once").err


def test_what_the_checks_of_this_image_read(operator: Operator) -> None:
    """JSON for the release's builder, and nothing is checked; a format that is not known does not matter."""
    ran = operator("preflight", "--reads", "--format=v2")
    assert (ran.code, ran.err) == (0, "")
    assert any("nodes" in line for line in ran.out.splitlines())


@pytest.mark.parametrize(
    ("words", "code", "out"),
    [
        (("version",), 0, f"ClusterVersionOperator {__version__}\n"),
        (("render",), 1, ""),
        (("frobnicate",), 1, ""),
    ],
    ids=["a command", "one that lacks a flag", "none"],
)
def test_the_entry_point_runs_what_was_typed(
    words: tuple[str, ...],
    code: int,
    out: str,
    operator: Operator,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """And obeys a stop from there on: 0, for nothing has begun."""
    ended: list[int] = []
    monkeypatch.setattr("os._exit", ended.append)
    monkeypatch.setattr(sys, "argv", ["cluster-version-operator", *words])
    assert entry.main() == code
    assert capfd.readouterr().out == out
    handler = signal.getsignal(signal.SIGTERM)
    assert callable(handler)
    handler(signal.SIGTERM, None)
    assert ended == [0]


def test_a_rehearsal_has_the_image_that_the_channel_leads_to(
    operator: Operator, server: Server, release: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A schedule names a channel and no release."""
    listed = Release(version="5.3.0", image="example.com/release@sha256:3")
    monkeypatch.setattr("runup.target.start.newest", lambda _cluster, _channel: listed)
    rehearsed = []

    class Target:
        def __init__(self, *, rehearsal: RehearsalOrder, **_others: object) -> None:
            rehearsed.append(rehearsal.image)

        async def run(self, *, once: bool) -> None:
            """Does nothing."""

    monkeypatch.setattr("runup.target.start.PreflightTarget", Target)
    words = ("preflight", "--once", "--rehearse", "--to-channel=latest", "--release-dir", release)
    ran = operator(*words, "--kubeconfig", server.kubeconfig)
    assert (ran.code, rehearsed) == (0, [listed.image]), ran.err


def test_the_kernel_module_preflight_by_its_own_name(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its image's entry point has flags alone."""
    monkeypatch.setattr(sys, "argv", ["kernel-module-preflight", "--help"])
    assert entry.kernel_modules() == 0
    assert "Usage: cluster-version-operator kernel-module-preflight" in capfd.readouterr().out


@pytest.mark.parametrize("error", [KeyError("x"), KeyboardInterrupt()], ids=["a bug", "Ctrl-C"])
def test_what_ends_a_command_from_within(
    error: BaseException, operator: Operator, release: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bug of ours keeps its traceback; an interrupt is the shell's 130."""

    def run(work: Coroutine[Any, Any, int]) -> int:
        work.close()
        raise error

    monkeypatch.setattr("asyncio.run", run)
    if isinstance(error, KeyboardInterrupt):
        assert operator("preflight", "--once", "--release-dir", release).code == 130
        return
    with pytest.raises(KeyError):
        operator("preflight", "--once", "--release-dir", release)
