"""Builds and signatures as objects of the cluster: what they are made of, what becomes of them, and their names."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.kernelmodules.decide.validation_world import JSON, KERNEL

from kubekit.api import codec
from kubekit.api.whole_v1 import WholeJob, WholePod
from runup.api.build_v1 import Build
from runup.api.kmm_v1beta1 import BuildArg, TLSOptions
from runup.kernelmodules.decide import build_and_sign as image_names
from runup.kernelmodules.decide import build_and_sign as signing
from runup.kernelmodules.decide import build_jobs, builds
from runup.kernelmodules.decide.build_jobs import Builder
from runup.kernelmodules.decide.runs import LONGEST_NAME, MountedSecret, RunState, WantedRun

WANTED = WantedRun(
    purpose="build",
    validation="preflight",
    validation_uid="uid",
    namespace="drivers",
    module="kmod",
    kernel=f"{KERNEL}+rt",
    dockerfile="FROM scratch\n",
    arguments=(BuildArg(name="A", value="x y; rm -rf /"),),
    secrets=(MountedSecret("token", "/run/secrets/token"),),
    target="host:5000/kmod:v1",
    auth_secret="registry",
)
OWNER: JSON = {"kind": "PreflightValidation", "name": "preflight", "uid": "uid", "controller": True}


def test_a_job_builds_and_then_pushes() -> None:
    """Word for word, without a shell; what the Module says stays one word."""
    spec = build_jobs.job(WANTED, Builder(image="buildah:1"), OWNER)["spec"]["template"]["spec"]
    [build], [push] = spec["initContainers"], spec["containers"]
    stored = ["--root=/run/kmod/storage/images", "--runroot=/run/kmod/storage/run"]
    assert build["args"] == [
        *stored,
        "build",
        "--isolation=chroot",
        "--file=/run/kmod/dockerfile/dockerfile",
        "--build-arg=A=x y; rm -rf /",
        "--volume=/run/secrets/token:/run/secrets/token:ro",
        "--tag=host:5000/kmod:v1",
        "/run/kmod/context",
    ]
    assert push["args"] == [*stored, "push", "host:5000/kmod:v1"]
    assert {each["command"][0] for each in (build, push)} == {"/usr/bin/buildah"}
    assert {"name": "REGISTRY_AUTH_FILE", "value": "/run/kmod/auth/config.json"} in push["env"]


def test_a_job_without_a_push_only_builds() -> None:
    """It proves that the Dockerfile compiles, and needs nobody's leave to push."""
    spec = build_jobs.job(replace(WANTED, target=""), Builder(image="buildah:1"), OWNER)["spec"]["template"]["spec"]
    assert "initContainers" not in spec
    assert "--tag=localhost/kernel-module:preflight" in spec["containers"][0]["args"]


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(TLSOptions(insecure=True), id="plain HTTP"),
        pytest.param(TLSOptions(insecure_skip_tls_verify=True), id="a certificate that is not looked at"),
    ],
)
def test_a_registrys_tls_is_the_modules(options: TLSOptions) -> None:
    """That of the base image for the build, that of the image for the push."""
    wanted = replace(WANTED, pull_tls=options, push_tls=options)
    spec = build_jobs.job(wanted, Builder(image="buildah:1"), OWNER)["spec"]["template"]["spec"]
    assert all("--tls-verify=false" in each["args"] for each in (*spec["initContainers"], *spec["containers"]))


def test_what_a_run_is_made_of_is_its_name() -> None:
    """Anything else is another run; the same is the same."""
    others = [
        replace(WANTED, dockerfile="FROM other\n"),
        replace(WANTED, arguments=()),
        replace(WANTED, versions=("token:2",)),
        replace(WANTED, validation_uid="another"),
        replace(WANTED, purpose="sign"),
        replace(WANTED, target=""),
    ]
    names = {each.key.name for each in (WANTED, *others)}
    assert len(names) == 7
    assert replace(WANTED).key == WANTED.key
    assert {len(each.hash) for each in (WANTED, *others)} == {16}


