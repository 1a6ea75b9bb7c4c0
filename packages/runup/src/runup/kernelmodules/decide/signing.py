"""Renders the Dockerfile that signs files of an image: it copies them to a signing image, and back once signed. Pure.

No text of a Module is part of a shell command: the one script is constant, and file names and patterns are its
arguments. A shell expands a pattern in a variable to the files that match it, and evaluates nothing else that is in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

KEY, CERT = "/run/secrets/key", "/run/secrets/cert"
_ROOT = "/signroot"
_GLOB = re.compile(r"[*?\[\]]")
# What paths and glob patterns are made of. A builder substitutes `$` in a COPY, so that it is not among them.
_PATH = re.compile(r"/[A-Za-z0-9/._+@:,=~%*?\[\]!^-]*")
# Without field separators the shell does not split what is in a variable. It passes on a pattern that matches nothing,
# and sign-file then says that there is no such file.
SCRIPT = f'set -e; IFS=; for pattern; do for file in $pattern; do "$0" sha256 {KEY}/key {CERT}/cert "$file"; done; done'


def why_not_signable(files: Iterable[str]) -> str:
    """Returns why these files cannot be signed, "" if they can."""
    files = tuple(files)
    if not files:
        return "filesToSign names no file"
    for file in files:
        if not file.startswith("/") or ".." in file.split("/"):
            return f"filesToSign: {file} is not an absolute path"
        if not _PATH.fullmatch(file):
            return (
                f"filesToSign: {file!r} has characters other than letters, digits and /._+@:,=~%-, "
                "or *?[]!^ of patterns"
            )
        if _path_to_copy(file) == "/" or file.count("/") < 2:
            return f"filesToSign: {file} would sign in the root of the image"
    return ""


def dockerfile(source: str, sign_image: str, sign_file: str, files: Sequence[str]) -> str:
    """Returns the Dockerfile that signs `files` of the image `source` with the program `sign_file` of `sign_image`.

    A file name may be a glob pattern, which stands for all files that match. The caller has checked the names of the
    images (`image_names.is_image`) and the files (`unusable`).
    """
    places = tuple(dict.fromkeys(map(_path_to_copy, files)))
    command = ["/bin/sh", "-c", SCRIPT, sign_file, *(_ROOT + file for file in files)]
    return "\n".join(
        (
            f"FROM {source} AS source",
            f"FROM {sign_image} AS signing",
            "USER 0",
            *(f"COPY --from=source {json.dumps([place, _ROOT + place])}" for place in places),
            # As JSON, a RUN has arguments instead of a command for a shell to parse.
            f"RUN {json.dumps(command)}",
            "FROM source",
            *(f"COPY --from=signing {json.dumps([_ROOT + place, place])}" for place in places),
            "",
        )
    )


def _path_to_copy(file: str) -> str:
    """Returns the path to copy: the file, or the last folder above the first glob character."""
    glob = _GLOB.search(file)
    return file if glob is None else file[: glob.start()].rpartition("/")[0] + "/"
