"""`runup release`: make release images, look into them, and see which manifests a cluster would get."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runup.cli.errors import CommandError

if TYPE_CHECKING:
    from runup.domain.release.inclusion import Filters
    from runup.domain.release.payload import Payload
    from runup.oci.reference import Reference

FOLDERS = ("manifests", "release-manifests", "preflight-checks")
OUTPUT = click.option("-o", "--output", type=click.Choice(["json", "yaml"]), help="The machine form.")


@click.group("release", context_settings={"help_option_names": ["-h", "--help"]})
def release() -> None:
    """Make and inspect release images."""


@release.command()
@click.option(
    "--from-dir",
    "folders",
    multiple=True,
    required=True,
    metavar="DIR",
    help="A folder with manifests/, release-manifests/, preflight-checks/; may repeat, the last wins.",
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
    "--to",
    "destination",
    required=True,
    metavar="TARGET",
    help="oci:DIR[:TAG] for a layout on disk, docker://HOST/REPO:TAG for a registry.",
)
@click.option("--sign-key", metavar="FILE", help="An OpenPGP secret key to sign the image with.")
@click.option("--signature-store", metavar="DIR", help="Where the signature is written.")
def new(
    folders: tuple[str, ...],
    version: str,
    previous: tuple[str, ...],
    following: tuple[str, ...],
    metadata: tuple[str, ...],
    references: tuple[str, ...],
    entrypoint: str | None,
    destination: str,
    sign_key: str | None,
    signature_store: str | None,
) -> int:
    """Make a release image; the same input has the same digest."""
    if bool(sign_key) != bool(signature_store):
        raise click.UsageError("--sign-key and --signature-store belong together")
    return guarded(
        lambda: _new(
            folders,
            version,
            {
                "previous": previous,
                "following": following,
                "metadata": _pairs("--metadata", metadata),
                "image_references": _pairs("--image-reference", references),
            },
            entrypoint,
            destination,
            sign_key,
            signature_store,
        )
    )


def _new(
    folders: Iterable[str],
    version: str,
    details: dict[str, Any],
    entrypoint: str | None,
    destination: str,
    sign_key: str | None,
    store: str | None,
) -> int:
    import tempfile

    from runup.domain.release.payload import load_payload
    from runup.domain.version import Version, VersionError
    from runup.oci import registry
    from runup.oci.build import IMAGE_REFERENCES, METADATA, THIN_OPERATOR, build_release
    from runup.oci.layers import open_image, read_folders
    from runup.oci.layout import Layout

    try:
        Version(version)
    except VersionError as error:
        raise CommandError(f"--version: {error}") from error
    files = {path: data for folder in folders for path, data in read_payload_folder(Path(folder)).items()}
    operator = _file("--entrypoint", entrypoint) if entrypoint else THIN_OPERATOR
    key = _file("--sign-key", sign_key) if sign_key else b""
    layout_dir, tag, remote = _destination(destination, version)
    with tempfile.TemporaryDirectory() as scratch:
        # Built aside first: what cannot be loaded again is no release, and must leave nothing behind.
        trial = build_release(Path(scratch) / "layout", version=version, files=files, operator=operator, **details)
        image = open_image(Layout.open(trial.layout), trial.digest)
        load_payload(read_folders(image, FOLDERS), source=f"{METADATA}, {IMAGE_REFERENCES} and the folders given")
        if remote is not None:
            registry.push(Layout.open(trial.layout), trial.digest, remote)
            name = str(remote.at(trial.digest))
        else:
            build_release(layout_dir, version=version, files=files, operator=operator, tag=tag, **details)
            name = f"oci:{layout_dir}:{tag}"
    if store:
        _sign(key, trial.digest, name, Path(store))
    click.echo(f"{trial.digest}\n{name}")
    return 0


@release.command()
@click.argument("image")
@OUTPUT
def info(image: str, output: str | None) -> int:
    """What a release is made of: version, metadata, images, manifests, checks."""

    def run() -> int:
        payload, digest = load(image)
        metadata, references = payload.metadata, payload.image_references
        told: dict[str, Any] = {
            "name": metadata.version,
            "digest": digest,
            "url": metadata.url,
            "architecture": metadata.architecture,
            "channels": list(metadata.channels),
            "images": dict(references.images),
            "manifests": len(payload.manifests),
            "checks": [str(check.identity) for check in payload.checks],
            "verifies": payload.verification is not None,
        }
        if output:
            from runup.cli.render.text import machine

            click.echo(machine(told, output), nl=False)
            return 0
        for key, value in told.items():
            if isinstance(value, dict):
                click.echo(f"{key + ':':<14}{len(value)}")
                for name, pullspec in value.items():
                    click.echo(f"  {name}  {pullspec}")
            else:
                click.echo(f"{key + ':':<14}{', '.join(value) if isinstance(value, list) else value}".rstrip())
        return 0

    return guarded(run)


@release.command()
@click.argument("image")
@click.option("--feature-set", default="", metavar="SET", help="The cluster's feature set (default: Default).")
@click.option("--gates", default="", metavar="A,B", help="Feature gates that are enabled.")
@click.option("--profile", default="self-managed-high-availability", show_default=True, help="The cluster profile.")
@click.option("--capabilities", metavar="A,B", help="Enabled capabilities (default: not filtered by them).")
@click.option("--major", type=int, help="The major version (default: the release's own).")
@click.option("-o", "--output", type=click.Choice(["name", "wide", "json"]), help="Names only, more columns, or JSON.")
def manifests(
    image: str,
    feature_set: str,
    gates: str,
    profile: str,
    capabilities: str | None,
    major: int | None,
    output: str | None,
) -> int:
    """Each manifest and check of a release: in or out of a cluster as described, and why."""

    def run() -> int:
        payload, _ = load(image)
        filters = filters_of(feature_set, gates, profile, capabilities, major or payload.metadata.semver.major)
        rows = decisions(payload, filters)
        if output == "json":
            from runup.cli.render.text import machine

            click.echo(machine(rows, "json"), nl=False)
        elif output == "name":
            click.echo("\n".join(row["object"] for row in rows if row["included"]))
        else:
            click.echo(as_table(rows, wide=output == "wide"))
        return 0

    return guarded(run)


def decisions(payload: Payload, filters: Filters) -> list[dict[str, Any]]:
    """One row a manifest and check, in the order in which they are applied."""
    from runup.domain.release.inclusion import Excluded, include

    rows = []
    for manifest in (*payload.manifests, *payload.checks):
        decision = include(manifest, filters)
        rows.append(
            {
                "object": str(manifest.identity),
                "file": manifest.file,
                "included": not isinstance(decision, Excluded),
                "reason": decision.reason if isinstance(decision, Excluded) else "",
            }
        )
    return rows


def as_table(rows: list[dict[str, Any]], *, wide: bool) -> str:
    """Aligned text."""
    head = ["", "MANIFEST", *(["FILE"] if wide else []), "REASON"]
    cells = [
        ["in" if row["included"] else "out", row["object"], *([row["file"]] if wide else []), row["reason"]]
        for row in rows
    ]
    widths = [max(len(line[at]) for line in [head, *cells]) for at in range(len(head))]
    return "\n".join(
        "  ".join(text.ljust(widths[at]) for at, text in enumerate(line)).rstrip() for line in [head, *cells]
    )


def filters_of(feature_set: str, gates: str, profile: str, capabilities: str | None, major: int) -> Filters:
    """The cluster that the flags describe; raises CommandError for a feature set that nobody knows."""
    from runup.domain.release.capabilities import KNOWN, Capabilities
    from runup.domain.release.inclusion import DEFAULT_FEATURE_SET, FEATURE_SETS, Filters

    named = feature_set or DEFAULT_FEATURE_SET
    if named not in FEATURE_SETS:
        raise CommandError(f"--feature-set: there is no {feature_set!r}; known are {', '.join(FEATURE_SETS)}")
    chosen = None
    if capabilities is not None:
        wanted = frozenset(_items(capabilities))
        if unknown := sorted(wanted - frozenset(KNOWN)):
            raise CommandError(f"--capabilities: unknown {', '.join(unknown)}; known are {', '.join(KNOWN)}")
        chosen = Capabilities(frozenset(KNOWN), wanted)
    return Filters(
        feature_set="" if named == DEFAULT_FEATURE_SET else named,
        gates=frozenset(_items(gates)),
        major=major,
        profile=profile,
        capabilities=chosen,
    )


def load(image: str) -> tuple[Payload, str]:
    """The payload of a folder, `oci:DIR[:TAG]` or a pull spec, and its digest (empty for a folder)."""
    import tempfile

    from runup.domain.release.payload import load_payload
    from runup.oci import registry
    from runup.oci.layers import open_image, read_folders
    from runup.oci.layout import Layout
    from runup.oci.reference import parse

    if Path(image).is_dir() and not (Path(image) / "oci-layout").is_file():
        return load_payload(read_payload_folder(Path(image)), source=image), ""
    if image.startswith("oci:") or Path(image).is_dir():
        folder, _, tag = image.removeprefix("oci:").partition(":")
        opened = open_image(Layout.open(Path(folder)), tag)
        return load_payload(read_folders(opened, FOLDERS), source=image), opened.digest
    if image.startswith((".", "/")):
        raise CommandError(f"{image}: there is no such folder")
    with tempfile.TemporaryDirectory() as scratch:
        layout = Layout.create(Path(scratch))
        digest = registry.pull(parse(image.removeprefix("docker://")), layout)
        return load_payload(read_folders(open_image(layout, digest), FOLDERS), source=image), digest


def read_payload_folder(folder: Path) -> dict[str, bytes]:
    """The payload's files below `folder`; raises CommandError where there are none."""
    if not folder.is_dir():
        raise CommandError(f"{folder}: there is no such folder")
    files = {
        str(path.relative_to(folder)): path.read_bytes()
        for name in FOLDERS
        for path in sorted((folder / name).rglob("*"))
        if path.is_file()
    }
    if not files:
        raise CommandError(f"{folder}: holds none of {', '.join(f'{name}/' for name in FOLDERS)}")
    return files


