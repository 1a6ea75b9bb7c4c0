"""Starts and ends every process of the operator as a command: common flags, an exit code, one line if it cannot run.

A traceback in the log means a bug of ours, and nothing else does.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from kubekit.kube.config import ClusterConfig
    from runup.process.leader_election import Election

Options = TypeVar("Options")


def common(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the flags of `add_serving_options` and `leadership` as arguments of `ProcessOptions`.

    Raises ValueError that names the flag.
    """
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

    0: it was asked to stop. 1: it could not run, lost its lease, or met a bug. `options_of` raises ValueError for a
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
    from runup.process.memory import limit_buffers

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


def add_serving_options(listen: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds `--listen`, its certificate, its TLS, and who may read metrics to a command; `listen` is the default."""

    options = (
        click.option(
            "--listen",
            default=listen,
            show_default=True,
            metavar="ADDR",
            help="Where metrics and health are served; '' for nowhere.",
        ),
        click.option(
            "--health-listen",
            default="",
            metavar="ADDR",
            help="Where /healthz alone is served in plain HTTP, for a liveness probe; default: nowhere.",
        ),
        click.option("--serving-cert-file", default="", metavar="FILE", help="Serve HTTPS with this certificate."),
        click.option("--serving-key-file", default="", metavar="FILE", help="The certificate's key."),
        click.option(
            "--tls-min-version", default="", metavar="VERSION", help="Least version served: VersionTLS12, VersionTLS13."
        ),
        click.option(
            "--tls-cipher-suites", default="", metavar="A,B", help="Ciphers of TLS 1.2 that are served, by IANA names."
        ),
        click.option(
            "--metrics-auth",
            type=click.Choice(["token", "none"]),
            default="token",
            show_default=True,
            help="Who may read metrics: users whose token the API server allows to get /metrics, or everybody.",
        ),
    )

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def leadership(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds `--leader-elect` and `--lease` to a command."""
    command = click.option(
        "--lease",
        default=None,
        metavar="DURATION,RENEW,RETRY",
        help="Seconds of the leader's lease, instead of 137,107,26 (270,240,60 with one control plane node). "
        "A killed leader's successor waits for DURATION.",
    )(command)
    return click.option(
        "--leader-elect/--no-leader-elect", default=True, show_default=True, help="Wait for the lease before writing."
    )(command)


def read_election(lease: str | None) -> Election | None:
    """Returns the parsed `--lease`, None if it was not given. Raises ValueError that names the flag."""
    from runup.process.leader_election import election_of

    try:
        return election_of(lease) if lease else None
    except ValueError as error:
        raise ValueError(f"--lease {lease}: {error}") from error
