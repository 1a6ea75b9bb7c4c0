"""The demo's story in this process: its commands are written down by a stand-in, and the cluster is what that says."""

from __future__ import annotations

import json
import shutil
import signal
import stat
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.cli.answering import answering
from tests.cli.commands import Run, cluster
from tests.few_or_many import first_and_rest

from kubekit.api.scheme import resource_of
from kubekit.kube import calls
from runup.api.config_v1 import ClusterVersion
from runup.api.machineconfig_v1 import MachineConfigPool
from runup.cli.sandbox import demo
from runup.cli.sandbox.demo import DUAL_STACK_RISK, PAUSED_POOL_RISK, UNPAUSE_COMMAND, remove
from runup.process.ending_signals import ending_signals

VERSION = calls.path_of(resource_of(ClusterVersion), "", "version")
POOL = calls.path_of(resource_of(MachineConfigPool), "", "infra")
# What stands for `runup` and for `kubectl`: it writes down what it was called with, and says and does what it was told.
STAND_IN = """\
import json, os, pathlib, sys
words = sys.argv[1:]
world = pathlib.Path(os.environ["STAND_IN"])
with (world / "called").open("a") as called:
    called.write(json.dumps(words) + "\\n")
data = pathlib.Path(words[words.index("--data") + 1]) if "--data" in words else None
if words[1:3] == ["sandbox", "start"]:
    (data / "logs").mkdir()
    (data / "logs" / "cluster.log").write_text("")
    (data / "pods" / "ns_operator_1").mkdir(parents=True)
    (data / "pods" / "ns_operator_1" / "main.log").write_text("why")
    (data / "sandbox.json").write_text("{}")
    (data / "admin.kubeconfig").write_text((world / "config").read_text())
told = json.loads((world / "told.json").read_text())
place = len((world / "called").read_text().splitlines()) - 1
mine = told.get(" ".join(words)) or told.get(str(place)) or {}
if "state" in mine:
    (world / "state").write_text(json.dumps(mine["state"]))
sys.stdout.write(mine.get("out", ""))
sys.stderr.write(mine.get("err", ""))
sys.exit(mine.get("code", 0))
"""


def update(version: str, *names: str) -> dict[str, Any]:
    """An update with risks that apply."""
    verdict = {"type": "Applies", "status": "True", "reason": "R", "message": "m"}
    risks = [{"name": name, "message": "m", "url": "https://example.com", "conditions": [verdict]} for name in names]
    return {"release": {"version": version, "image": "i"}, "risks": risks}


def state(*updates: dict[str, Any], desired: str = "5.0.0", **more: Any) -> dict[str, Any]:
    """A ClusterVersion."""
    status = {"desired": {"version": desired}, "conditionalUpdates": [update("5.1.0", "Other"), *updates], **more}
    return {"metadata": {"name": "version", "resourceVersion": "7"}, "spec": {"clusterID": "x"}, "status": status}


def progressing(message: str) -> dict[str, Any]:
    """An update that is under way."""
    condition = {"type": "Progressing", "status": "True", "reason": "R", "message": message}
    return state(desired="5.0.3", conditions=[condition], history=[past("5.0.3", "Partial")])


def past(version: str, result: str = "Completed") -> dict[str, Any]:
    """An entry of the history."""
    return {"state": result, "startedTime": "2026-01-14T09:30:00Z", "version": version, "image": "i"}


def listed(*names: str, accepted: tuple[str, ...] = (), clear: tuple[str, ...] = ()) -> str:
    """Returns the entry of `upgrade -o json` for 5.2.0, after another one; risks in `clear` do not apply."""
    found = update("5.2.0", *names, *clear)
    for risk in found["risks"]:
        risk["conditions"][0] = {**risk["conditions"][0], "status": "False" if risk["name"] in clear else "True"}
    found["risks"].append({"name": "Unsaid", "message": "m", "url": "u"})
    desired = {"acceptRisks": [{"name": name} for name in accepted]} if accepted else None
    return json.dumps({"desiredUpdate": desired, "conditionalUpdates": [update("5.1.0", "Other"), found]})


