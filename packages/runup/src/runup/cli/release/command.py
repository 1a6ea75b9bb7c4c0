"""Defines `runup release`: build release images, inspect them, and list the manifests that a cluster would get."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from typing import Any

import click

from kubekit.lang.text import count, one_line
from runup.cli.errors import CommandError
from runup.cli.lazy import Group
from runup.cli.named_files import read_file
from runup.cli.output import screen_of, write
from runup.cli.release.compare import diff, explain
from runup.cli.release.shared import OUTPUT, access, items, registry_options, run_guarded
from runup.cli.render import table
from runup.cli.render.screen import PIPE, Screen, join_parts
from runup.cli.render.table import draw_table, wrap_text
from runup.cli.render.text import machine
from runup.release.control import release_location
from runup.release.decide.listing import Listed, filters_of, info_data, list_manifests, overrides_in


def as_text(lines: dict[str, Any]) -> str:
    """Returns one line for each entry, with the images below their number."""
    text = []
    for key, value in lines.items():
        if isinstance(value, bool):
            cell = "yes" if value else "no"
        elif isinstance(value, dict):
            cell = str(len(value))
        else:
            cell = ", ".join(value) if isinstance(value, list) else str(value)
        text.append(f"{key + ':':<14}{one_line(cell)}".rstrip())
        if isinstance(value, dict):
            text += [one_line(f"  {name}  {pullspec}") for name, pullspec in value.items()]
    return "\n".join(text)


def as_listing(listing: Listed, form: str, screen: Screen = PIPE) -> str:
    """Returns the text of a form; if it is longer than the terminal, a summary of counts comes first."""
    if form in ("json", "yaml"):
        return machine(listing.as_data(), form)
    if form == "name":
        return "".join(f"{one_line(row.object)}\n" for row in listing.rows if row.included)
    columns = (
        table.Column(title="", styles={"in": "green", "out": "yellow"}),
        table.Column(title="MANIFEST", folds=True),
        table.Column(title="FILE"),
        table.Column(title="REASON", flows=True),
    )
    lines = [table.Row((row.state, row.object, row.file, row.reason)) for row in listing.rows]
    text = draw_table(table.Table(columns=columns, rows=lines, gap=2, blank=""), screen)
    if screen.height is None or text.count("\n") < screen.height:
        return text
    counts = Counter(row.state for row in listing.rows)
    counted_states = ", ".join(f"{count} {state}" for state, count in counts.most_common())
    summary = f"Release {listing.version}: {len(listing.rows)} manifests and checks, {counted_states}."
    return join_parts(wrap_text(summary, screen), "\n", text)


@click.group("release", cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
def release() -> None:
    """Make and inspect release images.

    \b
      runup release new --from-dir release/ --version 5.2.0 --to oci:layout:5.2.0
      runup release info oci:layout:5.2.0
      runup release diff oci:layout:5.1.0 oci:layout:5.2.0
    """


for command in (diff, explain):
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
    sign_key: str | None,
    entrypoint: str | None,
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
    if bool(sign_key) != bool(flags["signature_store"]):
        raise click.UsageError("--sign-key and --signature-store belong together")
    if flags["base"] and entrypoint:
        raise click.UsageError("--base brings the operator, so --entrypoint cannot be given with it")

    def run() -> int:
        from kubekit.oci.registry_errors import BadImage
        from kubekit.oci.signatures import SigningKey
        from runup.checks.catalogue.own_rights import own_rights
        from runup.checks.decide import rights, rights_file_of_release
        from runup.release.control.image_build import THIN_OPERATOR
        from runup.release.control.new_release import NewRelease, make_release

        def add_rights(files: dict[str, bytes], base_reads: bytes | None) -> dict[str, bytes]:
            try:
                return rights_file_of_release.with_rights_file(files, own_rights(), base_reads)
            except rights.BadReads as error:
                raise CommandError(f"--base: {error}") from error

        key = SigningKey(read_file("--sign-key", sign_key)) if sign_key else None
        try:
            _ = key and key.public  # reading the public key is the check
        except BadImage as error:
            raise CommandError(f"--sign-key: {sign_key}: {error}") from error
        request = NewRelease(
            metadata=_pairs("--metadata", metadata),
            image_references=_pairs("--image-reference", references),
            components=_pairs("--component", components),
            sign_key=key,
            operator=read_file("--entrypoint", entrypoint) if entrypoint else THIN_OPERATOR,
            **flags,
        )
        registries = access(registry_config, idms_file, certificate_authority, plain_http)
        published = make_release(request, registries, add_rights)
        for note in published.notes:
            click.echo(f"note: {note}", err=True)
        click.echo(f"{published.digest}\n{published.name}")
        return 0

    return run_guarded(run)


@release.command()
@click.argument("image")
@OUTPUT
@registry_options
def info(image: str, output: str | None, **registry: Any) -> int:
    """Shows the parts of a release: version, metadata, images, manifests, checks.

    \b
      runup release info oci:layout:5.2.0
      runup release info registry.example/release@sha256:... -o json
    """

    def run() -> int:
        release_info = info_data(*release_location.load(image, access(**registry)))
        if output:
            click.echo(machine(release_info, output), nl=False)
        else:
            click.echo(as_text(release_info))
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
        listed = list_manifests(payload, digest, filters_of(major=major_version, **described))
        for note in listed.notes:
            click.echo(f"note: {note}", err=True)
        write([("out", as_listing(listed, output or "wide", screen_of(sys.stdout)))])
        return 0

    return run_guarded(run)


@release.command()
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
        files, digest = release_location.files(image, access(**registry))
        if file_path:
            click.echo(release_location.file_at(files, file_path, image), nl=False)
            return 0
        release_location.write(files, target)
        click.echo(f"{count(len(files), 'file')} of {digest or image} in {target}")
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
