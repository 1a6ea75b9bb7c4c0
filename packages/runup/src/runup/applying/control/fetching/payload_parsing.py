"""Parses the files of another release into its payload. Errors raise one NotLoaded, oddities are only logged."""

from __future__ import annotations

from collections.abc import Mapping

import structlog

from kubekit.error_types import Terminal
from kubekit.lang.text import cut
from runup.api.config_v1 import Release
from runup.applying.control.payloads import NotLoaded
from runup.release.decide import listing as likely_mistakes
from runup.release.decide.payload import Payload, load_payload

log = structlog.get_logger("payload")
# Bytes of the error: a condition's message has at most 32 KiB, and a release may have hundreds of broken files.
MAX_ERROR = 8192
_MAX_TOLD = 20


def payload_of(files: Mapping[str, bytes], release: Release, profile: str) -> Payload:
    """Returns the payload in `files`, which maps paths in the image to bytes; raises NotLoaded."""
    try:
        likely_mistakes.check(files, release.image)
        payload = load_payload(files, source=release.image, release_image=release.image, profile=profile)
    except Terminal as error:
        raise NotLoaded(cut(error.message, MAX_ERROR), reason="LoadPayload") from error
    oddities = (*payload.warnings, *payload.metadata.problems, *likely_mistakes.likely_mistakes(payload))
    for warning in oddities[:_MAX_TOLD]:
        log.warning("release: odd", image=release.image, what=warning)
    if len(oddities) > _MAX_TOLD:
        log.warning("release: odd", image=release.image, what=f"and {len(oddities) - _MAX_TOLD} more")
    return payload
