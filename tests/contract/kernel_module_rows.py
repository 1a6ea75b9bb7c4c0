"""Modules that are in order, and others with what is said about them, by the API server or by the controller."""

from __future__ import annotations

from typing import Any

import pytest

JSON = dict[str, Any]
FILE_TO_SIGN = r"^/[A-Za-z0-9/._+@:,=~%*?\[\]!^${}-]*$"
IMAGE = "quay.io/example/kmod:${KERNEL_FULL_VERSION}"


def module(mappings: list[JSON] | None = None, modprobe: JSON | None = None, **container: Any) -> JSON:
    """A Module that is valid by default."""
    container = {
        "modprobe": {"moduleName": "kmod"} if modprobe is None else modprobe,
        "kernelMappings": [{"regexp": "^.*$", "containerImage": IMAGE}] if mappings is None else mappings,
        **container,
    }
    return {"selector": {"a": ""}, "moduleLoader": {"container": container}}


BUILD = {"dockerfileConfigMap": {"name": "recipe"}, "buildArgs": [{"name": "A", "value": ""}]}
SIGN = {"keySecret": {"name": "k"}, "certSecret": {"name": "c"}, "filesToSign": ["/opt/a.ko"]}

GOOD = [
    pytest.param(module(), id="a mapping with an image"),
    pytest.param(module([{"literal": "6.1.0"}], containerImage="host:5000/a/b@sha256:00"), id="the container's image"),
    pytest.param(
        module([{"regexp": "^6[.]", "literal": "", "containerImage": IMAGE, "build": BUILD, "sign": SIGN}]),
        id="an empty literal is none",
    ),
    pytest.param(
        module(modprobe={"rawArgs": {"load": ["-v", "kmod"], "unload": ["-r", "kmod"]}}), id="arguments of its own"
    ),
    pytest.param(
        module(modprobe={"moduleName": "kmod", "modulesLoadingOrder": ["kmod", "base"], "args": {"load": ["-v"]}}),
        id="an order of loading",
    ),
    pytest.param(
        module(
            sign={**SIGN, "filesToSign": ["/opt/lib/modules/${KERNEL_FULL_VERSION:-none}/[!a-c]?*.ko", "/opt/$A/b"]}
        ),
        id="patterns and variables in the files to sign",
    ),
    pytest.param({"selector": {"a": ""}, "devicePlugin": {"container": {"image": "a:1"}}}, id="no loader"),
    pytest.param({**module(), "later": {"driver": "x"}}, id="what a later version adds"),
    pytest.param({**module(), "dra": {"driverName": "gpu.example.com", "volumes": []}}, id="a resource driver"),
    pytest.param(
        module([{"regexp": "a", "containerImage": IMAGE, "inTreeModuleToRemove": "b"}], inTreeModuleToRemove="a"),
        id="the older spelling, for a mapping and for all",
    ),
    pytest.param(module(inTreeModulesToRemove=["a"], inTreeModuleToRemove=""), id="an older spelling that is empty"),
]

