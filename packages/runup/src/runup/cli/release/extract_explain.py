"""Defines `runup release extract` (a release's files on disk) and `runup release explain` (why a cluster gets a
manifest).
"""

from __future__ import annotations

import sys
from typing import Any

import click

from runup.cli.connection import connection_of, connection_options
from runup.cli.errors import CommandError
from runup.cli.lazy import Command
from runup.cli.output import screen_of
from runup.cli.release.shared import OUTPUT, access, registry_options, run_guarded
from runup.release.control import release_location


@click.command(cls=Command)
@click.argument("image")
@click.option("--to", "target", default="", metavar="DIR", help="A folder that is made; it must not hold anything.")
@click.option("--file", "file_path", default="", metavar="PATH", help="Print this one file instead.")
@registry_options
def extract(image: str, target: str, file_path: str, **registry: Any) -> int:
    """The files of a release, as they are in its image: manifests, metadata, checks.

    \b
      runup release extract oci:layout:5.2.0 --to 5.2.0/
      runup release extract registry.example/release@sha256:... --file release-manifests/image-references
    """
    if bool(target) == bool(file_path):
        raise click.UsageError("give --to DIR for all files, or --file PATH for one")

    def run() -> int:
        from runup.release.control import release_location as extracting

        files, digest = extracting.files(image, access(**registry))
        if file_path:
            click.echo(extracting.file_at(files, file_path, image), nl=False)
            return 0
        extracting.write(files, target)
        click.echo(f"{len(files)} files of {digest or image} in {target}")
        return 0

    return run_guarded(run)


@click.command(cls=Command)
@click.argument("kind")
@click.argument("name")
@click.option("-n", "--namespace", default="", metavar="NAMESPACE", help="Of several of that name, the one in there.")
@click.option(
    "--release",
    "image",
    default="",
    metavar="IMAGE",
    help="Which release (default: the cluster's own).",
)
@OUTPUT
@registry_options
@connection_options
@click.pass_context
def explain(
    ctx: click.Context, /, kind: str, name: str, namespace: str, image: str, output: str | None, **registry: Any
) -> int:
    """Which rule lets a manifest into this cluster, or keeps it out: sets, gates, profile, capabilities, overrides.

    Exit codes: 0 it is told, 3 something that decides could not be read, 1 there is no such manifest.

    \b
      runup release explain deployment etcd-operator
      runup release explain customresourcedefinition.apiextensions.k8s.io tests.example.com --release oci:layout:5.2.0
    """

    def run() -> int:
        from runup.cli.release import comparison_text
        from runup.cli.render.text import machine
        from runup.release.control import live_cluster
        from runup.release.control.live_cluster import release_image_of
        from runup.release.decide.inclusion_reasons import describe, manifests_named
        from runup.release.decide.inclusion_reasons import explain_manifest as explained

        with connection_of(ctx).client() as client:
            facts = live_cluster.read(client)
            release = image or release_image_of(facts.cluster_version)
            payload, digest = release_location.load(
                release, access(**registry), profile=live_cluster.profile(facts), keep_going=True
            )
        # NAME may be NAMESPACE/NAME, which is how the output names an object.
        within, _, alone = name.rpartition("/")
        within = namespace or within
        matching_manifests = manifests_named((*payload.manifests, *payload.checks), kind, alone, within)
        if not matching_manifests:
            raise CommandError(comparison_text.no_such(payload, kind, alone, within, release))
        described = describe(facts, major=payload.metadata.semver.major)
        explanations = tuple(
            explained(manifest, described.filters, described.unreadable) for manifest in matching_manifests
        )
        if output:
            click.echo(
                machine(comparison_text.explained_data(payload, digest, described, explanations), output), nl=False
            )
        else:
            click.echo(
                comparison_text.explained_text(payload, described, explanations, screen_of(sys.stdout)), nl=False
            )
        return 3 if any(explanation.answer == "unknown" for explanation in explanations) else 0

    return run_guarded(run)
