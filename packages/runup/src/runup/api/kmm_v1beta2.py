"""`kmm.sigs.x-k8s.io/v1beta2`, the stored version: the two preflight kinds, whose status is a list.

The specs are those of v1beta1; the statuses have the words of KMM 2.4 and later. Module exists in v1beta1 only.
"""

from kubekit.api.meta_v1 import Condition, Object, Wire
from runup.api.kmm_v1beta1 import CRStatus, PreflightValidationOCPSpec, PreflightValidationSpec, ValidatedKernel


class ModuleStatus(CRStatus, frozen=True, kw_only=True):
    """The validation result of one Module; `namespace` and `name` are the key of the list.

    `verification_status` is Success, Failure or InProgress, `verification_stage` Image or, once that is known, Done.
    `running_stage` is Build or Sign while that is under way.
    """

    namespace: str
    name: str
    running_stage: str = ""


class PreflightValidationStatus(Wire, frozen=True):
    """`status` of either kind.

    `conditions` are about the validation itself, for example a release image that could not be read.
    `observed_generation` is that of the spec on which the rest is based.
    """

    modules: tuple[ModuleStatus, ...] = ()
    observed_generation: int = 0
    kernels: tuple[ValidatedKernel, ...] = ()
    conditions: tuple[Condition, ...] = ()


class PreflightValidation(Object, frozen=True, kw_only=True):
    """A request to validate that every Module will load on a kernel."""

    spec: PreflightValidationSpec = PreflightValidationSpec()
    status: PreflightValidationStatus = PreflightValidationStatus()


class PreflightValidationOCP(Object, frozen=True, kw_only=True):
    """A request to validate that every Module will load on the kernel of a release."""

    spec: PreflightValidationOCPSpec = PreflightValidationOCPSpec()
    status: PreflightValidationStatus = PreflightValidationStatus()
