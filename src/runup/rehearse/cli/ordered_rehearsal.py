"""The process that a preflight in a cluster starts to rehearse its update: an order on stdin, outcomes on stdout.

`python -m runup.rehearse.cli.ordered_rehearsal`. It takes what the processor has left, and no more memory than it was
told: a process that the kernel ends for its memory would take the whole container with it.
"""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

import msgspec

from kubekit.error_types import RunupError
from runup.preflight.control.rehearsal_process import TOO_LARGE, RehearsalOrder

_NICE = 10


def main() -> int:
    """Rehearses, and returns the exit code."""
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=RehearsalOrder)
    os.nice(_NICE)
    try:
        if order.memory_mib:
            limit = order.memory_mib * 1024 * 1024
            resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        sys.stdout.buffer.write(_rehearsed(order))
    except MemoryError:
        return TOO_LARGE
    except RunupError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _rehearsed(order: RehearsalOrder) -> bytes:
    from kubekit.kube.clock import SystemClock
    from kubekit.kube.config import load
    from runup.applying.control.payloads import read_folder
    from runup.checks.decide.rehearsed_outcomes import PAGE, encoded
    from runup.preflight.cli.evaluate import release_in
    from runup.rehearse.cli import releases
    from runup.rehearse.cli.signals import ended_by_signals
    from runup.rehearse.control.cluster_source import of_cluster
    from runup.rehearse.control.rehearsal import Wanted, rehearse
    from runup.rehearse.decide.rehearsal_findings import outcomes_of
    from runup.release.decide import documentation
    from runup.release.decide.payload import load_payload

    files = read_folder(Path(order.release_dir))
    payload = load_payload(files, source=order.release_dir, release_image=order.image)
    config = load(order.kubeconfig, order.context)
    source = ended_by_signals(of_cluster(config, max_objects=order.max_objects))
    releases.version_of(source)
    account = (order.namespace, "default")
    kubernetes = release_in(files).kubernetes
    wanted = Wanted(payload, payload.version, order.image, kubernetes, account=account, limit_s=order.apply_s)
    rehearsed = ended_by_signals(rehearse(source, wanted, SystemClock()))
    return encoded(outcomes_of(rehearsed, f"{order.documentation_base or documentation.BUILT_IN}/{PAGE}"))


if __name__ == "__main__":
    sys.exit(main())
