"""Which `Warning` headers say that a list is not whole."""

from __future__ import annotations

import asyncio

import pytest
from tests.kubekit.kube.apiscript import node, node_list, scripted_api

from kubekit.api.core_v1 import Node
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.config import ClusterConfig
from kubekit.kube.list_pages import reasons_incomplete

OLD = '299 - "policy/v1beta1 PodDisruptionBudget is deprecated in v1.21+, unavailable in v1.25+"'


@pytest.mark.parametrize(
    ("headers", "reasons"),
    [
        pytest.param([], (), id="none"),
        pytest.param([OLD], (), id="a deprecated version"),
        pytest.param(['299 - "incomplete: a is lost"'], ("a is lost",), id="a part is lost"),
        pytest.param([OLD, '299 - "incomplete: a"', '299 - "incomplete: b"'], ("a", "b"), id="several, each its own"),
        pytest.param([f'{OLD}, 299 - "incomplete: a, b"'], ("a, b",), id="several in one header"),
        pytest.param(['299 - "incomplete: a"'] * 3, ("a",), id="the same on every page"),
        pytest.param([r'299 - "incomplete: \"a\" and \\"'], ('"a" and \\',), id="quotes and backslashes"),
        pytest.param(['199 - "incomplete: a"'], (), id="another code"),
        pytest.param(['299 - "it is incomplete: a"'], (), id="the word elsewhere"),
        pytest.param(['299 - "incomplete: a'], (), id="cut short"),
        pytest.param([f'299 - "incomplete: {"a" * 400}"'], ("a" * 400,), id="as long as a reason may be"),
        pytest.param([f'299 - "incomplete: {"a" * 401}"'], ("a" * 400,), id="a character more"),
        pytest.param([f'299 - "incomplete: {"a" * 9999}"'], ("a" * 400,), id="endless"),
    ],
)
def test_reasons(headers: list[str], reasons: tuple[str, ...]) -> None:
    """Only what begins with the word, once each, cut to a length that messages hold."""
    assert reasons_incomplete(headers) == reasons


async def test_the_command_lines_client_hears_them_too() -> None:
    """On any page of a list."""
    async with scripted_api() as api:
        api.answers(
            node_list(node("a", 1), version=5, token="t"), node_list(version=5, Warning='299 - "incomplete: a is lost"')
        )
        with SyncClient(ClusterConfig(server=api.url)) as client:
            found = await asyncio.to_thread(client.listing, Node)
    assert ([item.metadata.name for item in found.items], found.incomplete) == (["a"], ("a is lost",))
