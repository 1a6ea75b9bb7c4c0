"""Writes deploy/kustomize, the other form of `runup install`, out of the manifests of deploy.

In: the manifests and `runup.install.decide`. Out: files, which are made anew; `--check` writes nothing and fails if one
differs. deploy/chart has the same files by a link, and puts image and namespace in. A test compares what kustomize and
Helm make of them with what `runup install -o yaml` prints.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubekit.lang import yaml as kyaml
from runup import __version__
from runup.install.control import installing as sources
from runup.install.decide.component import (
    COMPONENTS,
    KERNEL_MODULES,
    OPERATOR,
    PLACEHOLDER,
    PROMETHEUS,
    Certificates,
    Component,
    Options,
    Platform,
)
from runup.install.decide.component_objects import component_objects
from runup.install.decide.objects import Objects, definition

# Started by its path, it finds the checkout's other tools all the same.
sys.path.insert(0, str(Path(__file__).parents[1]))
from tools.packages import semantic

DEPLOY = Path(__file__).parents[1] / "deploy"
MADE = "# Made by tools/generate_install.py: change the manifests of deploy or runup/install/decide, not this.\n"


@dataclass(frozen=True)
class Variant:
    """A combination of options that has files of its own."""

    name: str
    platform: Platform
    monitoring: bool = False
    least_privilege: bool = False

    def options(self, component: Component) -> Options:
        """The options of `runup install` that give the same objects."""
        on_openshift = self.platform is Platform.OPENSHIFT
        return Options(
            image=PLACEHOLDER,
            namespace=component.namespace,
            platform=self.platform,
            monitoring=self.monitoring,
            certificates=Certificates.SERVICE_CA if on_openshift else Certificates.CERT_MANAGER,
            least_privilege=self.least_privilege,
            prometheus=PROMETHEUS[self.platform],
        )


ON_KUBERNETES = (
    Variant("kubernetes", Platform.KUBERNETES),
    Variant("kubernetes-monitoring", Platform.KUBERNETES, monitoring=True),
)
# OpenShift always has monitoring, and an operator of its own, which no kustomization replaces.
ON_OPENSHIFT = (Variant("openshift", Platform.OPENSHIFT, monitoring=True),)
LEAST = (
    Variant("kubernetes-least-privilege", Platform.KUBERNETES, least_privilege=True),
    Variant("kubernetes-monitoring-least-privilege", Platform.KUBERNETES, monitoring=True, least_privilege=True),
)


def variants(component: Component) -> tuple[Variant, ...]:
    """The variants of a component."""
    return (*ON_KUBERNETES, *(LEAST if component == OPERATOR else ON_OPENSHIFT))


def objects_of(component: Component, variant: Variant) -> Objects:
    """The objects of a variant, as `runup install -o yaml` prints them."""
    options = variant.options(component)
    return component_objects(component, sources.manifests(component, variant.platform), options)


def files() -> dict[Path, str]:
    """Every file, by its path below deploy."""
    made = {Path("chart/Chart.yaml"): MADE + kyaml.dump(_chart())}
    for component in COMPONENTS.values():
        made |= _kustomizations(component)
    return made


def _kustomizations(component: Component) -> dict[Path, str]:
    made = {}
    for variant in variants(component):
        definitions, others = _parted(objects_of(component, variant))
        folder = Path("kustomize", component.name)
        shared = folder / _definitions_of(component, variant)
        resources = ["objects.yaml"]
        if definitions:
            made[shared / "kustomization.yaml"] = MADE + kyaml.dump(_kustomization(["objects.yaml"]))
            made[shared / "objects.yaml"] = MADE + kyaml.dump_all(definitions)
            resources = [f"../{shared.name}", *resources]
        whole = _kustomization(resources) | _image_of(component)
        made[folder / variant.name / "kustomization.yaml"] = MADE + kyaml.dump(whole)
        made[folder / variant.name / "objects.yaml"] = MADE + kyaml.dump_all(others)
    return made


def _definitions_of(component: Component, variant: Variant) -> str:
    """The folder of the definitions; who vouches for a webhook differs by platform."""
    return f"definitions-{variant.platform}" if component == KERNEL_MODULES else "definitions"


def _kustomization(resources: list[str]) -> dict[str, Any]:
    return {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": resources}


def _image_of(component: Component) -> dict[str, Any]:
    name, _, tag = PLACEHOLDER.partition(":")
    images = [{"name": name, "newName": name, "newTag": tag}]
    if component != OPERATOR:
        return {"images": images}
    # The operator is told its own release, which is its image.
    source = {"kind": "Deployment", "name": component.deployment, "fieldPath": "spec.template.spec.containers.0.image"}
    target = {
        "select": {"kind": "Deployment", "name": component.deployment},
        "fieldPaths": ["spec.template.spec.containers.0.args.1"],
        "options": {"delimiter": "=", "index": 1},
    }
    return {"images": images, "replacements": [{"source": source, "targets": [target]}]}


def _parted(objects: Objects) -> tuple[Objects, Objects]:
    return tuple(o for o in objects if definition(o)), tuple(o for o in objects if not definition(o))


def _chart() -> dict[str, Any]:
    return {
        "apiVersion": "v2",
        "name": "runup",
        "description": "A component of runup: update-status, kernel-modules, update-policy, fleet-update or operator.",
        "type": "application",
        "version": semantic(__version__),
        "appVersion": semantic(__version__),
        "kubeVersion": ">={}.{}.0-0".format(*min(component.kubernetes for component in COMPONENTS.values())),
    }


def stale(made: Container[Path]) -> list[Path]:
    """The files on disk that are not among those that are made."""
    there = (DEPLOY / "kustomize").rglob("*")
    return [path for path in there if path.is_file() and path.relative_to(DEPLOY) not in made]


def main() -> int:
    """Writes every file; with --check compares."""
    made = files()
    if "--check" in sys.argv[1:]:
        wrong = [
            path for path, text in made.items() if not (DEPLOY / path).is_file() or (DEPLOY / path).read_text() != text
        ]
        wrong += [path.relative_to(DEPLOY) for path in stale(made)]
        for path in wrong:
            print(f"deploy/{path} is not as it is made: run python tools/generate_install.py", file=sys.stderr)
        return 1 if wrong else 0
    shutil.rmtree(DEPLOY / "kustomize", ignore_errors=True)
    for path, text in made.items():
        (DEPLOY / path).parent.mkdir(parents=True, exist_ok=True)
        (DEPLOY / path).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
