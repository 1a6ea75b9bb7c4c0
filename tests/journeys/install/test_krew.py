"""The krew plugin: its manifest is one that krew takes, and the archive that it names runs as `kubectl runup`."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import struct
import subprocess
import sys
import sysconfig
import tarfile
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
import semver
import yaml
from packaging.version import Version

ROOT = Path(__file__).parents[3]
LIMIT_S = 300


def problems(plugin: dict[str, Any], file: str) -> list[str]:
    """What krew would refuse (kubernetes-sigs/krew, internal/index/validation/validate.go)."""
    spec = plugin["spec"]
    found = {
        "apiVersion": plugin["apiVersion"] == "krew.googlecontainertools.github.com/v1alpha2",
        "kind": plugin["kind"] == "Plugin",
        "name": bool(re.fullmatch(r"[\w-]+", plugin["metadata"]["name"]))
        and file == f"{plugin['metadata']['name']}.yaml",
        "version": spec["version"][:1] == "v" and semver.Version.is_valid(spec["version"][1:]),
        "shortDescription": bool(spec["shortDescription"]) and "\n" not in spec["shortDescription"],
        # krew-index' own rule, beyond the validation.
        "length of shortDescription": len(spec["shortDescription"]) <= 50,
        "platforms": bool(spec["platforms"]),
        "unknown fields": plugin.keys() == {"apiVersion", "kind", "metadata", "spec"}
        and spec.keys() <= {"version", "homepage", "shortDescription", "description", "caveats", "platforms"},
    }
    for platform in spec["platforms"]:
        labels = platform["selector"]["matchLabels"]
        found |= {
            "uri": platform["uri"].startswith("https://"),
            "sha256": bool(re.fullmatch(r"[a-f0-9]{64}", platform["sha256"])),
            "bin": bool(platform["bin"]),
            "selector": bool(labels) and labels.keys() <= {"os", "arch"},
            "files": platform.get("files", True) != [],
        }
    return [rule for rule, holds in found.items() if not holds]


def test_the_template_is_taken_once_it_is_filled_in() -> None:
    """As it stands it has no checksum and no version, and nothing else is wrong with it."""
    template = (ROOT / "deploy" / "krew" / "runup.yaml").read_text()
    assert problems(yaml.safe_load(template), "runup.yaml") == ["version", "sha256"]
    filled = re.sub(r"SHA256-\w+-\w+", "0" * 64, template.replace("VERSION", "v1.2.3"))
    assert problems(yaml.safe_load(filled), "runup.yaml") == []


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the manifest and the archives, which lack the libraries."""
    folder = tmp_path_factory.mktemp("krew")
    command = [sys.executable, str(ROOT / "tools" / "krew_archive.py"), str(folder), "--alone"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def installed(made: Path, tmp_path: Path) -> dict[str, str]:
    """The environment of somebody for whom krew unpacked the archive: a store, and a link in a folder of PATH."""
    platform = yaml.safe_load((made / "runup.yaml").read_text())["spec"]["platforms"][0]
    store, programs = tmp_path / "store" / "runup" / "v1", tmp_path / "bin"
    programs.mkdir()
    with tarfile.open(made / platform["uri"].rpartition("/")[2]) as archive:
        archive.extractall(store)
    (programs / "kubectl-runup").symlink_to(store / platform["bin"])
    # The libraries are those of the tests, the Python is the one that they run on.
    (programs / "python3.11").symlink_to(sys.executable)
    libraries = os.pathsep.join({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
    return {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": libraries}


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_the_manifest_names_the_archives(made: Path) -> None:
    """Of every platform: its name, its checksum and the version."""
    plugin = yaml.safe_load((made / "runup.yaml").read_text())
    assert problems(plugin, "runup.yaml") == []
    with tarfile.open(made / "runup-linux-amd64.tar.gz") as tar:
        (packed,) = [
            name for name in tar.getnames() if name.startswith("lib/kube_runup-") and name.endswith("/METADATA")
        ]
    assert Version(plugin["spec"]["version"]) == _version(packed)
    platforms = {"-".join(each["selector"]["matchLabels"].values()): each for each in plugin["spec"]["platforms"]}
    assert platforms.keys() == {"linux-amd64", "linux-arm64", "darwin-arm64"}
    for name, platform in platforms.items():
        archive = made / f"runup-{name}.tar.gz"
        assert platform["uri"].endswith(f"/{archive.name}")
        assert platform["sha256"] == hashlib.sha256(archive.read_bytes()).hexdigest()
        with tarfile.open(archive) as tar:
            assert {"kubectl-runup", "LICENSE", "lib/bin/kubectl-runup"} <= set(tar.getnames())


def _version(metadata: str) -> Version:
    """Of a package's folder, which has it in its name."""
    return Version(Path(metadata).parent.name.removesuffix(".dist-info").partition("-")[2])


def _elf(machine: int) -> bytes:
    return b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HH", 3, machine) + bytes(44)


def _mach(cpu: int) -> bytes:
    return struct.pack("<II", 0xFEEDFACF, cpu) + bytes(24)


def _universal(*cpus: int) -> bytes:
    return struct.pack(">II", 0xCAFEBABE, len(cpus)) + b"".join(struct.pack(">IIIII", cpu, 0, 0, 0, 0) for cpu in cpus)


@pytest.mark.parametrize(
    ("name", "content", "platforms"),
    [
        # Numbers of machines: elf(5) EM_X86_64, EM_AARCH64, EM_386; mach/machine.h CPU_TYPE_X86_64, CPU_TYPE_ARM64.
        pytest.param("a.so", _elf(62), {"linux-amd64"}, id="linux on amd64"),
        pytest.param("a.so", _elf(183), {"linux-arm64"}, id="linux on arm64"),
        pytest.param("program", _elf(183), {"linux-arm64"}, id="whatever its name"),
        pytest.param("a.so", _elf(3), set(), id="a machine that there is no archive for"),
        pytest.param("a.so", _mach(0x0100000C), {"darwin-arm64"}, id="macOS on arm64"),
        pytest.param("a.so", _mach(0x01000007), {"darwin-amd64"}, id="macOS on amd64"),
        pytest.param("a.dylib", _universal(0x01000007, 0x0100000C), {"darwin-amd64", "darwin-arm64"}, id="universal"),
        pytest.param("a.so", b"", set(), id="empty"),
        pytest.param("a.so", b"\x7fELF", set(), id="cut"),
        pytest.param("a.py", b"import os", None, id="not compiled"),
    ],
)
def test_for_which_platform_a_file_is_compiled(
    name: str, content: bytes, platforms: set[str] | None, tmp_path: Path
) -> None:
    """Files compiled for another machine are found before packing."""
    place = spec_from_file_location("compiled", ROOT / "tools" / "compiled.py")
    assert place is not None
    assert place.loader is not None
    compiled = module_from_spec(place)
    place.loader.exec_module(compiled)
    (tmp_path / name).write_bytes(content)
    assert compiled.files(tmp_path) == ({} if platforms is None else {tmp_path / name: platforms})


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="needs the Python that the archive is for, 3.11")
def test_what_krew_unpacks_is_run(installed: dict[str, str], tmp_path: Path) -> None:
    """By kubectl where there is one; the second time the environment is there, and help shows how it was called."""
    kubectl = shutil.which("kubectl")
    command = [kubectl, "runup"] if kubectl else ["kubectl-runup"]
    (libraries,) = (tmp_path / "store").glob("**/lib/kube_runup-*.dist-info/METADATA")
    version = _version(str(libraries))
    for words, wanted in ((["version"], f"Client Version: {version}"), (["-h"], "Usage: kubectl runup ")):
        done = subprocess.run(
            [*command, *words], env=installed, capture_output=True, text=True, check=False, timeout=LIMIT_S
        )
        assert done.returncode == 0, done.stderr
        assert wanted in done.stdout
    assert [path.name for path in (tmp_path / "store" / "runup" / "v1").glob("venv*")] == ["venv"]


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_another_python_is_told(installed: dict[str, str], tmp_path: Path) -> None:
    """No traceback of a library that does not fit; nothing is left behind."""
    for name in ("python3.11", "python3"):
        (tmp_path / "bin" / name).unlink(missing_ok=True)
        (tmp_path / "bin" / name).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / "bin" / name).chmod(0o755)
    done = subprocess.run(
        [str(tmp_path / "bin" / "kubectl-runup"), "version"],
        env=installed,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error: kubectl runup needs Python 3.11")
    assert not list((tmp_path / "store" / "runup" / "v1").glob("venv*"))