def test_long_names_fit() -> None:
    """A Module may be called by 253 characters, a Job's pods by 63; the kernel's `+` is none of a label's."""
    long = replace(WANTED, module="k" * 200 + ".x")
    job = build_jobs.job(long, Builder(image="buildah:1"), OWNER)
    assert len(job["metadata"]["name"]) <= LONGEST_NAME
    assert all(len(value) <= 63 and "+" not in value for value in job["metadata"]["labels"].values())
    assert job["metadata"]["annotations"]["kmm.node.kubernetes.io/module.name"] == long.module


def a_job(*conditions: JSON, **metadata: Any) -> WholeJob:
    found = {
        "metadata": {
            "name": "run",
            "namespace": "drivers",
            "uid": "job-uid",
            "labels": {"kmm.node.kubernetes.io/module.name": "kmod"},
            "ownerReferences": [OWNER],
            **metadata,
        },
        "status": {"conditions": list(conditions)},
    }
    return codec.convert(WholeJob, found)


def a_pod(of: str = "run", namespace: str = "drivers", **state: JSON) -> WholePod:
    owner = {"kind": "Job", "name": of, "uid": "job-uid", "controller": True}
    status = {"initContainerStatuses": [{"name": "build", "state": state}], "containerStatuses": []}
    metadata = {"name": "run-x", "namespace": namespace, "ownerReferences": [owner]}
    return codec.convert(WholePod, {"metadata": metadata, "status": status})


FAILED = {"type": "Failed", "status": "True", "reason": "DeadlineExceeded", "message": "Job was active too long"}
JOBS = [
    pytest.param(a_job(), [], RunState.RUNNING, "", id="that has just been made"),
    pytest.param(
        a_job(),
        [a_pod(waiting={"reason": "CreateContainerConfigError", "message": 'secret "token" not found'})],
        RunState.RUNNING,
        'CreateContainerConfigError: secret "token" not found',
        id="that cannot begin",
    ),
    pytest.param(a_job({"type": "Complete", "status": "True"}), [], RunState.SUCCEEDED, "", id="that succeeded"),
    pytest.param(
        a_job(FAILED),
        [a_pod(terminated={"exitCode": 1, "reason": "Error", "message": "make: ***\n no rule\n"})],
        RunState.FAILED,
        "make: *** no rule",
        id="whose container failed",
    ),
    pytest.param(
        a_job(FAILED), [], RunState.FAILED, "DeadlineExceeded: Job was active too long", id="that took too long"
    ),
    pytest.param(a_job({"type": "Complete", "status": "False"}), [], RunState.RUNNING, "", id="that has not succeeded"),
    pytest.param(a_job({**FAILED, "status": "False"}), [], RunState.RUNNING, "", id="that has not failed"),
    pytest.param(
        a_job(FAILED),
        [a_pod(terminated={"exitCode": 0, "message": "done"}), a_pod(terminated={"exitCode": 2, "reason": "Error"})],
        RunState.FAILED,
        "Error, exit code 2",
        id="whose second container failed without a word",
    ),
    pytest.param(
        a_job(FAILED),
        [a_pod(terminated={"exitCode": 137})],
        RunState.FAILED,
        "Error, exit code 137",
        id="whose container failed for no reason",
    ),
    pytest.param(
        a_job(FAILED),
        [a_pod("other", terminated={"exitCode": 1, "message": "x"})],
        RunState.FAILED,
        "DeadlineExceeded: Job was active too long",
        id="beside which another failed",
    ),
    pytest.param(
        a_job(),
        [a_pod(namespace="elsewhere", waiting={"message": "x"}), a_pod("other", waiting={"message": "y"})],
        RunState.RUNNING,
        "",
        id="beside which others cannot begin",
    ),
    pytest.param(a_job(), [a_pod(waiting={"reason": "PodInitializing"})], RunState.RUNNING, "", id="that begins"),
    pytest.param(a_job(), [a_pod(waiting={"message": "no"})], RunState.RUNNING, ": no", id="that waits for no reason"),
]


@pytest.mark.parametrize(("job", "pods", "state", "detail"), JOBS)
def test_what_became_of_a_job(job: WholeJob, pods: list[WholePod], state: RunState, detail: str) -> None:
    """Its conditions say so, its pods say why."""
    run = build_jobs.run_of(job, pods)
    assert run is not None
    assert (run.state, run.detail, run.module, run.owner_uid) == (state, detail, "kmod", "uid")


