"""Builds what a scenario's kernel modules need: images, driver toolkits, a builder, and their CRDs.

A release with a `kernel` has a driver toolkit that states it, by which the operator finds the kernel. Modules are files
with an ELF header and no content: a sandbox loads none.
"""

from __future__ import annotations

import base64
import json
import socket
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from kubekit.lang import yaml as kyaml
from kubekit.oci import images
from kubesandbox.apiserver.access import certs
from runup.kernelmodules.decide.stages import architecture_of
from runup.release.control.image_build import build_image, layer_of
from runup.sandbox.component import builder
from runup.sandbox.scenario.folder import ReleaseSpec, Scenario, deployment_files

JSON = dict[str, Any]
REPOSITORY = "runup/kernel-modules"
BUILDER_TAG = "builder"
FOLDER = "kernel-module-preflight"
DEFINITION = "CustomResourceDefinition"
NAMESPACE = "openshift-kernel-module-preflight"
# A short lease, so that a restart need not wait long for it to expire.
_LEASE = "--lease=15,10,2"
_TOOLKIT_FILE = "etc/driver-toolkit-release.json"


def build(layout: Path, scenario: Scenario) -> None:
    """Builds the images of the scenario's Modules, and the builder that Jobs run, in `layout`."""
    if not scenario.kernel_modules:
        return
    labels = {images.THIN_LABEL: "thin"}
    program = layer_of({builder.PROGRAM: builder.SCRIPT}, frozenset({builder.PROGRAM}))
    build_image(layout, [program], tag=BUILDER_TAG, config=images.Execution(labels=labels))
    machines = {"arm64": 183, "ppc64le": 21, "s390x": 22}
    for image in scenario.kernel_modules:
        # The head of a relocatable ELF file (elf(5)) for the machine of the kernel that the folder is named for.
        architecture = architecture_of(image.folder.rstrip("/").rpartition("/")[2])
        order: Literal["little", "big"] = "big" if architecture == "s390x" else "little"
        kind, machine = 1, machines.get(architecture, 62)
        ident = b"\x7fELF" + bytes([2, 2 if order == "big" else 1, 1]) + bytes(9)
        header = ident + kind.to_bytes(2, order) + machine.to_bytes(2, order) + bytes(44)
        files = {f"{image.folder.strip('/')}/{name}.ko": header for name in image.modules}
        build_image(layout, [layer_of(files)], tag=image.tag, config=images.Execution())


def references(layout: Path, spec: ReleaseSpec, registry: str) -> dict[str, str]:
    """Returns the entry of `image-references` for the driver toolkit, if the release's kernel is known."""
    if not spec.kernel:
        return {}
    facts = {"KERNEL_VERSION": spec.kernel, "RT_KERNEL_VERSION": "", "RHEL_VERSION": "9.6"}
    layer = layer_of({_TOOLKIT_FILE: json.dumps(facts).encode()})
    built = build_image(layout, [layer], tag=f"driver-toolkit-{spec.version}", config=images.Execution())
    return {"driver-toolkit": built.pullspec(f"{registry}/{REPOSITORY}")}


def objects(scenario: Scenario, now: datetime) -> list[JSON]:
    """Returns the CRDs and the operator from `deploy/`, and the certificate by which the API server trusts its webhook.

    In OpenShift another operator signs the certificate. Returns nothing if the scenario has no Modules; raises
    SandboxError.
    """
    if not scenario.kernel_modules:
        return []
    authority = certs.new_ca(now)
    serving = certs.issue_server(authority, now, (f"{FOLDER}.{NAMESPACE}.svc",))
    module_objects = [
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "kubernetes.io/tls",
            "metadata": {"name": f"{FOLDER}-serving-cert", "namespace": NAMESPACE},
            "data": {"tls.crt": _b64(serving.cert), "tls.key": _b64(serving.key)},
        },
        *(document for file in deployment_files(FOLDER) for document in kyaml.load_all(file.read_text("utf-8"))),
    ]
    # Pods listen on the machine's own addresses, where 8443 may be in use.
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    for obj in module_objects:
        if obj["kind"] == DEFINITION and "conversion" in obj["spec"]:
            # By URL: a real API server, if the sandbox uses one, cannot reach the sandbox's Services.
            client_config = {"url": f"https://127.0.0.1:{port}/convert", "caBundle": _b64(authority.cert)}
            obj["spec"]["conversion"]["webhook"]["clientConfig"] = client_config
        elif obj["kind"] == "Deployment":
            # One replica is enough, because no node ever goes away.
            obj["spec"]["replicas"] = 1
            [container] = obj["spec"]["template"]["spec"]["containers"]
            command, *arguments = container["args"]
            kept = (each for each in arguments if not each.startswith(("--listen=", "--health-listen=")))
            # Every pod has this machine's ports: two sandboxes would share the one that is probed.
            del container["livenessProbe"]
            own_arguments = [command, f"--listen=127.0.0.1:{port}", _LEASE, "--inner-registry=${registry}"]
            container |= {"image": "${release}", "args": [*own_arguments, *kept]}
            https = [each for each in container["ports"] if each["name"] == "https"]
            container["ports"] = [{**each, "containerPort": port} for each in https]
            for variable in container["env"]:
                if variable["name"].startswith("RELATED_IMAGE_"):
                    variable["value"] = f"${{kernelModules}}:{BUILDER_TAG}"
    return module_objects


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def values(release: str, auth: bytes) -> Mapping[str, str]:
    """Returns the values that objects may refer to: the registry, its login, the running release's image."""
    registry = release.partition("/")[0]
    return {
        "registry": registry,
        "release": release,
        "registryAuth": _b64(auth),
        "kernelModules": f"{registry}/{REPOSITORY}",
    }


def filled(obj: Any, values_by_name: Mapping[str, str]) -> Any:
    """Returns `obj` with each `${name}` of `values_by_name` replaced, at any depth."""
    if isinstance(obj, dict):
        return {key: filled(value, values_by_name) for key, value in obj.items()}
    if isinstance(obj, list):
        return [filled(value, values_by_name) for value in obj]
    if isinstance(obj, str):
        for name, value in values_by_name.items():
            obj = obj.replace("${" + name + "}", value)
    return obj
