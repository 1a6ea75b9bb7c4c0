"""Defines `runup serve`: the console in the browser."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from runup.cli import static_completion
from runup.cli.connection import connection_of, connection_options
from runup.cli.fleet.command import PARALLEL, SECTIONS, member_options, named_by
from runup.cli.lazy import Command
from runup.cli.options import version_option
from runup.cli.release.shared import access, registry_options, run_guarded

_DOOR = ("listen", "tls_cert", "tls_key", "behind_proxy", "hosts", "allow_actions")


@click.command("serve", cls=Command, sections=(*SECTIONS, ("Serving", _DOOR)))
@partial(member_options, parallel_help=PARALLEL)
@click.option("--store", default="", metavar="DIR|sqlite:FILE", help="Kept reports: what is shown, and the history.")
@click.option("--days", default=90, show_default=True, type=click.IntRange(0, 36500), help="Of the history; 0: all.")
@click.option(
    "--every", default=10.0, show_default=True, type=click.FloatRange(0.1, 1440), help="Minutes between looks."
)
@click.option(
    "--max-age",
    default=24.0,
    show_default=True,
    type=click.FloatRange(0.1, 87600),
    help="Hours after which a report of a cluster does not count as known.",
)
@version_option("--to", help="Target version; else the release's, else the next minor.")
@click.option("--to-image", default="", metavar="IMAGE", help="The target's release image, oci:DIR or in a registry.")
@click.option("--release-dir", default="", metavar="DIR", help="A folder with what the release image has at its root.")
@click.option("--suppressions", default="", metavar="FILE", help="Risks to live with: globs, with reason and last day.")
@click.option(
    "--graph",
    default="",
    metavar="DIR|FILE",
    shell_complete=static_completion.files,
    help="A graph, or graph data, whose update paths are drawn; else what ClusterVersion offers.",
)
@click.option("--listen", default="127.0.0.1:8600", show_default=True, metavar="HOST:PORT", help="Where to serve.")
@click.option("--tls-cert", default="", metavar="FILE", help="The certificate, for an address that others reach.")
@click.option("--tls-key", default="", metavar="FILE", help="Its key.")
@click.option("--behind-proxy", is_flag=True, help="A proxy before it ends TLS; a login is asked for.")
@click.option("--host", "hosts", multiple=True, metavar="NAME", help="A name by which browsers ask; may be repeated.")
@click.option(
    "--allow-actions",
    is_flag=True,
    help="Let people accept risks and start updates from there, each by their own rights.",
)
@registry_options
@connection_options
@click.pass_context
def serve(
    ctx: click.Context,
    /,
    store: str,
    days: int,
    every: float,
    max_age: float,
    to: str,
    to_image: str,
    release_dir: str,
    suppressions: str,
    graph: str,
    listen: str,
    tls_cert: str,
    tls_key: str,
    behind_proxy: bool,
    hosts: tuple[str, ...],
    allow_actions: bool,
    registry_config: str,
    idms_file: str,
    certificate_authority: str,
    plain_http: tuple[str, ...],
    **members: Any,
) -> int:
    """Show clusters in the browser: their risks, available updates, update paths and history. Nothing can be changed
    from there, unless --allow-actions is given.

    \b
      runup serve --contexts all
      runup serve --dumps DIR --to 4.16.0
      runup serve --store reports
      runup serve --contexts all --listen 0.0.0.0:8443 --host console.example --tls-cert tls.crt --tls-key tls.key
    """
    from runup.cli.console import serve_command

    flags = serve_command.ServeFlags(
        listen=listen,
        tls_cert=tls_cert,
        tls_key=tls_key,
        behind_proxy=behind_proxy,
        hosts=hosts,
        allow_actions=allow_actions,
        every_s=every * 60,
        max_age_hours=max_age,
        to=to,
        to_image=to_image,
        release_dir=release_dir,
        suppressions=suppressions,
        store=store,
        days=days,
        graph=graph,
    )
    named_members = named_by(members)
    return run_guarded(
        lambda: serve_command.run(
            connection_of(ctx),
            named_members,
            flags,
            lambda: access(
                registry_config,
                idms_file,
                certificate_authority=certificate_authority,
                plain_http=plain_http,
                inner_registry=(),
            ),
        )
    )
