"""Replaces buildah in a sandbox: builds Dockerfiles without RUN, and pushes the images.

    buildah --root DIR build --file F --build-arg N=V --tag IMAGE CONTEXT
    buildah --root DIR push IMAGE

Images are put together from layers of the sandbox's registry; nothing is executed, since a sandbox has no other
system's programs. A Dockerfile that needs more says what.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kubekit.oci import credentials
from kubekit.oci.access import Access
from kubekit.oci.images import Execution
from kubekit.oci.layers import open_image
from kubekit.oci.layout import Layout
from kubekit.oci.reference import parse
from kubekit.oci.registry import RegistryClient
from kubekit.oci.registry_errors import OciError
from runup.release.control.image_build import BuiltImage, build_image, layer_of

PROGRAM = "usr/bin/buildah"
SCRIPT = b"""#!/usr/bin/env python3
from runup.sandbox.component.builder import main

main()
"""
_BUILT = "built"
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
# Instructions that do not change files.
_IGNORED = frozenset({"ENV", "LABEL", "USER", "WORKDIR", "ENTRYPOINT", "CMD", "EXPOSE", "MAINTAINER"})


class BadDockerfile(Exception):
    """The Dockerfile cannot be built here; the message is the last line that buildah's log would have."""


@dataclass
class _Stage:
    """An image that is being built: upon `base` (empty for scratch), with these files over it."""

    base: str
    files: dict[str, bytes] = field(default_factory=dict)


class Build:
    """The build of one Dockerfile. `arguments` are those of --build-arg."""

    def __init__(self, client: RegistryClient, arguments: dict[str, str]) -> None:
        self._client = client
        self._given = arguments
        self._known: dict[str, str] = {}
        self._stages: dict[str, _Stage] = {}
        self._stage: _Stage | None = None

    def run(self, dockerfile: str) -> _Stage:
        """Runs the instructions and returns the last stage; raises BadDockerfile and OciError."""
        for number, (word, arguments) in enumerate(_instructions(dockerfile), 1):
            _print_line(f"STEP {number}: {word} {arguments}")
            if word == "ARG":
                name, _, default = arguments.partition("=")
                self._known[name] = self._given.get(name, self._substitute(default))
            elif word == "FROM":
                words = self._substitute(arguments).split()
                base = words[0] if words else ""
                if not base:
                    raise BadDockerfile("FROM: the name of an image is empty")
                under = self._stages.get(base)
                self._stage = (
                    _Stage(under.base, dict(under.files)) if under else _Stage("" if base == "scratch" else base)
                )
                name = words[2] if len(words) == 3 and words[1].upper() == "AS" else str(len(self._stages))
                self._stages[name] = self._stage
            elif self._stage is None:
                raise BadDockerfile(f"{word}: no FROM statement found before it")
            elif word == "COPY":
                self._copy(self._stage, self._substitute(arguments))
            elif word == "RUN":
                raise BadDockerfile(
                    f"RUN {arguments}: a sandbox does not run programs of an image; build on a real cluster instead"
                )
            elif word not in _IGNORED:
                raise BadDockerfile(f"{word}: a sandbox builds of ARG, FROM and COPY alone")
        if self._stage is None:
            raise BadDockerfile("no FROM statement found")
        return self._stage

    def _copy(self, stage: _Stage, arguments: str) -> None:
        """Copies files of another image or stage into `stage`. Raises BadDockerfile."""
        options = re.match(r"--from=(\S+)\s+(.*)", arguments, re.DOTALL)
        if options is None:
            raise BadDockerfile(f"COPY {arguments}: the context of a build is empty; copy --from an image")
        source = self._stages.get(options[1]) or _Stage(options[1])
        words = json.loads(options[2]) if options[2].lstrip().startswith("[") else shlex.split(options[2])
        *paths, target = words
        for path in paths:
            for subpath, data in self._files_below(source, path.strip("/")).items():
                # A file that is copied into a folder keeps its name; a single file may get another.
                name = subpath or (path.rpartition("/")[2] if target.endswith("/") or len(paths) > 1 else "")
                stage.files["/".join(filter(None, (target.strip("/"), name)))] = data

    def _files_below(self, source: _Stage, path: str) -> dict[str, bytes]:
        """Returns the files at or below `path`, by their relative paths; a single file has an empty one."""
        folder = path.rpartition("/")[0]
        files = self._client.read_folders(parse(source.base), (folder or path,)) if source.base else {}
        files |= source.files
        below = {name[len(path) + 1 :]: data for name, data in files.items() if name.startswith(f"{path}/")}
        if path in files:
            below = {"": files[path]}
        if not below:
            raise BadDockerfile(f'COPY: "/{path}": no such file or directory')
        return below

    def _substitute(self, text: str) -> str:
        return _VARIABLE.sub(lambda match: self._known.get(match[1] or match[2], ""), text)


def build(root: Path, options: argparse.Namespace, client: RegistryClient) -> BuiltImage:
    """Builds the Dockerfile into a layout below `root`; raises BadDockerfile, OciError, OSError."""
    arguments = dict(argument.partition("=")[::2] for argument in options.build_arg)
    stage = Build(client, arguments).run(options.file.read_text(encoding="utf-8"))
    layout = Layout.create(root / _BUILT)
    base = open_image(layout, client.pull(parse(stage.base), layout)) if stage.base else None
    config = base.config.config if base else Execution()
    return build_image(root / _BUILT, [layer_of(stage.files)], tag=_BUILT, config=config, base=base)


def _instructions(dockerfile: str) -> Iterator[tuple[str, str]]:
    lines = (line for line in dockerfile.splitlines() if line.strip() and not line.lstrip().startswith("#"))
    for line in re.sub(r"\\\n", " ", "\n".join(lines)).splitlines():
        word, _, arguments = line.strip().partition(" ")
        yield word.upper(), arguments.strip()


def _print_line(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command; exits with 125, as buildah does, if it fails."""
    parser = argparse.ArgumentParser(prog="buildah", description="Builds and pushes images in a sandbox.")
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--runroot", type=Path)
    commands = parser.add_subparsers(dest="command", required=True)
    building = commands.add_parser("build")
    building.add_argument("--file", type=Path, required=True)
    building.add_argument("--build-arg", action="append", default=[])
    building.add_argument("--volume", action="append", default=[])
    building.add_argument("--isolation")
    building.add_argument("--tag")
    building.add_argument("context")
    pushing = commands.add_parser("push")
    pushing.add_argument("image")
    for subparser in (building, pushing):
        subparser.add_argument("--tls-verify")
    options = parser.parse_args(arguments)
    try:
        client = RegistryClient(Access(credentials=credentials.load_credentials()))
        if options.command == "build":
            _print_line(build(options.root, options, client).digest)
        else:
            layout = Layout.open(options.root / _BUILT)
            digest = layout.resolve(_BUILT).digest
            client.push(layout, digest, parse(options.image))
            _print_line(digest)
    except (BadDockerfile, OciError, OSError, ValueError) as error:
        _print_line(f"Error: {error}")
        sys.exit(125)
