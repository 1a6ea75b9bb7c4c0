"""The rooms of the code: each folder of a package, and the folders with the tests that judge it."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
OUR_OWN, BESIDE_IT = "runup", ("kubekit", "kubesandbox")
# A feature is a room; of the other packages each folder is.
ROOMS = tuple(
    (f"{package}/" if package != OUR_OWN else "") + folder.name
    for package in (OUR_OWN, *BESIDE_IT)
    for folder in sorted((ROOT / "packages" / package / "src" / package).iterdir())
    if folder.is_dir() and any(folder.rglob("*.py"))
)
# Besides the folder of the same name and that of its commands. Code that several features share is tested by theirs.
TESTS = {
    "applying": ("tests/cli/release",),
    "checks": ("tests/golden",),
    "cli": ("tests/golden",),
    "evaluation": ("tests/cli/preflight", "tests/fleet/control", "tests/golden", "tests/preflight"),
    "facts": ("tests/cli/preflight", "tests/dump", "tests/preflight/control"),
    "fleet": ("tests/cli/rollout",),
    "kubekit/rules": (
        "tests/checks/catalogue",
        "tests/contract",
        "tests/kubesandbox/controllers",
        "tests/rehearse/decide",
        "tests/rules",
    ),
    "kubesandbox/apiserver": ("tests/contract",),
    "preflight": ("tests/golden",),
    "report": ("tests/cli/preflight", "tests/clusterversion/decide", "tests/preflight"),
    "rollout": ("tests/fleet/decide",),
    "rules": ("tests/advice/decide", "tests/checks/catalogue", "tests/updatestatus/decide"),
    "target": ("tests/cli/rehearse", "tests/preflight/control"),
    "updatestatus": ("tests/golden",),
}


def folder_of(room: str) -> Path:
    """Returns the folder with the code of a room."""
    package, _, folder = room.partition("/") if room.startswith(BESIDE_IT) else (OUR_OWN, "", room)
    return ROOT / "packages" / package / "src" / package / folder


def tests_of(room: str) -> tuple[str, ...]:
    """Returns the folders with the tests of a room, without a folder inside another."""
    every = {f"tests/{room}", f"tests/cli/{room}", *TESTS.get(room, ())}
    there = [Path(folder) for folder in sorted(every) if (ROOT / folder).is_dir()]
    return tuple(str(folder) for folder in there if not {*folder.parents} & {*there})


def nearest_folders(path: Path) -> tuple[Path, ...]:
    """Returns the folder of tests that is nearest to a module, or those of its room where the room has none."""
    in_room = ROOT / "tests" / room_of(path) / Path(*inside(path).parts[2:])
    nearest = next(each for each in in_room.parents if each.is_dir())
    in_its_room = nearest.is_relative_to(ROOT / "tests" / room_of(path))
    return (nearest,) if in_its_room else tuple(ROOT / folder for folder in tests_of(room_of(path)))


def inside(path: Path) -> Path:
    """Returns the path of a module from the folder that holds its package."""
    return Path(*path.relative_to(ROOT / "packages").parts[2:])


def room_of(path: Path) -> str:
    """Returns the room of a module."""
    package, folder = inside(path).parts[:2]
    return folder if package == OUR_OWN else f"{package}/{folder}"
