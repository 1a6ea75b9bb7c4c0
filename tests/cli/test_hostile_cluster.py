"""Every command against a cluster whose every text wants to do something to the terminal: it is shown, never obeyed."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import structlog
import yaml
from tests.cli.commands import Run, Server

from kubekit.api import codec
from kubekit.api.core_v1 import ConfigMap, Namespace
from kubekit.api.scheme import resource_of
from kubekit.kube import calls
from kubekit.kube.api_errors import NotFound
from kubekit.lang.text import is_hazardous, printable
from runup.api.config_v1 import ClusterVersion
from runup.cli.clusterversion import wait_progress
from runup.cli.main import root
from runup.cli.output import Printable, without_printable
from runup.cli.preflight.render import finding_texts
from runup.cli.preflight.render import history_tables as rendered_history
from runup.cli.preflight.render.explain import explain_risk, explanation
from runup.cli.render.html.markup import el, link
from runup.cli.render.screen import Screen
from runup.clusterversion.control import upgrade_wait
from runup.preflight.decide import kept_history, schedule, stored_reports
from runup.preflight.decide.cluster_run import NAMESPACE as RUNS
from runup.preflight.decide.findings import findings_of_target
from runup.preflight.decide.kept_history import LastScheduled
from runup.preflight.decide.stored_reports import History
from runup.process import log as process_log
from runup.report.report import FORMAT, Report, ReportedCheck, ReportedResource, ReportedRisk, encode

EVIL = "e\x1b]0;owned\x07\x1b[2J\r\x9b31m\u202egpj\u2066\u200f\x00\x7f\u061c"
NAMESPACE = "runup-hostile-tests"
WHEN = "2026-01-14T09:30:00Z"
IMAGE = f"quay.io/{EVIL}@sha256:" + "a" * 64


def _condition(type_: str, status: str) -> dict[str, str]:
    return {"type": type_, "status": status, "reason": "R", "message": EVIL, "lastTransitionTime": WHEN}


RISK = {
    "name": f"Risk{EVIL}",
    "message": f"Preflight=5.2.0: {EVIL}",
    "url": "https://example.com/\u202e",
    "matchingRules": [{"type": "Always"}],
    "conditions": [_condition("Applies", "True")],
}
RELEASE = {"version": "5.2.0", "image": IMAGE, "url": EVIL, "channels": [EVIL]}
STATUS: dict[str, Any] = {
    "desired": {"version": "5.0.0", "image": IMAGE, "channels": [EVIL]},
    "history": [
        {
            "state": "Partial",
            "startedTime": WHEN,
            "completionTime": None,
            "version": f"5.0.0{EVIL}",
            "image": IMAGE,
            "verified": False,
            "acceptedRisks": EVIL,
        }
    ],
    "conditions": [
        _condition(type_, "True") for type_ in ("Failing", "Progressing", "PreflightRunning", "PreflightCompleted")
    ]
    + [_condition(type_, "False") for type_ in ("Upgradeable", "ReleaseAccepted", "RetrievedUpdates")],
    "availableUpdates": [{"version": f"5.0.1{EVIL}", "image": IMAGE}],
    "conditionalUpdates": [
        {
            "release": RELEASE,
            "risks": [RISK],
            "riskNames": [RISK["name"]],
            "conditions": [_condition("Recommended", "False")],
        }
    ],
    "conditionalUpdateRisks": [RISK],
}
REPORT = Report(
    format=FORMAT,
    preflight_id="preflight-1-0123456789",
    source_version="5.0.0",
    target_version="5.2.0",
    target_image="quay.io/x@sha256:" + "a" * 64,
    execution_status="completed",
    message=EVIL,
    checks=(ReportedCheck(name=EVIL, result="Applies", message=EVIL),),
    risks=(
        ReportedRisk(
            name="Found",
            message=EVIL,
            reason=EVIL,
            remediation=EVIL,
            resources=(ReportedResource(group=EVIL, kind=EVIL, namespace=EVIL, name=EVIL),),
        ),
    ),
)
# A command, and what of it is typed. Those that only manage the sandbox's own processes show nothing of a cluster.
TYPED: dict[str, tuple[tuple[str, ...], ...]] = {
    "upgrade": (
        (),
        ("--include-not-recommended",),
        ("-o", "wide"),
        ("-o", "html"),
        ("-o", "json"),
        ("-o", "yaml"),
        ("--to", EVIL),
        ("--to-image", EVIL),
        ("--to", "5.2.0"),
        ("--mode", EVIL),
        ("--clear",),
    ),
    "upgrade calendar": ((), (EVIL,), ("--at", EVIL)),
    "upgrade gate": (("--to", "5.2.0"), ("--to", EVIL), (EVIL,), ("r",)),
    "upgrade approve": ((EVIL, "--gate", EVIL, "--reason", EVIL), ("r", "--gate", "g", "--reason", EVIL)),
    "upgrade policy explain": ((),),
    "upgrade policy show": ((),),
    "upgrade policy set": ((f"/nowhere/{EVIL}",),),
    "upgrade run start": ((EVIL,), ("5.2.0",)),
    "upgrade run retry": ((EVIL,), ("r", "--skip-pool", EVIL)),
    "upgrade policy acknowledge": ((),),
    "upgrade accept": ((EVIL,), ("Found",), ("Found", "--until", EVIL)),
    "upgrade channel": ((EVIL,), (EVIL, EVIL), ("--dump", f"/nowhere/{EVIL}")),
    "upgrade recommend": (
        (),
        ("--version", "5.2.0"),
        ("--version", EVIL),
        ("--show-outdated-releases",),
        ("--accept", EVIL),
        ("-o", "json"),
        ("-o", "yaml"),
        (EVIL,),
    ),
    "upgrade rollback": ((), (EVIL,)),
    "upgrade status": ((), ("--details", "all"), ("-o", "html"), ("-o", "json"), ("-o", "yaml"), ("--details", EVIL)),
    "preflight show": (
        (),
        *((word, "-o", form) for word in ("5.2.0",) for form in ("wide", "html", "json", "yaml")),
        ("--in-cluster",),
    ),
    "preflight history": ((), ("-o", "wide"), ("-o", "json"), ("-o", "yaml"), ("--in-cluster",)),
    "preflight schedule": (
        (),
        ("-o", "json"),
        ("-o", "yaml"),
        ("--every", EVIL),
        ("--every", "24h", "--image", EVIL),
        ("--every", "24h", "--image", IMAGE, "--to-channel", EVIL),
        ("--remove",),
    ),
    "preflight compare": (("5.2.0", "5.2.0"), ("5.2.0", "5.2.0", "-o", "json"), (EVIL, "5.2.0")),
    "preflight explain": ((f"Risk{EVIL}",), (f"Risk{EVIL}", "-o", "yaml"), (EVIL,)),
    "preflight run": (("--to", "5.2.0"), ("--to", EVIL), ("--dump", f"/nowhere/{EVIL}", "--to", "5.2.0")),
    "fleet preflight": (
        ("--contexts", "all"),
        ("--contexts", EVIL),
        ("--dumps", f"/nowhere/{EVIL}"),
        ("--hub", EVIL),
    ),
    "fleet addon": (("--placement", EVIL, "--every", "24h"), ("--placement", "a/b", "--every", EVIL)),
    "fleet rehearse": (("--contexts", EVIL, "--release-dir", f"/nowhere/{EVIL}"),),
    "fleet status": (("--contexts", "all"), ("--contexts", "all", "-o", "json"), ("--kubeconfigs", f"/nowhere/{EVIL}")),
    "fleet recommend": (
        ("--contexts", "all"),
        ("--contexts", "all", "-o", "json", "--version", "5.2.0"),
        ("--inventory", f"/nowhere/{EVIL}"),
        ("--contexts", "all", "--version", EVIL),
    ),
    "fleet update plan": ((f"/nowhere/{EVIL}", "--contexts", "all"), (f"/nowhere/{EVIL}", "--contexts", EVIL)),
    "fleet update check": ((f"/nowhere/{EVIL}", "--contexts", EVIL), (EVIL, "--hub", EVIL)),
    "fleet update start": ((f"/nowhere/{EVIL}", "--contexts", EVIL, "--journal", f"/nowhere/{EVIL}"),),
    "fleet update approve": (
        (EVIL, "--stage", EVIL, "--gate", EVIL, "--reason", EVIL, "--until", EVIL),
        (EVIL, "--stage", EVIL, "--gate", EVIL, "--reason", EVIL, "--hub", EVIL, "-n", EVIL),
    ),
    "fleet update retry": ((EVIL, EVIL, "--reason", EVIL), (EVIL, "--hub", EVIL, "--stage", EVIL)),
    "fleet update skip": ((EVIL, EVIL, "--reason", EVIL),),
    **{
        f"fleet update {name}": ((EVIL,), (f"/nowhere/{EVIL}", "--journal", f"/nowhere/{EVIL}"))
        for name in ("status", "watch", "hold", "resume", "abort")
    },
    "upgrade runs": ((), (EVIL,)),
    **{f"upgrade run {name}": ((EVIL,),) for name in ("hold", "resume", "abort", "skip")},
    "upgrade policy pause": (("--reason", EVIL), ("--reason", EVIL, "--until", EVIL)),
    "upgrade policy resume": ((),),
    "upgrade forecast": ((), ("--between", EVIL), ("--timezone", EVIL), ("--dump", f"/nowhere/{EVIL}")),
    "serve": (
        ("--contexts", EVIL),
        ("--dumps", f"/nowhere/{EVIL}"),
        ("--store", f"/nowhere/{EVIL}"),
        ("--listen", EVIL),
        ("--listen", f"{EVIL}:0", "--contexts", "all"),
        ("--graph", f"/nowhere/{EVIL}", "--contexts", "all"),
        ("--tls-cert", f"/nowhere/{EVIL}", "--tls-key", EVIL),
        ("--suppressions", f"/nowhere/{EVIL}"),
    ),
    "rehearse drain": ((), ("--window", EVIL), ("--dump", f"/nowhere/{EVIL}")),
    "fleet history": (("--store", f"/nowhere/{EVIL}"),),
    "dump collect": (
        (f"/proc/{EVIL}",),
        (f"/proc/{EVIL}", "--with", f"/nowhere/{EVIL}"),
        ("/proc", "--redact", EVIL),
    ),
    "kmod check": (
        ("--kernel", EVIL),
        ("--to-image", EVIL),
        ("--to-image", f"oci:/nowhere/{EVIL}"),
        ("--dump", f"/nowhere/{EVIL}", "--kernel", "5.14.0-1.x86_64"),
    ),
    "checks new": ((EVIL, "--in", f"/nowhere/{EVIL}"),),
    "checks lint": ((f"/nowhere/{EVIL}",),),
    "checks test": ((f"/nowhere/{EVIL}",),),
    "checks list": (("--release-dir", f"/nowhere/{EVIL}"),),
    "checks explain": ((EVIL,),),
    "checks coverage": (("--release", f"5.1.0=/nowhere/{EVIL}", "--update", EVIL),),
    "graph build": ((f"/nowhere/{EVIL}",), ("/", "--releases", EVIL)),
    "graph serve": ((f"/nowhere/{EVIL}",), ("/", "--listen", EVIL)),
    "graph show": ((f"/nowhere/{EVIL}", "--from", EVIL, "--channel", EVIL),),
    "release info": ((f"/nowhere/{EVIL}",),),
    "release manifests": ((f"/nowhere/{EVIL}",),),
    "release new": ((f"/nowhere/{EVIL}",),),
    "release extract": ((f"/nowhere/{EVIL}", "--file", EVIL), (f"/nowhere/{EVIL}", "--to", f"/nowhere/{EVIL}")),
    "release diff": ((f"/nowhere/{EVIL}", f"/nowhere/{EVIL}"), ("--live", f"/nowhere/{EVIL}")),
    "release explain": (("configmap", EVIL, "--release", f"/nowhere/{EVIL}"),),
    "check": ((), ("-o", "json"), ("-o", "yaml")),
    "install": (
        ("update-status", "--image", EVIL, "-o=yaml"),
        ("update-status", "--image", "i:1", "-o=yaml"),
        ("operator", "--image", IMAGE, "--dry-run=server"),
        ("operator", "--image", "i@sha256:" + "a" * 64, "--dry-run=server"),
        ("kernel-modules", "--image", "i:1", "--namespace", EVIL, "--dry-run=server"),
        ("update-status", "--image", "i:1", "--prometheus", EVIL),
        ("update-policy", "--image", "i:1", "--namespace", EVIL),
        (EVIL,),
    ),
    "uninstall": (("update-status",), ("operator", "--namespace", EVIL, "--dry-run=server"), (EVIL,)),
    "version": ((), ("-o", "json"), (EVIL,)),
    "completion": ((EVIL,),),
    "sandbox list": ((),),
    "sandbox logs": (("--folder", f"/nowhere/{EVIL}", EVIL),),
    "sandbox status": (("--folder", f"/nowhere/{EVIL}"),),
}
OF_THE_SANDBOX = {"sandbox start", "sandbox stop", "sandbox reset", "demo"}


def _leaves(group: click.Group, before: str = "") -> Iterator[str]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        words = f"{before}{name}"
        if isinstance(command, click.Group):
            yield from _leaves(command, f"{words} ")
            if command.invoke_without_command and before == "" and name == "upgrade":
                yield words
        elif command is not None and not command.hidden:
            yield words


def test_no_command_is_forgotten() -> None:
    """A new command has to be typed against the hostile cluster too; `adm upgrade` is `upgrade`."""
    found = {words for words in _leaves(root) if not words.startswith("adm")}
    assert found - OF_THE_SANDBOX <= set(TYPED)
    assert {"upgrade", "upgrade status", "preflight explain"} <= found


@pytest.fixture
def hostile(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """A cluster of which an attacker wrote every text."""
    monkeypatch.setenv("CVO_NAMESPACE", NAMESPACE)
    spec = {"channel": EVIL, "upstream": EVIL, "desiredUpdate": {"mode": "Preflight", "version": "5.2.0"}}
    server.set_cluster_version(spec=spec, status=STATUS)
    try:
        server.client.send(calls.get(Namespace, NAMESPACE))
    except NotFound:
        server.client.send(calls.create(resource_of(Namespace), {"metadata": {"name": NAMESPACE}}))
    data = {"preflight-1-0123456789.json": encode(REPORT).decode()}
    body = stored_reports.config_map(History(), NAMESPACE) | {"data": data}
    server.client.send(calls.apply(resource_of(ConfigMap), body, field_manager="test", force=True))
    _write_kept_reports(server, data)
    return server


def _write_kept_reports(server: Server, data: dict[str, str]) -> None:
    """What preflights as Jobs leave, had somebody else the right to write it."""
    last = LastScheduled(id=EVIL, target_version=EVIL, risks=1, new=(EVIL,))
    kept = kept_history.empty_config_map() | {"data": data}
    kept["metadata"]["annotations"] = {kept_history.LAST_SCHEDULED_ANNOTATION: codec.encode(last).decode()}
    job = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}}}
    annotations = {schedule.EVERY_ANNOTATION: EVIL, schedule.TARGET_ANNOTATION: EVIL}
    labels = {schedule.SCHEDULED_LABEL: "true"}
    metadata = {"name": schedule.NAME, "namespace": RUNS, "annotations": annotations, "labels": labels}
    cron_job = {"metadata": metadata, "spec": {"schedule": "0 0 * * *", "jobTemplate": job}}
    for resource, obj in (
        (resource_of(Namespace), {"metadata": {"name": RUNS}}),
        (resource_of(ConfigMap), kept),
        (schedule.CRON_JOB, cron_job),
    ):
        server.client.send(calls.apply(resource, obj, field_manager="test", force=True))


@pytest.mark.parametrize("command", sorted(TYPED))
def test_nothing_reaches_the_terminal(command: str, run: Run, hostile: Server) -> None:
    """Whatever is typed, neither stream carries a control character; programs get the value itself."""
    for words in TYPED[command]:
        connected = (
            () if command.startswith(("sandbox", "completion", "checks")) else ("--kubeconfig", str(hostile.kubeconfig))
        )
        ran = run(*command.split(), *words, *connected)
        assert not is_hazardous(ran.out), (words, ran.out)
        assert not is_hazardous(ran.err), (words, ran.err)
        if words[-2:] in (("-o", "json"), ("-o", "yaml")) and command not in (
            "version",
            "upgrade status",
            "fleet status",
        ):
            read = (json.loads if "json" in words else yaml.safe_load)(ran.out)
            assert EVIL in "".join(_texts(read))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _texts(item)


def test_a_terminal_sees_escapes(run: Run, hostile: Server) -> None:
    """The words are there all the same, so that somebody notices."""
    ran = run("upgrade", "--kubeconfig", hostile.kubeconfig)
    assert f"Upstream: {printable(EVIL)}\n" in ran.out
    assert f"Message: {printable(EVIL)}\n" in ran.out


SCREENS = [Screen(width, 24, colour) for width in (20, 60, 200) for colour in (False, True)]


@pytest.mark.parametrize("screen", SCREENS, ids=str)
def test_what_is_drawn_has_colours_of_ours_alone(screen: Screen) -> None:
    """Every table and paragraph on a terminal; the escapes that are left are those of colours."""
    wanted = {"desiredUpdate": {"mode": "Preflight", "version": "5.2.0"}}
    cluster = codec.convert(ClusterVersion, {"spec": wanted, "status": STATUS})
    stored = History(reports=(REPORT,))
    texts = [
        finding_texts.result(findings_of_target(cluster, stored, "5.2.0"), screen),
        finding_texts.result(findings_of_target(cluster, stored, "5.2.0"), screen, wide=True),
        rendered_history.history(stored, screen, wide=True),
        rendered_history.comparison(rendered_history.compare(REPORT, REPORT), screen, wide=True),
        explanation(explain_risk(cluster, stored, RISK["name"], EVIL), screen),
        wait_progress.region(
            upgrade_wait.Progress(EVIL, findings_of_target(cluster, stored, "5.2.0").risks, EVIL), screen
        ),
    ]
    assert (screen.colour, True) == ("\x1b[" in texts[0], "Risk" in texts[0])
    for text in texts:
        assert not is_hazardous(re.sub("\x1b\\[[0-9;]*m", "", text)), text


def test_a_page_shows_escapes() -> None:
    """Text, attributes and links of the HTML page."""
    page = el("p", EVIL, link(f"https://example.com/{EVIL}", EVIL), title=EVIL)
    assert not is_hazardous(page)
    assert printable(EVIL) in page


def test_a_log_line_shows_escapes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every field of the operator's log, and the traceback of what somebody else's text broke."""
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    process_log.configure_logging()
    try:
        log = structlog.get_logger()
        try:
            raise ValueError(EVIL)
        except ValueError:
            log.exception(EVIL, error=EVIL, names=[EVIL])
    finally:
        structlog.reset_defaults()
    line = stream.getvalue()
    assert not is_hazardous(line)
    assert json.loads(line)["error"] == printable(EVIL)


def test_colours_of_our_own_pass() -> None:
    """Drawing functions bypass the escaping; writing functions do not."""
    stream = io.StringIO()
    front: Any = Printable(stream)
    front.write("\x1b[1m")
    without_printable(front).write("\x1b[1m")
    assert stream.getvalue() == "\\x1b[1m\x1b[1m"


def test_paths_are_files_of_this_test(tmp_path: Path, run: Run) -> None:
    """A folder whose name does something is named in the error."""
    ran = run("upgrade", "status", "--dump", tmp_path / EVIL.replace("\0", ""))
    assert ran.code != 0
    assert "\\x1b" in ran.err
