"""Names, selectors and defaults of built-in kinds, by the words of Kubernetes."""

from __future__ import annotations

from typing import Any

import pytest

from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.api_errors import ApiError, Forbidden, Invalid
from kubekit.kube.client import Client
from kubesandbox.apiserver.schema.go_defaults import pull_policy

JSON = dict[str, Any]
CONFIG_MAPS = Resource(group="", version="v1", kind="ConfigMap", plural="configmaps", namespaced=True)
NAMESPACES = Resource(group="", version="v1", kind="Namespace", plural="namespaces", namespaced=False)
DEPLOYMENTS = Resource(group="apps", version="v1", kind="Deployment", plural="deployments", namespaced=True)
ROLES = Resource(
    group="rbac.authorization.k8s.io", version="v1", kind="ClusterRole", plural="clusterroles", namespaced=False
)
SECRETS = Resource(group="", version="v1", kind="Secret", plural="secrets", namespaced=True)
JOBS = Resource(group="batch", version="v1", kind="Job", plural="jobs", namespaced=True)
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)


def obj(resource: Resource, name: str, **rest: Any) -> JSON:
    """An object in the namespace `default`."""
    metadata = {"name": name, "namespace": "default"} if resource.namespaced else {"name": name}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **rest}


def deployment(selected: str = "a", labelled: str = "a") -> JSON:
    """A Deployment with as little as there may be."""
    template = {"metadata": {"labels": {"app": labelled}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}
    spec = {"selector": {"matchLabels": {"app": selected}}, "template": template}
    return obj(DEPLOYMENTS, "web", spec=spec)


@pytest.mark.parametrize(
    ("resource", "name", "message"),
    [
        pytest.param(
            CONFIG_MAPS, "", 'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required',
            id="no name",
        ),
        pytest.param(
            CONFIG_MAPS, "Bad_Name",
            f'ConfigMap "Bad_Name" is invalid: metadata.name: Invalid value: "Bad_Name": {SUBDOMAIN}',
            id="not a subdomain",
        ),
        pytest.param(
            NAMESPACES, "a_b", f'Namespace "a_b" is invalid: metadata.name: Invalid value: "a_b": {LABEL}',
            id="a namespace is a label",
        ),
        pytest.param(
            NAMESPACES, "a.b", 'Namespace "a.b" is invalid: metadata.name: Invalid value: "a.b": must not contain dots',
            id="a namespace has no dots",
        ),
        pytest.param(
            NAMESPACES, "", 'Namespace "" is invalid: metadata.name: Required value: name or generateName is required',
            id="a namespace without a name",
        ),
        pytest.param(
            ROLES, "a/b",
            'ClusterRole.rbac.authorization.k8s.io "a/b" is invalid: metadata.name: Invalid value: "a/b": '
            "may not contain '/'",
            id="a role is a path segment",
        ),
    ],
)  # fmt: skip
async def test_bad_names_are_refused(client: Client, resource: Resource, name: str, message: str) -> None:
    """A name that a real server does not take is not taken here either."""
    with pytest.raises(Invalid) as refused:
        await client.send(calls.create(resource, obj(resource, name)))
    assert refused.value.status.message == message


@pytest.mark.parametrize("name", ["system:node:extra", "A:B", "a.b-c"])
async def test_roles_may_have_names_with_colons(client: Client, name: str) -> None:
    """RBAC names are path segments."""
    created = await client.send(calls.create(ROLES, obj(ROLES, name)))
    assert created["metadata"]["name"] == name


async def test_a_selector_must_match_its_template(client: Client) -> None:
    """A Deployment that would never find its pods is refused."""
    with pytest.raises(Invalid) as refused:
        await client.send(calls.create(DEPLOYMENTS, deployment("a", "b")))
    assert refused.value.status.message == (
        'Deployment.apps "web" is invalid: spec.template.metadata.labels: Invalid value: {"app":"b"}: '
        "`selector` does not match template `labels`"
    )


async def test_a_selector_cannot_change(client: Client) -> None:
    """The selector of a Deployment is for good."""
    created = await client.send(calls.create(DEPLOYMENTS, deployment()))
    created["spec"]["selector"]["matchLabels"] = {"app": "b"}
    created["spec"]["template"]["metadata"]["labels"] = {"app": "b"}
    with pytest.raises(Invalid) as refused:
        await client.send(calls.replace(DEPLOYMENTS, created))
    assert refused.value.status.message == (
        'Deployment.apps "web" is invalid: spec.selector: Invalid value: {"matchLabels":{"app":"b"}}: '
        "field is immutable"
    )


async def test_a_deployment_is_completed(client: Client) -> None:
    """A stored object has the defaults of Deployment, pod and container."""
    spec = (await client.send(calls.create(DEPLOYMENTS, deployment())))["spec"]
    assert (spec["replicas"], spec["revisionHistoryLimit"], spec["progressDeadlineSeconds"]) == (1, 10, 600)
    assert spec["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"},
    }
    pod = spec["template"]["spec"]
    assert (pod["restartPolicy"], pod["dnsPolicy"]) == ("Always", "ClusterFirst")
    assert pod["terminationGracePeriodSeconds"] == 30
    assert pod["containers"][0]["imagePullPolicy"] == "IfNotPresent"


async def test_writing_what_was_read_is_no_change(client: Client) -> None:
    """Defaults are filled once: the revision stays."""
    created = await client.send(calls.create(DEPLOYMENTS, deployment()))
    again = await client.send(calls.replace(DEPLOYMENTS, created))
    assert again["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"]


async def test_secrets_and_jobs_are_completed(client: Client) -> None:
    """A Secret is Opaque; a Job runs one pod once, and tries six times."""
    secret = await client.send(calls.create(SECRETS, obj(SECRETS, "s", stringData={"a": "b"})))
    assert secret["type"] == "Opaque"
    spec = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}
    job = (await client.send(calls.create(JOBS, obj(JOBS, "j", spec=spec))))["spec"]
    assert (job["completions"], job["parallelism"], job["backoffLimit"]) == (1, 1, 6)
    assert job["template"]["spec"]["restartPolicy"] == "Never"


async def test_a_namespace_that_ends_takes_nothing_new(client: Client) -> None:
    """Creation in a namespace that is being deleted is forbidden with the cause that clients look for."""
    await client.send(calls.create(NAMESPACES, obj(NAMESPACES, "gone")))
    await client.send(calls.delete(NAMESPACES, "gone"))
    body = obj(CONFIG_MAPS, "x")
    body["metadata"]["namespace"] = "gone"
    with pytest.raises(Forbidden, match="unable to create new content in namespace gone because it is being terminat"):
        await client.send(calls.create(CONFIG_MAPS, body))


async def test_some_namespaces_stay(client: Client) -> None:
    """`default` cannot be deleted."""
    with pytest.raises(ApiError, match="this namespace may not be deleted"):
        await client.send(calls.delete(NAMESPACES, "default"))


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("app", "Always"), ("app:latest", "Always"), ("host:5000/app", "Always"), ("host:5000/app:1.2", "IfNotPresent"),
        ("", "IfNotPresent"), ("app@sha256:abc", "IfNotPresent"), ("app:latest@sha256:abc", "IfNotPresent"),
    ],
)  # fmt: skip
def test_pull_policies(image: str, policy: str) -> None:
    """Only what may change under its name is pulled always."""
    assert pull_policy(image) == policy
