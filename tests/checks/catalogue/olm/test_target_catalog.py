"""Operators and the catalog that comes with the target: what a file-based catalog says, and what follows from it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace
from tests.factories import context

from kubekit.api import codec
from kubekit.api.scheme import resource_of
from runup.api.olm_v1alpha1 import CatalogSource, Subscription
from runup.checks.catalogue.olm.olm_target_catalog import CHECK
from runup.checks.catalogue.olm.shared.olm_catalog_images import Expected, catalog_images_of_target, image_of_source
from runup.checks.decide.engine import CheckOutcome, run_check
from runup.checks.decide.file_based_catalog import (
    MAX_YAML_BYTES,
    NO_PATTERNS,
    BadCatalog,
    Entry,
    Package,
    folder_of,
    keep_used_part,
    packages_by_folder,
    parse,
)
from runup.checks.decide.model import DEFINITIONS, Context, Snapshot
from runup.checks.decide.snapshots import snapshot_of
from runup.checks.decide.target_catalogs import Catalogs, TargetCatalog

SUBSCRIPTION: dict[str, Any] = {
    "apiVersion": "operators.coreos.com/v1alpha1",
    "kind": "Subscription",
    "metadata": {"name": "logging", "namespace": "openshift-logging"},
    "spec": {"name": "cluster-logging", "channel": "stable-6", "source": "redhat-operators"},
    "status": {"installedCSV": "logging.v6.0.1", "currentCSV": "logging.v6.0.1"},
}
INDEX = "registry.example/index:v5.2"
NAMED = {"redhat-operators": INDEX}
ALONE = frozenset({"cluster-logging"})
PACKAGE = {"schema": "olm.package", "name": "cluster-logging", "defaultChannel": "stable-7"}


def channel(name: str, *entries: dict[str, Any]) -> dict[str, Any]:
    """A channel of the package."""
    return {"schema": "olm.channel", "package": "cluster-logging", "name": name, "entries": list(entries)}


def catalog(*parts: dict[str, Any]) -> TargetCatalog:
    """What a catalog's file comes to."""
    data = "\n".join(json.dumps(part) for part in (PACKAGE, *parts)).encode()
    return TargetCatalog(INDEX, parse({"configs/cluster-logging/catalog.json": data}), looked_for=ALONE)


def outcome_with(objects: list[dict[str, Any]], catalogs: Catalogs, update: Context | None = None) -> CheckOutcome:
    """What the check says about a cluster with OLM."""
    snapshot = snapshot_of(CHECK.reads, objects)
    return run_check(CHECK, snapshot, replace(update or context(), catalogs=catalogs))


def deprecations(**message: str) -> dict[str, Any]:
    """What the catalog says about the end of lives."""
    names = {"package": None, "channel": "stable-6", "bundle": "logging.v6.0.1"}
    entries = [
        {"reference": {"schema": f"olm.{what}"} | ({"name": names[what]} if names[what] else {}), "message": text}
        for what, text in message.items()
    ]
    return {"schema": "olm.deprecations", "package": "cluster-logging", "entries": entries}


HERE = {"name": "logging.v6.0.1"}
OTHER = TargetCatalog(INDEX, {"other": Package("other")}, looked_for=ALONE)


@pytest.mark.parametrize(
    ("found", "result", "words"),
    [
        pytest.param(catalog(channel("stable-6", HERE)), "Clear", "", id="the version itself is there"),
        pytest.param(
            catalog(channel("stable-6", {"name": "logging.v6.2.0", "replaces": "logging.v6.0.1"})),
            "Clear",
            "",
            id="the next replaces it",
        ),
        pytest.param(
            catalog(channel("stable-6", {"name": "logging.v6.2.0", "skips": ["logging.v6.0.0", "logging.v6.0.1"]})),
            "Clear",
            "",
            id="a later one skips it",
        ),
        pytest.param(
            catalog(channel("stable-6", {"name": "logging.v6.2.0", "skipRange": ">=6.0.0 <6.2.0"})),
            "Clear",
            "",
            id="a later one skips a range",
        ),
        pytest.param(
            catalog(channel("stable-6", {"name": "logging.v6.2.0", "replaces": "logging.v6.1.0"})),
            "Applies",
            "nothing in its channel stable-6 is or follows logging.v6.0.1",
            id="there is a gap",
        ),
        pytest.param(
            catalog(channel("stable-7", HERE)),
            "Applies",
            "it has no channel stable-6, but stable-7 (by default stable-7)",
            id="the channel is gone",
        ),
        pytest.param(OTHER, "Applies", "it has no package cluster-logging", id="the package is gone"),
        pytest.param(
            catalog(channel("stable-6", HERE), deprecations(channel="use stable-7", bundle="it is old")),
            "Applies",
            "at the end of its life in the catalog of 5.2: channel stable-6: use stable-7; bundle logging.v6.0.1: ",
            id="its channel and version are at their end",
        ),
        pytest.param(
            TargetCatalog(INDEX, problem="no route to host"),
            "Unknown",
            f"{INDEX}: no route to host",
            id="the image cannot be read",
        ),
        pytest.param(
            TargetCatalog(INDEX, looked_for=frozenset({"other"})),
            "Unknown",
            "package cluster-logging was not looked for yet",
            id="it was installed after the image was read",
        ),
        pytest.param(None, "Unknown", f"{INDEX}: it is being read", id="nobody has read it yet"),
    ],
)
def test_an_operator_and_the_next_catalog(found: TargetCatalog | None, result: str, words: str) -> None:
    """Whether there is a way on; where the catalog is not known, it is not fine."""
    outcome = outcome_with([SUBSCRIPTION], Catalogs(NAMED, {INDEX: found} if found else {}, "it is being read"))
    assert outcome.result == result, outcome
    assert words in " ".join(finding.message for finding in outcome.findings)
    assert [each.name for finding in outcome.findings for each in finding.resources] == ["logging"] * bool(words)


