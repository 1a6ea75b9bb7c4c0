"""Which image a Module has for a kernel: which mapping counts, what is merged, what is filled in, and what is said."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubekit.api import codec
from runup.api.kmm_v1beta1 import BuildArg, Module
from runup.kernelmodules.decide.mapping import BadSubstitution, Unmapped, as_tag, resolve, substitute, variables

FEDORA = "6.0.15-300.fc37.x86_64"
IMAGE = "registry.example/drivers/simple:1"
DOCKERFILE = {"dockerfileConfigMap": {"name": "container"}}
SIGN = {"keySecret": {"name": "key"}, "certSecret": {"name": "cert"}}


def module(*mappings: dict[str, Any], modprobe: dict[str, Any] | None = None, **container: Any) -> Module:
    """A Module `drivers/simple`."""
    loader = {
        "container": {
            "modprobe": {"moduleName": "simple_kmod"} if modprobe is None else modprobe,
            "kernelMappings": list(mappings),
            **container,
        }
    }
    spec = {"selector": {"hardware": "there"}, "imageRepoSecret": {"name": "pull"}, "moduleLoader": loader}
    return codec.convert(Module, {"metadata": {"name": "simple", "namespace": "drivers"}, "spec": spec})


def every(**mapping: Any) -> dict[str, Any]:
    """A mapping for every kernel."""
    return {"regexp": ".", **mapping}


@pytest.mark.parametrize(
    ("mappings", "image"),
    [
        pytest.param([{"literal": FEDORA, "containerImage": "r/a:1"}], "r/a:1", id="a literal that equals the kernel"),
        pytest.param(
            [{"literal": "6.0.15", "containerImage": "r/a:1"}, every(containerImage="r/b:1")],
            "r/b:1",
            id="a literal that is only its beginning does not count",
        ),
        pytest.param(
            [{"regexp": r"fc37", "containerImage": "r/a:1"}], "r/a:1", id="an expression that matches in the middle"
        ),
        pytest.param(
            [every(containerImage="r/a:1"), {"literal": FEDORA, "containerImage": "r/b:1"}],
            "r/a:1",
            id="the first that fits counts, not the most specific",
        ),
        pytest.param([{"regexp": r"^.*\.x86_64$"}], IMAGE, id="a mapping without an image has the container's"),
        pytest.param(
            [{"regexp": r"el9", "containerImage": "r/a:1"}, {"regexp": "^6\\.", "containerImage": "r/b:1"}],
            "r/b:1",
            id="an expression that does not match is passed over",
        ),
    ],
)
def test_which_mapping_counts(mappings: list[dict[str, Any]], image: str) -> None:
    """The image is that of the first mapping that fits."""
    assert resolve(module(*mappings, containerImage=IMAGE), FEDORA).container_image == image


@pytest.mark.parametrize(
    ("made", "kernel", "cause"),
    [
        pytest.param(
            module({"literal": "5.14.0", "containerImage": "r/a:1"}),
            FEDORA,
            f"failed to find mapping for kernel {FEDORA}: kernel mapping not found",
            id="no mapping fits",
        ),
        pytest.param(
            module(), FEDORA, f"failed to find mapping for kernel {FEDORA}: kernel mapping not found", id="no mappings"
        ),
        pytest.param(
            module({"regexp": "[", "containerImage": "r/a:1"}),
            FEDORA,
            f'failed to find mapping for kernel {FEDORA}: could not match regexp "[" against kernel "{FEDORA}"',
            id="an expression that is none",
        ),
        pytest.param(
            module({"regexp": "(?=x)", "containerImage": "r/a:1"}),
            FEDORA,
            'could not match regexp "(?=x)"',
            id="an expression that RE2 does not have",
        ),
        pytest.param(
            module({"literal": "5.14", "containerImage": "r/a:1"}, every()),
            FEDORA,
            "missing spec.moduleLoader.container.kernelMappings[1].containerImage",
            id="no image anywhere",
        ),
        pytest.param(
            module(every(containerImage="r/a:1")),
            "tesdt",
            "invalid kernel version tesdt: expected at least three components (major.minor.patch)",
            id="a kernel that is none",
        ),
        pytest.param(
            module(every(containerImage="r/a:${KERNEL_XYZ")),
            FEDORA,
            "closing brace expected",
            id="a brace that is not closed",
        ),
        pytest.param(
            codec.convert(Module, {"metadata": {"name": "simple"}, "spec": {"selector": {}}}),
            FEDORA,
            "spec.moduleLoader is missing",
            id="a Module with a device plugin alone",
        ),
    ],
)
def test_what_is_said_where_there_is_no_image(made: Module, kernel: str, cause: str) -> None:
    """Kernel Module Management's words first, then the cause."""
    with pytest.raises(Unmapped) as raised:
        resolve(made, kernel)
    prefix = f"failed to process kernel mapping in the module simple for kernel version {kernel}: "
    assert raised.value.message.startswith(prefix)
    assert cause in raised.value.message.removeprefix(prefix)


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        pytest.param("r/a:$KERNEL_FULL_VERSION", f"r/a:{FEDORA}", id="without braces"),
        pytest.param("r/a:${KERNEL_VERSION}", f"r/a:{FEDORA}", id="with braces"),
        pytest.param("r/a:${KERNEL_XYZ}-${KERNEL_X}.${KERNEL_Y}.${KERNEL_Z}", "r/a:6.0.15-6.0.15", id="its parts"),
        pytest.param("r/$MOD_NAMESPACE/$MOD_NAME:1", "r/drivers/simple:1", id="the Module's name and namespace"),
        pytest.param("r/a:v${NOBODY_SET_IT}1", "r/a:v1", id="an unknown variable is empty"),
        pytest.param("r/a:${NOPE:-latest}", "r/a:latest", id="a default for what is not set"),
        pytest.param("r/a:${NOPE-${KERNEL_XYZ}}", "r/a:6.0.15", id="a variable as default"),
        pytest.param("r/a:${KERNEL_X:+six}", "r/a:six", id="another text where it is set"),
        pytest.param("r/a:${NOPE+six}x", "r/a:x", id="nothing where it is not"),
        pytest.param("r/a:$$KERNEL_X", "r/a:$KERNEL_X", id="two dollars are one"),
        pytest.param("r/a:5$", "r/a:5$", id="a dollar alone stays"),
    ],
)
def test_variables_in_the_image(text: str, filled: str) -> None:
    """As a8m/envsubst fills them in."""
    assert resolve(module(every(containerImage=text)), FEDORA).container_image == filled


