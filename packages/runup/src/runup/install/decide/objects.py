"""Objects as JSON values, and the changes that several adaptations make to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runup.release.decide.manifest import Identity

JSON = dict[str, Any]
Objects = tuple[JSON, ...]


def identity_of(obj: JSON) -> Identity:
    """Returns the identity of `obj`."""
    group, slash, _ = obj["apiVersion"].partition("/")
    metadata = obj["metadata"]
    return Identity(group if slash else "", obj["kind"], metadata.get("namespace", ""), metadata["name"])


def definition(obj: JSON) -> bool:
    """Returns whether `obj` is a CustomResourceDefinition."""
    return bool(obj["kind"] == "CustomResourceDefinition")


def map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Returns `value` with every text in it, but no key, changed by `change`."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [map_texts(item, change) for item in value]
    if isinstance(value, dict):
        return {key: map_texts(item, change) for key, item in value.items()}
    return value


def with_pod(obj: JSON, change: Callable[[JSON], JSON]) -> JSON:
    """Returns `obj` with the specification of its pods changed, if it is a Deployment."""
    if obj["kind"] != "Deployment":
        return obj
    template = obj["spec"]["template"]
    return {**obj, "spec": {**obj["spec"], "template": {**template, "spec": change(template["spec"])}}}


def with_container(pod: JSON, change: Callable[[JSON], JSON]) -> JSON:
    """Returns the pod's specification with each of its containers changed."""
    return {**pod, "containers": [change(container) for container in pod["containers"]]}


def without_arguments(pod: JSON, *prefixes: str) -> JSON:
    """Returns the pod's specification without the arguments that begin with one of `prefixes`."""
    return with_container(
        pod,
        lambda container: {
            **container,
            "args": [arg for arg in container.get("args", ()) if not arg.startswith(prefixes)],
        },
    )


def with_arguments(pod: JSON, *arguments: str) -> JSON:
    """Returns the pod's specification with `arguments` after those of its containers."""
    return with_container(pod, lambda container: {**container, "args": [*container.get("args", ()), *arguments]})


def without_volumes(pod: JSON, *names: str) -> JSON:
    """Returns the pod's specification without the volumes of these names and their mounts."""

    def without_mounts(container: JSON) -> JSON:
        mounts = [mount for mount in container.get("volumeMounts", ()) if mount["name"] not in names]
        return _with_list(container, "volumeMounts", mounts)

    volumes = [volume for volume in pod.get("volumes", ()) if volume["name"] not in names]
    return _with_list(with_container(pod, without_mounts), "volumes", volumes)


def _with_list(obj: JSON, key: str, values: list[Any]) -> JSON:
    other_fields = {name: value for name, value in obj.items() if name != key}
    return {**other_fields, key: values} if values else other_fields