def source(name: str, image: str, *, namespace: str = "openshift-marketplace", **notes: str) -> dict[str, Any]:
    """A CatalogSource; `managed` and `template` are the annotations that count."""
    keys = {"managed": "operatorframework.io/managed-by", "template": "olm.catalogImageTemplate"}
    annotations = {keys[key]: text for key, text in notes.items()}
    return {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "CatalogSource",
        "metadata": {"name": name, "namespace": namespace, "annotations": annotations},
        "spec": {"image": image},
    }


OWN = "marketplace-operator"
MINE = "quay.io/mine/catalog"
KUBE = "{kube_major_version}.{kube_minor_version}"


@pytest.mark.parametrize(
    ("found", "brought", "kubernetes", "expected"),
    [
        pytest.param(
            source("redhat-operators", "r.example/index:v5.0", managed=OWN),
            (),
            "",
            Expected("r.example/index:v5.2"),
            id="one of the platform's follows the release",
        ),
        pytest.param(
            source("redhat-operators", "r.example/index:v5.2", managed=OWN),
            (),
            "",
            Expected(),
            id="one of the platform's that is there already",
        ),
        pytest.param(
            source("redhat-operators", "r.example/index:v5.0"), (), "", Expected(), id="its name, of somebody else"
        ),
        pytest.param(
            source("redhat-operators-4-13", "r.example/index:v4.13", managed=OWN),
            (),
            "",
            Expected(),
            id="its annotation, copied to a catalog that was pinned",
        ),
        pytest.param(
            source("redhat-operators", "r.example/index:v5.0", managed=OWN, namespace="shop"),
            (),
            "",
            Expected(),
            id="in another namespace",
        ),
        pytest.param(
            source("community-operators", "r.example/catalog:latest", managed=OWN),
            (),
            "",
            Expected(),
            id="a tag that names no release",
        ),
        pytest.param(
            source("redhat-operators", f"r.example:5000/index@sha256:{'5' * 64}", managed=OWN),
            (),
            "",
            Expected(),
            id="a digest",
        ),
        pytest.param(
            source("mine", f"{MINE}:v1.36", template=f"{MINE}:v{KUBE}"),
            (),
            "1.38.1",
            Expected(f"{MINE}:v1.38"),
            id="a template follows Kubernetes",
        ),
        pytest.param(
            source("mine", f"{MINE}:v1.36", template=f"{MINE}:v{KUBE}.{{kube_patch_version}}"),
            (),
            "v1.38.1+bd9e442",
            Expected(f"{MINE}:v1.38.1"),
            id="to its patch, of a build",
        ),
        pytest.param(
            source("mine", f"{MINE}:v1.38", template=f"{MINE}:v{KUBE}"),
            (),
            "1.38.1",
            Expected(),
            id="a template that comes to the same",
        ),
        pytest.param(
            source("mine", f"{MINE}:v1.36", template=f"{MINE}:v{KUBE}"),
            (),
            "",
            Expected(
                problem="which Kubernetes the target has is not known, by which its olm.catalogImageTemplate chooses"
            ),
            id="a template, and no Kubernetes told",
        ),
        pytest.param(
            source("mine", f"{MINE}:1", template=f"{MINE}:{{group:a,kind:B,jsonpath:c}}"),
            (),
            "1.38.1",
            Expected(
                problem="its olm.catalogImageTemplate has variables that only OLM knows: "
                f"{MINE}:{{group:a,kind:B,jsonpath:c}}"
            ),
            id="a template of an object on the cluster",
        ),
        pytest.param(source("mine", f"{MINE}:v1"), (), "1.38.1", Expected(), id="neither: it stays as it is"),
        pytest.param(source("mine", ""), (), "1.38.1", Expected(), id="served by an address"),
        pytest.param(
            source("mine", f"{MINE}:v1"),
            (source("mine", f"{MINE}:v2"), source("other", f"{MINE}:v3")),
            "",
            Expected(f"{MINE}:v2"),
            id="the release brings it",
        ),
        pytest.param(
            source("mine", f"{MINE}:v1"),
            (source("mine", f"{MINE}:v1"),),
            "",
            Expected(),
            id="the release brings it as it is",
        ),
        pytest.param(
            source("mine", f"{MINE}:v1"),
            (source("mine", f"{MINE}:v1", template=f"{MINE}:v{KUBE}"),),
            "1.38.1",
            Expected(f"{MINE}:v1.38"),
            id="the release brings a template",
        ),
    ],
)
def test_which_image_a_catalog_will_have(
    found: dict[str, Any], brought: tuple[dict[str, Any], ...], kubernetes: str, expected: Expected
) -> None:
    """As the platform chooses it; what nobody changes stays, and is not read."""
    update = replace(context(kubernetes=kubernetes), manifests=brought)
    assert image_of_source(codec.convert(CatalogSource, found), update) == expected


