"""Selects the volumes that have been waiting too long to be attached to a node, or detached from it.

Source: kubernetes, `storage.k8s.io/v1` VolumeAttachment, and the external attacher, which retries every few minutes.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from runup.api.platform_v1 import VolumeAttachment

PATIENCE = timedelta(minutes=10)


def stuck_attachments(
    attachments: Iterable[VolumeAttachment], now: datetime
) -> list[tuple[VolumeAttachment, datetime | None]]:
    """Returns the attachments that have waited for `PATIENCE`, by name, each with since when if that is known."""
    stuck: list[tuple[VolumeAttachment, datetime | None]] = []
    for attachment in sorted(attachments, key=lambda attachment: attachment.metadata.name):
        status, metadata = attachment.status, attachment.metadata
        error = status.detach_error or (status.attach_error if not status.attached else None)
        since = metadata.deletion_timestamp or (metadata.creation_timestamp if not status.attached else None)
        # An error has the time of the last attempt, and there is one every few minutes: what is wanted began before.
        times = [time for time in (error.time if error else None, since) if time is not None]
        if error is not None and error.time is None:
            stuck.append((attachment, None))
        elif times and now - min(times) >= PATIENCE:
            stuck.append((attachment, min(times)))
    return stuck
