"""Reads a cluster's settings for registries: the logins in its Secrets, and the mirrors of images.

Takes a client; returns values for `oci.access`, and notes of what could not be read, which explain a registry's
refusal. A cluster without such objects has no logins or mirrors; an object that is there and cannot be used is an error
or a note.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from kubekit.api.scheme import Resource
from kubekit.kube import api_errors, calls
from kubekit.kube.client import Client
from kubekit.oci import access, credentials, registry_errors

SECRETS = Resource(group="", version="v1", kind="Secret", plural="secrets", namespaced=True)
PULL_SECRET = "openshift-config/pull-secret"  # noqa: S105 -- the name of an object
PULL_SECRET_KEY = ".dockerconfigjson"  # noqa: S105 -- the name of a key
# The key in a Secret of the older type kubernetes.io/dockercfg: the logins without the enclosing `auths` object.
OLD_KEY = ".dockercfg"
MIRROR_KINDS = (
    Resource(
        group="config.openshift.io",
        version="v1",
        kind="ImageDigestMirrorSet",
        plural="imagedigestmirrorsets",
        namespaced=False,
    ),
    Resource(
        group="operator.openshift.io",
        version="v1alpha1",
        kind="ImageContentSourcePolicy",
        plural="imagecontentsourcepolicies",
        namespaced=False,
    ),
)
# Mirrors of images that are named by tag, as images of kernel modules mostly are, and releases never.
TAG_MIRRORS = Resource(
    group="config.openshift.io", version="v1", kind="ImageTagMirrorSet", plural="imagetagmirrorsets", namespaced=False
)


async def cluster_credentials(client: Client, notes: list[str]) -> credentials.Credentials:
    """Returns the logins of the cluster's pull secret, none if there is no such Secret.

    Raises BadCredentials, and DecodeError for an answer that is not an object.
    """
    namespace, _, name = PULL_SECRET.partition("/")
    try:
        logins = await secret_logins(client, namespace, name)
    except api_errors.NotFound:
        return credentials.Credentials()
    except api_errors.KubeError as error:
        notes.append(f"the pull secret {PULL_SECRET} could not be read: {error.message}")
        return credentials.Credentials()
    return credentials.Credentials((logins,)) if logins else credentials.Credentials()


async def secret_logins(client: Client, namespace: str, name: str) -> credentials.AuthFile | None:
    """Returns the logins in a pull secret, or None; raises KubeError, DecodeError and BadCredentials.

    Credential helpers are left out, as by the kubelet: they are programs of this machine, and others write Secrets.
    """
    secret = await client.send(calls.get_raw(SECRETS, name, namespace))
    secret_data = secret.get("data") or {}
    secret_name = f"Secret {namespace}/{name}"
    if data := _decode_secret(secret_data, PULL_SECRET_KEY, secret_name):
        return _without_helpers(credentials.parse_auth_file(data, secret_name))
    if data := _decode_secret(secret_data, OLD_KEY, secret_name):
        try:
            data = json.dumps({"auths": json.loads(data)}).encode()
        except (ValueError, RecursionError) as error:
            raise registry_errors.BadCredentials(f"{secret_name}: {OLD_KEY} is not JSON") from error
        return _without_helpers(credentials.parse_auth_file(data, secret_name))
    return None


def _without_helpers(file: credentials.AuthFile) -> credentials.AuthFile:
    return replace(file, helpers={}, store="")


async def cluster_mirrors(
    client: Client, notes: list[str], kinds: Sequence[Resource] = MIRROR_KINDS
) -> tuple[access.Mirror, ...]:
    """Returns the mirrors from the cluster's mirror sets of these kinds; an unusable set is noted and skipped.

    Raises DecodeError for an answer that is not a list of objects.
    """
    all_mirrors: list[access.Mirror] = []
    for resource in kinds:
        try:
            items = (await client.send(calls.list_raw(resource))).items
        except api_errors.NotFound:
            continue  # a cluster without that kind
        except api_errors.KubeError as error:
            notes.append(f"{resource.plural} could not be listed: {error.message}")
            continue
        for item in items:
            name = f"{resource.kind} {(item.get('metadata') or {}).get('name', '')}"
            try:
                all_mirrors += access.mirrors_of_object({"kind": resource.kind, **item}, name)
            except registry_errors.BadMirrors as error:
                notes.append(error.message)
    return tuple(all_mirrors)


def _decode_secret(encoded: Any, key: str, secret_name: str) -> bytes:
    """Returns the bytes below `key` of a Secret's data. Raises BadCredentials."""
    if not isinstance(encoded, dict):
        raise registry_errors.BadCredentials(f"{secret_name}: data is not an object")
    try:
        return base64.b64decode(encoded.get(key) or "", validate=True)
    except (ValueError, TypeError) as error:  # ValueError: not base64, or not even ASCII
        raise registry_errors.BadCredentials(f"{secret_name}: {key} is not base64") from error
