"""Defines `runup release diff`: the changes from one release to another, or of a release on a cluster."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from runup.cli.connection import connection_of, connection_options
from runup.cli.lazy import Command
from runup.cli.output import screen_of
from runup.cli.release.shared import OUTPUT, access, registry_options, run_guarded
from runup.release.control import release_location

if TYPE_CHECKING:
    from runup.process.connection import Connection


@click.command(cls=Command)
@click.argument("images", nargs=-1, required=True, metavar="FROM TO | TO")
@click.option("--live", is_flag=True, help="What TO would change on the cluster: a dry run on its server.")
@OUTPUT
@registry_options
@connection_options
@click.pass_context
def diff(ctx: click.Context, /, images: tuple[str, ...], live: bool, output: str | None, **registry: Any) -> int:
    """What changes between two releases: images, manifests, checks, feature gates, and who may do what.

    With --live, what TO would change on the cluster. Each manifest that the cluster gets is sent as the operator would
    send it, as a dry run; nothing is written. Without FROM, what TO lacks is told by the release that the cluster runs.

    Exit codes: 0 all is told, 3 something could not be told (with --live: may not be read, or the server did not say).

    \b
      runup release diff oci:layout:5.1.0 oci:layout:5.2.0
      runup release diff --live registry.example/release@sha256:...
    """
    if len(images) > 2 or (len(images) == 1 and not live):
        raise click.UsageError("give two releases, FROM and TO; with --live TO alone will do")

    def run() -> int:
        from runup.cli.release import comparison_text
        from runup.cli.render.text import machine
        from runup.release.decide.difference import difference_of

        if live:
            return _compare_with_cluster(connection_of(ctx), images, output, registry)
        registry_access = access(**registry)
        (before, _), (after, _) = (release_location.load(image, registry_access) for image in images)
        changes = difference_of(before, after)
        if output:
            click.echo(machine(comparison_text.difference_data(before, after, changes), output), nl=False)
        else:
            click.echo(comparison_text.difference_text(before, after, changes, screen_of(sys.stdout)), nl=False)
        return 0

    return run_guarded(run)


def _compare_with_cluster(
    connection: Connection, images: tuple[str, ...], output: str | None, registry: dict[str, Any]
) -> int:
    """Prints what a release would change in the live cluster, and returns the exit code."""
    from kubekit.oci.registry_errors import OciError
    from runup.cli.release import comparison_text, dry_run, live_values
    from runup.cli.render.text import machine
    from runup.release.control import live_cluster as live
    from runup.release.control.live_cluster import release_image_of
    from runup.release.decide.inclusion_reasons import describe, explain_manifest
    from runup.release.decide.payload import PayloadError

    registry_access = access(**registry)
    with connection.client() as client:
        facts = live.read(client)
        profile = live.profile(facts)
        after, digest = release_location.load(images[-1], registry_access, profile=profile)
        notes = []
        try:
            before, _ = release_location.load(
                images[0] if len(images) == 2 else release_image_of(facts.cluster_version),
                registry_access,
                profile=profile,
            )
            running = before.manifests
        except (OciError, PayloadError) as error:
            if len(images) == 2:
                raise
            running = ()
            notes.append(
                f"what the release would leave behind is not known, since the running one cannot be read: {error}"
            )
        described = describe(facts, major=after.metadata.semver.major)
        explained_manifests = tuple(
            explain_manifest(manifest, described.filters, described.unreadable) for manifest in after.manifests
        )
        own_manifests = [entry.manifest for entry in explained_manifests if entry.answer != "out"]
        cluster_values, unread = live_values.read(client, own_manifests, facts.cluster_version.metadata.uid)
        effects = tuple(dry_run.effects(client, explained_manifests, running, cluster_values))
        notes += unread
    notes += [f"{rule}: {why}" for rule, why in described.unreadable.items()]
    for note in notes:
        click.echo(f"note: {note}", err=True)
    if output:
        click.echo(machine(comparison_text.effects_data(after, digest, effects, notes), output), nl=False)
    else:
        click.echo(comparison_text.effects(after, effects, screen_of(sys.stdout)), nl=False)
    return 3 if notes or any(effect.state == "unknown" for effect in effects) else 0
