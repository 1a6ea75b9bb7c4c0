"""Answers the questions of validations from registries, with the nodes' credentials and mirrors, and the cluster."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from kubekit.kube.client import Client
from kubekit.oci.access import Access
from runup.kernelmodules.control import build_inputs, kernels
from runup.kernelmodules.control.image_stage import verify_image
from runup.kernelmodules.control.registries import ClusterRegistries
from runup.kernelmodules.decide.external_queries import AnswerValue, ImageQuestion, Question, ReleaseQuestion


def answering(
    client: Client, *, plain_http: frozenset[str] = frozenset()
) -> Callable[[Question], Awaitable[AnswerValue]]:
    """Returns a function that answers questions about `client`'s cluster; `plain_http` are registries without TLS."""
    registries = ClusterRegistries(client, Access(plain_http=plain_http))

    async def answer(question: Question) -> AnswerValue:
        if isinstance(question, ImageQuestion):
            return (await verify_image(question, registries)).answer
        if isinstance(question, ReleaseQuestion):
            return await kernels.kernels_of(question, registries)
        return await build_inputs.read(client, question)

    return answer
