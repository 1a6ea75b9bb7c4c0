"""A network of the cluster overlaps with an internal network of OVN-Kubernetes.

Applies when the cluster's network is OVNKubernetes, and its pod or service network overlaps with the join subnet
(100.64.0.0/16 unless the network operator's configuration names another) or, for a target of 4.14 or later, with the
transit switch subnet (100.88.0.0/16 likewise). Where the status is empty, the spec counts; a range that cannot be read
is Unknown, and so are networks that neither names.

Why it matters: traffic to these addresses goes to the network's own routers: nodes or services cannot be reached. A
cluster from before 4.14 has no transit switch, so that its update is the first to need that range.

Remedy: choose another internal subnet before the update: `oc patch network.operator.openshift.io cluster --type=merge
-p '{"spec":{"defaultNetwork":{"ovnKubernetesConfig":{"ipv4":{"internalTransitSwitchSubnet":"RANGE"}}}}}'`.

Accepting it is right where the cluster has worked with it before.

Source of the rule: openshift/api, `operator/v1` (IPv4OVNKubernetesConfig: both defaults, and that they must not
overlap); the OpenShift documentation of CIDR range definitions.
"""

from __future__ import annotations

from ipaddress import IPv4Network, ip_network
from itertools import product

from runup.api.cluster_settings_v1 import Network
from runup.api.operator_v1 import OperatorNetwork, OVNKubernetesConfig
from runup.checks.writing import DEFINITIONS, Context, Findings, Snapshot, declared, resource_of, risk, unknown

NAME = "InternalSubnetOverlap"
DEFAULT_JOIN_SUBNET, DEFAULT_TRANSIT_SUBNET = "100.64.0.0/16", "100.88.0.0/16"
TRANSIT_SINCE = (4, 14)
EXAMPLE = """
apiVersion: config.openshift.io/v1
kind: Network
metadata: {name: cluster}
status:
  networkType: OVNKubernetes
  clusterNetwork: [{cidr: 100.88.0.0/14, hostPrefix: 23}]
  serviceNetwork: [172.30.0.0/16]
"""


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields a risk for each cluster network that overlaps a subnet that OVN-Kubernetes uses internally."""
    networks = [
        network
        for network in snapshot.all_or_none(Network)
        if (network.status.network_type or network.spec.network_type) == "OVNKubernetes"
    ]
    if not networks:
        return
    # The subnets that were chosen are named there: the usual ones are those of a cluster without it.
    snapshot.require_all(resource_of(OperatorNetwork))
    operators = snapshot.all_or_none(OperatorNetwork)
    config = operators[0].spec.default_network.ovn_kubernetes_config if operators else OVNKubernetesConfig()
    join = ("join", config.ipv4.internal_join_subnet or config.v4_internal_subnet or DEFAULT_JOIN_SUBNET)
    transit = ("transit switch", config.ipv4.internal_transit_switch_subnet or DEFAULT_TRANSIT_SUBNET)
    has_transit = context.target.minor_version >= TRANSIT_SINCE
    internal = [join, transit] if has_transit else [join]
    for network in networks:
        spec, status = network.spec, network.status
        used = [("pod network", entry.cidr) for entry in status.cluster_network or spec.cluster_network]
        used += [("service network", each) for each in status.service_network or spec.service_network]
        if not used:
            fix = "See `oc get network cluster -o yaml`: the network operator writes its status."
            yield unknown(NAME, "the Network names no pod or service network", [network], fix=fix)
            continue
        overlaps = []
        try:
            for (use, cidr), (subnet_kind, subnet) in product(used, internal):
                ranges = [ip_network(text, strict=False) for text in (cidr, subnet)]
                # All internal subnets that are looked at are of IPv4.
                if all(isinstance(each, IPv4Network) for each in ranges) and ranges[0].overlaps(ranges[1]):
                    overlaps.append(f"{use} {cidr} and the {subnet_kind} subnet {subnet}")
        except ValueError as error:
            fix = "See `oc get network cluster -o yaml`."
            yield unknown(NAME, f"a range cannot be read: {error}", [network], fix=fix)
            continue
        if overlaps:
            yield risk(
                NAME,
                f"Networks of the cluster overlap with those of OVN-Kubernetes itself: {'; '.join(overlaps)}.",
                [network],
                fix="Choose another internal subnet first, in defaultNetwork.ovnKubernetesConfig.ipv4 of "
                "`oc edit network.operator.openshift.io cluster`.",
            )


CHECK = declared(run, NAME, "cluster-network-operator", reads=(Network, OperatorNetwork, DEFINITIONS), rank=374)
