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

from runup.checks.catalogue.declaring import find_checks
from runup.checks.decide.model import Check

CHECKS: tuple[Check, ...] = find_checks(__name__, __path__)
