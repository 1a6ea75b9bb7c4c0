"""Reads the releases that Helm stores in a live cluster."""

from __future__ import annotations

from kubekit.kube import calls
from kubekit.kube.api_errors import ApiError, Forbidden
from kubekit.kube.client import Client
from runup.checks.decide.stored_manifests import Manifests
from runup.facts.manifest_texts import CONFIG_MAPS, RELEASES, SECRETS, HelmRecords

_PAGE = 50


async def read_helm_manifests(client: Client) -> Manifests:
    """Returns the manifests of the releases that Helm keeps in Secrets and ConfigMaps of the cluster."""
    records = HelmRecords()
    for resource in (SECRETS, CONFIG_MAPS):
        token, is_last = "", False
        try:
            while not is_last:
                call = calls.list_raw(resource, "", label_selector=RELEASES, limit=_PAGE, continue_=token)
                page = await client.send(call)
                for item in page.items:
                    records.add(item, resource)
                token, is_last = page.continue_, not page.continue_
        except Forbidden as error:
            records.forbidden.append(f"{resource.plural} labelled {RELEASES} ({error.message})")
        except ApiError as error:
            records.problems.append(f"{resource.plural} labelled {RELEASES} ({error.message})")
    return records.manifests()
