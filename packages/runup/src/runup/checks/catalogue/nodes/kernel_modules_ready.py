"""A kernel module will not load on the target's kernel.

Applies when a Module of Kernel Module Management has no image with its kernel modules for a kernel that the target
brings to the nodes that load it: no mapping for that kernel, an image that is not there or may not be read, or one
without the file below `<dirName>/lib/modules/<kernel>/`. Nothing is built for that: a Module that would be built or
signed is Unknown, and the finding says what it would take. If a PreflightValidationOCP of the target's image has tried
it, that result counts. A registry that does not answer is Unknown, too, as is a cluster whose release brings no driver
toolkit.

Why it matters: nodes that boot the target's kernel without the module lose the hardware that it drives.

What to do: build, sign and push the module for the target's kernel; `runup kmod check --to-image IMAGE` shows what is
looked for, and a PreflightValidationOCP with the target's `releaseImage` tries builds and signatures.

Accepting it means that these modules may not load on the target.

Source of the rule: kernel-module-management, the preflight validation of 1.x and 2.0.
"""

from __future__ import annotations

from kubekit.api.core_v1 import Node
from kubekit.api.meta_v1 import NamespacedName, key_of
from kubekit.lang.text import cut
from runup.api.kmm_v1beta1 import Module
from runup.api.platform_v1 import KMMStatusEntry
from runup.checks.catalogue.nodes.kernel_module_validations import (
    FAILED,
    OCP_RESOURCES,
    SUCCEEDED,
    VALIDATION_RESOURCES,
    all_validations,
    entries_of,
    indexes_of_target,
    stage_text,
)
from runup.checks.decide.wording import LONGEST_CAUSE
from runup.checks.writing import DEFINITIONS, Context, Findings, Snapshot, declared, full_name, risk, unknown
from runup.kernelmodules.decide.readiness import PreflightResults, Readiness, Status, loading_modules

NAME = "KernelModulesNotReady"
FIX = "Build, sign and push it for the target's kernel; `runup kmod check --to-image IMAGE` shows what is looked for."
LOOK = "`runup kmod check --to-image IMAGE` looks, with the credentials that it is given."
TRY = "Create a PreflightValidationOCP with the target's releaseImage: it tries the build and the signature."
NOBODY = PreflightResults(why="the images of its modules were not looked at")
_LONGEST = 2 * LONGEST_CAUSE
EXAMPLE = """
apiVersion: kmm.sigs.x-k8s.io/v1beta1
kind: Module
metadata: {name: simple-kmod, namespace: drivers}
spec:
  moduleLoader:
    container:
      modprobe: {moduleName: simple_kmod}
      kernelMappings: [{regexp: '.*', containerImage: 'quay.io/example/simple-kmod:$KERNEL_FULL_VERSION'}]
---
apiVersion: kmm.sigs.x-k8s.io/v1beta2
kind: PreflightValidationOCP
metadata: {name: preflight}
spec: {releaseImage: quay.io/example/release@sha256:5}
status:
  modules:
  - name: simple-kmod
    namespace: drivers
    verificationStatus: Failure
    verificationStage: Done
    statusReason: image quay.io/example/simple-kmod:5.14.0-427.el9_4.x86_64 inaccessible or does not exists
"""


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields the findings of each Module under the target's kernel: by its validation, else by its image."""
    modules = loading_modules(snapshot.all_or_none(Module))
    if not modules:
        return
    snapshot.all(Node)  # which kernels count is known from the nodes alone: without them the answer is Unknown
    # Of several results of the target's validations one that is not good counts.
    validations = all_validations(snapshot)
    tried: dict[str, KMMStatusEntry] = {}
    for index in indexes_of_target(validations, context):
        for name, entry in entries_of(validations[index]).items():
            if name not in tried or tried[name].verification_status in SUCCEEDED:
                tried[name] = entry
    verdicts = context.kernel_modules or NOBODY
    for module in modules:
        name = full_name(module)
        result = tried.get(name)
        if result is not None and result.verification_status in (*SUCCEEDED, *FAILED):
            if result.verification_status in FAILED:
                why = _short_reason(result.status_reason)
                text = f"Kernel module {name} failed its validation for the target{stage_text(result)}: {why}."
                yield risk(NAME, text, [module], severity="critical", fix=FIX)
            continue
        readiness = [
            readiness_found
            for readiness_found in verdicts.found
            if NamespacedName(readiness_found.namespace, readiness_found.name) == key_of(module)
        ]
        if not readiness:
            yield unknown(NAME, f"{name}: {verdicts.why or 'its image is being looked at'}", [module], fix=LOOK)
        for readiness_found in readiness:
            yield from _findings_of_image(module, readiness_found)


def _findings_of_image(module: Module, readiness: Readiness) -> Findings:
    """Yields a finding by what was found in the module's image."""
    name, kernel = full_name(module), f" on kernel {readiness.kernel}" if readiness.kernel else ""
    if readiness.status is Status.FALSE:
        text = (
            f"Kernel module {name} will not load{kernel}, by stage "
            f"{readiness.stage}: {_short_reason(readiness.reason)}."
        )
        yield risk(NAME, text, [module], severity="critical", fix=FIX)
    elif readiness.status is Status.UNKNOWN:
        text = f"{name}{kernel}, at stage {readiness.stage}: {_short_reason(readiness.reason)}"
        yield unknown(NAME, text, [module], fix=LOOK if readiness.stage == "Image" else TRY)


def _short_reason(reason: str) -> str:
    return cut(" ".join(reason.split()), _LONGEST).rstrip(".")


CHECK = declared(
    run,
    NAME,
    "kernel-module-management",
    reads=(Module, Node, *OCP_RESOURCES, *VALIDATION_RESOURCES, DEFINITIONS),
    rank=500,
    severity="critical",
    clusters="OpenShift",
)
