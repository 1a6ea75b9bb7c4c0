"""Each distribution in a separate environment: what comes with it, and that it works without the others.

Building and installing need the package index, as `make test` itself did.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from tools import packages

LIMIT_S = 300
MOST_OF_KUBESANDBOX = 24
ONLY_RUNUPS = {"click", "prometheus-client", "pysequoia", "rich", "zstandard"}

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("wheel"), pytest.mark.timeout(LIMIT_S)]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> packages.Built:
    """The wheels of this checkout."""
    return packages.wheels(tmp_path_factory.mktemp("wheels"))


@pytest.fixture(scope="module")
def environments(wheels: packages.Built, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """An environment for each distribution, with nothing but what `pip install` of its name brings."""
    made = {name: tmp_path_factory.mktemp(name) for name in packages.NAMES}
    for name, folder in made.items():
        packages.environment(folder / "venv")
        packages.install_by_name(name, wheels, folder / "venv")
    return {name: folder / "venv" for name, folder in made.items()}


def _installed(environment: Path) -> dict[str, metadata.Distribution]:
    (site,) = environment.glob("lib/python*/site-packages")
    return {canonicalize_name(found.metadata["Name"]): found for found in metadata.distributions(path=[str(site)])}


def _run(environment: Path, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [str(environment / "bin" / words[0]), *words[1:]]
    env = {"PATH": f"{environment / 'bin'}:/usr/bin:/bin", "HOME": str(cwd)}
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=LIMIT_S)


def test_kubesandbox_brings_few_packages(environments: Mapping[str, Path]) -> None:
    """The server and its plugin; no command of runup, and no package that only runup needs."""
    installed = _installed(environments["kubesandbox"])
    assert {"kubekit", "kubesandbox"} <= installed.keys()
    assert len(installed) <= MOST_OF_KUBESANDBOX
    assert not installed.keys() & {"kube-runup", *ONLY_RUNUPS}
    assert not list(environments["kubesandbox"].glob("bin/*runup*"))
    ours = installed["kubesandbox"]
    points = {(point.group, point.name, point.value) for point in ours.entry_points}
    assert points == {
        ("console_scripts", "kubesandbox", "kubesandbox.__main__:main"),
        ("pytest11", "kubesandbox", "kubesandbox.pytest_plugin"),
    }
    assert "Framework :: Pytest" in (ours.metadata.get_all("Classifier") or ())


def test_kube_runup_brings_no_plugin_for_pytest(environments: Mapping[str, Path]) -> None:
    """An administrator's tests do not change because runup is installed next to them."""
    installed = _installed(environments["kube-runup"])
    assert installed.keys() >= ONLY_RUNUPS
    assert not installed.keys() & {"kubesandbox", "orjson"}
    assert not [point for found in installed.values() for point in found.entry_points if point.group == "pytest11"]


@pytest.mark.parametrize("name", packages.NAMES)
def test_says_what_it_is(name: str, environments: Mapping[str, Path]) -> None:
    """Licence, text of the licence, and a separate page."""
    ours = _installed(environments[name])[name]
    assert ours.metadata["License-Expression"] == "Apache-2.0"
    assert ours.metadata["Description"].startswith(f"# {name}\n")
    assert [path for path in ours.files or () if path.parts[-2:] == ("licenses", "LICENSE")]


_IMPORTS = """
import importlib, json, pkgutil, sys
failed = {}
for package in sys.argv[1:]:
    for module in pkgutil.walk_packages(importlib.import_module(package).__path__, package + "."):
        if not module.name.endswith((".__main__", ".pytest_plugin")):
            try:
                importlib.import_module(module.name)
            except ModuleNotFoundError as error:
                failed[module.name] = error.name
print(json.dumps(failed))
"""


@pytest.mark.parametrize(("name", "package"), [("kubekit", "kubekit"), ("kubesandbox", "kubesandbox")])
def test_every_module_can_be_imported(
    name: str, package: str, environments: Mapping[str, Path], tmp_path: Path
) -> None:
    """Extras are imported where they are used."""
    done = _run(environments[name], "python", "-c", _IMPORTS, package, cwd=tmp_path)
    assert (json.loads(done.stdout or "null"), done.stderr) == ({}, "")


def test_only_the_sandbox_and_rehearsals_need_the_extra(environments: Mapping[str, Path], tmp_path: Path) -> None:
    """Nothing else of runup imports kubesandbox, and nothing lacks another package."""
    done = _run(environments["kube-runup"], "python", "-c", _IMPORTS, "runup", "kubekit", cwd=tmp_path)
    failed = json.loads(done.stdout)
    extras = {"kubesandbox", "distributed", "fsspec", "pyarrow"}
    assert set(failed.values()) <= extras
    lacking = [module for module, missing in failed.items() if missing == "kubesandbox"]
    assert lacking
    assert [module for module in lacking if not re.search("rehears|sandbox", module)] == []
    refused = _run(environments["kube-runup"], "runup", "demo", cwd=tmp_path)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.endswith("install it: pip install 'kube-runup[sandbox]'\n")


_TEST = """
def test_it(kube_api):
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
           "spec": {"containers": [{"name": "web", "image": "registry.example/web:1"}]}}
    assert kube_api.load(pod)
"""


def test_the_plugin_starts_servers(environments: Mapping[str, Path], tmp_path: Path) -> None:
    """The fixture needs pytest and nothing else."""
    lock = (packages.ROOT / "requirements-dev.lock").read_text(encoding="utf-8")
    pinned = next(line for line in lock.splitlines() if line.startswith("pytest==")).rstrip(" \\")
    environment = environments["kubesandbox"]
    words = ["pip", "install", "-q", "--python", str(environment), pinned]
    subprocess.run([packages.UV, *words], env={"UV_SYSTEM_CERTS": "true", "PATH": "/usr/bin:/bin"}, check=True)
    (tmp_path / "test_it.py").write_text(_TEST, encoding="utf-8")
    tried = _run(environment, "pytest", "-q", "test_it.py", cwd=tmp_path)
    assert tried.returncode == 0, tried.stdout + tried.stderr
    assert "1 passed" in tried.stdout
    shown = _run(environment, "python", "-m", "kubesandbox", "--help", cwd=tmp_path)
    assert "--crds DIR" in shown.stdout, shown.stderr