FROM_MARKETPLACE = {**SUBSCRIPTION, "spec": {**SUBSCRIPTION["spec"], "sourceNamespace": "openshift-marketplace"}}
NOT_INSTALLED = {**FROM_MARKETPLACE, "metadata": {"name": "new", "namespace": "shop"}, "status": {}}
MOVED = source("redhat-operators", "registry.example/index:v5.0", managed=OWN)
HEALTHY = catalog(channel("stable-6", HERE))
GONE = catalog(channel("stable-7", HERE))


@pytest.mark.parametrize(
    ("objects", "read", "expected"),
    [
        pytest.param([FROM_MARKETPLACE, MOVED], {INDEX: HEALTHY}, "Clear", id="it has a way on"),
        pytest.param([FROM_MARKETPLACE, MOVED], {INDEX: GONE}, "Applies", id="its channel is gone"),
        pytest.param([FROM_MARKETPLACE, MOVED], {}, "Unknown", id="its catalog was not read"),
        pytest.param([FROM_MARKETPLACE], {INDEX: HEALTHY}, "Unknown", id="its catalog is not on the cluster"),
        pytest.param([SUBSCRIPTION, MOVED], {INDEX: HEALTHY}, "Unknown", id="a catalog of its own namespace is not"),
        pytest.param([NOT_INSTALLED, MOVED], {}, "Clear", id="nothing is installed"),
        pytest.param(
            [FROM_MARKETPLACE, source("redhat-operators", "mirror.example/index:v5.0")],
            {},
            "Clear",
            id="a catalog that stays as it is",
        ),
        pytest.param([MOVED], {}, "Clear", id="no operators"),
    ],
)
def test_a_cluster_and_the_catalogs_of_the_target(
    objects: list[dict[str, Any]], read: Mapping[str, TargetCatalog], expected: str
) -> None:
    """Found out from the cluster's own catalogs, without a flag."""
    assert outcome_with(objects, Catalogs(read=read)).result == expected


def test_only_operators_of_a_catalog_that_cannot_be_read_are_unknown() -> None:
    """Another catalog's are evaluated all the same."""
    other = {**FROM_MARKETPLACE, "metadata": {"name": "mine", "namespace": "shop"}}
    other["spec"] = {
        **SUBSCRIPTION["spec"],
        "source": "certified-operators",
        "sourceNamespace": "openshift-marketplace",
    }
    certified = source("certified-operators", "registry.example/certified:v5.0", managed=OWN)
    refused = TargetCatalog("registry.example/certified:v5.2", problem="it wants a login", looked_for=ALONE)
    outcome = outcome_with(
        [FROM_MARKETPLACE, other, MOVED, certified], Catalogs(read={INDEX: GONE, refused.image: refused})
    )
    assert [(found.name, found.applies.value) for found in outcome.findings] == [
        ("OperatorNotInTargetCatalog-logging", "True"),
        ("OperatorNotInTargetCatalogUnknown", "Unknown"),
    ]
    assert "shop/mine: registry.example/certified:v5.2: it wants a login" in outcome.findings[1].message


def test_what_is_read_is_what_changes_and_is_installed() -> None:
    """Nothing of a catalog that stays, nor for a Subscription that has installed nothing."""
    subs = [codec.convert(Subscription, each) for each in (FROM_MARKETPLACE, NOT_INSTALLED)]
    sources = [codec.convert(CatalogSource, each) for each in (MOVED, source("mine", f"{MINE}:v1"))]
    assert catalog_images_of_target(subs, sources, context()) == {INDEX: ALONE}
    assert [catalog_images_of_target([sub], sources, context()) for sub in subs] == [{INDEX: ALONE}, {}]
    assert catalog_images_of_target(subs, (), replace(context(), catalogs=Catalogs(NAMED))) == {INDEX: ALONE}


