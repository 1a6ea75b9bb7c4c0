"""`cluster-version-operator render` and `image`, which an installer runs before there is a cluster."""

from __future__ import annotations

import os
from pathlib import Path

import click

from kubekit.lang.text import count
from runup.cli.lazy import Command

PAYLOAD = "PAYLOAD_OVERRIDE"


@click.command(cls=Command)
@click.option("--output-dir", required=True, metavar="DIR", help="Where manifests/ and bootstrap/ are written.")
@click.option("--release-image", required=True, metavar="PULLSPEC", help="The release, by digest.")
@click.option("--cluster-version-manifest-path", "version", default="", metavar="FILE", help="ClusterVersion to be.")
@click.option("--feature-gate-manifest-path", "gate", default="", metavar="FILE", help="FeatureGate to be.")
def render(*, output_dir: str, release_image: str, version: str, gate: str) -> int:
    """Write what a new cluster starts with: the operator's manifests, rendered, as that cluster gets them.

    Nothing is written unless all of it can be. The release's files are below / or $PAYLOAD_OVERRIDE; $CLUSTER_PROFILE
    is the cluster's profile.
    """
    from kubekit.oci.image_locations import read_folder_files
    from runup.cli.named_files import read_file
    from runup.release.decide import bootstrap
    from runup.release.decide.inclusion import DEFAULT_PROFILE

    flag = "--feature-gate-manifest-path"
    feature_set, gates = bootstrap.feature_gate(read_file(flag, gate), gate) if gate else ("", ())
    name = "--cluster-version-manifest-path"
    cluster = bootstrap.Cluster(
        profile=os.environ.get("CLUSTER_PROFILE") or DEFAULT_PROFILE,
        feature_set=feature_set,
        gates=frozenset(gates),
        overrides=bootstrap.overrides(read_file(name, version), version) if version else (),
    )
    files = read_folder_files(Path(os.environ.get(PAYLOAD) or "/"), bootstrap.FOLDERS)
    rendered_files = bootstrap.render_release(files, release_image, cluster)
    _write_files(rendered_files, Path(output_dir))
    click.echo(f"{count(len(rendered_files), 'file')} in {output_dir}")
    return 0


@click.command(cls=Command)
@click.argument("name")
def image(name: str) -> int:
    """Print the pull spec of a component's image in this release."""
    from runup.cli.errors import CommandError
    from runup.cli.named_files import read_file
    from runup.release.decide.payload import IMAGE_REFERENCES_FILE
    from runup.release.decide.release_metadata import MetadataError, parse_image_references

    path = Path(os.environ.get(PAYLOAD) or "/") / IMAGE_REFERENCES_FILE
    try:
        images = parse_image_references(read_file("image-references", str(path))).images
    except MetadataError as error:
        raise CommandError(f"{path}: {error}") from error
    if name not in images:
        raise CommandError(f"this release has no image {name}; it has {', '.join(sorted(images)) or 'none'}")
    click.echo(images[name])
    return 0


def _write_files(files: dict[str, bytes], root: Path) -> None:
    """Writes the files below `root`. Raises CommandError if that fails."""
    from runup.cli.errors import CommandError

    try:
        for folder in ("manifests", "bootstrap"):
            (root / folder).mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            (root / name).write_bytes(data)
    except OSError as error:
        raise CommandError(f"--output-dir: {error.filename} cannot be written: {error.strerror}") from error
