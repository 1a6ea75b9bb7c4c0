"""Reads the inputs of builds and signatures: the Dockerfile of a ConfigMap, and a hash of each Secret.

Only the hash of a Secret is kept.
"""

from __future__ import annotations

import hashlib

from kubekit.api import codec
from kubekit.api.codec import DecodeError
from kubekit.api.core_v1 import ConfigMap
from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.api_errors import KubeError
from kubekit.kube.client import Client
from runup.kernelmodules.decide.external_queries import BuildInputs, BuildInputsQuestion

SECRETS = Resource("", "v1", "Secret", "secrets", namespaced=True)
DOCKERFILE = "dockerfile"


class _Lacking(Exception):
    """Raised if an input is missing or invalid."""


async def read(client: Client, question: BuildInputsQuestion) -> BuildInputs:
    """Returns the inputs that the question asks for; what is missing is the answer's `problem`."""
    try:
        dockerfile = await _dockerfile(client, question) if question.config_map else ""
        versions = [await _version(client, question.namespace, name, key) for name, key in question.secrets]
    except _Lacking as error:
        return BuildInputs(problem=str(error))
    return BuildInputs(dockerfile, tuple(versions))


async def _dockerfile(client: Client, question: BuildInputsQuestion) -> str:
    """Returns the Dockerfile in the question's ConfigMap. Raises _Lacking if there is none."""
    config_map_key = f"{question.namespace}/{question.config_map}"
    try:
        config_map = await client.send(calls.get(ConfigMap, question.config_map, question.namespace))
    # A ValueError is a name that would change the request's path.
    except (KubeError, DecodeError, ValueError) as error:
        raise _Lacking(f"failed to get dockerfile ConfigMap {config_map_key}: {error}") from error
    if not config_map.data.get(DOCKERFILE):
        raise _Lacking(f"invalid Dockerfile ConfigMap {config_map_key} format, {DOCKERFILE} key is missing")
    return config_map.data[DOCKERFILE]


async def _version(client: Client, namespace: str, name: str, key: str) -> str:
    """Returns a Secret's name with a hash of its content. Raises _Lacking if it is not there or lacks `key`."""
    object_key = f"{namespace}/{name}"
    try:
        secret = await client.send(calls.get_raw(SECRETS, name, namespace))
    except (KubeError, DecodeError, ValueError) as error:
        raise _Lacking(f"failed to get Secret {object_key}: {error}") from error
    data = secret.get("data") or {}
    if key and key not in data:
        raise _Lacking(f"Secret {object_key} has no key {key}")
    # Sorted, so that only the content counts and not the order of the keys.
    return f"{name}:{hashlib.sha256(codec.encode(sorted(data.items()))).hexdigest()[:16]}"
