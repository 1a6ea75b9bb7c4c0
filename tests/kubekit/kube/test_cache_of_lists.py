"""A cache that is given a whole list again: listeners hear of what is another, and of nothing else."""

from __future__ import annotations

import pytest

from kubekit.api.core_v1 import Node
from kubekit.api.meta_v1 import ObjectMeta
from kubekit.kube.cache import Cache


def colored(label: str, *, version: str = "", uid: str = "u") -> Node:
    """A node; a server that writes no resourceVersion sends none."""
    return Node(metadata=ObjectMeta(name="a", uid=uid, resource_version=version, labels={"color": label}))


@pytest.mark.parametrize(
    ("before", "after", "heard"),
    [
        pytest.param(colored("red", version="1"), colored("red", version="1"), [], id="the same version"),
        pytest.param(colored("red", version="1"), colored("red", version="2"), ["MODIFIED"], id="another version"),
        pytest.param(colored("red", version="1"), colored("red", version="1", uid="v"), ["MODIFIED"], id="a namesake"),
        pytest.param(
            colored("red", version="1"), colored("blue", version="1"), ["MODIFIED"], id="the same version, written anew"
        ),
        pytest.param(colored("red"), colored("red"), [], id="no version, and nothing else"),
        pytest.param(colored("red"), colored("blue"), ["MODIFIED"], id="no version, and another label"),
    ],
)
def test_what_is_another_object(before: Node, after: Node, heard: list[str]) -> None:
    """By all that it says: after a restore of etcd a version that was used before is used again."""
    cache, said = Cache(Node), list[str]()
    cache.replace([before], "1")
    cache.add_listener(lambda change, _old, _new: said.append(change))
    said.clear()
    cache.replace([after], "2")
    assert said == heard
