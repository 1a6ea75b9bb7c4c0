"""Kernel modules of the cluster have not been verified for the target's kernel.

Applies when a PreflightValidation or PreflightValidationOCP of the Kernel Module Management operator has a module whose
verification failed; the finding has the reason, and the stage where it says more than Done. A validation that is not
finished is Unknown. A cluster that has Modules but no validation gets a finding of severity info. The
status is read in both forms, the operator's v1beta1 and v1beta2. Validations about the target itself are reported by
KernelModulesNotReady, which also looks at the images; a validation of another release, or of a kernel that the target
is known not to have, is no risk of the target. A finding of both a PreflightValidationOCP and its PreflightValidations
is reported once.

Why it matters: nodes that boot the target's kernel without the module lose the hardware that it drives.

Remedy: build or sign the module for the target's kernel (a kernel mapping in its Module); the validation then says
True, or Success: `oc get preflightvalidationsocp -o yaml`.

Accepting it means that these modules may not load on the target.

Source of the rule: kernel-module-management, `api/v1beta1` and `api/v1beta2`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kubekit.lang.oc_pull_spec import is_same_image
from kubekit.lang.text import count
from runup.api.kmm_v1beta1 import Module
from runup.api.platform_v1 import KMMStatusEntry, PreflightValidation, PreflightValidationOCP
from runup.checks.decide.model import DEFINITIONS, Context, Snapshot
from runup.checks.decide.wording import names
from runup.checks.writing import LONGEST_CAUSE, Findings, Resource, Slim, declared, names_of, resource_of, risk, unknown

NAME = "KernelModuleNotVerified"
# The operator's v1beta1 says True and False, its v1beta2 Success and Failure.
SUCCEEDED, FAILED = ("True", "Success"), ("False", "Failure")


def _listed_versions(kind: type[PreflightValidation | PreflightValidationOCP]) -> tuple[Resource, ...]:
    """Returns the resources by which a kind is listed: in the newer version, else in the older one.

    The operator's 1.x and 2.0 have only the older one.
    """
    new = resource_of(kind)
    return new, Slim(
        group=new.group, version="v1beta1", kind=new.kind, plural=new.plural, namespaced=new.namespaced, type=kind
    )


OCP_RESOURCES, VALIDATION_RESOURCES = _listed_versions(PreflightValidationOCP), _listed_versions(PreflightValidation)
EXAMPLE = """
apiVersion: kmm.sigs.x-k8s.io/v1beta2
kind: PreflightValidationOCP
metadata: {name: preflight}
spec: {releaseImage: 'quay.io/example/release:next'}
status:
  modules:
  - name: simple-kmod
    namespace: drivers
    verificationStatus: Failure
    verificationStage: Done
    statusReason: the image is not accessible
"""


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields the findings of PreflightValidations that are not of the target, and of Modules without any."""
    modules = snapshot.all_or_none(Module)
    all_found = all_validations(snapshot)
    of_target = set(indexes_of_target(all_found, context))
    others = [validation for index, validation in enumerate(all_found) if index not in of_target]
    parents = [validation for validation in others if isinstance(validation, PreflightValidationOCP)]
    validations = [
        validation
        for validation in others
        # One that another one has made has the same status.
        if not (
            isinstance(validation, PreflightValidation)
            and any(_is_named_after(parent, validation) for parent in parents)
        )
        and not _is_of_other_release(validation, context)
    ]
    looked_at = context.kernel_modules is not None and not context.kernel_modules.why
    if modules and not of_target and not validations and not looked_at:
        for kind in (*OCP_RESOURCES, *VALIDATION_RESOURCES):
            snapshot.require_all(kind)
        yield risk(
            NAME,
            f"{count(len(modules), 'kernel module')} ({names_of(modules)}) of the cluster "
            f"{'was' if len(modules) == 1 else 'were'} never verified for another kernel: there is no "
            "PreflightValidation.",
            modules,
            severity="info",
            fix="Create a PreflightValidationOCP for the target's release image, and wait for its status.",
        )
    for validation in validations:
        entries = sorted(entries_of(validation).items())
        shown = f"{type(validation).__name__} {validation.metadata.name}"
        for name, entry in entries:
            if entry.verification_status in FAILED:
                why = " ".join(entry.status_reason.split())[:LONGEST_CAUSE].rstrip(".")
                yield risk(
                    NAME,
                    f"Kernel module {name} failed its verification{stage_text(entry)}{': ' if why else ''}{why} "
                    f"({shown}).",
                    [validation],
                    severity="critical",
                    fix="Build or sign it for the target's kernel; `oc get preflightvalidationsocp -o yaml` shows it.",
                )
        pending = [name for name, entry in entries if entry.verification_status not in (*SUCCEEDED, *FAILED)]
        if pending or not entries:
            progress = f"has not verified {names(pending)} yet" if pending else "has no result for any module yet"
            fix = "Wait for it, or see the log of the operator: kmm-operator-controller."
            yield unknown(NAME, f"{shown} {progress}", [validation], fix=fix)


