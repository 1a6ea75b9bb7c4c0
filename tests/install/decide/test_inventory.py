"""The inventory: an ApplySet as its specification has it, what an upgrade removes, what an uninstallation leaves."""

from __future__ import annotations

from typing import Any

from runup.install.decide.inventory import (
    Inventory,
    inventory_of,
    label_objects,
    members_to_remove,
    merge_inventories,
    parent_of,
    read_parent,
    removal_order,
    without_those_of_others,
)
from runup.release.decide.manifest import Identity

CRD = "apiextensions.k8s.io"


def obj(kind: str, name: str, namespace: str = "", api: str = "v1") -> dict[str, Any]:
    """An object."""
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api, "kind": kind, "metadata": metadata}


def test_the_id_is_the_specifications() -> None:
    """Computed by other programs: printf a.b.ConfigMap. | sha256sum | xxd -r -p | basenc --base64url."""
    assert (
        Inventory(name="a", namespace="b", component="c").id
        == "applyset-a6YEAe3lwpkgHK51tPW9jxcA7Zic6SewokVIQUmYKQg-v1"
    )


def test_what_was_written_is_read_again() -> None:
    """With all that is needed to find the members."""
    objects = (
        obj("Namespace", "mine"),
        obj("Deployment", "d", "mine", "apps/v1"),
        obj("Role", "r", "default", "rbac.authorization.k8s.io/v1"),
    )
    made = inventory_of("update-status", "mine", objects, {"version": "0.1.0"})
    parent = parent_of(made, "0.1.0")
    assert read_parent(parent) == made
    assert parent["metadata"]["annotations"] == {
        "applyset.kubernetes.io/tooling": "runup/v0.1.0",
        "applyset.kubernetes.io/contains-group-kinds": "Deployment.apps,Namespace,Role.rbac.authorization.k8s.io",
        "applyset.kubernetes.io/additional-namespaces": "default",
    }
    assert parent["metadata"]["labels"]["applyset.kubernetes.io/id"] == made.id
    assert {each["metadata"]["labels"]["applyset.kubernetes.io/part-of"] for each in label_objects(objects, made)} == {
        made.id
    }


def test_until_an_upgrade_is_done_both_versions_count() -> None:
    """An interrupted installation is found."""
    old = inventory_of("c", "mine", (obj("Secret", "s", "other"),), {})
    new = inventory_of("c", "mine", (obj("Role", "r", "mine", "rbac.authorization.k8s.io/v1"),), {})
    both = merge_inventories(new, old)
    assert both.kinds == {("", "Secret"), ("rbac.authorization.k8s.io", "Role")}
    assert both.namespaces == {"other"}
    assert merge_inventories(new, None) == new


def test_what_a_version_no_longer_has_goes_but_for_definitions_and_namespaces() -> None:
    """With them would go what users keep."""
    role = Identity("rbac.authorization.k8s.io", "Role", "mine", "r")
    members = [
        Identity("", "Namespace", "", "old"),
        Identity("", "Secret", "mine", "s"),
        Identity(CRD, "CustomResourceDefinition", "", "d"),
        role,
    ]
    wanted = (obj("Role", "r", "mine", "rbac.authorization.k8s.io/v1"),)
    assert members_to_remove(members, wanted) == (Identity("", "Secret", "mine", "s"),)


def test_in_which_order_things_go() -> None:
    """Who works first, his account and the namespace last; definitions only where they are asked for."""
    names = ("Namespace", "ServiceAccount", "Role", "CustomResourceDefinition", "Deployment")
    members = [Identity("", kind, "", "x") for kind in names]
    kept = [each.kind for each in removal_order(members, definitions=False)]
    assert kept == ["Deployment", "Role", "ServiceAccount", "Namespace"]
    gone = [each.kind for each in removal_order(members, definitions=True)]
    assert gone == ["Deployment", "CustomResourceDefinition", "Role", "ServiceAccount", "Namespace"]


def test_definitions_and_namespaces_of_others_are_left_to_them() -> None:
    """Those that are absent or ours are applied, and so is every other kind."""
    objects = (
        obj("Namespace", "theirs"),
        obj("CustomResourceDefinition", "ours", api=f"{CRD}/v1"),
        obj("CustomResourceDefinition", "new", api=f"{CRD}/v1"),
        obj("Secret", "s", "theirs"),
    )
    owners = {
        Identity("", "Namespace", "", "theirs"): "",
        Identity(CRD, "CustomResourceDefinition", "", "ours"): "set",
        Identity("", "Secret", "theirs", "s"): "",
    }
    applied, left = without_those_of_others(objects, owners, "set")
    assert applied == objects[1:]
    assert left == (Identity("", "Namespace", "", "theirs"),)
