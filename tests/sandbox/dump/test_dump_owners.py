"""Owners in a dump are uids of another cluster."""

from __future__ import annotations

from pathlib import Path

from runup.sandbox.dump import layout, load

CV = """
apiVersion: config.openshift.io/v1
kind: ClusterVersion
metadata: {name: version, uid: old}
spec: {clusterID: a}
status: {desired: {version: 4.14.1}}
"""
CO = """
apiVersion: config.openshift.io/v1
kind: ClusterOperator
metadata:
  name: etcd
  ownerReferences:
  - {apiVersion: config.openshift.io/v1, kind: ClusterVersion, name: version, uid: old}
"""


def test_owner_references_are_left_behind(tmp_path: Path) -> None:
    """Otherwise the sandbox's garbage collector deletes the ClusterOperators, and the checks find nothing wrong."""
    (tmp_path / "a-cv.yaml").write_text(CV)
    (tmp_path / "a-co.yaml").write_text(CO)
    dump = load.load(layout.find(tmp_path / "a"))
    operator = dump.one("config.openshift.io", "ClusterOperator", "etcd")
    assert operator is not None
    assert "ownerReferences" not in operator["metadata"]
