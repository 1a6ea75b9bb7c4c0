"""Decides the Invalid condition: spec fields that the API server admits and the operator cannot use."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from uuid import RFC_4122

from kubekit.api.meta_v1 import Condition
from kubekit.lang.formats import is_accepted, parse_url, parse_uuid
from kubekit.lang.version import parse
from runup.api.config_v1 import ClusterVersionSpec
from runup.clusterversion.decide import gates

INVALID = "Invalid"
DESIRED_UPDATE = "spec.desiredUpdate"


def errors(spec: ClusterVersionSpec, open_gates: AbstractSet[str]) -> tuple[str, ...]:
    """Returns one error text a field, in the order of the fields; of desiredUpdate only the first."""
    texts = []
    if not is_accepted(parse_url, spec.upstream):
        texts.append(f'spec.upstream: Invalid value: "{spec.upstream}": must be a valid URL or empty')
    # As the API server words it.
    cluster_id = parse_uuid(spec.cluster_id) if is_accepted(parse_uuid, spec.cluster_id) else None
    if spec.cluster_id and (cluster_id is None or cluster_id.variant != RFC_4122):
        texts.append(f'spec.clusterID: Invalid value: "{spec.cluster_id}": must be an RFC4122-variant UUID')
    elif cluster_id is not None and cluster_id.version != 4:
        texts.append(f'spec.clusterID: Invalid value: "{spec.cluster_id}": must be a version-4 UUID')
    return (*texts, *filter(None, (_desired_update_error(spec, open_gates),)))


def condition(invalid_fields: Sequence[str]) -> Condition | None:
    """Returns Invalid=True, without a time, or None if nothing is invalid."""
    if not invalid_fields:
        return None
    head = "The cluster version is invalid:"
    message = (
        f"{head} {invalid_fields[0]}"
        if len(invalid_fields) == 1
        else head + "".join(f"\n* {error}" for error in invalid_fields) + "\n"
    )
    return Condition(type=INVALID, status="True", reason="InvalidClusterVersion", message=message)


def _desired_update_error(spec: ClusterVersionSpec, open_gates: AbstractSet[str]) -> str:
    """Returns the error about `spec.desiredUpdate` as the Cluster Version Operator words it, empty if there is none."""
    desired = spec.desired_update
    if desired is None:
        return ""
    accepting = gates.ACCEPT_RISKS in open_gates
    # Feature sets without the gate have a definition without this field, but another one may be installed.
    if desired.accept_risks and not accepting:
        return "spec.desiredUpdate.acceptRisks: Forbidden: acceptRisks must not be specified"
    update_text = desired.version or desired.image or desired.architecture
    if not update_text and not desired.accept_risks:
        also = "architecture, version, image, or acceptRisks" if accepting else "architecture, version, or image"
        return f"spec.desiredUpdate: Required value: must specify {also}"
    if desired.version and parse(desired.version) is None:
        text = "must be a semantic version (1.2.3[-...])"
        return f'spec.desiredUpdate.version: Invalid value: "{desired.version}": {text}'
    return ""
