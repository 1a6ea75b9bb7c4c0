"""The process that a preflight in a cluster starts to rehearse its update: an order on stdin, outcomes on stdout.

`python -m runup.rehearse.control.ordered_rehearsal`. The process runs at low priority, and with no more memory than the
order allows: a process that the kernel ends for its memory would take the whole container with it."""

from __future__ import annotations

import errno
import os
import resource
import sys
from typing import BinaryIO

import msgspec

from kubekit.api.codec import DecodeError
from kubekit.error_types import InputError, RunupError
from kubekit.kube.api_errors import KubeError
from kubekit.lang.text import one_line
from runup.target.rehearsal_process import TOO_LARGE, RehearsalOrder

_NICE = 10


def main() -> int:
    """Rehearses, and returns the exit code."""
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=RehearsalOrder)
    os.nice(_NICE)
    # Whatever any part prints belongs on stderr: stdout has the outcomes, and nothing else.
    with os.fdopen(os.dup(1), "wb") as answer:
        os.dup2(2, 1)
        try:
            return answer_order(order, answer)
        except MemoryError:
            return TOO_LARGE


def answer_order(order: RehearsalOrder, answer: BinaryIO) -> int:
    """Rehearses, writes the outcomes to `answer`, and returns the exit code; errors go to stderr."""
    try:
        if order.memory_mib:
            limit = order.memory_mib * 1024 * 1024
            resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        answer.write(_rehearsed(order))
    except Exception as error:
        if is_want_of_memory(error):
            return TOO_LARGE
        message = message_of(error)
        if message is None:
            raise
        sys.stderr.write(f"{message}\n")
        return 1
    return 0


def is_want_of_memory(error: Exception) -> bool:
    """Returns whether the process lacked memory: for an object, in the kernel, for a thread's stack, for a library."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    if isinstance(error, MemoryError):
        return True
    signs = {
        RuntimeError: "can't start new thread",
        ImportError: "failed to map segment",
        # A library in C returns its error before it has memory for the exception.
        SystemError: "without exception set",
    }
    return any(isinstance(error, kind) and sign in str(error) for kind, sign in signs.items())


def message_of(error: Exception) -> str | None:
    """Returns the message of an expected error in one line, None for a bug."""
    if isinstance(error, InputError | DecodeError | KubeError | OSError | RunupError):
        return one_line(str(error))
    return None


def _rehearsed(order: RehearsalOrder) -> bytes:
    """Rehearses the release on a copy of the cluster, and returns the encoded outcomes of its checks."""
    from kubekit.kube.clock import SystemClock
    from kubekit.kube.config import load
    from kubekit.oci.access import Access
    from runup.checks.decide.rehearsed_outcomes import PAGE, encode_outcomes
    from runup.rehearse.control import releases
    from runup.rehearse.control.cluster_source import read_cluster_source
    from runup.rehearse.control.rehearsal import rehearse
    from runup.rehearse.decide.rehearsal_findings import outcomes_of
    from runup.report import documentation

    release = releases.load_target(
        order.release_dir, order.image, to="", declared=(), access=Access, limit_s=order.apply_s
    )
    source = releases.run_until_signal(read_cluster_source(load(order.kubeconfig, order.context)))
    releases.version_of(source)
    rehearsed = releases.run_until_signal(rehearse(source, release, SystemClock()))
    return encode_outcomes(outcomes_of(rehearsed, f"{order.documentation_base or documentation.BUILT_IN}/{PAGE}"))


if __name__ == "__main__":
    sys.exit(main())
