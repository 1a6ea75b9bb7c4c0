"""Names and texts of builds at their limits: labels, tags, snippets, and which kernel is of which architecture."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.factories import node
from tests.kernelmodules.decide.test_runs import WANTED

from runup.kernelmodules.decide import build_and_sign as image_names
from runup.kernelmodules.decide import runs
from runup.kernelmodules.decide.stages import architecture_of, nodes_selected
from runup.kernelmodules.decide.toolkit import Flavour, flavour_of


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("5.14.0-1.x86_64+rt", "5.14.0-1.x86_64_rt", id="a real-time kernel"),
        pytest.param("a" * 63, "a" * 63, id="as long as a label's value"),
        pytest.param("a" * 64, "a" * 63, id="a character more"),
        pytest.param("a" * 62 + ".b", "a" * 62, id="what is cut leaves no dot behind"),
        pytest.param("-_.a-_.", "a", id="what may not be at an end"),
        pytest.param("köln", "k_ln", id="a letter of elsewhere"),
    ],
)
def test_a_labels_value(text: str, value: str) -> None:
    """What a label takes, and as much as it takes."""
    assert runs.label_value(text) == value


@pytest.mark.parametrize(
    ("module", "head"),
    [
        pytest.param("kmod", "kmod", id="a short name"),
        pytest.param("k" * 44, "k" * 44, id="as long as there is room"),
        pytest.param("k" * 45, "k" * 44, id="a character more"),
        pytest.param("k" * 43 + ".x", "k" * 43, id="no dot before what follows"),
    ],
)
def test_a_runs_name(module: str, head: str) -> None:
    """As much of the Module's as 63 characters have room for, what it is for, and of what it is made."""
    name = replace(WANTED, module=module).key.name
    found, purpose, digest = name.rsplit("-", 2)
    assert (found, purpose) == (head, "build")
    assert len(name) <= 63
    assert replace(WANTED, module=module).hash.startswith(digest)


@pytest.mark.parametrize(
    ("log", "shown"),
    [
        pytest.param("make: ***\n  no rule\n", "make: *** no rule", id="one line"),
        pytest.param("x" * 1024, "x" * 1024, id="as long as is kept"),
    ],
)
def test_the_end_of_a_log(log: str, shown: str) -> None:
    """One line, however it was written."""
    assert runs.snippet(log) == shown


def test_a_log_that_is_longer_says_so() -> None:
    """By a character, too."""
    found = runs.snippet("x" * 1025)
    assert len(found) <= 1024
    assert found.endswith(" more characters")


@pytest.mark.parametrize(
    ("tag", "same"),
    [pytest.param("v" * 128, True, id="as long as a tag"), pytest.param("v" * 129, False, id="a character more")],
)
def test_a_tag_at_its_limit(tag: str, same: bool) -> None:
    """Names that fit are unchanged; longer ones are cut to the maximum length."""
    found = image_names.fit_tag(tag)
    assert (found == tag) is same
    assert (len(found), found[:115]) == (128, "v" * 115)


@pytest.mark.parametrize(
    ("image", "tag"),
    [
        pytest.param("r.example/k:v1", "v1", id="a tag"),
        pytest.param("host:5000/k", "", id="a port"),
        pytest.param("host:5000/k:v1", "v1", id="a port and a tag"),
        pytest.param("r.example/k@sha256:1", "", id="a digest"),
        pytest.param("r.example/k:v1@sha256:1", "v1", id="a tag and a digest"),
        pytest.param("k:v1", "v1", id="no registry"),
    ],
)
def test_an_images_tag(image: str, tag: str) -> None:
    """What follows the last colon after the last slash, before a digest."""
    assert image_names.tag_of(image) == tag


@pytest.mark.parametrize(
    ("kernel", "architecture"),
    [
        pytest.param("5.14.0-427.el9_4.x86_64", "amd64", id="a release's"),
        pytest.param("5.14.0-427.el9_4.x86_64+rt", "amd64", id="a real-time one"),
        pytest.param("5.14.0-427.el9_4.aarch64+64k", "arm64", id="one of large pages"),
        pytest.param("5.14.0-427.el9_4.x86_64+debug", "amd64", id="one for finding faults"),
        pytest.param("5.14.0-427.el9.ppc64le", "ppc64le", id="Power"),
        pytest.param("5.14.0-427.el9.s390x", "s390x", id="Z"),
        pytest.param("6.1.0-9-arm64", "arm64", id="Debian's"),
        pytest.param("6.1.0-9-rt-amd64", "amd64", id="Debian's real-time one"),
        pytest.param("5.14.0-427.x86_64.el9", "", id="not at its end"),
        pytest.param("6.1.0-9", "", id="none"),
    ],
)
def test_the_architecture_of_a_kernel(kernel: str, architecture: str) -> None:
    """By how its name ends, without what kind it is."""
    assert architecture_of(kernel) == architecture


@pytest.mark.parametrize(
    ("kernel", "architecture", "flavour"),
    [
        pytest.param("5.14.0-1.el9.x86_64", "amd64", Flavour("amd64"), id="the usual one"),
        pytest.param("5.14.0-1.el9.aarch64+64k", "arm64", Flavour("arm64", pages="64k"), id="of large pages"),
        pytest.param("5.14.0-1.el9.x86_64+rt", "amd64", Flavour("amd64", real_time=True), id="real-time"),
        pytest.param("5.14.0-1.el9.x86_64", "", Flavour("amd64"), id="a node that does not say"),
    ],
)
def test_what_kind_of_kernel_a_node_runs(kernel: str, architecture: str, flavour: Flavour) -> None:
    """By its kernel's name and what it says about itself."""
    assert flavour_of(node("a", architecture=architecture, kernel=kernel)) == flavour


def test_a_flavour_in_words() -> None:
    """The usual one by its architecture alone."""
    assert [str(Flavour("amd64")), str(Flavour("amd64", real_time=True))] == ["amd64", "amd64 real-time"]


def test_the_nodes_that_a_selector_takes() -> None:
    """Those that have all of it; an empty one takes every node."""
    plain, gpu, both = (
        node("a", architecture="amd64"),
        node("b", architecture="amd64", labels={"gpu": "yes"}),
        node("c", architecture="amd64", labels={"gpu": "yes", "disk": "ssd"}),
    )
    assert nodes_selected({}, (plain, gpu)) == (plain, gpu)
    assert nodes_selected({"gpu": "yes"}, (plain, gpu, both)) == (gpu, both)
    assert nodes_selected({"gpu": "yes", "disk": "ssd"}, (plain, gpu, both)) == (both,)
    assert nodes_selected({"gpu": "no"}, (plain, gpu)) == ()
