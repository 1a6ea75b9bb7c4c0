"""`kmm.sigs.x-k8s.io/v1beta1`: Module, and the two preflight kinds whose status is a map.

The names are those of Kernel Module Management 1.0 to 2.3; `kernelVersion` and `dtkImage` of PreflightValidationOCP are
those of 2.4. The fields that runup added to the statuses are optional: `conditions`, `observedGeneration`, `kernels`.
Enumerations are plain text here: only the CustomResourceDefinitions restrict their values. Only the fields that decide
whether a module will load are read; firmware, device plugins and the loader's pods are not.
"""

from datetime import datetime
from typing import Any

import msgspec

from kubekit.api.meta_v1 import Condition, Object, Wire

DEFAULT_MODPROBE_DIR = "/opt"
"""Where modprobe looks in an image, unless the Module says otherwise."""


class LocalObjectReference(Wire, frozen=True):
    """An object in the Module's own namespace."""

    name: str = ""


class TLSOptions(Wire, frozen=True):
    """The connection to a registry: `insecure` is plain HTTP, `insecure_skip_tls_verify` verifies no certificate."""

    insecure: bool = False
    insecure_skip_tls_verify: bool = msgspec.field(default=False, name="insecureSkipTLSVerify")


class BuildArg(Wire, frozen=True):
    """An argument of a build."""

    name: str
    value: str = ""


class Build(Wire, frozen=True, kw_only=True):
    """The build of an image. The ConfigMap has the Dockerfile under the key `dockerfile`.

    `dockerfile_config_map` is empty in a kernel mapping whose build only adds to the container's.
    """

    dockerfile_config_map: LocalObjectReference = LocalObjectReference()
    build_args: tuple[BuildArg, ...] = ()
    secrets: tuple[LocalObjectReference, ...] = ()
    selector: dict[str, str] = {}
    base_image_registry_tls: TLSOptions = msgspec.field(default=TLSOptions(), name="baseImageRegistryTLS")


class Sign(Wire, frozen=True, kw_only=True):
    """The signing of an image's files; the keys are in Secrets, under `key` and `cert`."""

    unsigned_image: str = ""
    unsigned_image_registry_tls: TLSOptions = msgspec.field(default=TLSOptions(), name="unsignedImageRegistryTLS")
    key_secret: LocalObjectReference = LocalObjectReference()
    cert_secret: LocalObjectReference = LocalObjectReference()
    files_to_sign: tuple[str, ...] = ()


class KernelMapping(Wire, frozen=True, kw_only=True):
    """The image for some kernels: exactly one of `literal` and `regexp` is set; None means that of the container."""

    literal: str = ""
    regexp: str = ""
    container_image: str = ""
    build: Build | None = None
    sign: Sign | None = None
    registry_tls: TLSOptions | None = msgspec.field(default=None, name="registryTLS")
    # An empty list is not the same as none: KMM refuses it next to the older field.
    in_tree_modules_to_remove: tuple[str, ...] | None = None
    in_tree_module_to_remove: str = ""


class ModprobeArgs(Wire, frozen=True):
    """The arguments of modprobe."""

    load: tuple[str, ...] = ()
    unload: tuple[str, ...] = ()


class Modprobe(Wire, frozen=True, kw_only=True):
    """The module to load. Without `module_name`, modprobe gets only `raw_args`."""

    module_name: str = ""
    dir_name: str = DEFAULT_MODPROBE_DIR
    parameters: tuple[str, ...] = ()
    args: ModprobeArgs | None = None
    raw_args: ModprobeArgs | None = None
    firmware_path: str = ""
    modules_loading_order: tuple[str, ...] = ()


class ModuleLoaderContainer(Wire, frozen=True, kw_only=True):
    """The image with the module, for every kernel; its fields are the defaults of all mappings."""

    modprobe: Modprobe = Modprobe()
    container_image: str = ""
    image_pull_policy: str = ""
    version: str = ""
    kernel_mappings: tuple[KernelMapping, ...] = ()
    build: Build | None = None
    sign: Sign | None = None
    registry_tls: TLSOptions = msgspec.field(default=TLSOptions(), name="registryTLS")
    # An empty list is not the same as none: KMM refuses it next to the older field.
    in_tree_modules_to_remove: tuple[str, ...] | None = None
    in_tree_module_to_remove: str = ""


class ModuleLoader(Wire, frozen=True):
    """The loader that brings the module onto a node."""

    container: ModuleLoaderContainer = ModuleLoaderContainer()
    service_account_name: str = ""


class DRA(Wire, frozen=True):
    """The driver of Dynamic Resource Allocation; other fields are not read here."""

    driver_name: str = ""


class ModuleSpec(Wire, frozen=True, kw_only=True):
    """`spec` of a Module. Without a loader there is no module to load, only a device plugin."""

    selector: dict[str, str] = {}
    image_repo_secret: LocalObjectReference | None = None
    tolerations: tuple[dict[str, Any], ...] = ()
    module_loader: ModuleLoader | None = None
    device_plugin: dict[str, Any] | None = None
    dra: DRA | None = None


class Module(Object, frozen=True):
    """A kernel module that the nodes of `spec.selector` load."""

    spec: ModuleSpec = ModuleSpec()


class PreflightValidationSpec(Wire, frozen=True):
    """`spec` of a PreflightValidation; the same in both versions."""

    kernel_version: str = ""
    dtk_image: str = ""
    push_built_image: bool = False


class PreflightValidationOCPSpec(Wire, frozen=True, kw_only=True):
    """`spec` of a PreflightValidationOCP; the same in both versions.

    Exactly one of `release_image` and `kernel_version`; `dtk_image` comes with the latter.
    """

    release_image: str = ""
    use_rt_kernel: bool = msgspec.field(default=False, name="useRTKernel")
    kernel_version: str = ""
    dtk_image: str = ""
    push_built_image: bool = False


class ValidatedKernel(Wire, frozen=True):
    """A kernel for which Modules are validated, and its source; `architecture` as in image names (`amd64`)."""

    architecture: str = ""
    kernel_version: str = ""
    dtk_image: str = ""


class CRStatus(Wire, frozen=True, kw_only=True):
    """The validation result of one Module.

    `verification_status` is True or False, `verification_stage` Image, Build, Sign, Requeued or Done.
    `observed_generation` is that of the Module when it was validated.
    """

    verification_status: str = ""
    status_reason: str = ""
    verification_stage: str = ""
    last_transition_time: datetime | None = None
    observed_generation: int = 0


class PreflightValidationStatus(Wire, frozen=True):
    """`status` of either kind; a key is `namespace/name`, in KMM before 2.1 the name alone."""

    cr_statuses: dict[str, CRStatus] = {}
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
