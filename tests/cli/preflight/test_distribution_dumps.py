"""Clusters as their distributions' documentation makes them, in lists of `kubectl get KIND -A -o yaml`: what is found.

Healthy add-ons are no findings. A list without an item does not say of which kind it is, so that stays unknown. The day
of the calendars is another test's: `TargetSupportEnded` depends on today.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.cli.commands import Run
from tests.cli.preflight.test_any_kubernetes import FOREIGN

DUMPS = Path(__file__).with_name("distributions")
FOUND: dict[str, tuple[set[str], tuple[str, str]]] = {
    "eks": (
        set(),
        (
            "aws eks update-cluster-version",
            "aws eks update-nodegroup-version --cluster-name CLUSTER --nodegroup-name ng-apps",
        ),
    ),
    "gke": (set(), ("gcloud container clusters upgrade CLUSTER --master", "CLUSTER --node-pool default-pool")),
    "kubeadm": (
        # Calico 3.30 is not in the table, and counts as 3.29.
        {
            "AddonIncompatible-Calico",
            "AddonIncompatible-cert-manager",
            "AddonRetired-ingress-nginx",
            "EtcdVersion",
            "RemovedComponentSetting",
        },
        ("kubeadm upgrade apply v1.34.0", "kubeadm upgrade node"),
    ),
    "aks": (set(), ("az aks upgrade --resource-group GROUP --name CLUSTER --control-plane-only", "--name apps")),
    "k3s": ({"RemovedComponentSetting"}, ("INSTALL_K3S_CHANNEL=v1.34 sh - on each server",)),
    "rke2": ({"RemovedComponentSetting"}, ("INSTALL_RKE2_CHANNEL=v1.34",)),
    "talos": ({"RemovedComponentSetting"}, ("talosctl --nodes CONTROL-PLANE upgrade-k8s --to 1.34.0",)),
    "kind": ({"RemovedComponentSetting"}, ("kind create cluster --name NEW --image kindest/node:v1.34.0",)),
}
# What is planted of settings, and in whose words it is taken out.
SETTINGS = {
    "kubeadm": ("Feature gate NodeSwap of kubelet", "kubeadm upgrade node phase kubelet-config"),
    "k3s": ("Feature gate ElasticIndexedJob of kube-apiserver", "/etc/rancher/k3s/config.yaml"),
    "rke2": ("Flag cloud-config of kubelet", "/etc/rancher/rke2/config.yaml"),
    "talos": ("Feature gate StatefulSetStartOrdinal of kube-apiserver", "talosctl --nodes NODE edit mc"),
    "kind": ("Feature gate DevicePluginCDIDevices of kube-apiserver", "kind create cluster --name NEW --config FILE"),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_is_found(run: Run, name: str) -> None:
    """No more than what is planted, and no word of another distribution."""
    findings, words = FOUND[name]
    ran = run("preflight", "run", "--dump", DUMPS / name, "--to", "1.34", "-o", "json")
    shown = json.loads(ran.out)
    applying = {risk["name"] for risk in shown["risks"] if risk["applies"] == "True"}
    assert applying - {"TargetSupportEnded"} == findings
    clear = {check["name"] for check in shown["checks"] if check["result"] == "Clear"}
    assert {"KubeletSkew", "KubeProxySkew", "NodeImageTooOld", "UnmanagedPods"} <= clear
    how = [line for step in shown["steps"] for line in step["how"]]
    assert all(any(word in line for line in how) for word in words), how
    assert not FOREIGN.search(ran.out), FOREIGN.search(ran.out)


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_that_go(run: Run, name: str) -> None:
    """One finding in each place where the distribution keeps settings; its generated files have no findings."""
    shown = json.loads(run("preflight", "run", "--dump", DUMPS / name, "--to", "1.34", "-o", "json").out)
    (found,) = [risk for risk in shown["risks"] if risk["name"] == "RemovedComponentSetting"]
    words, remedy = SETTINGS[name]
    assert found["message"].startswith(words)
    assert remedy in found["remediation"]
    # Wherever it is written, the control plane's own nodes are the first to meet it.
    assert [step["part"] for step in shown["steps"] if found["name"] in step.get("risks", ())] == ["control plane"]


def test_the_plan_of_one(run: Run) -> None:
    """Unknown results is one box, what is paused runs in this cluster, and nothing is left to check for."""
    out = run("preflight", "run", "--dump", DUMPS / "eks", "--to", "1.34", "-o", "plan").out
    assert len(re.findall(r"\[ \] Find out what is unknown", out)) == 1
    nodes = out.partition("2. Nodes to 1.34")[2]
    order = [nodes.index(words) for words in ("Pause Karpenter", "update-nodegroup-version", "Resume Karpenter")]
    assert order == sorted(order)
    assert "Check again" not in out
