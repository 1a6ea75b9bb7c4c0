"""Pods run that their namespace would not admit today.

Applies when a namespace demands a level of the Pod Security Standards (label `pod-security.kubernetes.io/enforce`), and
a pod that a drain would move, and that a controller would recreate, violates it: it was there before the label, or
before the label became stricter. The label `enforce-version` chooses the rules of a version of Kubernetes. The pod is
evaluated as it was admitted, with the settings of security context constraints, and not its template. All such pods are
one risk.

Why it matters: such a pod keeps running until its node is drained. It then cannot be recreated, and the workload stays
down.

Remedy: `oc label --dry-run=server --overwrite ns NAMESPACE pod-security.kubernetes.io/enforce=LEVEL` warns of the pods;
change their template, or the level of the namespace.

Accepting it means that these pods do not start again.

Source of the rule: the Kubernetes documentation of Pod Security Admission and of the Pod Security Standards; the
OpenShift documentation of authentication, Understanding and managing pod security admission (OpenShift synchronizes
the labels `warn` and `audit`, not `enforce`).
"""

from __future__ import annotations

import re

from kubekit.api.core_v1 import Namespace
from kubekit.api.pod_parts import PlacedPod
from kubekit.rules.owners import controller_of
from runup.checks.catalogue.shared.pod_security_levels import BASELINE, RESTRICTED
from runup.checks.catalogue.shared.pods import PODS, is_drained, pods_by_namespace
from runup.checks.writing import Context, Findings, Snapshot, count, declared, full_name, names, risk

NAME = "PodSecurityViolated"
ENFORCE = "pod-security.kubernetes.io/enforce"
EXAMPLE = """
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {pod-security.kubernetes.io/enforce: baseline}}
---
apiVersion: v1
kind: Pod
metadata: {name: agent-5f7, namespace: shop, ownerReferences: [{kind: ReplicaSet, name: agent, controller: true}]}
spec:
  nodeName: worker-0
  containers: [{name: agent, securityContext: {privileged: true}}]
status: {phase: Running}
"""
# `latest`, an empty text and what is no version are the server's own version.
_VERSION, _LATEST = re.compile(r"v1\.([0-9]{1,3})"), 1_000
# What violates `baseline` violates `restricted`, too.
_REFUSES = {BASELINE: (BASELINE,), RESTRICTED: (BASELINE, RESTRICTED)}


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields one risk that names the pods that their namespace's enforced level would not admit again."""
    levels = {
        namespace.metadata.name: (level, _minor(namespace.metadata.labels.get(f"{ENFORCE}-version", "")))
        for namespace in snapshot.all(Namespace)
        if (level := namespace.metadata.labels.get(ENFORCE, "")) in _REFUSES
    }
    if not levels:
        return
    pods = pods_by_namespace(snapshot.listed(PODS))
    refused = [
        (pod, level, why)
        for namespace, (level, minor) in sorted(levels.items())
        for pod in sorted(pods.get(namespace, ()), key=full_name)
        if (why := _violation(pod, level, minor))
        and controller_of(pod.metadata.owner_references) is not None
        and is_drained(pod)
    ]
    if refused:
        yield risk(
            NAME,
            f"{count(len(refused), 'pod')} would not be admitted again by the level of "
            f"{'its namespace' if len(refused) == 1 else 'their namespaces'}: "
            f"{names([f'{full_name(pod)} ({level}: {what})' for pod, level, what in refused])}.",
            [pod for pod, _, _ in refused],
            fix="Change the pods' template or the namespace's label pod-security.kubernetes.io/enforce; a server-side "
            "dry run of `oc label` warns of what violates it.",
            kind=PODS,
        )


def _minor(version: str) -> int:
    """Returns the minor version of Kubernetes whose rules a namespace enforces; those of the server without one."""
    match = _VERSION.fullmatch(version)
    return int(match[1]) if match else _LATEST


def _violation(pod: PlacedPod, level: str, minor: int) -> str:
    """Returns why the level of that version does not admit the pod, "" if it does."""
    violated = (each for each in pod.demands.violations if each.level in _REFUSES[level] and each.since_minor <= minor)
    return next((each.why for each in violated), "")


CHECK = declared(run, NAME, "kube-apiserver", reads=(Namespace, PODS), rank=612)