BLOCKED = "runup upgrade --to=5.2.0"
VERDICT = "runup preflight show"
REST = "runup upgrade accept Slow,Unsaid"
STORY: dict[str, dict[str, Any]] = {
    "runup upgrade --mode=preflight --to=5.2.0 --wait": {
        "code": 2,
        "state": state(update("5.2.0", PAUSED_POOL_RISK, DUAL_STACK_RISK, "Slow")),
    },
    # The first question which risks are open is the fourth command.
    "3": {"out": listed(PAUSED_POOL_RISK, DUAL_STACK_RISK, "Slow")},
    " ".join(UNPAUSE_COMMAND): {"state": state(update("5.2.0", DUAL_STACK_RISK, "Slow"))},
    BLOCKED: {"code": 1},
    "7": {"out": listed(DUAL_STACK_RISK, "Slow", accepted=(DUAL_STACK_RISK,), clear=("Over",))},
    VERDICT: {"code": 2},
    "runup upgrade --to=5.0.3": {"state": progressing("Working towards 5.0.3: 3 of 9 done (33% complete)")},
    "runup upgrade status": {"state": state(desired="5.0.3", history=[past("5.0.3"), past("5.0.0")])},
}
START = state(availableUpdates=[{"version": "5.0.3", "image": "i"}])


