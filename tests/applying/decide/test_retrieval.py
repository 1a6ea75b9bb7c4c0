"""The Pod that fetches a release: its shape, and when its status says that it ended."""

from __future__ import annotations

from typing import Any

import pytest

from runup.applying.decide.retrieval_pod import folder_name, pod, pod_end, waiting_text

IMAGE = "registry.example/release@sha256:" + "5" * 64


def made(version: str = "5.2.0") -> dict[str, Any]:
    """The Pod for a release."""
    return pod(IMAGE, version, namespace="ns", node="node-1", suffix="abcde")


def test_the_folder_is_that_of_upstream() -> None:
    """A payload that either operator left is found by the other: base64 of the MD5 of the pull spec."""
    # printf %s 'quay.io/x/y@sha256:1' | openssl md5 -binary | base64 | tr '+/' '-_' | tr -d =
    assert folder_name("quay.io/x/y@sha256:1") == "0CLmVVN2KTdZ_h_APCee0Q"


def test_the_pod_copies_aside_and_renames_last() -> None:
    """Half a copy never has the name of a release."""
    spec = made()["spec"]
    commands = [container["command"] for container in (*spec["initContainers"], *spec["containers"])]
    folder = f"/etc/cvo/updatepayloads/{folder_name(IMAGE)}"
    assert commands == [
        ["sh", "-c", "rm -fR ./*"],
        ["mkdir", f"{folder}-abcde"],
        ["cp", "-r", "/manifests", f"{folder}-abcde/manifests"],
        ["cp", "-r", "/release-manifests", f"{folder}-abcde/release-manifests"],
        ["mv", f"{folder}-abcde", folder],
    ]
    assert spec["initContainers"][0]["workingDir"] == "/etc/cvo/updatepayloads"
    assert {container["image"] for container in (*spec["initContainers"], *spec["containers"])} == {IMAGE}
    assert (spec["nodeName"], spec["restartPolicy"], spec["activeDeadlineSeconds"]) == ("node-1", "OnFailure", 120)
    assert spec["automountServiceAccountToken"] is False


@pytest.mark.parametrize(
    ("version", "name"),
    [
        pytest.param("5.2.0", "version-5.2.0-abcde", id="a version"),
        pytest.param("", "version--abcde", id="none"),
        pytest.param("5" * 200, f"version-{'5' * 200}-abcde", id="as long as a name has room for"),
        pytest.param("5" * 201, f"version-{'5' * 200}-abcde", id="a character more"),
        pytest.param("5.2.0-ec.1+Build_7", "version-5.2.0-ec.1-build-7-abcde", id="what a name may not have"),
    ],
)
def test_the_pods_name(version: str, name: str) -> None:
    """As upstream's, and always a name."""
    assert made(version)["metadata"]["name"] == name


def status(phase: str, *, init: dict[str, Any] | None = None, main: dict[str, Any] | None = None) -> dict[str, Any]:
    """A Pod with one container of each sort in that state."""
    found: dict[str, Any] = {"phase": phase}
    if init:
        found["initContainerStatuses"] = [{"name": "cleanup", "state": init}]
    if main:
        found["containerStatuses"] = [{"name": "rename-to-final-location", "state": main}]
    return {"metadata": {"name": "version-x"}, "status": found}


def state(kind: str, reason: str, message: str = "") -> dict[str, Any]:
    """The state of a container."""
    return {kind: {"reason": reason, "message": message}}


# Of containerd 1.6 with kubelet 1.34.
CONTAINERD_NOT_FOUND = (
    "rpc error: code = NotFound desc = failed to pull and unpack image: failed to resolve reference: not found"
)


# Of a containerd that finds no such program, and of coreutils.
NO_SHELL = 'failed to create containerd task: exec: "sh": executable file not found in $PATH: unknown'
NO_MANIFESTS = "cp: cannot stat '/manifests': No such file or directory\n"
LATE = "Pod was active on the node longer than the specified deadline"
NEEDS = (
    "; the image of a release has /manifests and /release-manifests, and for this pod sh, rm, mkdir, cp and mv; "
    "--release-source=registry reads its files without running it"
)


def restarted(phase: str, name: str, code: int, reason: str, message: str) -> dict[str, Any]:
    """A Pod whose init container `name` failed several times, and waits to be started again."""
    ended = {"exitCode": code, "reason": reason, "message": message}
    waiting = state("waiting", "CrashLoopBackOff", f"back-off 40s restarting failed container={name}")
    first = {"name": "cleanup", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}
    again = {"name": name, "restartCount": 3, "state": waiting, "lastState": {"terminated": ended}}
    rest = {"name": "rename-to-final-location", "state": state("waiting", "PodInitializing")}
    late = {"reason": "DeadlineExceeded", "message": LATE} if phase == "Failed" else {}
    init = [again] if name == "cleanup" else [first, again]
    return {
        "metadata": {"name": "version-x"},
        "status": {"phase": phase, "initContainerStatuses": init, "containerStatuses": [rest], **late},
    }


COPY = "copy-operator-manifests-to-temporary-directory"
BACK_OFF = 'is waiting with reason "CrashLoopBackOff" and message "back-off 40s restarting failed container='


