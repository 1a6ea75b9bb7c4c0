"""A cache tells of what was taken in at once at once, and keeps what did not change where it is."""

from __future__ import annotations

from runup.api.core_v1 import Node
from runup.api.meta_v1 import ObjectMeta
from runup.kube.cache import Cache, Change, Changes


def node(name: str, version: int) -> Node:
    """A node at that version."""
    return Node(metadata=ObjectMeta(name=name, uid=name, resource_version=str(version)))


def test_a_list_is_told_once_and_can_be_gone_through_again() -> None:
    """Every way of taking in: a first list, a later one, a change, an end; nothing where nothing differs."""
    told: list[list[tuple[Change, str]]] = []

    def heard(changes: Changes[Node]) -> None:
        now = [(change, (new or old or node("", 0)).metadata.name) for change, old, new in changes]
        assert now == [(change, (new or old or node("", 0)).metadata.name) for change, old, new in changes]
        told.append(now)

    cache = Cache(Node)
    cache.add_changes_listener(heard)
    cache.replace([node("a", 1), node("b", 2)], "2")
    cache.replace([node("a", 1), node("b", 2)], "3")
    cache.replace([node("b", 4), node("c", 5)], "5")
    cache.put(node("c", 6))
    cache.remove(node("b", 7))
    cache.remove(node("b", 8))
    assert told == [
        [("ADDED", "a"), ("ADDED", "b")],
        [("MODIFIED", "b"), ("ADDED", "c"), ("DELETED", "a")],
        [("MODIFIED", "c")],
        [("DELETED", "b")],
    ]


def test_a_changed_object_keeps_its_place() -> None:
    """Whoever compares two looks at the cache finds what changed by its place."""
    cache = Cache(Node, name=lambda obj: [obj.metadata.name])
    cache.replace([node("a", 1), node("b", 2), node("c", 3)], "3")
    before = cache.all()
    cache.put(changed := node("a", 4))
    assert [now is then for now, then in zip(cache.all(), before, strict=True)] == [False, True, True]
    assert cache.by_index("name", "a") == [changed]