@pytest.mark.parametrize("odd", ["+", "&", "%", "?", " ", "/", "ü"])
def test_what_a_tag_cannot_have_becomes_an_underscore(odd: str) -> None:
    """In tags; the files lie under the kernel's own name."""
    kernel = f"5.14.0-362.el9.x86_64{odd}rt"
    assert as_tag(kernel) == "5.14.0-362.el9.x86_64_rt"
    found = resolve(module(every(containerImage="r/a:$KERNEL_FULL_VERSION")), kernel)
    assert found.container_image == "r/a:5.14.0-362.el9.x86_64_rt"
    assert found.folder == f"opt/lib/modules/{kernel}"


@pytest.mark.parametrize("kernel", ["", "6", "6.0", "6..1", "6,0"])
def test_a_kernel_needs_three_parts(kernel: str) -> None:
    """One that has fewer is refused, not read wrongly."""
    with pytest.raises(BadSubstitution, match="expected at least three components"):
        variables(kernel)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("r/a:${}", "a variable's name is expected after the brace", id="no name"),
        pytest.param("r/a:${-latest}", "a variable's name is expected after the brace", id="a default of nothing"),
        pytest.param("r/a:${KERNEL_X", "closing brace expected", id="no end"),
        pytest.param("r/a:${KERNEL_X:-six", "closing brace expected", id="a default without an end"),
    ],
)
def test_what_cannot_be_filled_in_is_said(text: str, said: str) -> None:
    """With the whole text: a Module has several."""
    with pytest.raises(BadSubstitution) as raised:
        substitute(text, {"KERNEL_X": "6"})
    assert str(raised.value) == f"{text!r}: {said}"


def test_variables_deep_in_each_other_end() -> None:
    """A text made to be deep is refused."""
    with pytest.raises(BadSubstitution, match="deep"):
        substitute("${A-" * 5000 + "}" * 5000, {})


MERGED_BUILDS = [
    pytest.param(None, None, None, id="nobody builds"),
    pytest.param(DOCKERFILE, None, DOCKERFILE, id="the container's alone"),
    pytest.param(None, DOCKERFILE, DOCKERFILE, id="the mapping's alone"),
    pytest.param(
        {**DOCKERFILE, "selector": {"a": "b"}},
        {"dockerfileConfigMap": {"name": "mapping"}, "selector": {"c": "d"}},
        {"dockerfileConfigMap": {"name": "mapping"}, "selector": {"a": "b"}},
        id="the mapping's Dockerfile, the container's selector",
    ),
    pytest.param(
        {**DOCKERFILE, "secrets": [{"name": "s"}]},
        {"secrets": [{"name": "s"}, {"name": "t"}]},
        {**DOCKERFILE, "secrets": [{"name": "s"}, {"name": "s"}, {"name": "t"}]},
        id="secrets one after the other, twice where both have one",
    ),
]


