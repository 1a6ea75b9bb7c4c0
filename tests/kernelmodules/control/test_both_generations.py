"""Modules next to each other, as clients of both generations of KMM's API read what becomes of them.

Each row has what KMM 2.4 answers, from its sources (`internal/controllers/preflightvalidation_reconciler.go` and
`mic_reconciler.go` of rh-ecosystem-edge/kernel-module-management, release 2.4), and why ours is another where it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.kernelmodules.control.test_controller import dockerfile
from tests.kernelmodules.control.world import (
    KERNEL,
    MODULES,
    VALIDATIONS,
    World,
    cluster_with_kernel_modules,
    ko,
    module,
    push,
    running,
    validation,
)
from tests.kubekit.oci.layered import elf
from tests.kubekit.oci.registries import sandbox_registry

from kubekit.kube import calls
from runup.api.kmm_v1beta2 import PreflightValidationStatus
from runup.kernelmodules.control.answer_cache import SECRETS
from runup.kernelmodules.decide.build_jobs import JOBS
from runup.kernelmodules.decide.conversion import OLD, convert

JSON = dict[str, Any]
Words = tuple[str, str]
SUCCESS, FAILURE, BUSY = ("Success", "Done"), ("Failure", "Done"), ("InProgress", "Image")
OLDER = {SUCCESS: ("True", "Done"), FAILURE: ("False", "Requeued"), BUSY: ("False", "Image")}
OTHER_KERNEL = "5.14.0-427.50.1.rt14.1.el9_4.x86_64+rt"
BUILD = {"dockerfileConfigMap": {"name": "dockerfile"}}
KEYS = {"keySecret": {"name": "key"}, "certSecret": {"name": "cert"}}
SIGN = {**KEYS, "filesToSign": ["/opt/lib/modules/a.ko"]}
# KMM 2.4's answers: verificationStatus and statusReason.
EXISTS, UNFINISHED = ("Success", "verified image exists"), ("InProgress", "verification is not finished yet")
NO_MAPPING = ("Failure", "mapping not found")
NOT_MADE = ("Failure", "verified image does not exist and build/sign failed")
NOTHING: Words = ("", "")
LOOKS = "it pulls the image and does not look into it"
WAITS = "it waits for the image for ever where nothing could make it"


@dataclass(frozen=True)
class Row:
    """A Module: what its image has, its container, how its runs end; what is said here, and by KMM 2.4.

    `why` KMM 2.4's status is another one. Without an image's `files` there is no image.
    """

    ours: Words | None
    theirs: Words
    container: Mapping[str, Any] = field(default_factory=dict)
    files: Callable[[str], Mapping[str, bytes]] | None = None
    fails: str = ""
    why: str = ""
    change: Callable[[JSON], None] = lambda body: None


def _mapped(**mapping: str) -> Mapping[str, Any]:
    return {"kernelMappings": [{"containerImage": "IMAGE", **mapping}]}


def _delete(body: JSON) -> None:
    # A finalizer holds it, once it is deleted.
    body["metadata"]["finalizers"] = ["example.com/held"]


def _without_loader(body: JSON) -> None:
    del body["spec"]["moduleLoader"]


def _pulls(body: JSON) -> None:
    body["spec"]["imageRepoSecret"] = {"name": "nowhere"}


def _elsewhere(name: str) -> Mapping[str, bytes]:
    return {f"usr/lib/modules/{KERNEL}/{name}.ko": elf()}


def _empty(_name: str) -> Mapping[str, bytes]:
    return {"etc/motd": b"no module"}


def _of_arm(name: str) -> Mapping[str, bytes]:
    return {f"opt/lib/modules/{KERNEL}/{name}.ko": elf(machine=183)}


TEMPLATE = _mapped(regexp="^.+$", containerImage="HOST/drivers/template:${KERNEL_FULL_VERSION}")
UNSIGNED = {**SIGN, "unsignedImage": "registry.example/raw:v1"}

ROWS: dict[str, Row] = {
    "there": Row(SUCCESS, EXISTS, files=ko),
    "regexp": Row(SUCCESS, EXISTS, _mapped(regexp=r"el9_\d+\.x86_64$"), ko),
    "literal": Row(SUCCESS, EXISTS, _mapped(literal=KERNEL), ko),
    "template": Row(SUCCESS, EXISTS, TEMPLATE),
    "first-mapping": Row(
        SUCCESS,
        EXISTS,
        {
            "kernelMappings": [
                {"literal": KERNEL, "containerImage": "IMAGE"},
                {"literal": KERNEL, "containerImage": "HOST/drivers/none:none"},
            ]
        },
        ko,
    ),
    "in-tree": Row(SUCCESS, EXISTS, {"inTreeModulesToRemove": ["other"]}, ko),
    "versioned": Row(SUCCESS, EXISTS, {"version": "1.0"}, ko),
    "no-mapping": Row(FAILURE, NO_MAPPING, _mapped(literal="6.1.0-1.x86_64"), ko),
    "other-flavour": Row(FAILURE, NO_MAPPING, _mapped(literal=OTHER_KERNEL), ko),
    "no-ko": Row(FAILURE, EXISTS, files=_empty, why=LOOKS),
    "dir-name": Row(FAILURE, EXISTS, files=_elsewhere, why=LOOKS),
    "other-machine": Row(FAILURE, EXISTS, files=_of_arm, why=LOOKS),
    "no-image": Row(FAILURE, UNFINISHED, why=WAITS),
    "no-digest": Row(
        FAILURE, UNFINISHED, _mapped(regexp="^.+$", containerImage=f"HOST/drivers/gone@sha256:{'0' * 64}"), why=WAITS
    ),
    "no-secret": Row(FAILURE, UNFINISHED, why=WAITS, change=_pulls),
    "built": Row(SUCCESS, EXISTS, {"build": BUILD}),
    "not-built": Row(FAILURE, NOT_MADE, {"build": BUILD}, fails="build"),
    "being-built": Row(BUSY, UNFINISHED, {"build": BUILD}, fails="never"),
    "signed": Row(SUCCESS, EXISTS, {"sign": UNSIGNED}),
    "not-signed": Row(FAILURE, NOT_MADE, {"sign": UNSIGNED}, fails="sign"),
    "built-and-signed": Row(SUCCESS, EXISTS, {"build": BUILD, "sign": SIGN}),
    "nothing-to-sign": Row(FAILURE, NOT_MADE, {"sign": SIGN}),
    "deleted": Row(None, NOTHING, files=ko, change=_delete),
    "no-loader": Row(
        SUCCESS, UNFINISHED, why="its pass ends with a nil pointer, before any status", change=_without_loader
    ),
}


@pytest.mark.slow
def test_what_clients_of_both_generations_read(tmp_path: Path) -> None:
    """v1beta2 in the words of KMM 2.4, v1beta1 in those before, and the verdicts are KMM 2.4's except for a reason."""

    async def story(host: str) -> None:
        async with cluster_with_kernel_modules(tmp_path) as made, running(made):
            await _make(made, host, tmp_path)
            await made.create(VALIDATIONS, validation(pushBuiltImage=True))
            ender = asyncio.create_task(_end_runs(made))
            try:
                expected = {name: row.ours for name, row in ROWS.items() if row.ours is not None}
                found = await made.until(lambda status: _module_stages(status) == expected)
            finally:
                ender.cancel()
            assert {each.name for each in found.modules if each.running_stage} == {"being-built"}
            raw = await made.send(calls.get_raw(VALIDATIONS, "preflight"))
        older = convert(raw, OLD)["status"]["crStatuses"]
        for name, words in expected.items():
            entry = older[f"drivers/{name}"]
            stage = "Build" if name == "being-built" else OLDER[words][1]
            assert (entry["verificationStatus"], entry["verificationStage"]) == (OLDER[words][0], stage), name

    with sandbox_registry(tmp_path) as host:
        asyncio.run(story(host))


