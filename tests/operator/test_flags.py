"""Flags of the operator's processes -> their options, and how such a process ends as a command."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import pytest

from kubekit.api.codec import DecodeError
from kubekit.error_types import Terminal
from kubekit.kube.api_errors import KubeError
from kubekit.oci.registry_errors import OciError
from runup.cli.operator.command_process import common, read_election, run_process
from runup.cli.operator.main import COMMANDS, main
from runup.cli.operator.start_commands import kernel_module_options as options_of_kernel_modules
from runup.cli.operator.start_commands import kernel_module_preflight, manager_options, start, update_status_controller
from runup.cli.operator.start_commands import update_status_options as options_of_update_status
from runup.preflight.decide.preflight_deployment import Quantities
from runup.process.leader_election import Election, LeaseLost


def flags(command: click.Command, *words: str) -> dict[str, Any]:
    """As the command line gives them."""
    return command.make_context("command", list(words)).params


HELP = (["help"], ["--help"], ["-h"])
NEEDED = ("--release-image=q/r@sha256:1", "--node-name=node-1")
EVERY = (
    "--update-service=https://up.example",
    "--update-service-ca=up.pem",
    "--prometheus-url=https://prom.example",
    "--prometheus-ca=prom.pem",
    "--hypershift",
    "--release-source=registry",
    "--plain-http=a:1",
    "--plain-http=b:2",
    "--payload-dir=/payloads",
    "--report-dir=/reports",
    "--report-sink=configmap",
    "--preflight-timeout=5",
    "--preflight-service-account=dedicated",
    "--preflight-cpu-request=1m",
    "--preflight-memory-request=2Mi",
    "--preflight-cpu-limit=3m",
    "--preflight-memory-limit=4Mi",
    "--open-gates=A,,B",
    "--record-only",
    "--always-enable-capabilities=C,,D",
    "--namespace=ns",
    "--service-account=me",
)


def test_what_start_is_told() -> None:
    """Each flag has its place."""
    shown = manager_options(flags(start, *NEEDED, *EVERY))
    assert (shown.release_image, shown.update_service, shown.update_service_ca) == (
        "q/r@sha256:1",
        "https://up.example",
        "up.pem",
    )
    assert (shown.prometheus_url, shown.prometheus_ca, shown.hypershift) == ("https://prom.example", "prom.pem", True)
    assert (shown.release_source, shown.payload_folder, shown.report_folder) == (
        "registry",
        Path("/payloads"),
        Path("/reports"),
    )
    assert (shown.applies, shown.open_gates, shown.always_enabled) == (False, {"A", "B"}, ("C", "D"))
    place = shown.pod_settings
    assert (shown.plain_http_registries, place.plain_http_registries) == ({"a:1", "b:2"}, ("a:1", "b:2"))
    assert (place.namespace, place.node_name, place.operator_service_account) == ("ns", "node-1", "me")
    assert (place.service_account, place.report_sink, place.timeout_s) == ("dedicated", "configmap", 5.0)
    assert (place.prometheus_url, place.prometheus_hosted) == ("https://prom.example", True)
    assert place.quantities == Quantities("1m", "2Mi", "3m", "4Mi")


def test_what_start_does_where_it_is_told_no_more_than_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """It applies releases, asks nobody for numbers, and keeps to the cluster's gates."""
    monkeypatch.delenv("CVO_NAMESPACE", raising=False)
    monkeypatch.delenv("CVO_NAME", raising=False)
    shown = manager_options(flags(start, *NEEDED))
    assert (shown.applies, shown.open_gates, shown.always_enabled, shown.hypershift) == (True, frozenset(), (), False)
    assert (shown.prometheus_url, shown.update_service, shown.pod_settings.prometheus_hosted) == ("", "", False)
    assert (shown.plain_http_registries, shown.pod_settings.plain_http_registries) == (frozenset(), ())
    assert (shown.pod_settings.namespace, shown.pod_settings.quantities) == (
        "openshift-cluster-version-operator",
        Quantities(),
    )
    monkeypatch.setenv("NODE_NAME", "node-2")
    monkeypatch.setenv("CVO_NAMESPACE", "elsewhere")
    monkeypatch.setenv("CVO_NAME", "somebody")
    place = manager_options(flags(start, NEEDED[0])).pod_settings
    assert (place.node_name, place.namespace, place.operator_service_account) == ("node-2", "elsewhere", "somebody")


