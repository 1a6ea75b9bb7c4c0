"""The Dockerfile that signs files of an image: the image's files, signed in another image, over the image again. Pure.

What a Module names ends in the shell of one RUN, so every character of it that is no glob is quoted.
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
    """Why these files cannot be signed, or nothing."""
    files = tuple(files)
    if not files:
        return "filesToSign names no file"
    for file in files:
        if not file.startswith("/") or ".." in file.split("/"):
            return f"filesToSign: {file} is no absolute path"
        if _LINE_ENDS.search(file):
            return f"filesToSign: {file!r} has control characters"
        if _place(file) == "/" or file.count("/") < 2:
            return f"filesToSign: {file} would sign in the root of the image"
    return ""


def dockerfile(source: str, sign_image: str, sign_file: str, files: Sequence[str]) -> str:
    """Sign `files` of the image `source` by the program `sign_file` of `sign_image`; a pattern takes all that fit."""
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
            # A pattern that fits nothing stays as it is, and sign-file then says that there is no such file.
            f"RUN set -e; for file in {patterns}; do {sign}; done",
            "FROM source",
            *(f"COPY --from=signing {json.dumps([_ROOT + place, place])}" for place in places),
            "",
        )
    )


def _place(file: str) -> str:
    """What is copied: the file, or the last folder above the first pattern."""
    found = _GLOB.search(file)
    return file if found is None else file[: found.start()].rpartition("/")[0] + "/"


def _quoted(pattern: str) -> str:
    parts = re.split(r"([*?]|\[[^\]]*\])", pattern)
    return "".join(part if at % 2 else shlex.quote(part) for at, part in enumerate(parts) if part)
