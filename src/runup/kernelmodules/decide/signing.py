"""Renders the Dockerfile that signs files of an image: it copies them to a signing image, and back once signed. Pure.

The Module's file names are part of the shell command of a RUN, so every character that is not a glob is quoted.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Sequence

KEY, CERT = "/run/secrets/key", "/run/secrets/cert"
_ROOT = "/signroot"
_GLOB = re.compile(r"[*?\[\]]")
_LINE_ENDS = re.compile(r"[\x00-\x1f\x7f]")


def unusable(files: Iterable[str]) -> str:
    """Returns why these files cannot be signed, "" if they can."""
    files = tuple(files)
    if not files:
        return "filesToSign names no file"
    for file in files:
        if not file.startswith("/") or ".." in file.split("/"):
            return f"filesToSign: {file} is not an absolute path"
        if _LINE_ENDS.search(file):
            return f"filesToSign: {file!r} has control characters"
        if _place(file) == "/" or file.count("/") < 2:
            return f"filesToSign: {file} would sign in the root of the image"
    return ""


def dockerfile(source: str, sign_image: str, sign_file: str, files: Sequence[str]) -> str:
    """Returns the Dockerfile that signs `files` of the image `source` with the program `sign_file` of `sign_image`.

    A file name may be a glob pattern, which stands for all files that match.
    """
    places = tuple(dict.fromkeys(map(_place, files)))
    patterns = " ".join(_quoted(f"{_ROOT}{file}") for file in files)
    program = shlex.quote(sign_file)
    sign = f'{program} sha256 {KEY}/key {CERT}/cert "$file"'
    return "\n".join(
        (
            f"FROM {source} AS source",
            f"FROM {sign_image} AS signing",
            "USER 0",
            *(f"COPY --from=source {json.dumps([place, _ROOT + place])}" for place in places),
            # The shell passes on a pattern that matches nothing, and sign-file then says that there is no such file.
            f"RUN set -e; for file in {patterns}; do {sign}; done",
            "FROM source",
            *(f"COPY --from=signing {json.dumps([_ROOT + place, place])}" for place in places),
            "",
        )
    )


def _place(file: str) -> str:
    """Returns the path to copy: the file, or the last folder above the first glob character."""
    glob = _GLOB.search(file)
    return file if glob is None else file[: glob.start()].rpartition("/")[0] + "/"


def _quoted(pattern: str) -> str:
    parts = re.split(r"([*?]|\[[^\]]*\])", pattern)
    return "".join(part if at % 2 else shlex.quote(part) for at, part in enumerate(parts) if part)