def guarded(run: Callable[[], int]) -> int:
    """Run a command; what is wrong with a release is one line."""
    from runup.domain.errors import RunupError
    from runup.oci.errors import OciError

    try:
        return run()
    except (OciError, RunupError) as error:
        raise CommandError(str(error)) from error


def _destination(text: str, version: str) -> tuple[Path, str, Reference | None]:
    from runup.oci.reference import parse

    if text.startswith("oci:"):
        folder, _, tag = text.removeprefix("oci:").partition(":")
        return Path(folder), tag or version, None
    if text.startswith("docker://"):
        return Path(), "", parse(text.removeprefix("docker://"))
    raise CommandError(f"--to: {text!r} is neither oci:DIR[:TAG] nor docker://HOST/REPO:TAG")


def _pairs(flag: str, texts: Iterable[str]) -> dict[str, str]:
    pairs = {}
    for text in texts:
        key, sign, value = text.partition("=")
        if not sign or not key:
            raise CommandError(f"{flag}: {text!r} is not of the form NAME=VALUE")
        pairs[key] = value
    return pairs


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def _file(flag: str, path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise CommandError(f"{flag}: {path} cannot be read: {error.strerror}") from error


def _sign(key: bytes, digest: str, name: str, store: Path) -> None:
    from runup.oci.signatures import SigningKey

    signature = SigningKey(key).sign(digest, name)
    folder = store / digest.replace(":", "=")
    folder.mkdir(parents=True, exist_ok=True)
    number = 1 + sum(1 for _ in folder.glob("signature-*"))
    partial = folder / ".signature"
    partial.write_bytes(signature)
    partial.rename(folder / f"signature-{number}")
