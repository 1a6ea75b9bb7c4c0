"""Parts of the operator's applier that a rehearsal replaces: nothing is watched or logged, and notices are kept.

A copy has no other writer, so that an object is as the applier left it until the rehearsal itself changes it.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from kubekit.api.scheme import Resource
from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from runup.api.owned_v1 import Owned
from runup.applying.control.notice_events import Notices
from runup.applying.control.object_watches import ObjectWatches
from runup.applying.decide.contesting_writers import Notice
from runup.release.decide.manifest import Identity


class UnwatchedObjects(ObjectWatches):
    """A stand-in for watches that knows no object, so that every object of the release is written."""

    def __init__(self, client: Client, clock: Clock) -> None:
        super().__init__(client, clock, lambda _identity: None)

    def follow(self, resource: Resource) -> Cache[Owned]:
        """Returns an empty cache; see `ObjectWatches.follow`."""
        del resource
        return Cache(Owned)

    async def follow_single(self, resource: Resource, identity: Identity) -> None:
        """Does nothing; see `ObjectWatches.follow_single`."""


class KeptNotices(Notices):
    """Keeps what would be events on ClusterVersion: the messages by object."""

    def __init__(self, client: Client, clock: Clock) -> None:
        super().__init__(client, clock)
        self.messages: dict[Identity, str] = {}

    async def tell(self, notice: Notice) -> None:
        """Keeps the notice; see `Notices.tell`."""
        self.messages[notice.task.identity] = notice.message


@contextmanager
def silence_logs() -> Iterator[None]:
    """Discards within the block what an operator logs while it applies a release; critical messages go to stderr.

    The result of the command is on stdout, where structlog logs by default.
    """
    configured, previous_config = structlog.is_configured(), structlog.get_config()
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    try:
        yield
    finally:
        if configured:
            structlog.configure(**previous_config)
        else:
            structlog.reset_defaults()
