"""The image stage: verifies that a Module's image exists and has the kernel modules where modprobe looks for them.

In: an `ImageQuestion`. Out: an `ImageVerdict` in the words of Kernel Module Management, followed by what was requested
and the answer. Layers are streamed from the topmost down until all modules are found; nothing is stored. Nothing of an
image is run.
"""

from __future__ import annotations

import asyncio
import posixpath
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from msgspec.structs import replace as with_fields

from kubekit.api.codec import DecodeError
from kubekit.lang.text import cut
from kubekit.oci import file_search, registry, registry_errors
from kubekit.oci.access import Access
from kubekit.oci.reference import Reference, parse
from runup.kernelmodules.control.registries import Registries
from runup.kernelmodules.decide.module_files import kernel_of, kernel_spelling, module_of, why_not_a_module
from runup.kernelmodules.decide.module_state import ImageQuestion
from runup.kernelmodules.decide.texts import IMAGE_VERIFIED
from runup.kernelmodules.decide.verdict import ExaminationOutcome, ImageVerdict
from runup.process.threads import in_thread

T = TypeVar("T")

WITHIN_S = 600.0
"""Time for one image, in seconds: two gigabytes at some four megabytes a second."""

LONGEST_REASON = 2048
"""The most bytes of a verdict's message; a status holds one for each Module."""

_MAX_NAMED = 3


async def verify_image(question: ImageQuestion, registries: Registries, *, within_s: float = WITHIN_S) -> ImageVerdict:
    """Returns the verdict on an image for all architectures of the question; raises no error of a registry."""
    fetched = 0
    verdict = ImageVerdict(outcome=ExaminationOutcome.UNKNOWN, message="")
    for architecture in question.architectures or ("",):
        verdict = await _verify(question, architecture, registries, within_s)
        fetched += verdict.fetched_bytes
        if not verdict.verified:
            break
    return replace(verdict, message=cut(verdict.message, LONGEST_REASON), fetched_bytes=fetched)


async def _verify(question: ImageQuestion, architecture: str, registries: Registries, within_s: float) -> ImageVerdict:
    """Returns the verdict on whether the image holds the modules; the registry has `within_s` seconds."""
    notes: list[str] = []
    # Files count at any depth below this folder, as for modprobe: docs/decisions/0060-how-far-an-image-is-read.md.
    sought = file_search.FileQuery(
        folder=posixpath.join(question.dir_name.strip("/"), "lib/modules", question.kernel),
        wanted=frozenset(kernel_spelling(name) for name in question.module_names),
        key=module_of,
        fault=lambda path, head: why_not_a_module(path, head, architecture),
        group=kernel_of,
    )
    try:
        reference = parse(question.image)
        # A namespace's user must not have the cluster's logins sent to a server whose certificate nobody verified.
        verified = not (question.tls.insecure or question.tls.insecure_skip_tls_verify)
        access = await registries.access(question.namespace, question.secret, notes, cluster=verified)
        searched = await ask_registry(
            reference,
            with_options(access, reference, question),
            lambda client: client.search(reference, sought, architecture=architecture),
            within_s=within_s,
            plain_too=question.tls.insecure,
        )
    except TimeoutError:
        text = f"{_inaccessible_text(question)}: it was not read within {within_s:g} s"
        return ImageVerdict(outcome=ExaminationOutcome.UNKNOWN, message=text)
    except DecodeError as error:
        return ImageVerdict(
            outcome=ExaminationOutcome.UNKNOWN,
            message=f"{_inaccessible_text(question)}: the cluster's answer is not clear: {error}",
        )
    except registry_errors.OciError as error:
        refusal = (
            f"image {question.image}, layer {error.layer} is inaccessible"
            if error.layer
            else _inaccessible_text(question)
        )
        notes_text = f" ({'; '.join(notes)})" if notes else ""
        # An index without an image for this architecture may have another one, as may a tag that we may not read.
        is_absent = isinstance(error, registry_errors.ImageNotFound) and not error.layer
        kernels: frozenset[str] | None = frozenset() if is_absent else None
        message = f"{refusal}: {error.message}{notes_text}"
        return ImageVerdict(outcome=outcome_of_error(error, notes), message=message, kernels=kernels)
    return _evaluate_search(question, sought, searched)


def with_options(access: Access, reference: Reference, question: ImageQuestion) -> Access:
    """Returns `access` with the Module's TLS options for its registry."""
    if not question.tls.insecure_skip_tls_verify:
        return access
    return with_fields(access, unchecked=access.unchecked | {reference.host})


