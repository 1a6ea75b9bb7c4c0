"""Examines one Module for one kernel: image, build, sign, in KMM's order, as far as the answers are known. Pure.

In: the Module, the answers by now, the existing runs. Out: `ModuleState`. If the image is not in order,
`build_and_sign` decides on build and signature.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubekit.api.core_v1 import Node
from runup.kernelmodules.decide import admission, build_and_sign, mapping, module_state, readiness, texts

# Architectures by the last part of a kernel's name, which follows a dot (RHEL) or a dash (Debian).
_ARCHITECTURES = {
    "x86_64": "amd64",
    "amd64": "amd64",
    "aarch64": "arm64",
    "arm64": "arm64",
    "ppc64le": "ppc64le",
    "s390x": "s390x",
}


def state_of(task: module_state.Task, observed: module_state.Observed) -> module_state.ModuleState:
    """Returns the result of `task` by now."""
    if faults := admission.module_faults(task.module):
        return module_state.ModuleState(verified=False, stage="Requeued", reason=texts.invalid_module(faults))
    if not readiness.loads_something(task.module):
        return module_state.ModuleState(verified=True, stage="Done", reason=texts.NOTHING_LOADED)
    try:
        resolved = mapping.resolve(task.module, task.kernel)
    except mapping.Unmapped as error:
        # Only an edit of the Module helps. Modules are watched, so there is no time to look again.
        return module_state.ModuleState(verified=False, stage="Requeued", reason=error.message)
    # The architecture in the kernel's name, else those of the nodes that the Module selects, else those of all nodes.
    architectures: tuple[str, ...] = (architecture_of(task.kernel),)
    if not architectures[0]:
        nodes = observed.nodes or ()
        matching_nodes = nodes_selected(resolved.selector, nodes) or nodes
        architectures = tuple(sorted({node.status.node_info.architecture for node in matching_nodes} - {""}))
    question = module_state.ImageQuestion(
        image=resolved.container_image,
        kernel=task.kernel,
        dir_name=resolved.dir_name,
        module_names=resolved.module_names,
        tls=resolved.registry_tls,
        namespace=task.module.metadata.namespace,
        secret=resolved.image_repo_secret,
        architectures=architectures,
    )
    answer = observed.answers.of_image(question)
    if answer is None:
        return module_state.ModuleState(
            verified=False, stage="Image", reason="", open_questions=(question,), keeps_previous_status=True
        )
    image, at = answer
    if image.verified:
        return module_state.ModuleState(verified=True, stage="Done", reason=image.reason or texts.IMAGE_VERIFIED)
    answered = module_state.freshness(question, at, task.now)
    if resolved.build is None and resolved.sign is None:
        return module_state.requeued_state(image.reason, answered)
    return build_and_sign.build_and_sign(
        task, observed, resolved=resolved, missing=image, image=answered, architectures=architectures
    )


def architecture_of(kernel: str) -> str:
    """Returns the architecture in a kernel's name, as images call it; "" if the name has none."""
    # Variants of RHEL kernels: real-time, debug, 64 KiB pages.
    ending = kernel.removesuffix("+rt").removesuffix("+debug").removesuffix("+64k")
    return _ARCHITECTURES.get(ending.replace("-", ".").rpartition(".")[2], "")


def nodes_selected(selector: dict[str, str], nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Returns the nodes that match a Module's selector."""
    required_labels = selector.items()
    return tuple(node for node in nodes if required_labels <= node.metadata.labels.items())