def test_when_a_job_ended() -> None:
    """When it says so itself, else when its condition came; one that is being deleted is known as that."""
    complete = {"type": "Complete", "status": "True", "lastTransitionTime": "2026-11-21T11:00:00Z"}
    failed = {**FAILED, "lastTransitionTime": "2026-11-21T11:30:00Z"}
    said = codec.convert(
        WholeJob,
        {
            **codec.to_dict(a_job(complete)),
            "status": {"conditions": [complete], "completionTime": "2026-11-21T10:59:00Z"},
        },
    )
    found = [build_jobs.run_of(each, []) for each in (a_job(), a_job(complete), said, a_job(failed))]
    assert [f"{run.ended_at:%H:%M}" if run and run.ended_at else "" for run in found] == ["", "11:00", "10:59", "11:30"]
    leaving = build_jobs.run_of(a_job(deletionTimestamp="2026-11-21T11:00:00Z"), [])
    assert [run and run.deleting for run in (found[0], leaving)] == [False, True]


def test_the_whole_name_of_a_job_counts() -> None:
    """A label may have room for its head alone."""
    run = build_jobs.run_of(a_job(annotations={"kmm.node.kubernetes.io/module.name": "k" * 70}), [])
    assert run is not None
    assert run.module == "k" * 70


def test_a_job_of_nobodys_is_none_of_ours() -> None:
    """Labels alone do not make it one."""
    assert build_jobs.run_of(a_job(ownerReferences=[]), []) is None


PHASES = [
    pytest.param({}, RunState.RUNNING, "", id="that has just been made"),
    pytest.param({"phase": "New"}, RunState.RUNNING, "", id="New"),
    pytest.param({"phase": "Pending", "message": "no push secret"}, RunState.RUNNING, "no push secret", id="Pending"),
    pytest.param({"phase": "Running"}, RunState.RUNNING, "", id="Running"),
    pytest.param({"phase": "Complete"}, RunState.SUCCEEDED, "", id="Complete"),
    pytest.param({"phase": "Failed", "logSnippet": "no\ngcc"}, RunState.FAILED, "no gcc", id="Failed"),
    pytest.param(
        {"phase": "Error", "message": "no node"}, RunState.FAILED, "the Build ended as Error: no node", id="Error"
    ),
    pytest.param(
        {"phase": "Cancelled", "message": "by hand"},
        RunState.FAILED,
        "the Build ended as Cancelled: by hand",
        id="Cancelled",
    ),
    pytest.param({"phase": "Odd"}, RunState.FAILED, "the Build ended as Odd:", id="of a phase that nobody knows"),
]


@pytest.mark.parametrize(("status", "state", "detail"), PHASES)
def test_what_became_of_a_build(status: JSON, state: RunState, detail: str) -> None:
    """By its phase (internal/buildsign/resource/resourcemanager_test.go)."""
    made = {**builds.build(WANTED, OWNER, 60), "status": status}
    run = builds.run_of(codec.convert(Build, made))
    assert run is not None
    assert (run.state, run.detail, run.module) == (state, detail, "kmod")


@pytest.mark.parametrize(
    ("status", "ended"),
    [
        pytest.param({"phase": "Failed", "completionTimestamp": "2026-11-21T11:30:00Z"}, "11:30", id="it says when"),
        pytest.param({"phase": "Error"}, "11:00", id="it does not say when"),
        pytest.param({"phase": "Running"}, "", id="it runs"),
    ],
)
def test_when_a_build_ended(status: JSON, ended: str) -> None:
    """One that failed is tried again some time after its end, or after it was made."""
    made = {**builds.build(WANTED, OWNER, 60), "status": status}
    made["metadata"] = {**made["metadata"], "creationTimestamp": "2026-11-21T11:00:00Z"}
    run = builds.run_of(codec.convert(Build, made))
    assert run is not None
    assert (f"{run.ended_at:%H:%M}" if run.ended_at else "") == ended


