"""Validates Modules and the specs of preflight validations, in the words of the webhooks of KMM.

Our CustomResourceDefinitions reject the same objects by their own rules. These functions are for objects that were
stored before, or under another definition: the controller reports the faults in the status and does nothing else.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

from kubekit.lang.cel import CelError, compile_cel
from runup.api import kmm_v1beta1

_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
LONGEST_SUBDOMAIN = 253
_TAGGED = re.compile("[:@][^/]*$")
FILE_TO_SIGN = "^/[A-Za-z0-9/._+@:,=~%*?\\[\\]!^${}-]*$"
"""The form of a file to sign, variables included. `signing` looks at it again once they are substituted."""
LONGEST_KERNEL = 64
"""The most characters that `uname -r` can print."""
LONGEST_NAME_WITH_VERSION = 41
"""The most characters of name and namespace of a Module with a version: both go into a label name of 63 characters."""


def module_faults(module: kmm_v1beta1.Module) -> tuple[str, ...]:
    """Returns the faults of a Module."""
    loader = module.spec.module_loader
    faults = [*_driver_faults(module.spec)]
    if loader is None:
        return tuple(faults)
    container = loader.container
    # KMM's text says "when version is set", but its code always rejects: we follow the text
    # (docs/decisions/0059-the-definitions-of-kernel-modules.md).
    length = len(module.metadata.name + module.metadata.namespace)
    if container.version and length > LONGEST_NAME_WITH_VERSION:
        faults.append(
            f"module name and namespace have a combined length of {length} characters, which exceeds the maximum of "
            f"{LONGEST_NAME_WITH_VERSION} when version is set"
        )
    return (*faults, *_container_faults(container), *_modprobe_faults(container.modprobe))


def kernel_fault(kernel: str) -> str:
    """Returns why `kernel` is not a valid kernel version, "" if it is."""
    if not kernel:
        return "kernelVersion cannot be empty"
    parts = 1 + sum(kernel.count(separator) for separator in ".,-")
    if parts < 3 or "/" in kernel or len(kernel) > LONGEST_KERNEL:
        return f"invalid kernelVersion {kernel}"
    return ""


def validation_fault(spec: kmm_v1beta1.PreflightValidationSpec | kmm_v1beta1.PreflightValidationOCPSpec) -> str:
    """Returns why the spec of a validation is invalid, "" if it is valid."""
    if isinstance(spec, kmm_v1beta1.PreflightValidationSpec):
        return kernel_fault(spec.kernel_version)
    if spec.release_image and spec.kernel_version:
        return "releaseImage and kernelVersion are mutually exclusive properties"
    if spec.release_image and spec.dtk_image:
        return "dtkImage goes with kernelVersion; a releaseImage names its own"
    if spec.kernel_version and spec.use_rt_kernel:
        return "useRTKernel goes with releaseImage; a kernelVersion is the kernel itself"
    if not spec.release_image and not spec.kernel_version:
        return "kernelVersion cannot be empty where there is no releaseImage"
    return "" if spec.release_image else kernel_fault(spec.kernel_version)


def _container_faults(container: kmm_v1beta1.ModuleLoaderContainer) -> Iterator[str]:
    """Yields the errors in a container's kernel mappings, builds and signatures."""
    yield from _image_faults(container.container_image)
    yield from _in_tree_faults(container)
    for at, mapping in enumerate(container.kernel_mappings):
        if mapping.regexp and mapping.literal:
            yield f"regexp and literal are mutually exclusive properties at kernelMappings[{at}]"
        if not mapping.regexp and not mapping.literal:
            yield f"regexp or literal must be set at kernelMappings[{at}]"
        if why := _regexp_fault(mapping.regexp):
            yield f"invalid regexp at index {at}: {why}"
        if not mapping.container_image and not container.container_image:
            yield f"missing spec.moduleLoader.container.kernelMappings[{at}].containerImage"
        yield from _image_faults(mapping.container_image)
        yield from _files_to_sign_faults(mapping.sign, f"kernelMappings[{at}].sign")
    yield from _files_to_sign_faults(container.sign, "sign")


