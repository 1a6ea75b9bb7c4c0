"""What a server serves, by its discovery: group-version -> its resources and subresources, without the tests' own."""

from __future__ import annotations

from pathlib import Path

from tests.contract.api import Api

RECORDED = Path(__file__).parent / "discovery.yaml"
_OWN = ("contract.example", "goclient.example")


def served(api: Api) -> dict[str, list[str]]:
    """As the server lists them now."""
    groups = [group for group in api.get("/apis").ok()["groups"] if not any(own in group["name"] for own in _OWN)]
    versions = ["v1", *(version["groupVersion"] for group in groups for version in group["versions"])]
    return {version: sorted(_names(api, version)) for version in sorted(versions)}


def _names(api: Api, version: str) -> list[str]:
    found = api.get(f"/apis/{version}" if "/" in version else f"/api/{version}").ok()
    return [resource["name"] for resource in found["resources"]]
