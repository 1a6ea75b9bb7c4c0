"""A cluster made from a seed: nodes, pods with constraints of every kind, budgets, volumes. Objects as JSON."""

from __future__ import annotations

from random import Random
from typing import Any

JSON = dict[str, Any]
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
NAMESPACES = ("shop", "bank")
APPS = ("web", "db", "queue", "batch")
GPU = "example.com/gpu"
DRIVER = "csi.example.com"
FIXED: tuple[tuple[str, JSON], ...] = (
    ("PriorityClass", {"metadata": {"name": "high"}, "value": 1000}),
    ("PriorityClass", {"metadata": {"name": "polite"}, "value": 500, "preemptionPolicy": "Never"}),
    ("RuntimeClass", {"metadata": {"name": "vm"}, "handler": "vm", "overhead": {"podFixed": {"cpu": "100m"}}}),
    (
        "StorageClass",
        {"metadata": {"name": "late"}, "provisioner": DRIVER, "volumeBindingMode": "WaitForFirstConsumer"},
    ),
    (
        "StorageClass",
        {
            "metadata": {"name": "late-a"},
            "provisioner": DRIVER,
            "volumeBindingMode": "WaitForFirstConsumer",
            "allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": ["a"]}]}],
        },
    ),
    ("StorageClass", {"metadata": {"name": "now"}, "provisioner": DRIVER, "volumeBindingMode": "Immediate"}),
    (
        "StorageClass",
        {
            "metadata": {"name": "local"},
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
    ),
    *(("Namespace", {"metadata": {"name": name, "labels": {"tier": name}}}) for name in NAMESPACES),
)


