"""How every process of the operator starts and ends as a command: flags, an exit code, one line where it cannot run.

A traceback in the log means a bug of ours, and nothing else does.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from kubekit.kube.config import ClusterConfig

Options = TypeVar("Options")


def common(flags: Mapping[str, Any]) -> dict[str, Any]:
    """What `serving` and `leadership` asked, as `ProcessOptions` takes it; raises ValueError that names the flag."""
    from runup.operator.leadership import read_election
    from runup.process.serving_tls import asked_by_flags

    same = ("listen", "serving_cert_file", "serving_key_file", "leader_elect")
    return {name: flags[name] for name in same} | {
        "serving_tls": asked_by_flags(flags["tls_min_version"], flags["tls_cipher_suites"]),
        "metrics_auth": flags["metrics_auth"] == "token",
        "election": read_election(flags["lease"]),
    }


def run_process(
    flags: Mapping[str, Any],
    options_of: Callable[[Mapping[str, Any]], Options],
    serve: Callable[[ClusterConfig, Options], Coroutine[Any, Any, None]],
    run: Callable[[Any], object],
) -> int:
    """Run `serve` by `run` as the flags say: 0 when it was told to stop, 1 when it could not run, lost its lease, or
    met a bug. `options_of` raises ValueError for a flag that cannot be read.
    """
    import structlog

    from kubekit.api.codec import DecodeError
    from kubekit.errors import RunupError
    from kubekit.kube import config
    from kubekit.kube.errors import KubeError
    from kubekit.oci.errors import OciError
    from runup.operator.log import configure
    from runup.process.leading import LeaseLost

    try:
        options = options_of(flags)
        cluster = config.load(flags["kubeconfig"])
    except (KubeError, ValueError, OSError) as error:
        click.echo(f"error: {error}", err=True)
        return 1
    configure()
    try:
        run(serve(cluster, options))
    except LeaseLost:
        return 1  # it was said when it happened
    except (RunupError, KubeError, OciError, DecodeError, OSError) as error:
        click.echo(f"error: {error}", err=True)
        return 1
    except Exception:  # noqa: BLE001 -- whatever it is, the log is JSON
        structlog.get_logger("process").exception("ended by a bug")
        return 1
    return 0
