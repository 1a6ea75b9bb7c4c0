"""Defines `runup release`: build release images, inspect them, and list the manifests that a cluster would get."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import click

from runup.cli.errors import CommandError
from runup.cli.lazy import Group
from runup.cli.release.compare import diff
from runup.cli.release.extract_explain import explain, extract
from runup.cli.release.shared import OUTPUT, access, items, registry_options, run_guarded
from runup.release.control import release_location


@click.group("release", cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
def release() -> None:
    """Make and inspect release images.

    \b
      runup release new --from-dir release/ --version 5.2.0 --to oci:layout:5.2.0
      runup release info oci:layout:5.2.0
      runup release diff oci:layout:5.1.0 oci:layout:5.2.0
    """


for command in (extract, diff, explain):
    release.add_command(command)


@release.command()
@click.option(
    "--from-dir",
    "folders",
    multiple=True,
    metavar="DIR",
    help="A folder with manifests/, release-manifests/, preflight-checks/; may repeat, the last wins.",
)
@click.option(
    "--component",
    "components",
    multiple=True,
    metavar="NAME=IMAGE",
    help="A component's image whose /manifests become the release's; may repeat.",
)
@click.option("--version", required=True, metavar="VERSION", help="The release's semantic version.")
@click.option("--previous", multiple=True, metavar="VERSION", help="A release that this one updates; may repeat.")
@click.option("--next", "following", multiple=True, metavar="VERSION", help="A release that updates this one.")
@click.option("--metadata", multiple=True, metavar="KEY=VALUE", help="An entry of the release's metadata; may repeat.")
@click.option(
    "--image-reference", "references", multiple=True, metavar="NAME=PULLSPEC", help="A component's image; may repeat."
)
@click.option("--entrypoint", metavar="FILE", help="The operator in the image (default: the thin one of the sandbox).")
@click.option(
    "--base",
    default="",
    metavar="IMAGE",
    help="An operator image to build upon, oci:DIR[:TAG] or a pull spec; it brings the operator.",
)
@click.option(
    "--to",
    "destination",
    required=True,
    metavar="TARGET",
    help="oci:DIR[:TAG] for a layout on disk, docker://HOST/REPO:TAG for a registry.",
)
@click.option("--overwrite", is_flag=True, help="Take the tag away from another image that has it.")
@click.option("--sign-key", metavar="FILE", help="An OpenPGP secret key to sign the image with.")
@click.option("--signature-store", metavar="DIR", help="Where the signature is written.")
@registry_options
def new(
    *,
    metadata: tuple[str, ...],
    references: tuple[str, ...],
    components: tuple[str, ...],
    plain_http: tuple[str, ...],
    certificate_authority: str,
    idms_file: str,
    registry_config: str,
    **flags: Any,
) -> int:
    """Make a release image; the same input has the same digest.

    \b
      runup release new --from-dir release/ --version 5.2.0 --to oci:layout:5.2.0
      runup release new --from-dir release/ --version 5.2.0 --base oci:operator \\
          --to docker://registry.example/release:5.2.0 --sign-key key.asc --signature-store signatures/
      runup release new --component etcd=registry.example/etcd:v2 --from-dir rest/ --version 5.2.0 --to oci:layout
    """
    if not flags["folders"] and not components:
        raise click.UsageError("there is nothing to make a release of; give --from-dir DIR or --component NAME=IMAGE")
    if bool(flags["sign_key"]) != bool(flags["signature_store"]):
        raise click.UsageError("--sign-key and --signature-store belong together")
    if flags["base"] and flags["entrypoint"]:
        raise click.UsageError("--base brings the operator, so --entrypoint cannot be given with it")

    def run() -> int:
        from runup.cli.release import new_release as release_new

        digest, name = release_new.make_release(
            release_new.NewReleaseFlags(
                metadata=_pairs("--metadata", metadata),
                image_references=_pairs("--image-reference", references),
                components=_pairs("--component", components),
                **flags,
            ),
            access(registry_config, idms_file, certificate_authority, plain_http),
        )
        click.echo(f"{digest}\n{name}")
        return 0

    return run_guarded(run)


@release.command()
@click.argument("image")
@OUTPUT
@registry_options
def info(image: str, output: str | None, **registry: Any) -> int:
    """What a release is made of: version, metadata, images, manifests, checks.

    \b
      runup release info oci:layout:5.2.0
      runup release info registry.example/release@sha256:... -o json
    """

    def run() -> int:
        from runup.cli.release import read_releases as release_read

        release_info = release_read.info_data(*release_location.load(image, access(**registry)))
        if output:
            from runup.cli.render.text import machine

            click.echo(machine(release_info, output), nl=False)
        else:
            click.echo(release_read.as_text(release_info))
        return 0

    return run_guarded(run)


@release.command()
@click.argument("image")
@click.option("--feature-set", default="", metavar="SET", help="The cluster's feature set (default: Default).")
@click.option("--gates", default="", metavar="A,B", help="Feature gates that are enabled.")
@click.option("--profile", default="self-managed-high-availability", show_default=True, help="The cluster profile.")
@click.option("--capabilities", metavar="A,B", help="Enabled capabilities (default: not filtered by them).")
@click.option("--major", type=int, help="The major version (default: the release's own).")
@click.option("--overrides", default="", metavar="FILE", help="A ClusterVersion, or a list of overrides of one.")
@click.option(
    "-o", "--output", type=click.Choice(["name", "wide", "json", "yaml"]), help="Names only, a table, or data."
)
@registry_options
def manifests(
    image: str,
    feature_set: str,
    gates: str,
    profile: str,
    capabilities: str | None,
    major: int | None,
    overrides: str,
    output: str | None,
    **registry: Any,
) -> int:
    """Each manifest and check of a release: in or out of a cluster as described, and why.

    \b
      runup release manifests oci:layout:5.2.0
      runup release manifests oci:layout:5.2.0 --feature-set TechPreviewNoUpgrade -o wide
    """

    def run() -> int:
        from runup.cli.named_files import read_file
        from runup.cli.output import screen_of, write
        from runup.cli.release import read_releases as release_read
        from runup.release.decide.listing import filters_of, overrides_in

        described: dict[str, Any] = {
            "feature_set": feature_set,
            "gates": items(gates),
            "profile": profile,
            "capabilities": None if capabilities is None else items(capabilities),
            "overrides": overrides_in(read_file("--overrides", overrides), overrides) if overrides else (),
        }
        # Checked first, so that a typing mistake is reported before anything is fetched.
        filters_of(major=0 if major is None else major, **described)
        payload, digest = release_location.load(image, access(**registry), profile=profile, keep_going=True)
        major_version = payload.metadata.semver.major if major is None else major
        listed = release_read.list_manifests(payload, digest, filters_of(major=major_version, **described))
        for note in listed.notes:
            click.echo(f"note: {note}", err=True)
        write([("out", release_read.as_listing(listed, output or "wide", screen_of(sys.stdout)))])
        return 0

    return run_guarded(run)


def _pairs(flag: str, texts: Iterable[str]) -> dict[str, str]:
    """Returns the NAME=VALUE texts of a flag by name. Raises CommandError for any other form, or a name given twice."""
    pairs: dict[str, str] = {}
    for text in texts:
        key, sign, value = text.partition("=")
        if not sign or not key:
            raise CommandError(f"{flag}: {text!r} is not of the form NAME=VALUE")
        if key in pairs:
            raise CommandError(f"{flag}: {key} is given twice")
        pairs[key] = value
    return pairs