def test_where_kmm_says_something_else_there_is_a_reason() -> None:
    """And only there."""
    differing = {name for name, row in ROWS.items() if row.ours is not None and row.ours[0] != row.theirs[0]}
    assert differing == {name for name, row in ROWS.items() if row.why}


def _module_stages(status: PreflightValidationStatus) -> dict[str, Words]:
    return {each.name: (each.verification_status, each.verification_stage) for each in status.modules}


async def _make(made: World, host: str, folder: Path) -> None:
    await dockerfile(made)
    for name in ("key", "cert"):
        await made.create(SECRETS, {"metadata": {"name": name, "namespace": "drivers"}, "data": {name: "eA=="}})
    push(folder, host, f"drivers/template:{KERNEL}", ko("template"))
    for name, row in ROWS.items():
        image = f"{host}/drivers/{name}:{name}"
        if row.files is not None:
            push(folder, host, f"drivers/{name}:{name}", row.files(name))
        body = module(name, image, **_filled(row.container, host, image))
        row.change(body)
        await made.create(MODULES, body)
        if row.change is _delete:
            await made.send(calls.delete(MODULES, name, "drivers"))


def _filled(value: Any, host: str, image: str) -> Any:
    if isinstance(value, str):
        return value.replace("IMAGE", image).replace("HOST", host)
    if isinstance(value, Mapping):
        return {key: _filled(each, host, image) for key, each in value.items()}
    return [_filled(each, host, image) for each in value] if isinstance(value, list) else value


async def _end_runs(made: World) -> None:
    """Ends each Job as its row says, as a cluster's Job controller would."""
    ended: set[str] = set()
    while True:
        for job in (await made.send(calls.list_raw(JOBS))).items:
            metadata = job["metadata"]
            row = ROWS[metadata["annotations"]["kmm.node.kubernetes.io/module.name"]]
            if metadata["uid"] not in ended and row.fails != "never":
                ended.add(metadata["uid"])
                await made.finish(job, failed=row.fails == metadata["labels"]["kmm.openshift.io/build.type"])
        await asyncio.sleep(0.02)
