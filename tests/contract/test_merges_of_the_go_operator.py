"""What is applied is all there is: 1,300 objects that others edited end as the Go operator's merge leaves them.

The corpus has the manifest, the object as somebody left it, and what the Go operator's own merge made of it
(openshift/cluster-version-operator `lib/resourcemerge`, commit 6e719331f). Each object is made on the server, and the
manifest applied as the operator applies it. The result is compared with a dry-run update to what the Go operator sends,
so that both have the server's defaults. What differs is in `EXPLAINED`, with its reason, or a failure.
"""

from __future__ import annotations

import copy
import gzip
import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tests.applying.control.test_a_run_by_itself import tasks
from tests.contract.api import Api

from kubekit.api.scheme import Resource
from kubekit.kube import calls, config
from kubekit.kube.api_errors import Conflict
from kubekit.kube.client import Client
from runup.applying.control import object_requests
from runup.applying.decide.rendering import LABEL, ClusterValues, render

T = TypeVar("T")
JSON = dict[str, Any]
CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "resourcemerge" / "pairs.jsonl.gz"
NAMESPACE = "merge"
RBAC = "rbac.authorization.k8s.io"
KINDS = {
    "Deployment": Resource(group="apps", version="v1", kind="Deployment", plural="deployments", namespaced=True),
    "DaemonSet": Resource(group="apps", version="v1", kind="DaemonSet", plural="daemonsets", namespaced=True),
    "Service": Resource(group="", version="v1", kind="Service", plural="services", namespaced=True),
    "ServiceAccount": Resource(
        group="", version="v1", kind="ServiceAccount", plural="serviceaccounts", namespaced=True
    ),
    "ConfigMap": Resource(group="", version="v1", kind="ConfigMap", plural="configmaps", namespaced=True),
    "Role": Resource(group=RBAC, version="v1", kind="Role", plural="roles", namespaced=True),
    "ClusterRole": Resource(group=RBAC, version="v1", kind="ClusterRole", plural="clusterroles", namespaced=False),
    "RoleBinding": Resource(group=RBAC, version="v1", kind="RoleBinding", plural="rolebindings", namespaced=True),
    "ClusterRoleBinding": Resource(
        group=RBAC, version="v1", kind="ClusterRoleBinding", plural="clusterrolebindings", namespaced=False
    ),
    "CustomResourceDefinition": Resource(
        group="apiextensions.k8s.io",
        version="v1",
        kind="CustomResourceDefinition",
        plural="customresourcedefinitions",
        namespaced=False,
    ),
    "ValidatingWebhookConfiguration": Resource(
        group="admissionregistration.k8s.io",
        version="v1",
        kind="ValidatingWebhookConfiguration",
        plural="validatingwebhookconfigurations",
        namespaced=False,
    ),
    "Job": Resource(group="batch", version="v1", kind="Job", plural="jobs", namespaced=True),
    "CronJob": Resource(group="batch", version="v1", kind="CronJob", plural="cronjobs", namespaced=True),
}
CONTRADICTS = "the Go operator leaves a value that contradicts the manifest; ours is the manifest's"
ONE_FIELD = "server-side apply knows it as one field, which is the release's if a manifest has it"
NEVER_RESTS = "the Go operator would write it at each pass, though the server keeps what was there"
MEANS_NOTHING = "the Go operator writes a default once that the server does not fill in there"
FIRST_BUNDLE = "the Go operator copies the first webhook's CA bundle into all; ours leaves each to who injects it"
POD = r"\.spec\.template\.spec"
EXPLAINED = (
    (
        rf".*{POD}\.(init)?[cC]ontainers\[\d+\]\.(imagePullPolicy|terminationMessagePolicy|startupProbe|lifecycle)\b.*",
        CONTRADICTS,
    ),
    (r"DaemonSet \.spec\.updateStrategy\b.*", CONTRADICTS),
    (r"Service \.spec\.(sessionAffinity(Config)?|publishNotReadyAddresses)\b.*", CONTRADICTS),
    (r"ServiceAccount \.imagePullSecrets: only here.*", CONTRADICTS),
    (r"ServiceAccount \.imagePullSecrets\b.*", ONE_FIELD),
    (
        rf".*{POD}\.(nodeSelector|tolerations|imagePullSecrets|securityContext\.(supplementalGroups|sysctls))\b.*",
        ONE_FIELD,
    ),
    (rf".*{POD}\.(init)?[cC]ontainers\[\d+\]\.securityContext\.capabilities\b.*", ONE_FIELD),
    (rf".*{POD}\.(init)?[cC]ontainers\[\d+\]\.ports\[\d+\]\.hostPort: only there.*", NEVER_RESTS),
    (r"CronJob \.spec\.jobTemplate\.spec\.(completionMode|backoffLimit|suspend): only there.*", MEANS_NOTHING),
    (r"Service \.spec\.ports\[\d+\]\.nodePort: .*", NEVER_RESTS),
    (r"ValidatingWebhookConfiguration .*\.caBundle: only there.*", FIRST_BUNDLE),
)
# Lists whose order means nothing, and what their entries are known by.
UNORDERED = {
    "containers": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "webhooks": "name",
    "ports": "containerPort",
    "ownerReferences": "uid",
}
SERVERS_OWN = ("managedFields", "resourceVersion", "generation", "uid", "creationTimestamp")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CORPUS.exists(), reason="the corpus of merges is not beside this checkout"),
]