def test_an_openshift_build_has_all_that_a_job_has() -> None:
    """Dockerfile, arguments, secrets, where to push and as whom."""
    spec = builds.build(WANTED, OWNER, 60)["spec"]
    assert spec["source"] == {"type": "Dockerfile", "dockerfile": "FROM scratch\n"}
    assert spec["output"] == {
        "to": {"kind": "DockerImage", "name": "host:5000/kmod:v1"},
        "pushSecret": {"name": "registry"},
    }
    strategy = spec["strategy"]["dockerStrategy"]
    assert strategy["buildArgs"] == [{"name": "A", "value": "x y; rm -rf /"}]
    assert [each["mounts"] for each in strategy["volumes"]] == [[{"destinationPath": "/run/secrets/token"}]]
    # A Build without its secret or the cluster's authorities fails late, and says less.
    assert [each["source"]["secret"] for each in strategy["volumes"]] == [{"secretName": "token", "optional": False}]
    assert spec["mountTrustedCA"] is True
    assert (spec["serviceAccount"], spec["completionDeadlineSeconds"]) == ("builder", 60)


IMAGES = [
    *(
        pytest.param(image, True, id=image)
        for image in ("k", "k:v1", "host:5000/k", "[::1]:5000/a/b:V_1", "r.example/a__b/c-d.e@sha256:00", "LOCAL/k:v1")
    ),
    *(
        pytest.param(image, False, id=what)
        for image, what in (
            ("", "nothing"),
            ("--authfile=/x:1", "a flag"),
            ("-k:1", "another flag"),
            ("dir:/tmp/x", "a folder of the builder's"),
            ("docker://r.example/k:1", "a transport"),
            ("a b", "two words"),
            ("a:1\nRUN id", "a second line"),
            ("a:$(id)", "a command"),
            ("$DTK_AUTO", "a variable"),
            ("k:1:2", "two tags"),
            ("K:1", "capitals in a repository"),
            ("k" * 1025, "longer than any"),
        )
    ),
]


@pytest.mark.parametrize(("image", "expected"), IMAGES)
def test_the_name_of_an_image(image: str, expected: bool) -> None:
    """Text that becomes a line of a Dockerfile or an argument cannot become anything else."""
    assert image_names.is_image(image) is expected


NAMES = [
    pytest.param("r.example/k:v1", "r.example/k:v1_drivers_kmod_kmm_unsigned", id="with a tag"),
    pytest.param("r.example/k", "r.example/k:drivers_kmod_kmm_unsigned", id="without a tag"),
    pytest.param("host:5000/k", "host:5000/k:drivers_kmod_kmm_unsigned", id="without a tag, of a registry with a port"),
    pytest.param("host:5000/k:v1", "host:5000/k:v1_drivers_kmod_kmm_unsigned", id="with both"),
]


@pytest.mark.parametrize(("image", "expected"), NAMES)
def test_the_temporary_name_of_an_image(image: str, expected: str) -> None:
    """Next to the image, under a tag that no other Module has (internal/module/helper_test.go)."""
    assert image_names.unsigned_name(image, "drivers", "kmod") == expected


def test_a_temporary_tag_fits() -> None:
    """A tag has 128 characters at most; two long names stay apart."""
    one, two = (image_names.unsigned_name(f"r.example/k:{'v' * 120}{end}", "drivers", "kmod") for end in ("1", "2"))
    assert one != two
    assert all(len(image_names.tag_of(each)) <= image_names.LONGEST_TAG for each in (one, two))


SHELL = [
    pytest.param("/opt/a.ko", ["/opt/a.ko"], id="a plain path"),
    pytest.param("/opt/*.ko", ["/opt/a b.ko", "/opt/a.ko"], id="a pattern, one of whose files has a space"),
    pytest.param("/opt/[ax].ko", ["/opt/a.ko"], id="a range"),
    pytest.param("/opt/none*.ko", ["/opt/none*.ko"], id="a pattern that no file matches"),
    pytest.param("/opt/a b.ko", ["/opt/a b.ko"], id="a space"),
    pytest.param("/opt/$(touch ran)", ["/opt/$(touch ran)"], id="a command"),
    pytest.param("/opt/[$(touch ran)]*.ko", ["/opt/a b.ko", "/opt/a.ko"], id="a command within a range"),
    pytest.param("/opt/[`touch ran`].ko", ["/opt/a.ko"], id="an older form of a command"),
    pytest.param("/opt/a.ko;touch ran", ["/opt/a.ko;touch ran"], id="a second command"),
    pytest.param("/opt/'\"$(touch ran)", ["/opt/'\"$(touch ran)"], id="quotes"),
    pytest.param("/opt/a\nRUN touch ran", ["/opt/a\nRUN touch ran"], id="a line end"),
]


