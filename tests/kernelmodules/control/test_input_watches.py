"""The inputs of Modules that are watched: which change is also one of the builder's account."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.kernelmodules.control.world import CONFIG_MAPS, cluster_with_kernel_modules, module
from tests.kubekit.kube.apiscript import eventually

from kubekit.api import codec
from kubekit.api.meta_v1 import NamespacedName, ObjectMeta
from kubekit.kube.clock import SystemClock
from runup.api.kmm_v1beta1 import Module
from runup.api.kmm_v1beta2 import PreflightValidation
from runup.kernelmodules.control.answer_cache import SECRETS
from runup.kernelmodules.control.watches import ACCOUNTS, Caches, InputWatches
from runup.kernelmodules.decide.module_state import BUILDER_ACCOUNT
from runup.process.leader_election import cancel

THE_ACCOUNT = (BUILDER_ACCOUNT, NamespacedName("drivers", "builder"))


async def test_only_the_secrets_that_it_names_are_changes_of_the_account(tmp_path: Path) -> None:
    """A ConfigMap of a pull secret's name is none of them, and neither is another Secret: no registry is asked."""
    shown: list[tuple[str, NamespacedName]] = []

    async def create(resource: Any, name: str, **body: Any) -> int:
        """Creates an object, and returns how often the account was told to have changed once the object was told."""
        await made.create(resource, {"metadata": {"name": name, "namespace": "drivers"}, **body})
        own = (resource.kind, NamespacedName("drivers", name))
        await eventually(lambda: own in shown or (resource == ACCOUNTS and THE_ACCOUNT in shown))
        return shown.count(THE_ACCOUNT)

    caches = Caches()
    caches.modules.put(codec.convert(Module, module("a", "registry.example/a:1")))
    caches.validations.put(PreflightValidation(metadata=ObjectMeta(name="preflight")))
    async with cluster_with_kernel_modules(tmp_path) as made:
        watches = InputWatches(made.client, caches, SystemClock(), lambda kind, key: shown.append((kind, key)))
        running = asyncio.create_task(watches.run())
        try:
            names = [{"name": "login"}]
            assert await create(ACCOUNTS, "builder", imagePullSecrets=names) == 1
            assert await create(CONFIG_MAPS, "login") == 1
            assert await create(SECRETS, "other") == 1
            assert await create(SECRETS, "login") == 2
        finally:
            await cancel([running])
