"""The map from the code to its tests, which `make near` and `python -m bench mutants` use."""

from __future__ import annotations

import pytest
from bench.mutants import rooms

ROWS = [(room, folder) for room, folders in rooms.TESTS.items() for folder in folders]


@pytest.mark.parametrize("room", rooms.ROOMS)
def test_each_room_has_tests(room: str) -> None:
    """A package folder without tests of its name needs a row in `rooms.TESTS`."""
    assert [folder for folder in rooms.tests_of(room) if any((rooms.ROOT / folder).rglob("test_*.py"))] != []


@pytest.mark.parametrize(("room", "folder"), ROWS)
def test_each_row_names_a_room_and_a_folder_that_exist(room: str, folder: str) -> None:
    """A row that outlives what it names selects no test."""
    assert (room in rooms.ROOMS, (rooms.ROOT / folder).is_dir()) == (True, True)


@pytest.mark.parametrize(
    ("module", "folders"),
    [
        ("runup/src/runup/checks/catalogue/nodes/pools.py", ["tests/checks/catalogue/nodes"]),
        ("kubekit/src/kubekit/lang/version.py", ["tests/kubekit/lang"]),
        ("kubesandbox/src/kubesandbox/apiserver/patch/owners.py", ["tests/kubesandbox/apiserver/patch"]),
        ("runup/src/runup/target/live.py", ["tests/cli/rehearse", "tests/preflight/control"]),
    ],
)
def test_the_nearest_folders_of_a_module(module: str, folders: list[str]) -> None:
    """The most similar path, and the rows of the room where no folder has its name."""
    found = rooms.nearest_folders(rooms.ROOT / "packages" / module)
    assert [str(folder.relative_to(rooms.ROOT)) for folder in found] == folders
