"""What a scenario's kernel modules need of the sandbox: images, driver toolkits, a builder, their definitions.

A release with a `kernel` has a driver toolkit that says so, by which the operator finds the kernel. Modules are files
with an ELF header and nothing behind it: a sandbox loads none.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import runup
from runup.lang import yaml as kyaml
from runup.oci import images
from runup.oci.build import build_image, layer_of
from runup.oci.images import Execution
from runup.sandbox.component import builder
from runup.sandbox.errors import SandboxError
from runup.sandbox.scenario.folder import ReleaseSpec, Scenario

JSON = dict[str, Any]
REPOSITORY = "runup/kernel-modules"
BUILDER_TAG = "builder"
FOLDER = "kernel-module-preflight"
_DEFINITION = "CustomResourceDefinition"
_TOOLKIT_FILE = "etc/driver-toolkit-release.json"


def build(layout: Path, scenario: Scenario) -> None:
    """The images of the scenario's Modules, and the builder that Jobs run, in `layout`."""
    if not scenario.kernel_modules:
        return
    labels = {images.THIN_LABEL: "thin"}
    program = layer_of({builder.PROGRAM: builder.SCRIPT}, frozenset({builder.PROGRAM}))
    build_image(layout, [program], tag=BUILDER_TAG, config=Execution(labels=labels))
    for image in scenario.kernel_modules:
        files = {f"{image.folder.strip('/')}/{name}.ko": b"\x7fELF" for name in image.modules}
        build_image(layout, [layer_of(files)], tag=image.tag, config=Execution())


def references(layout: Path, spec: ReleaseSpec, registry: str) -> dict[str, str]:
    """What `image-references` names of it: the driver toolkit of a release whose kernel is known."""
    if not spec.kernel:
        return {}
    facts = {"KERNEL_VERSION": spec.kernel, "RT_KERNEL_VERSION": "", "RHEL_VERSION": "9.6"}
    layer = layer_of({_TOOLKIT_FILE: json.dumps(facts).encode()})
    built = build_image(layout, [layer], tag=f"driver-toolkit-{spec.version}", config=Execution())
    return {"driver-toolkit": built.pullspec(f"{registry}/{REPOSITORY}")}


def definitions(scenario: Scenario) -> list[JSON]:
    """The CustomResourceDefinitions, where the scenario has Modules; raises SandboxError."""
    return [obj for obj in _deployed() if obj["kind"] == _DEFINITION] if scenario.kernel_modules else []


def operator() -> list[JSON]:
    """The operator as `deploy/` has it, by the running release's image, which has it under another name.

    One replica is enough where no node ever goes; its builder is the sandbox's. Pods share the machine's ports, and
    nobody signs serving certificates here: the sandbox converts by itself.
    """
    objects = [obj for obj in _deployed() if obj["kind"] != _DEFINITION]
    for obj in objects:
        if obj["kind"] == "Deployment":
            obj["spec"]["replicas"] = 1
            [container] = obj["spec"]["template"]["spec"]["containers"]
            container["image"] = "${release}"
            kept = [each for each in container["args"] if not each.startswith(("--listen=", "--serving-"))]
            container["args"] = [FOLDER, *kept, "--listen=127.0.0.1:0"]
            del container["command"], container["readinessProbe"]
            for variable in container["env"]:
                if variable["name"].startswith("RELATED_IMAGE_"):
                    variable["value"] = f"${{kernelModules}}:{BUILDER_TAG}"
    return objects


def values(release: str, auth: bytes) -> Mapping[str, str]:
    """What objects of a scenario may name before it is known: the registry, its login, the running release's image."""
    registry = release.partition("/")[0]
    return {
        "registry": registry,
        "release": release,
        "registryAuth": base64.b64encode(auth).decode(),
        "kernelModules": f"{registry}/{REPOSITORY}",
    }


def filled(obj: Any, known: Mapping[str, str]) -> Any:
    """`obj` with `${name}` of `known` filled in, wherever it stands."""
    if isinstance(obj, dict):
        return {key: filled(value, known) for key, value in obj.items()}
    if isinstance(obj, list):
        return [filled(value, known) for value in obj]
    if isinstance(obj, str):
        for name, value in known.items():
            obj = obj.replace("${" + name + "}", value)
    return obj


def _deployed() -> list[JSON]:
    package = Path(runup.__file__).parent
    for folder in (package / "deploy" / FOLDER, package.parent.parent / "deploy" / FOLDER):
        found = sorted(folder.glob("*.yaml"))
        if found:
            return [each for file in found for each in kyaml.load_all(file.read_text(encoding="utf-8"))]
    raise SandboxError(
        f"the manifests of deploy/{FOLDER} are missing from this installation", reason="ManifestsMissing"
    )