@pytest.mark.parametrize(
    ("found", "error"),
    [
        pytest.param(status("Succeeded"), "", id="it succeeded"),
        pytest.param(status("Running"), None, id="it runs"),
        pytest.param({"metadata": {"name": "x"}}, None, id="nobody took it up yet"),
        pytest.param(
            status("Pending", init=state("waiting", "ErrImagePull", "connection refused")),
            None,
            id="a registry that is away may come back",
        ),
        pytest.param(
            status("Pending", init=state("waiting", "ErrImagePull", "reading manifest: manifest unknown")),
            'pod version-x will not start: initcontainer cleanup is waiting with reason "ErrImagePull" and message '
            '"reading manifest: manifest unknown"',
            id="an image that the registry does not know",
        ),
        pytest.param(
            status("Pending", init=state("waiting", "ErrImagePull", CONTAINERD_NOT_FOUND)),
            'pod version-x will not start: initcontainer cleanup is waiting with reason "ErrImagePull" and message '
            f'"{CONTAINERD_NOT_FOUND}"',
            id="the same, as containerd says it",
        ),
        pytest.param(
            status("Pending", init=state("waiting", "ImagePullBackOff", "manifest unknown")),
            None,
            id="a pull that is tried again, whatever the last one said",
        ),
        pytest.param(status("Pending", init=state("waiting", "ContainerCreating")), None, id="a container being made"),
        pytest.param(status("Pending", init=state("waiting", "Throttled", "later")), None, id="a reason unknown to us"),
        pytest.param(
            status("Running", init=state("waiting", "SignatureValidationFailed", "no")),
            None,
            id="it was refused, and runs",
        ),
        pytest.param(status("Unknown"), None, id="a node that does not answer"),
        pytest.param(
            status("Pending", main=state("waiting", "SignatureValidationFailed", "no")),
            "pod version-x will not start: container rename-to-final-location is waiting with reason "
            '"SignatureValidationFailed" and message "no"',
            id="an image whose signature the node refuses",
        ),
        pytest.param(
            status("Failed", init=state("terminated", "Error", "no space left on device")),
            'pod version-x failed with reason "" and message "" and status initcontainer cleanup is terminated with '
            f'reason "Error" and message "no space left on device"{NEEDS}',
            id="a full disk",
        ),
        pytest.param(
            {"metadata": {"name": "x"}, "status": {"phase": "Failed", "reason": "DeadlineExceeded", "message": "late"}},
            'pod x failed with reason "DeadlineExceeded" and message "late" and status ',
            id="its own time limit",
        ),
        pytest.param(
            restarted("Failed", COPY, code=1, reason="Error", message=NO_MANIFESTS),
            f'pod version-x failed with reason "DeadlineExceeded" and message "{LATE}" and status initcontainer {COPY} '
            f'{BACK_OFF}{COPY}", after it ended with reason "Error" and message "{NO_MANIFESTS}"{NEEDS}',
            id="an image without a release's folder",
        ),
        pytest.param(
            restarted("Failed", "cleanup", code=128, reason="StartError", message=NO_SHELL),
            f'pod version-x failed with reason "DeadlineExceeded" and message "{LATE}" and status initcontainer '
            f'cleanup {BACK_OFF}cleanup", after it ended with reason "StartError" and message "{NO_SHELL}"{NEEDS}',
            id="an image without a shell",
        ),
        pytest.param(
            {
                "metadata": {"name": "x"},
                "status": {
                    "phase": "Failed",
                    "reason": "Evicted",
                    "message": "no disk",
                    "initContainerStatuses": [
                        {
                            "name": "cleanup",
                            "state": state("terminated", "Completed"),
                            "lastState": state("terminated", "Error", "busy"),
                        }
                    ],
                },
            },
            'pod x failed with reason "Evicted" and message "no disk" and status ',
            id="a program that failed once and then succeeded",
        ),
        pytest.param(
            restarted("Pending", COPY, code=1, reason="Error", message=NO_MANIFESTS),
            None,
            id="a copy that is tried again",
        ),
    ],
)
def test_when_it_ended(found: dict[str, Any], error: str | None) -> None:
    """None while it may still succeed."""
    end = pod_end(found)
    assert (None if end is None else end.error) == error


def test_what_it_waits_for() -> None:
    """Tests the messages of our time limit."""
    unscheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}
    assert waiting_text({"status": {"phase": "Pending", "conditions": [unscheduled]}}) == "Unschedulable: no room"
    scheduled = {"type": "PodScheduled", "status": "True", "reason": "Done", "message": "on a"}
    silent = {"type": "Ready", "status": "False", "reason": "NotReady"}
    assert waiting_text({"status": {"phase": "Pending", "conditions": [scheduled, silent]}}) == "phase Pending"
    assert waiting_text({}) == "phase unknown"
    begins = status("Pending", init=state("waiting", "PodInitializing"), main=state("terminated", "Completed"))
    assert waiting_text(begins) == "phase Pending"
    both = status("Pending", init=state("terminated", "Error", "x"), main=state("waiting", "Later", "y"))
    assert waiting_text(both) == (
        'initcontainer cleanup is terminated with reason "Error" and message "x", '
        'container rename-to-final-location is waiting with reason "Later" and message "y"'
    )


def test_what_failed_is_told_while_it_is_tried_again() -> None:
    """The back-off says only that it waits."""
    assert waiting_text(restarted("Pending", COPY, code=1, reason="Error", message=NO_MANIFESTS)) == (
        f'initcontainer {COPY} {BACK_OFF}{COPY}", after it ended with reason "Error" and message "{NO_MANIFESTS}"'
    )


def test_the_pod_may_write_where_releases_are() -> None:
    """As root of the node there, and nowhere in its own image."""
    spec = made()["spec"]
    containers = (*spec["initContainers"], *spec["containers"])
    assert [each["securityContext"] for each in containers] == [
        {"privileged": True, "readOnlyRootFilesystem": True}
    ] * len(containers)