def test_an_empty_cluster_needs_no_catalog() -> None:
    """Nor does one without OLM, nor a patch; one whose Subscriptions may not be listed is Unknown."""
    assert outcome_with([], Catalogs()).result == "Clear"
    assert outcome_with([FROM_MARKETPLACE, MOVED], Catalogs(), context("5.2.0", "5.2.9")).result == "Skipped"
    forbidden = Snapshot(objects={DEFINITIONS: ()}, unreadable={resource_of(Subscription): "not allowed to list"})
    assert run_check(CHECK, forbidden, context()).result == "Unknown"


def test_bundles_are_left_out_and_nothing_else() -> None:
    """They are most of a catalog, and nobody here looks at them."""
    bundle = {"schema": "olm.bundle", "package": "cluster-logging", "properties": ["x" * 9999]}
    parts = (PACKAGE, bundle, channel("stable-6", HERE), deprecations(package="old"), {"schema": 7})
    data = "\n".join(json.dumps(part) for part in parts).encode()
    slimmed = keep_used_part("configs/a/catalog.json", data)
    assert len(slimmed) < 999
    assert parse({"a.json": slimmed}) == parse({"a.json": data})
    assert parse({"a.json": keep_used_part("a.yaml", YAML)}) == parse({"a.yaml": YAML})


def test_a_large_catalog_of_yaml_is_not_parsed_for_minutes() -> None:
    """Those are JSON; the error says so."""
    with pytest.raises(BadCatalog, match=r"configs/x/catalog\.yaml: of YAML"):
        keep_used_part("configs/x/catalog.yaml", b" " * (MAX_YAML_BYTES + 1))


YAML = b"""---
schema: olm.package
name: cluster-logging
defaultChannel: stable-6
---
schema: olm.channel
package: cluster-logging
name: stable-6
entries:
- name: logging.v6.0.1
  skips: [a, 7]
"""


def test_yaml_and_json_say_the_same() -> None:
    """As `opm` writes either; what is of no use here is left out."""
    expected = {
        "cluster-logging": Package("cluster-logging", "stable-6", {"stable-6": (Entry("logging.v6.0.1", "", ("a",)),)})
    }
    assert parse({"configs/cluster-logging/catalog.yaml": YAML}) == expected


@pytest.mark.parametrize(
    "data", [b"{", b"\xff", b"[" * 100_000, b"nonsense"], ids=["cut off", "no text", "deep", "words"]
)
def test_a_catalog_that_cannot_be_read_names_its_file(data: bytes) -> None:
    """Somebody else's image is data."""
    with pytest.raises(BadCatalog, match=r"configs/x/catalog\.json"):
        parse({"configs/x/catalog.json": data})


@pytest.mark.parametrize(
    ("path", "folder"),
    [
        pytest.param("configs/a/catalog.json", "a", id="a package's own"),
        pytest.param("configs/a/deep/catalog.json", "a", id="deeper"),
        pytest.param("configs/index.json", "", id="beside the folders"),
    ],
)
def test_which_folder_a_file_is_in(path: str, folder: str) -> None:
    """The first one below the root, which is called like its package."""
    assert folder_of(path) == folder


@pytest.mark.parametrize(
    ("data", "leaves_out"),
    [
        pytest.param(b"", False, id="nothing"),
        pytest.param(b"# all of it counts\n\n \t\r\n#*", False, id="words and space"),
        pytest.param(b"#\n\n  *.md", True, id="a pattern after them"),
        pytest.param(b"!catalog.json", True, id="what is not left out"),
        pytest.param(b" # x", True, id="words that do not begin the line are a pattern"),
        pytest.param(b"\xff", True, id="no text"),
    ],
)
@pytest.mark.parametrize("path", ["configs/.indexignore", "configs/a/deep/.indexignore"])
def test_whether_an_ignore_file_leaves_something_out(path: str, data: bytes, leaves_out: bool) -> None:
    """It has no part of the catalog, whatever is in it."""
    assert (keep_used_part(path, data) != NO_PATTERNS) is leaves_out


def test_which_packages_a_folder_has() -> None:
    """Those that any of its parts names, a channel too; what is of no use here, such as a bundle, does not count."""
    channel, bundle = b'{"schema": "olm.channel", "package": "b"}', b'{"schema": "olm.bundle", "package": "c"}'
    files = {"configs/a/c.yaml": YAML, "configs/a/more.json": channel + bundle, "configs/d/c.json": bundle}
    assert packages_by_folder(files) == {"a": {"cluster-logging", "b"}, "d": set()}