@pytest.mark.parametrize("missing", NEEDED)
def test_what_start_cannot_do_without(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The flag is named."""
    monkeypatch.delenv("NODE_NAME", raising=False)
    with pytest.raises(click.MissingParameter, match=missing.strip("-").partition("=")[0].replace("-", "_")):
        flags(start, *(each for each in NEEDED if each != missing))


@pytest.mark.parametrize("command", [start, update_status_controller, kernel_module_preflight], ids=lambda c: c.name)
def test_what_every_process_is_told(command: click.Command) -> None:
    """Where it serves and for whom, and how it leads."""
    needed = NEEDED if command is start else ()
    served = (
        "--listen=127.0.0.1:1",
        "--serving-cert-file=c",
        "--serving-key-file=k",
        "--metrics-auth=none",
        "--health-listen=:2",
    )
    tls = ("--tls-min-version=VersionTLS13", "--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256")
    shown = common(flags(command, *needed, *served, *tls, "--no-leader-elect", "--lease=3,2,1"))
    assert (shown["listen"], shown["serving_cert_file"], shown["serving_key_file"]) == ("127.0.0.1:1", "c", "k")
    assert shown["health_listen"] == ":2"
    assert (shown["metrics_auth"], shown["leader_elect"], shown["election"]) == (False, False, Election(3, 2, 1))
    assert (shown["serving_tls"].min_version, shown["serving_tls"].ciphers) == (
        "VersionTLS13",
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",),
    )
    unsaid = common(flags(command, *needed))
    assert (unsaid["metrics_auth"], unsaid["leader_elect"], unsaid["election"]) == (True, True, None)
    assert unsaid["health_listen"] == ""
    assert unsaid["listen"] == ("127.0.0.1:9099" if command is start else "")
    assert (unsaid["serving_tls"].min_version, unsaid["serving_tls"].ciphers) == ("", ())


def test_a_lease_is_three_falling_numbers() -> None:
    """The flag is named; none is none."""
    assert read_election(None) is None
    assert read_election("") is None
    assert read_election("30,20,10") == Election(30, 20, 10)
    with pytest.raises(ValueError, match=r"^--lease 1,2,3: three falling numbers"):
        read_election("1,2,3")


def test_what_the_update_status_controller_is_told() -> None:
    """Whom it asks for alerts, how often it writes, what time it is for a dump."""
    words = (
        "--namespace=ns",
        "--alerts-url=u",
        "--alerts-ca=c",
        "--write-interval=5",
        "--mock-now=2026-01-14T10:00:00Z",
    )
    shown = options_of_update_status(flags(update_status_controller, *words))
    assert (shown.namespace, shown.alerts_url, shown.alerts_ca, shown.timing.interval_s) == ("ns", "u", "c", 5.0)
    assert shown.fixed_now == datetime(2026, 1, 14, 10, tzinfo=UTC)
    unsaid = options_of_update_status(flags(update_status_controller))
    assert (unsaid.timing.interval_s, unsaid.fixed_now, unsaid.alerts_url) == (0.3, None, "")
    assert unsaid.namespace == "openshift-update-status-controller"
    with pytest.raises(ValueError, match=r"^--mock-now soon: Invalid isoformat"):
        options_of_update_status(flags(update_status_controller, "--mock-now=soon"))


@pytest.mark.parametrize("interval", ["0.1", "0.09"])
def test_how_often_the_object_may_be_written(interval: str) -> None:
    """Ten times a second at most."""
    words = (f"--write-interval={interval}",)
    if interval == "0.1":
        assert flags(update_status_controller, *words)["write_interval"] == 0.1
        return
    with pytest.raises(click.BadParameter, match=r"0\.1"):
        flags(update_status_controller, *words)


def test_what_the_kernel_module_preflight_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """What builds and signs, for how long, and which registries speak plain HTTP."""
    for name in ("RELATED_IMAGE_BUILD", "RELATED_IMAGE_SIGN", "POD_NAMESPACE"):
        monkeypatch.delenv(name, raising=False)
    words = ("--namespace=ns", "--build-image=b", "--sign-image=s", "--sign-file=/f", "--build-deadline=1")
    plain = ("--plain-http=a:1", "--plain-http=b:2", "--inner-registry=r.svc:5000", "--inner-registry=s")
    plain += ("--service-network=10.96.0.0/12", "--service-network=fd00::/112", "--certificate-authority=/ca")
    shown = options_of_kernel_modules(flags(kernel_module_preflight, *words, "--build-with=jobs", *plain))
    builder = shown.builder
    assert (builder.image, builder.sign_image, builder.sign_file, builder.deadline_s) == ("b", "s", "/f", 1)
    assert shown.certificate_authority == "/ca"
    assert (shown.inner, [str(each) for each in shown.services]) == (
        {"r.svc:5000", "s"},
        ["10.96.0.0/12", "fd00::/112"],
    )
    assert (shown.namespace, shown.builds, shown.plain_http) == ("ns", False, {"a:1", "b:2"})
    unsaid = options_of_kernel_modules(flags(kernel_module_preflight))
    assert (unsaid.builder.sign_file, unsaid.builder.deadline_s) == ("/usr/local/bin/sign-file", 3600)
    assert (unsaid.builds, unsaid.plain_http, unsaid.builder.image) == (True, frozenset(), "")
    assert unsaid.namespace == "openshift-kernel-module-preflight"
    assert (unsaid.inner, unsaid.services, unsaid.certificate_authority) == (frozenset(), (), "")
    with pytest.raises(ValueError, match=r"--service-network 10\.96: give a network such as 10\.96\.0\.0/12"):
        options_of_kernel_modules(flags(kernel_module_preflight, "--service-network=10.96"))
    for name in ("RELATED_IMAGE_BUILD", "RELATED_IMAGE_SIGN", "POD_NAMESPACE"):
        monkeypatch.setenv(name, name)
    shown = options_of_kernel_modules(flags(kernel_module_preflight))
    assert (shown.builder.image, shown.builder.sign_image) == ("RELATED_IMAGE_BUILD", "RELATED_IMAGE_SIGN")
    assert shown.namespace == "POD_NAMESPACE"
    with pytest.raises(click.BadParameter, match="1"):
        flags(kernel_module_preflight, "--build-deadline=0")


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    """Of a cluster that nobody asks."""
    path = tmp_path / "config"
    path.write_text(
        json.dumps(
            {
                "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                "users": [{"name": "u", "user": {}}],
                "current-context": "c",
            }
        )
    )
    return path


def served(error: Exception | None, seen: list[Any]) -> Callable[..., Coroutine[Any, Any, None]]:
    """A process that ends so at once."""

    async def serve(cluster: Any, options: Any) -> None:
        seen.append((cluster.server, options))
        if error is not None:
            raise error

    return serve


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        pytest.param(None, 0, "", id="it was shown to stop"),
        pytest.param(LeaseLost("gone"), 1, "", id="its lease is lost, which was said when it happened"),
        pytest.param(Terminal("do this", reason="R"), 1, "error: do this\n", id="it must be shown otherwise"),
        pytest.param(
            KubeError("the server is away", reason="Away"), 1, "error: the server is away\n", id="the server is away"
        ),
        pytest.param(OciError("no such image"), 1, "error: no such image\n", id="an image is not there"),
        pytest.param(DecodeError("no JSON"), 1, "error: no JSON\n", id="an answer cannot be read"),
        pytest.param(
            OSError(98, "Address already in use"), 1, "error: [Errno 98] Address already in use\n", id="a port"
        ),
    ],
)
def test_how_a_process_ends(
    error: Exception | None,
    code: int,
    said: str,
    kubeconfig: Path,
    logs: None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One line on stderr where it cannot run, none where there is nothing to say."""
    seen: list[Any] = []
    shown = {"kubeconfig": str(kubeconfig)}
    assert run_process(shown, lambda given: given["kubeconfig"], served(error, seen), asyncio.run) == code
    assert capsys.readouterr().err == said
    assert seen == [("http://127.0.0.1:1", str(kubeconfig))]


def test_a_bug_is_a_traceback_in_json(kubeconfig: Path, logs: None, capsys: pytest.CaptureFixture[str]) -> None:
    """And the exit code is 1."""
    shown = {"kubeconfig": str(kubeconfig)}
    assert run_process(shown, lambda given: given, served(KeyError("x"), []), asyncio.run) == 1
    event = json.loads(capsys.readouterr().err)
    assert (event["event"], event["level"]) == ("ended by a bug", "error")
    assert "KeyError: 'x'" in event["exception"]


def test_a_process_that_cannot_begin(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A flag that cannot be read, a kubeconfig that is not there: told before anything runs."""

    def refuse(_: Any) -> None:
        raise ValueError("--lease x: no numbers")

    seen: list[Any] = []
    assert run_process({"kubeconfig": None}, refuse, served(None, seen), asyncio.run) == 1
    assert capsys.readouterr().err == "error: --lease x: no numbers\n"
    gone = {"kubeconfig": str(tmp_path / "gone")}
    assert run_process(gone, lambda given: given, served(None, seen), asyncio.run) == 1
    assert str(tmp_path / "gone") in capsys.readouterr().err
    assert seen == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("start", *NEEDED, "--lease=1,2,3"), "--lease 1,2,3: three falling numbers"),
        (("update-status-controller", "--mock-now=soon"), "--mock-now soon: Invalid isoformat"),
        (("update-policy-controller", "--node-minutes=x"), "--node-minutes"),
        (("update-extension", "--cluster=harbour"), "--cluster harbour: give NAMESPACE/NAME"),
        (("update-extension", "--cluster=a/b", "--listen="), "--listen: an extension that does not listen"),
        (("kernel-module-preflight", "--tls-min-version=1"), "--tls-min-version 1: give one of VersionTLS"),
    ],
    ids=lambda words: words[0] if isinstance(words, tuple) else "",
)
def test_a_command_ends_with_the_code_of_its_process(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Here 1, for a flag that cannot be read."""
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 1
    assert capsys.readouterr().err.startswith(f"error: {said}")


@pytest.mark.parametrize(
    "words",
    [
        ("start", *NEEDED, "--listen="),
        ("update-status-controller",),
        ("update-policy-controller",),
        ("update-extension", "--cluster=clusters/harbour"),
        ("fleet-update-controller",),
        ("kernel-module-preflight",),
    ],
    ids=lambda words: words[0],
)
def test_a_kubeconfig_that_is_not_there_ends_a_process(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With 1, and its name."""
    gone = tmp_path / "gone"
    with pytest.raises(SystemExit) as ended:
        main([*words, f"--kubeconfig={gone}"])
    assert ended.value.code == 1
    assert str(gone) in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "first_words"),
    [
        *(([*command, *words], "Usage: ") for command in [[], *([name] for name in COMMANDS)] for words in HELP),
        *((["help", name], "Usage: ") for name in COMMANDS),
        *(([*command, "--version"], "ClusterVersionOperator ") for command in [[], *([name] for name in COMMANDS)]),
    ],
    ids=lambda value: " ".join(value) or "none" if isinstance(value, list) else value.strip(),
)
def test_every_command_prints_its_help_and_the_version(
    words: list[str], first_words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """None of them needs a cluster or a required option."""
    assert main(words) == 0
    out, err = capsys.readouterr()
    assert (out[: len(first_words)], err) == (first_words, "")


@pytest.mark.parametrize("module", ["runup.cli.operator.main", "runup.cli.operator.start_commands"])
def test_an_interrupt_while_modules_are_imported_ends_with_130(module: str, tmp_path: Path) -> None:
    """No traceback is printed."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys\n"
        "class Finder:\n"
        "    def find_spec(name, path=None, target=None):\n"
        f"        if name == {module!r}:\n"
        "            os.kill(os.getpid(), 2)\n"
        "sys.meta_path.insert(0, Finder)\n"
    )
    command = [sys.executable, "-c", "import sys; from runup.cli.operator.entry import main; sys.exit(main())", "start"]
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    ran = subprocess.run(command, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, timeout=60)  # noqa: PLW1510
    assert (ran.returncode, ran.stdout, ran.stderr.strip()) == (130, "", "")
