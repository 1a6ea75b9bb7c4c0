"""The flags of every controller process for serving metrics and health."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click


def add_serving_options(listen: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds `--listen`, its certificate, its TLS, and who may read metrics to a command; `listen` is the default."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(_options(listen)):
            command = option(command)
        return command

    return add


def _options(listen: str) -> tuple[Callable[[Callable[..., Any]], Callable[..., Any]], ...]:
    """Returns the options of serving; `listen` is the address by default."""
    return (
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
