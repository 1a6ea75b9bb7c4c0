"""A kernel module will not load on the target's kernel.

Applies when a Module of Kernel Module Management has no image with its kernel modules for a kernel that the target
brings to the nodes that load it: no mapping for that kernel, an image that is not there or may not be read, or one
without the file below `<dirName>/lib/modules/<kernel>/`. Nothing is built for that: a Module that would be built or
signed is Unknown, and the finding says what it would take. If a PreflightValidationOCP of the target's image has tried
it, that result counts. A registry that does not answer is Unknown, too, as is a cluster whose release brings no driver
toolkit.

Why it matters: nodes that boot the target's kernel without the module lose the hardware that it drives.

Remedy: build, sign and push the module for the target's kernel; `runup kmod check --to-image IMAGE` shows what is
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
from runup.checks.catalogue.nodes import kernel_module_validations as kmm
from runup.checks.decide.model import DEFINITIONS, Context, Snapshot
from runup.checks.writing import LONGEST_CAUSE, Findings, declared, full_name, risk, unknown
from runup.kernelmodules.decide.readiness import PreflightResults, Status, loading_modules

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
    validations = kmm.all_validations(snapshot)
    tried: dict[str, KMMStatusEntry] = {}
    for index in kmm.indexes_of_target(validations, context):
        for name, entry in kmm.entries_of(validations[index]).items():
            if name not in tried or tried[name].verification_status in kmm.SUCCEEDED:
                tried[name] = entry
    verdicts = context.kernel_modules or NOBODY
    for module in modules:
        name = full_name(module)
        result = tried.get(name)
        if result is not None and result.verification_status in kmm.FAILED:
            why, stage = _short_reason(result.status_reason), kmm.stage_text(result)
            text = f"Kernel module {name} failed its validation for the target{stage}: {why}."
            yield risk(NAME, text, [module], severity="critical", fix=FIX)
        if result is not None and result.verification_status in (*kmm.SUCCEEDED, *kmm.FAILED):
            continue
        of_module = [each for each in verdicts.found if NamespacedName(each.namespace, each.name) == key_of(module)]
        if not of_module:
            yield unknown(NAME, f"{name}: {verdicts.why or 'its image is being looked at'}", [module], fix=LOOK)
        for readiness in of_module:
            if readiness.status not in (Status.FALSE, Status.UNKNOWN):
                continue
            kernel = f" on kernel {readiness.kernel}" if readiness.kernel else ""
            stage, why = readiness.stage, _short_reason(readiness.reason)
            if readiness.status is Status.FALSE:
                text = f"Kernel module {name} will not load{kernel}, by stage {stage}: {why}."
                yield risk(NAME, text, [module], severity="critical", fix=FIX)
            else:
                fix = LOOK if stage == "Image" else TRY
                yield unknown(NAME, f"{name}{kernel}, at stage {stage}: {why}", [module], fix=fix)


def _short_reason(reason: str) -> str:
    return cut(" ".join(reason.split()), _LONGEST).rstrip(".")


CHECK = declared(
    run,
    NAME,
    "kernel-module-management",
    reads=(Module, Node, *kmm.OCP_RESOURCES, *kmm.VALIDATION_RESOURCES, DEFINITIONS),
    rank=500,
    severity="critical",
    clusters="OpenShift",
)