@pytest.mark.parametrize("kind", KINDS)
async def test_what_becomes_of_other_peoples_edits(api: Api, kind: str) -> None:
    """A hundred pairs of the kind; a second apply writes nothing."""
    api.post("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})  # another kind's test may have made it
    reasons: Counter[str] = Counter()
    unexplained: list[str] = []
    async with Client(config.load(api.kubeconfig)) as client:
        for pair in pairs(kind):
            expected, result = await merged(client, KINDS[kind], pair)
            lines = [f"{kind} {line}" for line in differences(comparable(expected), comparable(result))]
            reasons.update({reason(line) for line in lines} - {MEANS_NOTHING} or {"the same"})
            unexplained += [f"{pair['n']} {pair['edits']}: {line}" for line in lines if not reason(line)]
    print(kind, dict(reasons))
    assert not unexplained
    assert reasons["the same"] >= 70


# History limits of a manifest and of the live CronJob. The Go operator defaults to 3 and 1 (ensureCronJobSpecDefault).
LIMITS = ((None, 7), (5, 7), (0, 3), (None, 0), (5, None), (None, None))


def cron_job(pair: JSON, part: str) -> JSON:
    """A part of a Deployment's pair as a CronJob's, whose pod template the Go operator merges by the same function."""
    source = copy.deepcopy(pair[part])
    template = {**source["spec"]["template"], "spec": {**source["spec"]["template"]["spec"], "restartPolicy": "Never"}}
    spec: JSON = {"schedule": "@daily", "jobTemplate": {"spec": {"template": template}}}
    limits = (("successfulJobsHistoryLimit", 3, pair["n"]), ("failedJobsHistoryLimit", 1, pair["n"] // len(LIMITS)))
    for name, default, number in limits:
        wanted, live = LIMITS[number % len(LIMITS)]
        value = {"manifest": wanted, "live": live, "merged": default if wanted is None else wanted}[part]
        spec |= {name: value} if value is not None else {}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": source["metadata"], "spec": spec}


async def test_a_cron_job_s_template_is_merged_as_a_deployment_s(api: Api) -> None:
    """Every edit of the pod template, the pull policy and the environment among them, and the history limits.

    The object was applied before somebody edits it, as on a cluster, so that the edits alone have another manager.
    """
    api.post("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    resource, unexplained = KINDS["CronJob"], []
    async with Client(config.load(api.kubeconfig)) as client:
        for deployment in pairs("Deployment"):
            parts = {part: cron_job(deployment, part) for part in ("manifest", "live", "merged")}
            expected, result = await merged(client, resource, {**deployment, **parts}, applied_first=True)
            lines = [f"CronJob {line}" for line in differences(comparable(expected), comparable(result))]
            unexplained += [f"{deployment['n']} {deployment['edits']}: {line}" for line in lines if not reason(line)]
    assert not unexplained


def pairs(kind: str) -> Iterator[JSON]:
    """The pairs of that kind."""
    with gzip.open(CORPUS) as lines:
        yield from (pair for pair in map(json.loads, lines) if pair["kind"] == kind)


async def merged(client: Client, resource: Resource, pair: JSON, *, applied_first: bool = False) -> tuple[JSON, JSON]:
    """The object as the Go operator leaves it, and as ours does, which then writes no more.

    With `applied_first`, ours applied the manifest before the object became the live one of the pair.
    """
    name, namespace = pair["live"]["metadata"]["name"], NAMESPACE if resource.namespaced else ""
    (task,) = tasks(pair["manifest"])
    manifest = render(task, ClusterValues()).object
    if applied_first:
        await client.send(calls.apply(resource, manifest, field_manager="cluster-version-operator", force=True))
        version = (await client.send(calls.get_raw(resource, name, namespace)))["metadata"]["resourceVersion"]
        edited = copy.deepcopy(pair["live"])
        edited["metadata"]["resourceVersion"] = version
        await client.send(calls.replace(resource, edited, field_manager="somebody"))
    else:
        await client.send(calls.create(resource, pair["live"], field_manager="somebody"))

    async def live() -> JSON:
        return await client.send(calls.get_raw(resource, name, namespace))

    async def by_the_go_operator() -> JSON:
        return await client.send(calls.replace(resource, sent(pair["merged"], await live()), dry_run=True))

    try:
        expected = await insisting(by_the_go_operator)
        known = (await insisting(lambda: object_requests.apply(client, resource, manifest, warned=_heard))).others
        result = await live()
        await insisting(lambda: object_requests.apply(client, resource, manifest, earlier_writes=known, warned=_heard))
        assert written(await live()) == written(result), (pair["n"], pair["edits"])
    finally:
        await client.send(calls.delete(resource, name, namespace))
    return expected, result


def _heard(_warnings: Sequence[str]) -> None:
    """The server's notes about fields are not compared."""


async def insisting(attempt: Callable[[], Awaitable[T]]) -> T:
    """Returns the attempt's result after conflicts, such as those while a server establishes a definition."""
    for _ in range(50):
        with suppress(Conflict):
            return await attempt()
    return await attempt()


def written(obj: JSON) -> Any:
    """What changes with each write but those of a status; that of a kind without a generation with each write."""
    return obj["metadata"].get("generation") or obj["metadata"]["resourceVersion"]


def sent(wanted: JSON, live: JSON) -> JSON:
    """Returns the object that the Go operator sends, with the fields that a server set at creation."""
    obj = copy.deepcopy(wanted)
    obj["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"]
    if obj["kind"] == "Service":
        obj["spec"] |= {name: live["spec"][name] for name in ("clusterIP", "clusterIPs") if name in live["spec"]}
    if obj["kind"] == "Job":
        obj["spec"]["selector"] = live["spec"]["selector"]
        obj["spec"]["template"].setdefault("metadata", {})["labels"] = live["spec"]["template"]["metadata"]["labels"]
    return obj


def comparable(obj: JSON) -> JSON:
    """An object without what the server alone decides, its unordered lists in order."""
    obj = copy.deepcopy(obj)
    metadata = obj["metadata"]
    for name in SERVERS_OWN:
        metadata.pop(name, None)
    # The server counts changes of the template.
    (metadata.get("annotations") or {}).pop("deprecated.daemonset.template.generation", None)
    labels = metadata.get("labels") or {}
    labels.pop(LABEL, None)
    if not labels:
        metadata.pop("labels", None)
    if obj["kind"] == "Job":  # a server labels the Job itself when it is made, which the merge of `live` did not see
        metadata["labels"] = {
            key: value for key, value in labels.items() if "controller-uid" not in key and "job-name" not in key
        }
    return sorted_lists({key: value for key, value in obj.items() if key != "status"})


def sorted_lists(value: Any) -> Any:
    """The value with each unordered list in the order of what its entries are known by."""
    if isinstance(value, list):
        return [sorted_lists(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    result = {name: sorted_lists(member) for name, member in value.items()}
    for name, key in UNORDERED.items():
        if isinstance(result.get(name), list) and all(isinstance(entry, dict) for entry in result[name]):
            result[name] = sorted(result[name], key=lambda entry: str(entry.get(key, entry.get("port"))))
    return result


def differences(there: Any, here: Any, path: str = "") -> list[str]:
    """Where two values differ: `there` is the Go operator's, `here` ours."""
    if isinstance(there, dict) and isinstance(here, dict):
        found = []
        for name in sorted({*there, *here}):
            place = f"{path}.{name}"
            if name not in there:
                found.append(f"{place}: only here {json.dumps(here[name])}")
            elif name not in here:
                found.append(f"{place}: only there {json.dumps(there[name])}")
            else:
                found += differences(there[name], here[name], place)
        return found
    if isinstance(there, list) and isinstance(here, list) and len(there) == len(here):
        return [
            line for n, both in enumerate(zip(there, here, strict=True)) for line in differences(*both, f"{path}[{n}]")
        ]
    return [] if there == here else [f"{path}: there {json.dumps(there)}, here {json.dumps(here)}"]


def reason(line: str) -> str:
    """Why a difference is no defect; empty if there is no reason."""
    return next((why for pattern, why in EXPLAINED if re.fullmatch(pattern, line)), "")
