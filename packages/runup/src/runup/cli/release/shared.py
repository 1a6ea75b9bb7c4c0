"""Code that the commands of `runup release` share: registry flags, output form, errors as one line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from runup.cli.errors import CommandError

if TYPE_CHECKING:
    from kubekit.oci.access import Access

OUTPUT = click.option("-o", "--output", type=click.Choice(["json", "yaml"]), help="Output format for programs.")
Command = TypeVar("Command", bound=Callable[..., Any])
REGISTRY_NAMES = ("registry_config", "idms_file", "certificate_authority", "plain_http")
"""The parameters of `registry_options`, as `access` takes them."""


def registry_options(command: Command) -> Command:
    """Adds the flags for access to registries to `command`."""
    for option in (
        click.option("--plain-http", multiple=True, metavar="HOST[:PORT]", help="Ask this registry by plain HTTP."),
        click.option("--certificate-authority", default="", metavar="FILE", help="More certificate authorities."),
        click.option("--idms-file", default="", metavar="FILE", help="Mirror sets: what to ask first."),
        click.option("-a", "--registry-config", default="", metavar="FILE", help="Credentials for registries."),
    ):
        command = option(command)
    return command


def inner_option(command: Command) -> Command:
    """Adds the flag for registries at inner addresses to a command that reads images named by objects of a cluster."""
    return click.option(
        "--inner-registry",
        multiple=True,
        metavar="HOST[:PORT]",
        help="A registry on this machine, link-local, or behind a Service that the cluster's objects may name.",
    )(command)


def access(
    registry_config: str = "",
    idms_file: str = "",
    certificate_authority: str = "",
    plain_http: Iterable[str] = (),
    inner_registry: Iterable[str] | None = None,
) -> Access:
    """Returns the access to registries that the flags describe.

    Raises OciError, and CommandError for a missing file.
    """
    from kubekit.oci import credentials
    from kubekit.oci.access import Access, read_mirrors
    from runup.cli.named_files import read_file

    return Access(
        credentials=credentials.load_credentials(registry_config),
        mirrors=read_mirrors(read_file("--idms-file", idms_file), idms_file) if idms_file else (),
        ca_file=certificate_authority,
        plain_http=frozenset(plain_http),
        inner=None if inner_registry is None else frozenset(inner_registry),
    )


def run_guarded(run: Callable[[], int]) -> int:
    """Runs a command; an error of a release becomes one line."""
    from kubekit.error_types import RunupError
    from kubekit.oci.registry_errors import OciError

    try:
        return run()
    except (OciError, RunupError) as error:
        raise CommandError(str(error)) from error


def items(text: str) -> list[str]:
    """Returns the words between commas, without blanks; empty ones are dropped."""
    return [item.strip() for item in text.split(",") if item.strip()]
