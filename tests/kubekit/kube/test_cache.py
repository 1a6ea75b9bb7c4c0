"""A cache reports what was taken in at once at once, and keeps what did not change where it is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from kubekit.api.codec import Undecodable
from kubekit.api.core_v1 import Node
from kubekit.api.meta_v1 import NamespacedName, ObjectMeta
from kubekit.kube.cache import Cache, Change, Changes


def node_at(name: str, version: int) -> Node:
    """A node at that version."""
    return Node(metadata=ObjectMeta(name=name, uid=name, resource_version=str(version)))


def test_a_list_is_told_once_and_can_be_gone_through_again() -> None:
    """Every way of taking in: a first list, a later one, a change, an end; nothing where nothing differs."""
    shown: list[list[tuple[Change, str]]] = []

    def heard(changes: Changes[Node]) -> None:
        now = [(change, (new or old or node_at("", 0)).metadata.name) for change, old, new in changes]
        assert now == [(change, (new or old or node_at("", 0)).metadata.name) for change, old, new in changes]
        shown.append(now)

    cache = Cache(Node)
    cache.add_changes_listener(heard)
    cache.replace([node_at("a", 1), node_at("b", 2)], "2")
    cache.replace([node_at("a", 1), node_at("b", 2)], "3")
    cache.replace([node_at("b", 4), node_at("c", 5)], "5")
    cache.put(node_at("c", 6))
    cache.remove(node_at("b", 7))
    cache.remove(node_at("b", 8))
    assert shown == [
        [("ADDED", "a"), ("ADDED", "b")],
        [("MODIFIED", "b"), ("ADDED", "c"), ("DELETED", "a")],
        [("MODIFIED", "c")],
        [("DELETED", "b")],
    ]


def test_a_changed_object_keeps_its_place() -> None:
    """Whoever compares two looks at the cache finds what changed by its place."""
    cache = Cache(Node, name=lambda obj: [obj.metadata.name])
    cache.replace([node_at("a", 1), node_at("b", 2), node_at("c", 3)], "3")
    before = cache.all()
    cache.put(changed := node_at("a", 4))
    assert [now is then for now, then in zip(cache.all(), before, strict=True)] == [False, True, True]
    assert cache.by_index("name", "a") == [changed]


def bad(name: str, problem: str = "why", version: str = "") -> Undecodable:
    """A node that cannot be read."""
    return Undecodable("", name, problem, version)


Step = Callable[[Cache[Node]], None]
STEPS: list[tuple[str, Step, int]] = [
    ("nothing is there, which is known now", lambda c: c.replace([], "1"), 1),
    ("the same again", lambda c: c.replace([], "2"), 0),
    ("an object", lambda c: c.put(node_at("a", 3)), 0),
    ("the object changes", lambda c: c.put(node_at("a", 4)), 0),
    ("it cannot be read any more", lambda c: c.put_undecoded(bad("a")), 1),
    ("for the same reason", lambda c: c.put_undecoded(bad("a", version="9")), 0),
    ("for another reason", lambda c: c.put_undecoded(bad("a", "so")), 1),
    ("it can be read again", lambda c: c.put(node_at("a", 5)), 1),
    ("it goes", lambda c: c.remove(node_at("a", 6)), 0),
    ("it goes again", lambda c: c.remove(node_at("a", 6)), 0),
    ("one that cannot be read", lambda c: c.put_undecoded(bad("b")), 1),
    ("and goes", lambda c: c.remove_undecoded(bad("b")), 1),
    ("and goes again", lambda c: c.remove_undecoded(bad("b")), 0),
    ("one that cannot be read, and goes as one that can", lambda c: c.put_undecoded(bad("b")), 1),
    ("", lambda c: c.remove(node_at("b", 7)), 1),
    ("a list with one that cannot be read", lambda c: c.replace([], "8", [bad("c")]), 1),
    ("the same list", lambda c: c.replace([], "9", [bad("c")]), 0),
    ("a list without it", lambda c: c.replace([], "10"), 1),
    ("a list that is not whole", lambda c: c.replace([], "11", (), ("x",)), 1),
    ("the same list, not whole either", lambda c: c.replace([], "12", (), ("x",)), 0),
    ("all is known by now", lambda c: c.recover(), 1),
    ("as it was", lambda c: c.recover(), 0),
    ("trouble", lambda c: c.fail("no"), 1),
    ("the same trouble", lambda c: c.fail("no"), 0),
    ("another trouble", lambda c: c.fail("never"), 1),
    ("it is over, though not all is known", lambda c: c.recover(("y",)), 1),
    ("the same is not known", lambda c: c.recover(("y",)), 0),
    ("another is not known", lambda c: c.recover(("z",)), 1),
    ("how far it is", lambda c: c.bookmark("13"), 0),
]


def test_whoever_asks_for_the_state_hears_when_it_changes() -> None:
    """Once for each change, and not for what is as it was."""
    cache, heard = Cache(Node), list[int]()
    cache.add_state_listener(lambda: heard.append(1))
    for what, step, times in STEPS:
        heard.clear()
        step(cache)
        assert len(heard) == times, what
    assert (cache.error, cache.incomplete, cache.undecoded, len(cache)) == (None, ("z",), (), 0)


def test_how_far_a_watch_is() -> None:
    """By whatever came last, and where that says nothing by what came before."""
    cache = Cache(Node)
    for version, step in (
        ("1", lambda: cache.replace([node_at("a", 1)], "1")),
        ("3", lambda: cache.put(node_at("a", 3))),
        ("4", lambda: cache.put_undecoded(bad("a", version="4"))),
        ("4", lambda: cache.put_undecoded(bad("a"))),
        ("5", lambda: cache.remove_undecoded(bad("a", version="5"))),
        ("6", lambda: cache.remove(node_at("b", 6))),
        ("7", lambda: cache.bookmark("7")),
        ("7", lambda: cache.bookmark("")),
        ("", lambda: cache.replace([], "")),
    ):
        step()
        assert cache.resource_version == version


def test_what_a_cache_is_at_first() -> None:
    """Empty, and not to be believed."""
    cache = Cache(Node, name=lambda obj: [obj.metadata.name])
    assert (cache.ready, cache.synced, cache.error, cache.resource_version, len(cache)) == (False, False, None, "", 0)
    assert (cache.all(), cache.by_index("name", "a"), cache.get(NamespacedName("", "a"))) == ([], [], None)
    with pytest.raises(KeyError):
        cache.by_index("other", "a")
    cache.replace([], "1")
    assert cache.ready
    cache.fail("no")
    assert (cache.ready, cache.synced) == (False, True)


def test_what_cannot_be_read_is_no_object() -> None:
    """It is distinguished, sorted; listeners hear that what was known is gone, once."""
    cache, heard = Cache(Node), list[tuple[str, bool, bool]]()
    cache.replace([node_at("a", 1)], "1")
    cache.add_listener(lambda change, old, new: heard.append((change, old is None, new is None)))
    cache.put_undecoded(bad("b"))
    cache.put_undecoded(bad("a"))
    cache.put_undecoded(bad("a", "so"))
    assert [(each.name, each.problem) for each in cache.undecoded] == [("a", "so"), ("b", "why")]
    assert cache.get(NamespacedName("", "a")) is None
    cache.put(node_at("a", 2))
    assert [each.name for each in cache.undecoded] == ["b"]
    assert heard == [("ADDED", True, False), ("DELETED", False, True), ("ADDED", True, False)]


def test_an_index_follows_every_change() -> None:
    """An object may be under several values; under none that it has left; those of one value are sorted."""

    def labelled(name: str, *values: str) -> Node:
        return Node(metadata=ObjectMeta(name=name, labels=dict.fromkeys(values, "x")))

    cache = Cache(Node, label=lambda obj: list(obj.metadata.labels))

    def names(value: str) -> list[str]:
        return [obj.metadata.name for obj in cache.by_index("label", value)]

    for name in "cab":
        cache.put(labelled(name, "x", "y"))
    assert (names("x"), names("y"), names("z")) == (["a", "b", "c"], ["a", "b", "c"], [])
    cache.put(labelled("a", "y", "z"))
    assert (names("x"), names("y"), names("z")) == (["b", "c"], ["a", "b", "c"], ["a"])
    cache.remove(labelled("b"))
    cache.put_undecoded(bad("c"))
    assert (names("x"), names("y"), names("z")) == ([], ["a"], ["a"])
    cache.replace([labelled("d", "x")], "9")
    assert (names("x"), names("y"), names("z")) == (["d"], [], [])


def test_a_listener_that_comes_later_hears_what_is_there() -> None:
    """As added, and changes after that with what was before."""
    cache, heard = Cache(Node), list[tuple[str, str, str]]()
    cache.replace([node_at("a", 1)], "1")

    def version(obj: Node | None) -> str:
        return "" if obj is None else obj.metadata.resource_version

    cache.add_listener(lambda change, old, new: heard.append((change, version(old), version(new))))
    cache.put(node_at("a", 2))
    cache.remove(node_at("a", 3))
    assert heard == [("ADDED", "", "1"), ("MODIFIED", "1", "2"), ("DELETED", "2", "")]


def test_a_listener_may_change_what_it_is_told_of() -> None:
    """Events that arrive meanwhile are not part of that list."""
    cache = Cache(Node)
    cache.add_listener(
        lambda change, _old, new: cache.put(node_at("b", 2)) if new and new.metadata.name == "a" else None
    )
    cache.replace([node_at("a", 1)], "1")
    assert sorted(obj.metadata.name for obj in cache.all()) == ["a", "b"]


async def test_the_first_list_is_waited_for() -> None:
    """Not trouble, and nothing where it has come; nobody is listened for afterwards."""
    cache = Cache(Node)
    waiting = asyncio.create_task(cache.until_synced())
    await asyncio.sleep(0)
    cache.fail("no")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not waiting.done()
    cache.replace([], "1")
    await asyncio.wait_for(waiting, 90)
    await asyncio.wait_for(cache.until_synced(), 90)
    gone = asyncio.create_task(Cache(Node).until_synced())
    await asyncio.sleep(0)
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone
