"""`operator.openshift.io/v1`: what operators are told and say in more detail than their ClusterOperator has."""

from __future__ import annotations

from runup.api.meta_v1 import Condition, Object, Wire


class EtcdStatus(Wire, frozen=True):
    """`status` of Etcd: one condition for each of the operator's controllers."""

    conditions: tuple[Condition, ...] = ()


class Etcd(Object, frozen=True):
    """The singleton `cluster`: the etcd of the control plane."""

    status: EtcdStatus = EtcdStatus()