def _driver_faults(spec: kmm_v1beta1.ModuleSpec) -> Iterator[str]:
    """Yields the errors in `dra`, as far as later versions of Kernel Module Management refuse them."""
    if spec.dra is None:
        return
    name = spec.dra.driver_name
    if not name:
        yield "spec.dra.driverName must be set"
    elif len(name) > LONGEST_SUBDOMAIN or not re.fullmatch(_SUBDOMAIN, name):
        yield f"spec.dra.driverName: {name} is not a valid DNS subdomain"
    if spec.device_plugin is not None:
        yield "spec.dra and spec.devicePlugin are mutually exclusive"


def _in_tree_faults(container: kmm_v1beta1.ModuleLoaderContainer) -> Iterator[str]:
    """Yields an error for each place in which both spellings of the in-tree modules to remove are set."""
    both = "InTreeModulesToRemove or InTreeModuleToRemove can be defined"
    if container.in_tree_modules_to_remove is not None and container.in_tree_module_to_remove:
        yield f"only one of the Container's fields: {both}"
    mappings = container.kernel_mappings
    if any(each.in_tree_modules_to_remove is not None and each.in_tree_module_to_remove for each in mappings):
        yield f"only one of the KernelMapping fields: {both}"
    if any(
        (each.in_tree_modules_to_remove is not None and container.in_tree_module_to_remove)
        or (each.in_tree_module_to_remove and container.in_tree_modules_to_remove is not None)
        for each in mappings
    ):
        # The spelling is KMM's.
        yield (
            "only one type if field (InTreeModuleToRemove or InTreeModulesToRemove) can be defined in KenrelMapping or "
            "Container"
        )


def _files_to_sign_faults(sign: kmm_v1beta1.Sign | None, list_path: str) -> Iterator[str]:
    """Yields a fault for each file to sign that is not a path, in the words of the definition's schema."""
    for at, file in enumerate(sign.files_to_sign if sign else ()):
        if not re.fullmatch(FILE_TO_SIGN[1:-1], file):
            path = f"spec.moduleLoader.container.{list_path}.filesToSign[{at}]"
            yield f"{path} in body should match '{FILE_TO_SIGN}'"


def _image_faults(image: str) -> Iterator[str]:
    """Yields a fault if `image` has neither tag nor digest. Unlike in KMM, a registry's port is not taken for a tag."""
    if image and not _TAGGED.search(image):
        yield f"container image must explicitely set a tag or digest; got: {image}"


@lru_cache(maxsize=4096)
def _regexp_fault(regexp: str) -> str:
    """Returns why `regexp` is not a valid RE2 expression, which KMM and the API server use; "" if it is."""
    if not regexp:
        return ""
    try:
        compile_cel("''.matches(regexp)", {"regexp": "string"}).evaluate({"regexp": regexp})
    except CelError as error:
        return str(error)
    return ""


def _modprobe_faults(modprobe: kmm_v1beta1.Modprobe) -> Iterator[str]:
    """Yields the errors in `modprobe`, worded as Kernel Module Management does."""
    raw = modprobe.raw_args
    load, unload = (raw.load, raw.unload) if raw else ((), ())
    if modprobe.module_name and (load or unload):
        yield "rawArgs cannot be set when moduleName is set"
    if not modprobe.module_name and not (load and unload):
        yield "load and unload rawArgs must be set when moduleName is unset"
    order = modprobe.modules_loading_order
    if not order:
        return
    if len(order) < 2:
        yield "if a loading order is defined, at least two values must be defined"
    if not modprobe.module_name:
        yield "if a loading order is defined, moduleName must be set"
    elif order[0] != modprobe.module_name:
        yield "if a loading order is defined, the first element must be moduleName"
    for name, times in Counter(order).items():
        if times > 1:
            yield f'"{name}": duplicate value in the loading order list'
