"""The table of kinds, whose types are named and imported when somebody asks for them."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

import kubekit.api
import runup.api
from kubekit.api.scheme import RESOURCES, resource_of, resources_by_type


def test_every_named_type_is_there() -> None:
    """Each is of a kind, and found again by itself."""
    found = resources_by_type()
    assert len(found) == len(RESOURCES)
    assert all(resource_of(kind) is resource for kind, resource in found.items())


_WIRE = sorted(
    f"{package.__name__}.{path.stem}"
    for package in (kubekit.api, runup.api)
    for path in Path(package.__path__[0]).glob("*_v1*.py")
)


@pytest.mark.parametrize("module", _WIRE)
def test_annotations_of_wire_types_are_no_strings(module: str) -> None:
    """The decoder would compile each of them on its own, which every command would wait for."""
    assert not hasattr(import_module(module), "annotations")
