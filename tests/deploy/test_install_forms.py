"""kustomize and Helm install what `runup install` installs: the same objects, compared as values."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import semver
import yaml
from packaging.version import Version
from tools.generate_install import Variant

from runup import __version__
from runup.install.control import installing as sources
from runup.install.decide.component import COMPONENTS, PLACEHOLDER, Component, Platform
from runup.install.decide.component_objects import component_objects
from tools import generate_install

JSON = dict[str, Any]
DEPLOY = Path(__file__).parents[2] / "deploy"
CHART = DEPLOY / "chart"
DIGEST = "sha256:" + "5" * 64
IMAGE = f"registry.example/runup@{DIGEST}"
FORMS = [(component, variant) for component in COMPONENTS.values() for variant in generate_install.variants(component)]
# With a program that takes its time: all of them in `make slow`.
OF_EACH_COMPONENT = pytest.mark.parametrize(
    ("component", "variant"),
    [
        pytest.param(
            component,
            variant,
            id=f"{component.name}-{variant.name}",
            marks=() if variant is generate_install.variants(component)[0] else pytest.mark.slow,
        )
        for component, variant in FORMS
    ],
)


def program(name: str) -> str:
    """A program of PATH, or of the cache into which `go install helm.sh/helm/v3/cmd/helm` may have put it."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "runup" / name
    found = shutil.which(name, path=f"{os.environ['PATH']}{os.pathsep}{cache}")
    if found is None:
        pytest.skip(f"there is no {name} on this machine")
    return found


def run(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """A program's end."""
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=120, cwd=cwd)


def by_identity(objects: Any) -> dict[tuple[str, ...], JSON]:
    """Objects by what names them; none is there twice."""
    listed = [obj for obj in objects if obj]
    found = {(o["apiVersion"], o["kind"], o["metadata"].get("namespace", ""), o["metadata"]["name"]): o for o in listed}
    assert len(found) == len(listed)
    return found


def installed(component: Component, variant: Variant, image: str, namespace: str = "") -> dict[tuple[str, ...], JSON]:
    """What `runup install -o yaml` prints for these options."""
    from msgspec.structs import replace

    options = replace(variant.options(component), image=image, namespace=namespace or component.namespace)
    return by_identity(component_objects(component, sources.manifests(component, variant.platform), options))


def test_the_files_are_as_they_are_made() -> None:
    """Whoever changes a manifest runs the tool."""
    made = generate_install.files()
    wrong = [path for path, text in made.items() if (DEPLOY / path).read_text() != text]
    assert (wrong, generate_install.stale(made)) == ([], [])


@OF_EACH_COMPONENT
def test_kustomize_builds_the_same(component: Component, variant: Variant, tmp_path: Path) -> None:
    """With the image that was set, also where the operator knows its own release."""
    shutil.copytree(DEPLOY / "kustomize", tmp_path / "kustomize")
    folder = tmp_path / "kustomize" / component.name / variant.name
    file = folder / "kustomization.yaml"
    text = file.read_text()
    # As `kustomize edit set image cluster-version-operator=REF` writes it.
    name, _, tag = PLACEHOLDER.partition(":")
    assert text.count(f"newName: {name}\n") == text.count(f"newTag: {tag}\n") == 1
    text = text.replace(f"newName: {name}", "newName: registry.example/runup").replace(
        f"newTag: {tag}", f"digest: {DIGEST}"
    )
    file.write_text(text)
    built = run(program("kubectl"), "kustomize", ".", cwd=folder)
    assert built.returncode == 0, built.stderr
    assert by_identity(yaml.safe_load_all(built.stdout)) == installed(component, variant, IMAGE)


def template(
    component: Component, variant: Variant, *more: str, kubernetes: str = "1.34.0"
) -> subprocess.CompletedProcess[str]:
    """What `helm template` prints."""
    values = [
        f"component={component.name}",
        f"image={IMAGE}",
        f"platform={variant.platform}",
        f"leastPrivilege={str(variant.least_privilege).lower()}",
        *more,
    ]
    words = [f"--set={value}" for value in values]
    words.append(f"--set-string=monitoring={'on' if variant.monitoring else 'off'}")
    return run(program("helm"), "template", "x", str(CHART), f"--kube-version={kubernetes}", *words)


@pytest.mark.parametrize(
    ("component", "variant", "namespace"),
    [
        pytest.param(component, variant, namespace, id=f"{name}-{component.name}-{variant.name}")
        for component, variant in FORMS
        for namespace, name in (("", "its own namespace"), ("mine", "another namespace"))
        # A fixed component in another namespace is refused: below.
        if not (component.fixed and namespace)
    ],
)
def test_the_chart_has_the_same(component: Component, variant: Variant, namespace: str) -> None:
    """But for the mark by which Helm leaves definitions when the release is uninstalled."""
    made = template(component, variant, f"namespace={namespace}")
    assert made.returncode == 0, made.stderr
    objects = by_identity(yaml.safe_load_all(made.stdout))
    for obj in objects.values():
        if obj["kind"] == "CustomResourceDefinition":
            assert obj["metadata"]["annotations"].pop("helm.sh/resource-policy") == "keep"
            if not obj["metadata"]["annotations"]:
                del obj["metadata"]["annotations"]
    assert objects == installed(component, variant, IMAGE, namespace)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (("image=",), "image: name the image to install"),
        (
            ("component=nothing",),
            "component: nothing is none of operator, update-status, kernel-modules, update-policy, fleet-update",
        ),
        (("component=operator", "image=registry.example/release:5"), "name the operator's release by digest"),
        (("component=update-policy", "namespace=mine"), "namespace: update-policy must be in runup-update"),
        (("component=operator", "platform=openshift"), "operator is not installed on openshift by this chart"),
    ],
)
def test_the_chart_refuses_what_cannot_work(values: tuple[str, ...], says: str) -> None:
    """With the value's name and the way out."""
    component = COMPONENTS["update-status"]
    refused = template(component, Variant("kubernetes", Platform.KUBERNETES), *values)
    assert refused.returncode != 0
    assert says in refused.stderr


@pytest.mark.parametrize(
    ("name", "oldest"), [(component.name, component.kubernetes) for component in COMPONENTS.values()]
)
def test_the_chart_takes_the_clusters_that_the_command_takes(name: str, oldest: tuple[int, int]) -> None:
    """Helm asks a cluster for its version, with what its distribution adds; a version before is refused."""
    variant = Variant("kubernetes", Platform.KUBERNETES)
    major, minor = oldest
    for version, taken in ((f"{major}.{minor}.0-gke.1", True), (f"{major}.{minor - 1}.9-eks-1", False)):
        made = template(COMPONENTS[name], variant, kubernetes=version)
        assert (made.returncode == 0) is taken, made.stderr
    assert f"{major}.{minor}" in made.stderr


def test_the_chart_has_the_version_of_the_command() -> None:
    """A chart of another version would install other objects. Helm reads semantic versions."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert Version(chart["version"]) == Version(chart["appVersion"]) == Version(__version__)
    assert semver.Version.is_valid(chart["version"])
