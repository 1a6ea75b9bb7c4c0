"""The built-in checks that every release carries: one file each, discovered by its place.

A file in an area's folder has a docstring (the check's page), an EXAMPLE, a function, and `CHECK = declared(...)`. The
`rank` of a declaration is the check's place in lists and reports; without one it comes last. The areas:

- `platform/`: ClusterVersion, ClusterOperators, acknowledgements, credentials, registry
- `olm/`: operators that OLM installs
- `control_plane/`: etcd, certificates, feature gates and flags of Kubernetes
- `network/`: network types, IP families, the proxy
- `nodes/`: nodes, pools, machines, kernel modules, headroom
- `workloads/`: pods, disruption budgets, VMs
- `storage/`: volumes
- `apis/`: removed and deprecated APIs, definitions, webhooks, admission
- any `shared/`: helpers of several checks, not checks themselves
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from pkgutil import iter_modules

from runup.checks.decide.model import Check
from runup.checks.writing import CatalogueCheck

# The folder of the catalogue or of an area for modules that checks share; they declare no check.
SHARED = "shared"


class BadCatalogue(Exception):
    """Error raised if a module of the catalogue does not have the form of the others; the text says what to do."""


def find_checks(package: str, path: Iterable[str]) -> tuple[CatalogueCheck, ...]:
    """Returns the check of every module in the area folders of `package`, by rank, then by name.

    `path` is the package's `__path__`. Raises BadCatalogue for a module without a check and for a name that is taken.
    """
    checks: list[CatalogueCheck] = []
    # Reports, pages and acceptances refer to checks and risks by name.
    modules_by_name: dict[str, str] = {}
    for module in _modules_of_areas(package, path):
        check = getattr(import_module(module), "CHECK", None)
        if check is None:
            area = module.rpartition(".")[0]
            raise BadCatalogue(f"{module} declares no CHECK; if it is there to help others, move it to {area}.{SHARED}")
        if not isinstance(check, CatalogueCheck):
            kind = type(check).__name__
            raise BadCatalogue(f"{module}: CHECK is a {kind}; make it with runup.checks.writing.declared")
        for name in {check.name, check.unknown_risk} - {""}:
            if name in modules_by_name:
                raise BadCatalogue(f"{module} and {modules_by_name[name]} both declare {name}")
            modules_by_name[name] = module
        checks.append(check)
    return tuple(sorted(checks, key=lambda check: (check.rank, check.name)))


def _modules_of_areas(package: str, path: Iterable[str]) -> Iterator[str]:
    """Yields the names of the modules in the area folders, without the shared ones. Raises BadCatalogue."""
    for area in iter_modules(path):
        if not area.ispkg or area.name == SHARED:
            continue
        name = f"{package}.{area.name}"
        for module in iter_modules(import_module(name).__path__):
            if not module.ispkg:
                yield f"{name}.{module.name}"
            elif module.name != SHARED:
                raise BadCatalogue(f"{name}.{module.name}: an area has no other folder than {SHARED}")


CHECKS: tuple[Check, ...] = find_checks(__name__, __path__)