class SeededCluster:
    """Objects of one cluster, by kind, in the order in which they are created."""

    def __init__(self, seed: int) -> None:
        """Makes them; the same seed makes the same cluster."""
        self._random = Random(seed)
        self.prefix = f"s{seed}"
        self.objects: list[tuple[str, JSON]] = []
        self.pods: list[JSON] = []
        self.ready: dict[tuple[str, str], bool] = {}
        self._nodes: list[JSON] = []
        self._used: dict[str, int] = {}
        for number in range(self._random.randrange(10, 31)):
            self._node(number)
        for namespace in NAMESPACES:
            for app in APPS:
                self._workload(namespace, app)
        self._budgets()

    @property
    def nodes(self) -> list[str]:
        """The names of the nodes."""
        return [node["metadata"]["name"] for node in self._nodes]

    def _node(self, number: int) -> None:
        random, name = self._random, f"{self.prefix}-node-{number}"
        labels = {HOST: name, "disk": random.choice(("fast", "slow")), "gen": str(random.randrange(1, 6))}
        if random.random() < 0.93:
            labels[ZONE] = random.choice("abc")
        taints = []
        if random.random() < 0.2:
            effect = random.choice(("NoSchedule", "NoExecute", "PreferNoSchedule"))
            taints.append({"key": "team", "value": random.choice(("db", "web")), "effect": effect})
        allocatable = {"cpu": random.choice(("1", "2", "4")), "memory": random.choice(("1Gi", "4Gi")), "pods": "12"}
        if random.random() < 0.2:
            allocatable["pods"] = "4"
        if random.random() < 0.2:
            allocatable[GPU] = "2"
        node: JSON = {
            "metadata": {"name": name, "labels": labels},
            "spec": {"taints": taints},
            "status": {
                "allocatable": allocatable,
                "capacity": allocatable,
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
        self._nodes.append(node)
        self.objects.append(("Node", node))
        limit = {"allocatable": {"count": random.choice((1, 2, 8))}}
        driver = {"name": DRIVER, "nodeID": name, "topologyKeys": [ZONE], **limit}
        self.objects.append(("CSINode", {"metadata": {"name": name}, "spec": {"drivers": [driver]}}))

    def _workload(self, namespace: str, app: str) -> None:
        random = self._random
        replicas = random.randrange(1, 9)
        template = self._template(namespace, app)
        metadata: JSON = {"name": app, "namespace": namespace}
        labels = {"app": app, "version": "1"}
        spec = {"replicas": replicas, "selector": {"matchLabels": {"app": app}}}
        spec["template"] = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        self.objects.append(("ReplicaSet", {"metadata": metadata, "spec": spec}))
        for index in range(replicas):
            name = f"{app}-{index}"
            pod: JSON = {
                "metadata": {"name": name, "namespace": namespace, "labels": labels},
                "spec": {**template, "nodeName": self._place(), "terminationGracePeriodSeconds": 0},
            }
            if random.random() < 0.9:
                pod["metadata"]["ownerReferences"] = [{"kind": "ReplicaSet", "name": app}]
            if random.random() < 0.25:
                pod["spec"]["volumes"] = [self._volume(namespace, name)]
            self.pods.append(pod)
            self.ready[namespace, name] = random.random() < 0.85

    def _place(self) -> str:
        """Returns the node of one more pod: of two the emptier."""
        some = self._random.sample(self.nodes, 2)
        name = min(some, key=lambda each: self._used.get(each, 0))
        self._used[name] = self._used.get(name, 0) + 1
        return name

    def _template(self, namespace: str, app: str) -> JSON:
        random = self._random
        requests: JSON = {"cpu": f"{random.choice((50, 100, 300, 700))}m", "memory": f"{random.choice((64, 200))}Mi"}
        if random.random() < 0.1:
            requests[GPU] = "1"
        container: JSON = {"name": "c", "image": "i", "resources": {"requests": requests, "limits": _limits(requests)}}
        if random.random() < 0.2:
            port: JSON = {"containerPort": 80, "hostPort": random.choice((8080, 8081))}
            port["protocol"] = random.choice(("TCP", "UDP"))
            if random.random() < 0.4:
                port["hostIP"] = random.choice(("10.0.0.1", "10.0.0.2"))
            container["ports"] = [port]
        spec: JSON = {"containers": [container]}
        if random.random() < 0.2:
            init: JSON = {"name": "i", "image": "i", "resources": {"requests": {"cpu": "900m"}}}
            if random.random() < 0.5:
                init["restartPolicy"] = "Always"
                init["resources"] = {"requests": {"cpu": "150m"}}
            spec["initContainers"] = [init]
        if random.random() < 0.1:
            spec["runtimeClassName"] = "vm"
        if random.random() < 0.4:
            spec["priorityClassName"] = random.choice(("high", "polite"))
        if random.random() < 0.35:
            toleration: JSON = {"key": "team", "operator": "Exists"}
            if random.random() < 0.5:
                toleration = {"key": "team", "operator": "Equal", "value": random.choice(("db", "web"))}
            spec["tolerations"] = [toleration]
        if random.random() < 0.1:
            spec["nodeSelector"] = {"disk": random.choice(("fast", "slow", "none"))}
        affinity = self._affinity(app, namespace)
        if affinity:
            spec["affinity"] = affinity
        if random.random() < 0.45:
            spec["topologySpreadConstraints"] = self._spreads(app)
        return spec

    def _affinity(self, app: str, namespace: str) -> JSON:
        random = self._random
        affinity: JSON = {}
        if random.random() < 0.25:
            terms = [{"matchExpressions": [self._expression()]} for _ in range(random.randrange(1, 3))]
            if random.random() < 0.2:
                chosen = random.sample(self.nodes, 1)
                terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": chosen}]}]
            required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
            affinity["nodeAffinity"] = required
        if random.random() < 0.2:
            terms = [self._term(random.choice(APPS)) for _ in range(random.randrange(1, 3))]
            affinity["podAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
        if random.random() < 0.35:
            terms = [self._term(random.choice((app, *APPS)))]
            affinity["podAntiAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
        return affinity

    def _expression(self) -> JSON:
        random = self._random
        operator = random.choice(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
        if operator in ("Gt", "Lt"):
            return {"key": "gen", "operator": operator, "values": [str(random.randrange(1, 6))]}
        if operator in ("Exists", "DoesNotExist"):
            return {"key": random.choice((ZONE, "disk", "none")), "operator": operator}
        return {"key": ZONE, "operator": operator, "values": random.sample("abc", random.randrange(1, 3))}

    def _term(self, app: str) -> JSON:
        random = self._random
        term: JSON = {"topologyKey": random.choice((HOST, ZONE, HOST)), "labelSelector": {"matchLabels": {"app": app}}}
        if random.random() < 0.2:
            expression = {"key": "app", "operator": "In", "values": random.sample(APPS, 2)}
            term["labelSelector"] = {"matchExpressions": [expression]}
        if random.random() < 0.15:
            term["namespaces"] = [random.choice(NAMESPACES)]
        if random.random() < 0.15:
            names = random.choice(({}, {"matchLabels": {"tier": random.choice(NAMESPACES)}}))
            term["namespaceSelector"] = names
        if random.random() < 0.15:
            term["matchLabelKeys"] = ["version"]
        return term

    def _spreads(self, app: str) -> list[JSON]:
        random = self._random
        found = []
        for key in random.sample((ZONE, HOST, "disk"), random.randrange(1, 3)):
            constraint: JSON = {
                "maxSkew": random.randrange(1, 3),
                "topologyKey": key,
                "whenUnsatisfiable": random.choice(("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway")),
                "labelSelector": {"matchLabels": {"app": app}},
            }
            if constraint["whenUnsatisfiable"] == "DoNotSchedule" and random.random() < 0.3:
                constraint["minDomains"] = random.randrange(2, 5)
            if random.random() < 0.3:
                constraint["nodeAffinityPolicy"] = random.choice(("Honor", "Ignore"))
            if random.random() < 0.4:
                constraint["nodeTaintsPolicy"] = random.choice(("Honor", "Ignore"))
            if random.random() < 0.3:
                constraint["matchLabelKeys"] = ["version"]
            found.append(constraint)
        return found

    def _volume(self, namespace: str, pod: str) -> JSON:
        random, name = self._random, f"{self.prefix}-{namespace}-{pod}"
        claim: JSON = {
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }
        kind = random.choice(("bound", "bound", "bound", "late", "late-a", "now", "local", "missing"))
        if random.random() < 0.2:
            claim["spec"]["accessModes"] = ["ReadWriteOncePod"]
        if kind == "bound":
            claim["spec"] |= {"volumeName": name, "storageClassName": ""}
            claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
            self.objects.append(("PersistentVolume", self._persistent(name, claim)))
        else:
            claim["spec"]["storageClassName"] = kind
        if kind != "missing":
            self.objects.append(("PersistentVolumeClaim", claim))
        return {"name": "data", "persistentVolumeClaim": {"claimName": name}}

    def _persistent(self, name: str, claim: JSON) -> JSON:
        random = self._random
        spec: JSON = {
            "capacity": {"storage": "1Gi"},
            "accessModes": claim["spec"]["accessModes"],
            "claimRef": {"kind": "PersistentVolumeClaim", "apiVersion": "v1", **_identity(claim)},
            "csi": {"driver": DRIVER, "volumeHandle": name},
        }
        labels: JSON = {}
        if random.random() < 0.5:
            expression = {"key": ZONE, "operator": "In", "values": random.sample("abc", random.randrange(1, 3))}
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
        elif random.random() < 0.5:
            label = random.choice((ZONE, "failure-domain.beta.kubernetes.io/zone"))
            labels = {label: random.choice(("a", "b", "a__b"))}
        return {"metadata": {"name": name, "labels": labels}, "spec": spec}

    def _budgets(self) -> None:
        random = self._random
        for namespace in NAMESPACES:
            for app in APPS:
                for number in range(random.choice((0, 1, 1, 1, 1, 2))):
                    rule: JSON = random.choice(
                        (
                            {"maxUnavailable": 1},
                            {"maxUnavailable": 0},
                            {"maxUnavailable": "30%"},
                            {"minAvailable": 1},
                            {"minAvailable": 2},
                            {"minAvailable": "50%"},
                        )
                    )
                    if random.random() < 0.3:
                        rule = rule | {"unhealthyPodEvictionPolicy": random.choice(("AlwaysAllow", "IfHealthyBudget"))}
                    metadata = {"name": f"{app}-{number}", "namespace": namespace}
                    spec = {"selector": {"matchLabels": {"app": app}}, **rule}
                    self.objects.append(("PodDisruptionBudget", {"metadata": metadata, "spec": spec}))


def _limits(requests: JSON) -> JSON:
    # A device's limit is its request.
    return {GPU: requests[GPU]} if GPU in requests else {}


def _identity(obj: JSON) -> JSON:
    return {"name": obj["metadata"]["name"], "namespace": obj["metadata"]["namespace"]}