def all_validations(snapshot: Snapshot) -> list[PreflightValidation | PreflightValidationOCP]:
    """Returns the validations of both kinds, in order. Raises Unreadable."""
    return sorted(
        (*snapshot.list_first_served(OCP_RESOURCES), *snapshot.list_first_served(VALIDATION_RESOURCES)),
        key=lambda validation: (type(validation).__name__, validation.metadata.name),
    )


def _is_named_after(parent: PreflightValidationOCP, child: PreflightValidation | PreflightValidationOCP) -> bool:
    """Returns whether `child` has the name of `parent`, as in the operator's own code, or `parent` as its owner."""
    owners = [owner.name for owner in child.metadata.owner_references if owner.kind == "PreflightValidationOCP"]
    return parent.metadata.name in (child.metadata.name, *owners)


def _is_of_other_release(validation: PreflightValidation | PreflightValidationOCP, context: Context) -> bool:
    """Returns whether a validation is known to be about another release, or a kernel that the target does not have."""
    image, kernel = validation.spec.release_image, validation.spec.kernel_version
    # A tag may represent any image, so only two digests prove that there are two.
    if image and "@" in image and "@" in context.target_image:
        return not is_same_image(image, context.target_image)
    kernels = _kernels_of_target(context)
    return bool(kernel and kernels) and kernel not in kernels


def _kernels_of_target(context: Context) -> set[str]:
    """Returns the kernels that the target is known to have."""
    return {readiness.kernel for readiness in context.kernel_modules.found} - {""} if context.kernel_modules else set()


def indexes_of_target(
    validations: Sequence[PreflightValidation | PreflightValidationOCP], context: Context
) -> Iterator[int]:
    """Yields the indexes of the validations about the target: of its image, or of a kernel that it is known to have."""
    kernels = _kernels_of_target(context)
    parents = [
        validation
        for validation in validations
        if isinstance(validation, PreflightValidationOCP)
        and is_same_image(validation.spec.release_image, context.target_image)
    ]
    for index, validation in enumerate(validations):
        if any(_is_named_after(parent, validation) for parent in parents) or validation.spec.kernel_version in kernels:
            yield index


def stage_text(entry: KMMStatusEntry) -> str:
    """Returns the words for the stage of a failure; none for Done, which only says that the verification has ended."""
    return "" if entry.verification_stage == "Done" else f" at stage {entry.verification_stage or 'unknown'}"


def entries_of(validation: PreflightValidation | PreflightValidationOCP) -> dict[str, KMMStatusEntry]:
    """Returns the status entries by module, `namespace/name`.

    The list counts before the map, which has some of the modules twice.
    """
    status = validation.status
    if status.modules:
        return {f"{entry.namespace}/{entry.name}": entry for entry in status.modules}
    namespaced_names = {key.rpartition("/")[2] for key in status.cr_statuses if "/" in key}
    return {key: entry for key, entry in status.cr_statuses.items() if "/" in key or key not in namespaced_names}


CHECK = declared(
    run,
    NAME,
    "kernel-module-management",
    reads=(*OCP_RESOURCES, *VALIDATION_RESOURCES, Module, DEFINITIONS),
    rank=490,
    severity="critical",
    clusters="OpenShift",
)
