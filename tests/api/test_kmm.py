"""Kernel modules and their validation, as other programs write them."""

from __future__ import annotations

import json

import pytest

from kubekit.api import codec
from kubekit.api.meta_v1 import Object
from kubekit.api.scheme import resource_of
from runup.api import kmm_v1beta1, kmm_v1beta2

MODULE = b"""{"apiVersion": "kmm.sigs.x-k8s.io/v1beta1", "kind": "Module",
"metadata": {"name": "kmod", "namespace": "drivers"},
"spec": {"selector": {"node-role.kubernetes.io/worker": ""}, "imageRepoSecret": {"name": "pull"},
 "devicePlugin": {"container": {"image": "quay.io/example/plugin:1"}},
 "moduleLoader": {"container": {
  "modprobe": {"moduleName": "kmod", "dirName": "/usr", "modulesLoadingOrder": ["kmod", "base"],
               "rawArgs": null, "args": {"load": ["-v"]}},
  "containerImage": "quay.io/example/kmod:${KERNEL_FULL_VERSION}",
  "registryTLS": {"insecure": true, "insecureSkipTLSVerify": true},
  "inTreeModuleToRemove": "old",
  "kernelMappings": [
   {"literal": "6.1.0", "registryTLS": {}},
   {"regexp": "^.*$", "build": {"dockerfileConfigMap": {"name": "recipe"}, "buildArgs": [{"name": "A", "value": "b"}],
    "secrets": [{"name": "s"}], "baseImageRegistryTLS": {"insecure": true}, "kanikoParams": {"tag": "1"}},
    "sign": {"keySecret": {"name": "k"}, "certSecret": {"name": "c"}, "filesToSign": ["/opt/a.ko"],
             "unsignedImage": "quay.io/example/unsigned:1", "unsignedImageRegistryTLS": {"insecure": true}}}]}}}}"""


def test_a_module_is_read_as_it_is_written() -> None:
    """Every field that decides whether the module will load, under the name that the API gives it."""
    spec = codec.decode(kmm_v1beta1.Module, MODULE).spec
    assert spec.image_repo_secret == kmm_v1beta1.LocalObjectReference(name="pull")
    assert spec.module_loader is not None
    container = spec.module_loader.container
    assert (container.modprobe.module_name, container.modprobe.dir_name) == ("kmod", "/usr")
    assert container.modprobe.modules_loading_order == ("kmod", "base")
    assert container.modprobe.raw_args is None
    assert container.modprobe.args == kmm_v1beta1.ModprobeArgs(load=("-v",))
    assert container.registry_tls == kmm_v1beta1.TLSOptions(insecure=True, insecure_skip_tls_verify=True)
    assert container.in_tree_module_to_remove == "old"
    literal, regexp = container.kernel_mappings
    assert (literal.literal, literal.registry_tls, literal.build) == ("6.1.0", kmm_v1beta1.TLSOptions(), None)
    assert regexp.registry_tls is None
    assert regexp.build is not None
    assert regexp.build.dockerfile_config_map.name == "recipe"
    assert regexp.build.build_args == (kmm_v1beta1.BuildArg(name="A", value="b"),)
    assert regexp.build.base_image_registry_tls.insecure
    assert regexp.sign is not None
    assert (regexp.sign.key_secret.name, regexp.sign.cert_secret.name) == ("k", "c")
    assert regexp.sign.unsigned_image_registry_tls.insecure
    assert regexp.sign.files_to_sign == ("/opt/a.ko",)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        pytest.param(kmm_v1beta1.Module, "modules v1beta1 Module", id="a Module is in v1beta1 alone"),
        pytest.param(kmm_v1beta1.PreflightValidation, "preflightvalidations v1beta1 PreflightValidation", id="older"),
        pytest.param(
            kmm_v1beta2.PreflightValidationOCP,
            "preflightvalidationsocp v1beta2 PreflightValidationOCP",
            id="the plural of the kind for releases has no s at its end",
        ),
    ],
)
def test_each_type_stands_for_its_kind(kind: type[Object], name: str) -> None:
    """Plural, version and kind are those of the operator's own definitions."""
    resource = resource_of(kind)
    assert f"{resource.plural} {resource.version} {resource.kind}" == name
    assert resource.group == "kmm.sigs.x-k8s.io"


def test_a_status_says_what_the_api_says() -> None:
    """As the controller writes it: names in camel case, `useRTKernel` as it is spelled, absent what is unset."""
    written = {
        "apiVersion": "kmm.sigs.x-k8s.io/v1beta2",
        "kind": "PreflightValidationOCP",
        "metadata": {"name": "preflight"},
        "spec": {"releaseImage": "quay.io/example/release:1", "useRTKernel": True, "pushBuiltImage": True},
        "status": {
            "modules": [
                {
                    "verificationStatus": "False",
                    "statusReason": "waiting",
                    "verificationStage": "Build",
                    "lastTransitionTime": "2026-01-02T03:04:05Z",
                    "namespace": "drivers",
                    "name": "kmod",
                }
            ],
            "kernels": [{"architecture": "amd64", "kernelVersion": "6.1.0", "dtkImage": "quay.io/example/dtk"}],
        },
    }
    read = codec.convert(kmm_v1beta2.PreflightValidationOCP, written)
    assert json.loads(codec.encode(read)) == written
    old = {"status": {"crStatuses": {"drivers/kmod": {"verificationStatus": "True", "verificationStage": "Done"}}}}
    assert json.loads(codec.encode(codec.convert(kmm_v1beta1.PreflightValidation, old))) == old
