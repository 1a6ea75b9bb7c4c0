"""What builds and signatures are made of: a ConfigMap's Dockerfile, and that Secrets are there.

Of a Secret nothing is kept but a hash.
"""

from __future__ import annotations

import hashlib

from kubekit.api import codec
from kubekit.api.codec import DecodeError
from kubekit.api.core_v1 import ConfigMap
from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.client import Client
from kubekit.kube.errors import KubeError
from runup.kernelmodules.decide.asked import Material, MaterialQuestion

SECRETS = Resource("", "v1", "Secret", "secrets", namespaced=True)
DOCKERFILE = "dockerfile"


class _Lacking(Exception):
    """Something is not there, or not as it should be."""


async def read(client: Client, question: MaterialQuestion) -> Material:
    """What the cluster has of it; what it lacks is the answer's `problem`."""
    try:
        dockerfile = await _dockerfile(client, question) if question.config_map else ""
        versions = [await _version(client, question.namespace, name, key) for name, key in question.secrets]
    except _Lacking as error:
        return Material(problem=str(error))
    return Material(dockerfile, tuple(versions))


async def _dockerfile(client: Client, question: MaterialQuestion) -> str:
    where = f"{question.namespace}/{question.config_map}"
    try:
        found = await client.send(calls.get(ConfigMap, question.config_map, question.namespace))
    except (KubeError, DecodeError) as error:
        raise _Lacking(f"failed to get dockerfile ConfigMap {where}: {error}") from error
    if not found.data.get(DOCKERFILE):
        raise _Lacking(f"invalid Dockerfile ConfigMap {where} format, {DOCKERFILE} key is missing")
    return found.data[DOCKERFILE]


async def _version(client: Client, namespace: str, name: str, key: str) -> str:
    where = f"{namespace}/{name}"
    try:
        found = await client.send(calls.get_raw(SECRETS, name, namespace))
    except (KubeError, DecodeError, ValueError) as error:
        raise _Lacking(f"failed to get Secret {where}: {error}") from error
    data = found.get("data") or {}
    if key and key not in data:
        raise _Lacking(f"Secret {where} has no key {key}")
    return f"{name}:{hashlib.sha256(codec.encode(sorted(data.items()))).hexdigest()[:16]}"