async def ask_registry(
    reference: Reference,
    access: Access,
    request: Callable[[registry.RegistryClient], T],
    *,
    within_s: float,
    plain_too: bool = False,
) -> T:
    """Returns the result of `request`, called with a registry client in a thread; raises OciError and TimeoutError.

    The thread is stopped when the call ends or is cancelled. With `plain_too`, TLS is tried before plain HTTP, so that
    credentials are not sent in the clear without need.
    """
    stop = threading.Event()

    async def ask_with(allowed_access: Access) -> T:
        client = registry.RegistryClient(with_fields(allowed_access, wait=stop.wait))
        return await in_thread(lambda: request(client), f"read {reference}")

    try:
        async with asyncio.timeout(within_s):
            if not plain_too or access.is_plain(reference.host):
                return await ask_with(access)
            try:
                # One attempt, because a registry without TLS rejects every one.
                return await ask_with(with_fields(access, attempts=1))
            except registry_errors.Untrusted:
                raise  # it speaks TLS, so plain HTTP would only hide what is wrong
            except registry_errors.Unreachable:
                return await ask_with(with_fields(access, plain_http=access.plain_http | {reference.host}))
    finally:
        stop.set()


def _evaluate_search(
    question: ImageQuestion, sought: file_search.FileQuery, searched: file_search.SearchResult
) -> ImageVerdict:
    """Returns the verdict on the files found in the image."""
    paths = tuple(f"/{searched.found[name]}" for name in sorted(searched.found))
    linked = {key for key, _ in searched.unread.values()}
    # A push would replace the whole index, with the images of other architectures, which were not searched.
    other_kernels = searched.groups - {question.kernel}
    kernels = None if searched.other_images and not other_kernels else searched.groups
    not_found = [name for name in question.module_names if kernel_spelling(name) not in searched.found]
    missing = [name for name in not_found if kernel_spelling(name) not in linked]
    if missing:
        looked = first_paths_text([f"/{sought.folder}/{name}.ko" for name in missing])
        elsewhere = first_paths_text(
            [
                *(f"/{path}" for path in searched.elsewhere),
                *(f"/{path}, which {why}" for path, why in searched.faults_elsewhere.items()),
            ]
        )
        unfit = first_paths_text([f"/{path} {why}" for path, why in searched.faults.items()])
        return ImageVerdict(
            outcome=ExaminationOutcome.FAILED,
            message=f"image {question.image} does not contain kernel module for kernel {question.kernel} on any layer: "
            + (f"{unfit}; " if unfit else "")
            + f"looked for {looked}, compressed or not, and in folders below"
            + (f"; it has {elsewhere}" if elsewhere else ""),
            paths=paths,
            fetched_bytes=searched.fetched,
            kernels=kernels,
        )
    if not_found:
        links = first_paths_text([f"/{path} is a link to /{target}" for path, (_, target) in searched.unread.items()])
        return ImageVerdict(
            outcome=ExaminationOutcome.UNKNOWN,
            message=f"image {question.image}, kernel module for kernel {question.kernel}: {links}, which was not read "
            "because it has another name; put the module itself there, or link to a file of the module's name",
            paths=paths,
            fetched_bytes=searched.fetched,
            kernels=kernels,
        )
    # Kernel Module Management looks for exactly one path, so the verdict mentions any other.
    unexpected = [
        path for path in paths if path not in [f"/{sought.folder}/{name}.ko" for name in question.module_names]
    ]
    note = f"; found {first_paths_text(unexpected)}" if unexpected else ""
    return ImageVerdict(
        outcome=ExaminationOutcome.VERIFIED,
        message=f"{IMAGE_VERIFIED}{note}",
        paths=paths,
        fetched_bytes=searched.fetched,
    )


def outcome_of_error(error: registry_errors.OciError, notes: Sequence[str]) -> ExaminationOutcome:
    """Returns UNKNOWN if the registry could not or must not be asked, or rejected us while credentials were unreadable.

    Such an answer says nothing about the image. Any other error is FAILED.
    """
    if isinstance(
        error, (registry_errors.AddressNotAllowed, registry_errors.Unreachable, registry_errors.BeyondLimits)
    ):
        return ExaminationOutcome.UNKNOWN
    unread = any("could not be read" in note for note in notes)
    return (
        ExaminationOutcome.UNKNOWN
        if unread and isinstance(error, (registry_errors.Unauthorized, registry_errors.ImageNotFound))
        else ExaminationOutcome.FAILED
    )


def _inaccessible_text(question: ImageQuestion) -> str:
    return f"image {question.image} inaccessible or does not exists"


def first_paths_text(paths: Sequence[str]) -> str:
    """Returns the first three paths, and the number of the others."""
    more = f" and {len(paths) - _MAX_NAMED} more" if len(paths) > _MAX_NAMED else ""
    return ", ".join(paths[:_MAX_NAMED]) + more
