"""Starts and ends every process of the operator as a command: flags, an exit code, one line if it cannot run.

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
    """Returns the flags of `serving` and `leadership` as arguments of `ProcessOptions`.

    Raises ValueError that names the flag.
    """
    from runup.cli.operator.leadership import read_election
    from runup.process.serving_tls import profile_of_flags

    same = ("listen", "health_listen", "serving_cert_file", "serving_key_file", "leader_elect")
    return {name: flags[name] for name in same} | {
        "serving_tls": profile_of_flags(flags["tls_min_version"], flags["tls_cipher_suites"]),
        "metrics_auth": flags["metrics_auth"] == "token",
        "election": read_election(flags["lease"]),
    }


def run_process(
    flags: Mapping[str, Any],
    options_of: Callable[[Mapping[str, Any]], Options],
    serve: Callable[[ClusterConfig, Options], Coroutine[Any, Any, None]],
    run: Callable[[Any], object],
) -> int:
    """Runs `serve` by `run` with the options that `options_of` makes of the flags, and returns the exit code.

    0: it was told to stop. 1: it could not run, lost its lease, or met a bug. `options_of` raises ValueError for a
    flag that cannot be parsed.
    """
    import structlog

    from kubekit.api.codec import DecodeError
    from kubekit.error_types import RunupError
    from kubekit.kube import config
    from kubekit.kube.api_errors import KubeError
    from kubekit.oci.registry_errors import OciError
    from runup.process.leader_election import LeaseLost
    from runup.process.log import configure_logging
    from runup.process.tls_buffers import limit_buffers

    try:
        options = options_of(flags)
        cluster = config.load(flags["kubeconfig"])
    except (KubeError, ValueError, OSError) as error:
        click.echo(f"error: {error}", err=True)
        return 1
    configure_logging()
    limit_buffers()
    try:
        run(serve(cluster, options))
    except LeaseLost:
        return 1  # logged when it happened
    except (RunupError, KubeError, OciError, DecodeError, OSError) as error:
        # Expected errors: one line says what is wrong, without a traceback.
        click.echo(f"error: {error}", err=True)
        return 1
    except Exception:  # noqa: BLE001 -- whatever it is, the log is JSON
        structlog.get_logger("process").exception("ended by a bug")
        return 1
    return 0