BOTH = "InTreeModulesToRemove or InTreeModuleToRemove can be defined"
BAD = [
    pytest.param(
        module(inTreeModulesToRemove=["a"], inTreeModuleToRemove="a"),
        f"only one of the Container's fields: {BOTH}",
        id="both spellings of in-tree modules",
    ),
    pytest.param(
        module(inTreeModulesToRemove=[], inTreeModuleToRemove="a"),
        f"only one of the Container's fields: {BOTH}",
        id="both spellings, one without a module",
    ),
    pytest.param(
        module(
            [
                {
                    "regexp": "a",
                    "containerImage": IMAGE,
                    "inTreeModulesToRemove": ["a"],
                    "inTreeModuleToRemove": "a",
                }
            ]
        ),
        f"only one of the KernelMapping fields: {BOTH}",
        id="both spellings in a mapping",
    ),
    *(
        pytest.param(
            module([{"regexp": "a", "containerImage": IMAGE, **mapping}], **container),
            "only one type if field (InTreeModuleToRemove or InTreeModulesToRemove) can be defined in KenrelMapping",
            id=f"one spelling in a mapping, the other for all: {word}",
        )
        for word, mapping, container in (
            ("list", {"inTreeModulesToRemove": ["a"]}, {"inTreeModuleToRemove": "a"}),
            ("one", {"inTreeModuleToRemove": "a"}, {"inTreeModulesToRemove": ["a"]}),
        )
    ),
    pytest.param({**module(), "dra": {}}, "spec.dra.driverName must be set", id="a resource driver without a name"),
    pytest.param(
        {"selector": {}, "dra": {"driverName": ""}}, "spec.dra.driverName must be set", id="an empty name, no loader"
    ),
    pytest.param(
        {**module(), "dra": {"driverName": "NO NAME"}},
        "spec.dra.driverName: NO NAME is not a valid DNS subdomain",
        id="a name that is none",
    ),
    pytest.param(
        {**module(), "dra": {"driverName": "a.b"}, "devicePlugin": {"container": {"image": "a:1"}}},
        "spec.dra and spec.devicePlugin are mutually exclusive",
        id="a resource driver and a device plugin",
    ),
    pytest.param(
        module([{"literal": "6.1.0", "containerImage": IMAGE}, {"regexp": "a", "literal": "b"}], containerImage=IMAGE),
        "regexp and literal are mutually exclusive properties at kernelMappings[1]",
        id="both a regexp and a literal",
    ),
    pytest.param(
        module([{"containerImage": IMAGE}]), "regexp or literal must be set at kernelMappings[0]", id="neither"
    ),
    pytest.param(
        module([{"regexp": "", "literal": ""}], containerImage=IMAGE),
        "regexp or literal must be set at kernelMappings[0]",
        id="both empty",
    ),
    pytest.param(module([{"regexp": "*-bad", "containerImage": IMAGE}]), "invalid regexp", id="no expression"),
    pytest.param(
        module([{"regexp": "(?=a)b", "containerImage": IMAGE}]), "invalid regexp", id="one of another language"
    ),
    pytest.param(
        module([{"regexp": "a", "containerImage": IMAGE}, {"regexp": "b"}]),
        "missing spec.moduleLoader.container.kernelMappings[1].containerImage",
        id="no image",
    ),
    pytest.param(
        module([{"regexp": "a", "containerImage": "quay.io/a/b"}]),
        "container image must explicitely set a tag or digest; got: quay.io/a/b",
        id="neither tag nor digest",
    ),
    pytest.param(
        module(containerImage="localhost:5000/a/b"),
        "container image must explicitely set a tag or digest; got: localhost:5000/a/b",
        id="a port is no tag",
    ),
    pytest.param(
        module(modprobe={"moduleName": "kmod", "rawArgs": {"load": ["a"]}}),
        "rawArgs cannot be set when moduleName is set",
        id="a name and arguments of its own",
    ),
    pytest.param(
        module(modprobe={"rawArgs": {"load": ["a"]}}),
        "load and unload rawArgs must be set when moduleName is unset",
        id="it cannot be unloaded",
    ),
    pytest.param(
        module(modprobe={}), "load and unload rawArgs must be set when moduleName is unset", id="nothing to load"
    ),
    pytest.param(
        module(modprobe={"moduleName": "a", "modulesLoadingOrder": ["a"]}),
        "if a loading order is defined, at least two values must be defined",
        id="an order of one",
    ),
    pytest.param(
        module(modprobe={"rawArgs": {"load": ["a"], "unload": ["a"]}, "modulesLoadingOrder": ["a", "b"]}),
        "if a loading order is defined, moduleName must be set",
        id="an order without a name",
    ),
    pytest.param(
        module(modprobe={"moduleName": "a", "modulesLoadingOrder": ["b", "a"]}),
        "if a loading order is defined, the first element must be moduleName",
        id="an order that begins elsewhere",
    ),
    pytest.param(
        module(modprobe={"moduleName": "a", "modulesLoadingOrder": ["a", "b", "b"]}),
        '"b": duplicate value in the loading order list',
        id="twice in the order",
    ),
    *(
        pytest.param(
            module(sign={**SIGN, "filesToSign": ["/opt/a.ko", file]}),
            f"spec.moduleLoader.container.sign.filesToSign[1] in body should match '{FILE_TO_SIGN}'",
            id=what,
        )
        for file, what in (
            ("/opt/lib/[$(id)]*.ko", "a command among the files to sign"),
            ("/opt/a b.ko", "a space in a file to sign"),
            ("/opt/a\nRUN id", "a line end in a file to sign"),
            ("/opt/a.ko\n", "a line end after a file to sign"),
            ("opt/a.ko", "a file to sign that is relative"),
        )
    ),
    pytest.param(
        module([{"regexp": "a", "containerImage": IMAGE, "sign": {**SIGN, "filesToSign": ["/opt/`id`"]}}]),
        f"spec.moduleLoader.container.kernelMappings[0].sign.filesToSign[0] in body should match '{FILE_TO_SIGN}'",
        id="a command among a mapping's files to sign",
    ),
]

# What only a schema can say, since an object that is decoded has every field.
SHAPELESS = [
    pytest.param(
        module([]),
        "spec.moduleLoader.container.kernelMappings in body should have at least 1 items",
        id="no mapping",
    ),
    pytest.param(
        module(sign={"keySecret": {"name": "k"}}),
        "spec.moduleLoader.container.sign.certSecret: Required value",
        id="a key alone",
    ),
    pytest.param({"moduleLoader": module()["moduleLoader"]}, "spec.selector: Required value", id="no selector"),
]