@dataclass
class Machine:
    """The stand-in's folder, and what was sent to the cluster."""

    folder: Path
    sent: list[tuple[str, Any]] = field(default_factory=list)

    def tell(self, **changes: dict[str, Any]) -> None:
        """The story, with other turns."""
        (self.folder / "told.json").write_text(json.dumps({**STORY, **changes}))

    @property
    def called(self) -> list[str]:
        """Returns the typed commands without folders."""
        lines = (self.folder / "called").read_text().splitlines()
        return [" ".join("DIR" if word.startswith("/") else word for word in json.loads(line)) for line in lines]

    @property
    def left(self) -> list[str]:
        """Files of the demo that are still there."""
        found = (self.folder / "tmp").rglob("*")
        return sorted("/".join(path.relative_to(self.folder / "tmp").parts[1:]) for path in found if path.is_file())


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """A machine whose `runup` and `kubectl` are stand-ins; signals are as they were when it is over."""
    made = Machine(tmp_path)
    for folder in ("runup", "bin", "tmp"):
        (tmp_path / folder).mkdir()
    call = "import sys; sys.argv[1:1] = ['runup']\n"
    (tmp_path / "runup" / "__init__.py").write_text("")
    (tmp_path / "runup" / "__main__.py").write_text(call + STAND_IN)
    (tmp_path / "kubectl.py").write_text("import sys; sys.argv[1:1] = ['kubectl']\n" + STAND_IN)
    kubectl = tmp_path / "bin" / "kubectl"
    kubectl.write_text(f'#!/bin/sh\nexec {sys.executable} {tmp_path / "kubectl.py"} "$@"\n')
    kubectl.chmod(kubectl.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "state").write_text(json.dumps(START))
    made.tell()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("STAND_IN", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.setattr(demo, "STEP_TIMEOUT_S", 0.0)
    handlers = {number: signal.getsignal(number) for number in ending_signals()}
    answers = {VERSION: lambda: json.loads((tmp_path / "state").read_text()), POOL: {"metadata": {"name": "infra"}}}
    with answering(tmp_path, answers, made.sent):
        yield made
    for number, handler in handlers.items():
        signal.signal(number, handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ending_signals())


TYPED = [
    "runup sandbox start --scenario skip-level --data DIR",
    "runup upgrade",
    "runup upgrade --mode=preflight --to=5.2.0 --wait",
    "runup upgrade -o json",
    " ".join(UNPAUSE_COMMAND),
    f"runup upgrade accept {DUAL_STACK_RISK}",
    BLOCKED,
    "runup upgrade -o json",
    REST,
    VERDICT,
    "runup upgrade --to=5.0.3",
    "kubectl -n openshift-cluster-version-operator get deployments",
    "runup upgrade status",
    "runup upgrade",
    "runup sandbox stop --data DIR",
]


def test_the_story(machine: Machine, run: Run) -> None:
    """Step by step, each once the cluster is where the one before led; at the end nothing is left."""
    ran = run("demo")
    assert (ran.code, ran.err) == (0, "")
    assert machine.called == TYPED
    shown = [line.removeprefix("$ ") for line in ran.out.splitlines() if line.startswith("$ ")]
    quiet = {"runup upgrade -o json", "runup sandbox stop --data DIR"}
    seen = [line for line in TYPED if line not in quiet]
    assert [line.partition(" --data")[0].replace("'", "") for line in shown] == [
        line.partition(" --data")[0] for line in seen
    ]
    assert "\n# We accept the other 2 too. That settles the risks" in ran.out
    assert ran.out.endswith("Keep one: runup sandbox start --scenario skip-level\n")
    assert list((machine.folder / "tmp").iterdir()) == []
    assert machine.sent == []


def test_without_kubectl_its_request_is_sent_all_the_same(
    machine: Machine, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what only shows something is not run at all."""
    monkeypatch.setenv("PATH", str(machine.folder))
    machine.tell(
        **{
            "runup upgrade --mode=preflight --to=5.2.0 --wait": {"code": 2, "state": state(update("5.2.0", "Slow"))},
            "runup upgrade -o json": {"out": listed(PAUSED_POOL_RISK, "Slow")},
        }
    )
    ran = run("demo")
    assert (ran.code, ran.err) == (0, "")
    assert machine.sent == [(POOL, {"spec": {"paused": False}})]
    assert ran.out.count("(kubectl is not installed; runup sends the same request)\n") == 2
    assert ran.out.count("\n$ kubectl ") == 2
    assert not [line for line in machine.called if line.startswith("kubectl")]


@pytest.mark.parametrize(
    ("turns", "said"),
    first_and_rest(
        [
            pytest.param(
                {"runup upgrade --mode=preflight --to=5.2.0 --wait": {"code": 0}},
                "`runup upgrade --mode=preflight --to=5.2.0 --wait` ended with exit code 0 instead of 2",
                id="another exit code than seen",
            ),
            pytest.param(
                {" ".join(UNPAUSE_COMMAND): {"code": 7}}, "` ended with exit code 7 instead of 0", id="kubectl fails"
            ),
            pytest.param(
                {"3": {"code": 1, "err": "  no such cluster\n"}},
                "`runup upgrade -o json` failed: no such cluster",
                id="a question that fails",
            ),
            pytest.param(
                {"3": {"out": listed(PAUSED_POOL_RISK, accepted=(PAUSED_POOL_RISK,))}},
                f"the preflight did not find {PAUSED_POOL_RISK}",
                id="accepted",
            ),
            pytest.param(
                {"3": {"out": listed("Slow")}}, f"the preflight did not find {PAUSED_POOL_RISK}", id="another risk"
            ),
            pytest.param(
                {"3": {"out": listed("Slow", clear=(PAUSED_POOL_RISK,))}},
                f"the preflight did not find {PAUSED_POOL_RISK}",
                id="a risk that is over",
            ),
            pytest.param(
                {"3": {"out": json.dumps({"desiredUpdate": None, "conditionalUpdates": []})}},
                f"the preflight did not find {PAUSED_POOL_RISK}",
                id="no update",
            ),
            pytest.param(
                {"runup sandbox start": {}, "0": {"state": state()}},
                "waited 0 s until the update service has answered",
                id="no updates",
            ),
            pytest.param(
                {" ".join(UNPAUSE_COMMAND): {"code": 0}},
                f"waited 0 s until {PAUSED_POOL_RISK} goes away",
                id="a fix that does not help",
            ),
            pytest.param({BLOCKED: {"code": 0}}, f"`{BLOCKED}` ended with exit code 0 instead of 1", id="not blocked"),
            pytest.param({REST: {"code": 1}}, f"`{REST}` ended with exit code 1 instead of 0", id="not accepted"),
            pytest.param(
                {VERDICT: {"code": 0}}, f"`{VERDICT}` ended with exit code 0 instead of 2", id="nothing is refused"
            ),
            pytest.param(
                {"runup upgrade --to=5.0.3": {"state": state(desired="5.2.0")}},
                "waited 0 s until the update to 5.0.3 starts",
                id="another update",
            ),
            pytest.param(
                {"runup upgrade --to=5.0.3": {"state": progressing("Working towards 5.0.3: downloading")}},
                "waited 0 s until manifests of 5.0.3 are applied",
                id="nothing is applied",
            ),
            pytest.param(
                {"runup upgrade --to=5.0.3": {"state": progressing("Working towards 5.0.9: 3 of 9 done (33%)")}},
                "waited 0 s until manifests of 5.0.3 are applied",
                id="manifests of another are applied",
            ),
            pytest.param(
                {"runup upgrade status": {"code": 0}},
                "waited 0 s until the update to 5.0.3 is completed",
                id="not yet there",
            ),
            pytest.param(
                {"runup upgrade status": {"state": state(desired="5.0.3", history=[past("5.0.0"), past("5.0.3")])}},
                "waited 0 s until the update to 5.0.3 is completed",
                id="another one was completed since",
            ),
        ],
        5,
    ),
)
def test_a_step_that_goes_otherwise_than_told(turns: dict[str, Any], said: str, machine: Machine, run: Run) -> None:
    """The story ends there: 1, what went wrong, and of its folder the logs alone are kept."""
    machine.tell(**turns)
    ran = run("demo")
    assert ran.code == 1
    blank, stopped, logs = ran.err.splitlines()
    assert (blank, stopped[:19]) == ("", "The demo stopped: " + stopped[18])
    assert stopped.endswith(said)
    assert machine.called[-1] == "runup sandbox stop --data DIR"
    assert machine.left == ["logs/cluster.log", "logs/ns_operator_1/main.log"]
    assert (Path(logs.removeprefix("Logs: ")) / "cluster.log").is_file()
    assert "The sandbox is stopped" not in ran.out


def test_an_update_that_is_done_at_once(machine: Machine, run: Run) -> None:
    """Nobody saw its manifests be applied."""
    machine.tell(**{"runup upgrade --to=5.0.3": {"state": state(desired="5.0.3", history=[past("5.0.3")])}})
    assert run("demo").code == 0


@pytest.mark.parametrize("begun", [True, False], ids=["at its end", "after a step that failed"])
def test_a_sandbox_that_cannot_be_stopped(begun: bool, machine: Machine, run: Run) -> None:
    """1, and nothing is removed that it may still need."""
    stop = {"runup sandbox stop": {}, str(len(TYPED) - 1 if begun else 2): {"code": 1}}
    machine.tell(**stop, **({} if begun else {"1": {"code": 7}}))
    ran = run("demo")
    assert ran.code == 1
    assert ("The sandbox could not be stopped. Logs: " in ran.err) is begun
    assert "sandbox.json" in machine.left
    assert "The sandbox is stopped" not in ran.out


def test_a_reader_that_has_left_ends_the_story(machine: Machine) -> None:
    """As it ends a command that writes itself; nothing is left."""
    machine.tell(**{"1": {"code": 141}})
    assert demo.demo.callback is not None
    with pytest.raises(BrokenPipeError):
        demo.demo.callback()
    assert machine.called[-1] == "runup sandbox stop --data DIR"
    assert list((machine.folder / "tmp").iterdir()) == []


def test_an_interrupt_before_anything_was_begun(machine: Machine, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """130, one word; no sandbox is stopped that was never started."""
    made = tempfile.mkdtemp

    def interrupted(**how: Any) -> str:
        signal.raise_signal(signal.SIGINT)
        return made(**how)

    monkeypatch.setattr(tempfile, "mkdtemp", interrupted)
    ran = run("demo")
    assert (ran.code, ran.err) == (130, "\nStopped; clearing up.\n")
    assert not (machine.folder / "called").exists()
    assert list((machine.folder / "tmp").iterdir()) == []


def filled(folder: Path) -> Path:
    """A folder as a sandbox leaves it."""
    for name in ("logs", "certs"):
        (folder / "made" / name).mkdir(parents=True)
        (folder / "made" / name / "file").write_text("")
    (folder / "outside").mkdir()
    (folder / "outside" / "file").write_text("")
    (folder / "made" / "key").write_text("")
    (folder / "made" / "link").symlink_to(folder / "outside")
    return folder / "made"


def test_what_is_removed(tmp_path: Path) -> None:
    """All, or all but one part; links are cut, not followed."""
    made = filled(tmp_path)
    remove(made, but="logs")
    assert [path.name for path in made.rglob("*")] == ["logs", "file"]
    remove(made, but="elsewhere")
    assert not made.exists()
    remove(made, but="")  # somebody was faster
    shutil.rmtree(tmp_path / "outside")
    remove(filled(tmp_path), but="")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "outside"]


def test_risks_of_the_story_are_those_of_its_cluster() -> None:
    """The stand-in's status matches the API."""
    found = cluster(state(update("5.2.0", DUAL_STACK_RISK, "Slow"))).status.conditional_updates[1]
    assert [risk.name for risk in found.risks] == [DUAL_STACK_RISK, "Slow"]