@pytest.mark.parametrize(("file", "signed"), SHELL)
def test_what_a_module_names_is_never_a_command(file: str, signed: list[str], tmp_path: Path) -> None:
    """The one shell that there is evaluates nothing of it but patterns, whatever was let through before."""
    text = signing.dockerfile("source:1", "signer:1", str(tmp_path / "sign-file"), [file])
    [line] = [line for line in text.splitlines() if line.startswith("RUN")]
    root = tmp_path / "signroot"
    (root / "opt").mkdir(parents=True)
    for name in ("a.ko", "a b.ko"):
        (root / "opt" / name).touch()
    # Each call adds the file that it was given, ended by a null character.
    (tmp_path / "sign-file").write_text(f"#!/bin/sh\nprintf '%s\\0' \"$4\" >> {tmp_path}/signed\n")
    (tmp_path / "sign-file").chmod(0o755)
    command = [each.replace("/signroot", str(root)) for each in json.loads(line.removeprefix("RUN "))]
    subprocess.run(command, cwd=tmp_path, check=True)
    given = (tmp_path / "signed").read_text().removesuffix("\0").split("\0")
    assert [each.removeprefix(str(root)) for each in given] == signed
    assert not list(tmp_path.rglob("ran"))


def test_the_script_of_a_signature_is_constant() -> None:
    """Only its arguments differ from one Module to another."""
    runs_of = [
        json.loads(line.removeprefix("RUN "))
        for file in ("/opt/a.ko", "/opt/[$(reboot)]*.ko")
        for line in signing.dockerfile("source:1", "signer:1", "/sign-file", [file]).splitlines()
        if line.startswith("RUN")
    ]
    assert [each[:4] for each in runs_of] == [["/bin/sh", "-c", signing.SCRIPT, "/sign-file"]] * 2
    assert [each[4:] for each in runs_of] == [["/signroot/opt/a.ko"], ["/signroot/opt/[$(reboot)]*.ko"]]


_OTHER = "has characters other than letters, digits and /._+@:,=~%-, or *?[]!^ of patterns"
UNUSABLE = [
    pytest.param((), "filesToSign names no file", id="none"),
    pytest.param(("opt/a.ko",), "filesToSign: opt/a.ko is not an absolute path", id="a relative path"),
    pytest.param(
        ("/opt/../etc/passwd",), "filesToSign: /opt/../etc/passwd is not an absolute path", id="a way upwards"
    ),
    *(
        pytest.param((file,), f"filesToSign: {file!r} {_OTHER}", id=what)
        for file, what in (
            ("/opt/a\nRUN x", "a line end"),
            ("/opt/lib/[$(id)]*.ko", "a command within a range"),
            ("/opt/`id`.ko", "an older form of a command"),
            ("/opt/$HOME/a.ko", "a variable of the builder's"),
            ("/opt/a b.ko", "a space"),
            ("/opt/a;b.ko", "a semicolon"),
            ("/opt/a\\b.ko", "a backslash"),
            ("/opt/\u00e4.ko", "a letter of elsewhere"),
        )
    ),
    pytest.param(
        ("/o*/a.ko",), "filesToSign: /o*/a.ko would sign in the root of the image", id="a pattern in the root"
    ),
    pytest.param(("/opt/a.ko", "/opt/*.ko"), "", id="good ones"),
    pytest.param(("/opt/lib/modules/5.14.0-1.el9~2+rt/[!a-c]?.ko.xz",), "", id="all that paths and patterns have"),
]


@pytest.mark.parametrize(("files", "expected"), UNUSABLE)
def test_files_that_cannot_be_signed(files: tuple[str, ...], expected: str) -> None:
    """Said before anything runs."""
    assert signing.why_not_signable(files) == expected