@pytest.mark.parametrize(("ours", "theirs", "merged"), MERGED_BUILDS)
def test_builds_are_merged(ours: Any, theirs: Any, merged: Any) -> None:
    """As in docs/reference/upstream.md 11.2, down to what is not merged."""
    mapping = every() if theirs is None else every(build=theirs)
    container = {} if ours is None else {"build": ours}
    found = resolve(module(mapping, containerImage=IMAGE, **container), FEDORA).build
    assert (json.loads(codec.encode(found)) if found else None) == merged


def test_build_arguments_are_replaced_by_name_and_then_added() -> None:
    """In the container's order, the mapping's new ones after them."""
    ours = {**DOCKERFILE, "buildArgs": [{"name": "a", "value": "1"}, {"name": "b", "value": "2"}]}
    theirs = {"buildArgs": [{"name": "c", "value": "3"}, {"name": "a", "value": "4"}]}
    found = resolve(module(every(build=theirs), containerImage=IMAGE, build=ours), FEDORA).build
    assert found is not None
    expected = (BuildArg(name="a", value="4"), BuildArg(name="b", value="2"), BuildArg(name="c", value="3"))
    assert found.build_args == expected


@pytest.mark.parametrize(
    ("ours", "theirs", "merged"),
    [
        pytest.param(SIGN, None, SIGN, id="the container's alone"),
        pytest.param(None, SIGN, SIGN, id="the mapping's alone"),
        pytest.param(
            {**SIGN, "unsignedImage": "r/u:1"},
            {"unsignedImage": "r/u:${KERNEL_X}", "keySecret": {"name": "other"}},
            {"unsignedImage": "r/u:6", "keySecret": {"name": "other"}, "certSecret": {"name": "cert"}},
            id="what the mapping sets counts, filled in",
        ),
        pytest.param(
            {**SIGN, "filesToSign": ["/opt/lib/modules/$KERNEL_FULL_VERSION/a.ko"]},
            {"filesToSign": ["/opt/b.ko"]},
            {**SIGN, "filesToSign": [f"/opt/lib/modules/{FEDORA}/a.ko", "/opt/b.ko"]},
            id="files one after the other, filled in",
        ),
        pytest.param(
            {**SIGN, "unsignedImage": "r/$MOD_NAME:1"},
            None,
            {**SIGN, "unsignedImage": "r/:1"},
            id="the Module's name is for the container's image alone",
        ),
    ],
)
def test_signings_are_merged(ours: Any, theirs: Any, merged: Any) -> None:
    """As in docs/reference/upstream.md 11.2."""
    mapping = every() if theirs is None else every(sign=theirs)
    container = {} if ours is None else {"sign": ours}
    found = resolve(module(mapping, containerImage=IMAGE, **container), FEDORA).sign
    assert found is not None
    assert json.loads(codec.encode(found)) == merged


@pytest.mark.parametrize(
    ("ours", "theirs", "insecure", "skip"),
    [
        pytest.param({"insecure": True}, None, True, False, id="the container's"),
        pytest.param({"insecure": True}, {"insecureSkipTLSVerify": True}, False, True, id="the mapping's replaces it"),
        pytest.param({"insecure": True}, {}, False, False, id="an empty one of the mapping, too"),
    ],
)
def test_how_the_registry_is_spoken_to(ours: Any, theirs: Any, insecure: bool, skip: bool) -> None:
    """Nothing of two is mixed."""
    mapping = every() if theirs is None else every(registryTLS=theirs)
    found = resolve(module(mapping, containerImage=IMAGE, registryTLS=ours), FEDORA).registry_tls
    assert (found.insecure, found.insecure_skip_tls_verify) == (insecure, skip)


@pytest.mark.parametrize(
    ("modprobe", "names"),
    [
        pytest.param({"moduleName": "a"}, ("a",), id="the module"),
        pytest.param(
            {"moduleName": "a", "modulesLoadingOrder": ["a", "b", "c"]}, ("a", "b", "c"), id="and those before it"
        ),
        pytest.param({"rawArgs": {"load": ["-v", "a"], "unload": ["-r", "a"]}}, (), id="none with raw arguments"),
    ],
)
def test_which_modules_are_looked_for(modprobe: dict[str, Any], names: tuple[str, ...]) -> None:
    """All that modprobe is reported by name."""
    found = resolve(module(every(), containerImage=IMAGE, modprobe=modprobe), FEDORA)
    assert found.module_names == names
    assert (found.image_repo_secret, found.selector) == ("pull", {"hardware": "there"})


@pytest.mark.parametrize(
    ("folder", "path"),
    [("/opt", "opt/lib/modules/6.1.0"), ("/", "lib/modules/6.1.0"), ("/a/b/", "a/b/lib/modules/6.1.0")],
)
def test_where_the_files_belong(folder: str, path: str) -> None:
    """Below the image's root."""
    made = module(every(), containerImage=IMAGE, modprobe={"moduleName": "a", "dirName": folder})
    assert resolve(made, "6.1.0").folder == path
