"""The checks that every release carries: one file each, found by itself.

A file in an area's folder has a docstring (the check's page), an EXAMPLE, a function, and `CHECK = declared(...)`:

- `platform/`: ClusterVersion, ClusterOperators, acknowledgements, credentials, registry; `olm/`: what OLM installs
- `control_plane/`: etcd, certificates, gates and flags of Kubernetes; `network/`: network types, Ingress, the proxy
- `nodes/`: nodes, pools, machines, kernel modules, room; `workloads/`: pods, budgets, VMs; `storage/`: volumes
- `apis/`: removed and deprecated APIs, definitions, webhooks, admission; any `shared/`: helpers, which are no checks
- a declaration's `rank` is the check's place in lists and reports; without one it comes last
"""

from __future__ import annotations

from runup.checks.catalogue.discovery import find_checks
from runup.checks.decide.model import Check

CHECKS: tuple[Check, ...] = find_checks(__name__, __path__)
