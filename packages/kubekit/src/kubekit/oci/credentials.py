"""Reads credentials for registries, and the challenges by which registries ask for them.

In: docker's and podman's credential files, and a registry with a repository. Out: a `Login`, or None for anonymous
access. A named file that cannot be read is an error and not "no credentials", because the only message would then be
the registry's refusal. Formats: containers-auth.json(5) and docker's config.json, with the helper programs they name.

Challenges are the values of `WWW-Authenticate` headers (RFC 9110, 11.6.1). A registry may be anybody's: what it sends
is read once from left to right, and only as much of it as honest ones send.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from kubekit.lang.files import read_limited
from kubekit.lang.text import printable, shorten
from kubekit.oci.reference import DOCKER_HUB, Reference
from kubekit.oci.registry_errors import BadCredentials

HELPER_TIMEOUT_S = 30.0

_HELPER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z")
# The keys under which docker stores the login for its own registry, former URLs among them.
_HUB_KEYS = frozenset({"index.docker.io", "registry-1.docker.io", "index.docker.io/v1", DOCKER_HUB})
# A helper's message if it has no login for a server (docker-credential-helpers, credentials/error.go).
_NOT_FOUND = "credentials not found in native keychain"
_TOKEN_USER = "<token>"  # noqa: S105 -- the user name under which a helper hands out an identity token


@dataclass(frozen=True, slots=True)
class Login:
    """A user and password, or an identity token to exchange for access tokens. Never printed."""

    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    identity_token: str = field(default="", repr=False)

    @property
    def basic(self) -> str:
        """The value of an Authorization header, empty if there is only an identity token."""
        if not self.user or self.identity_token:
            return ""
        return "Basic " + base64.b64encode(f"{self.user}:{self.password}".encode()).decode()


class AuthFile(msgspec.Struct, frozen=True):
    """A credential file. `auths` and `helpers` are keyed by registry, `auths` also by a repository or part of it."""

    source: str
    auths: Mapping[str, Login | None] = msgspec.field(default_factory=dict)
    helpers: Mapping[str, str] = msgspec.field(default_factory=dict)
    store: str = ""

    def login(self, reference: Reference) -> Login | None:
        """Returns the login for `reference`, by the most specific entry. Raises BadCredentials if a helper fails."""
        # As in docker, a helper for the registry takes precedence over stored logins.
        if reference.host in self.helpers:
            return ask_helper(self.helpers[reference.host], reference.host, self.source)
        parts = [reference.host, *reference.path.split("/")]
        # The most specific key first: a repository, then its parent paths, then the registry.
        for count in range(len(parts), 0, -1):
            if entry := self.auths.get("/".join(parts[:count])):
                return entry
        server = "https://index.docker.io/v1/" if reference.host == DOCKER_HUB else reference.host
        return ask_helper(self.store, server, self.source) if self.store else None


class Credentials(msgspec.Struct, frozen=True):
    """Credential files in order; the first one with an entry for a registry is used."""

    files: tuple[AuthFile, ...] = ()

    def login(self, reference: Reference) -> Login | None:
        """Returns the login for the registry and repository of `reference`, None if no file has one."""
        return next((login for file in self.files if (login := file.login(reference)) is not None), None)


def load_credentials(registry_config: str = "", environ: Mapping[str, str] = os.environ) -> Credentials:
    """Reads `registry_config`, else $REGISTRY_AUTH_FILE, else the default files. Raises BadCredentials."""
    file_name = registry_config or environ.get("REGISTRY_AUTH_FILE", "")
    if file_name:
        return Credentials((_read_auth_file(Path(file_name)),))
    return Credentials(tuple(_read_auth_file(path) for path in default_files(environ) if path.is_file()))


def default_files(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Returns the files that are read if none is named, in the order of precedence (containers-auth.json(5))."""
    home = Path(environ.get("HOME") or "/nonexistent")
    config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    docker = Path(environ.get("DOCKER_CONFIG") or home / ".docker")
    runtime = environ.get("XDG_RUNTIME_DIR")
    podman = [Path(runtime) / "containers" / "auth.json"] if runtime else []
    return (*podman, config / "containers" / "auth.json", docker / "config.json")


def parse_auth_file(data: bytes, source: str) -> AuthFile:
    """Returns a credential file or pull secret. Raises BadCredentials, which names `source` and shows no secret."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadCredentials(f"{source}: is not JSON; expected a docker or podman credential file") from error
    if not isinstance(document, dict):
        raise BadCredentials(f"{source}: is not a JSON object; expected a docker or podman credential file")
    auths = {
        _normalize_key(key): _login_of_entry(entry, f"{source}: auths[{key}]")
        for key, entry in _object_items(document, "auths", source)
    }
    helpers = {
        _normalize_key(key): _helper_name(name, source) for key, name in _object_items(document, "credHelpers", source)
    }
    return AuthFile(source, auths, helpers, _helper_name(document.get("credsStore") or "", source))


def ask_helper(name: str, server: str, source: str) -> Login | None:
    """Returns the answer of `docker-credential-<name> get` for `server`. Raises BadCredentials if the helper fails."""
    program = f"docker-credential-{name}"
    try:
        completed = subprocess.run(
            [program, "get"], input=server.encode(), capture_output=True, timeout=HELPER_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        why = "is not on PATH" if isinstance(error, FileNotFoundError) else f"did not answer: {error}"
        raise BadCredentials(f"{source}: {program}, which must know the login for {server}, {why}") from error
    text = completed.stdout.decode("utf-8", "replace").strip()
    if completed.returncode != 0:
        if _NOT_FOUND in text:
            return None
        raise BadCredentials(f"{source}: {program} failed for {server} with exit code {completed.returncode}")
    try:
        answer = json.loads(text)
        user, secret = answer["Username"], answer["Secret"]
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        raise BadCredentials(f"{source}: {program} answered something else than a login for {server}") from error
    return Login(identity_token=str(secret)) if user == _TOKEN_USER else Login(str(user), str(secret))


def _read_auth_file(path: Path) -> AuthFile:
    """Returns the credentials of a file in Docker's or Podman's format. Raises BadCredentials."""
    try:
        data = read_limited(path)
    except OSError as error:
        raise BadCredentials(f"{path}: the credential file cannot be read: {error.strerror}") from error
    return parse_auth_file(data, str(path))


def _login_of_entry(entry: Any, place: str) -> Login | None:
    """Returns the login in an entry of `auths`, or None. Raises BadCredentials."""
    if not isinstance(entry, dict):
        raise BadCredentials(f"{place}: is not an object")
    if token := entry.get("identitytoken"):
        return Login(identity_token=str(token))
    if entry.get("username") and "password" in entry:
        return Login(str(entry["username"]), str(entry["password"]))
    if not entry.get("auth"):
        return None  # docker leaves an empty entry where a helper has the credentials
    try:
        user, colon, password = base64.b64decode(str(entry["auth"]), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError) as error:
        raise BadCredentials(f"{place}: auth is not base64 of user:password") from error
    if not colon:
        raise BadCredentials(f"{place}: auth is not base64 of user:password")
    # As docker's own client does (docker/cli, cli/config/configfile, decodeAuth).
    return Login(user, password.rstrip("\0"))


def _object_items(document: dict[str, Any], key: str, source: str) -> list[tuple[str, Any]]:
    entries = document.get(key) or {}
    if not isinstance(entries, dict):
        raise BadCredentials(f"{source}: {key} is not an object")
    return list(entries.items())


def _helper_name(name: Any, source: str) -> str:
    if name and (not isinstance(name, str) or not _HELPER.match(name)):
        raise BadCredentials(f"{source}: {name!r} is not the name of a credential helper")
    return str(name)


def _normalize_key(text: str) -> str:
    key = text.removeprefix("https://").removeprefix("http://").rstrip("/")
    key = key.removesuffix("/v1").removesuffix("/v2").rstrip("/") if key != text.rstrip("/") else key
    return DOCKER_HUB if key in _HUB_KEYS else key


MAX_HEADERS = 16  # number of headers that are read
MAX_CHARACTERS = 4096  # number of characters of a header that may be read; the realm of a challenge is a URL
_SHOWN = 100
# Each pattern matches at one place and without returning, and what it leaves out cannot be matched again.
_BLANK = re.compile(r"[ \t,]*")
_TOKEN = re.compile(r"[\w!#$%&'*+.^`|~-]+")
_PARAMETER = re.compile(r'[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^\s",]*))')
_ESCAPED = re.compile(r"\\(.)")


def parse_challenges(headers: Iterable[str]) -> dict[str, Mapping[str, str]]:
    """Returns the parameters of each scheme; names are in lower case. Of two challenges of a scheme the last counts.

    A header that is too long, and whatever follows what is not a challenge, is left out.
    """
    challenges: dict[str, Mapping[str, str]] = {}
    for header in list(headers)[:MAX_HEADERS]:
        if len(header) > MAX_CHARACTERS:
            continue
        offered: dict[str, Mapping[str, str]] = {}
        parameters: dict[str, str] = {}
        at = _skip_pattern(_BLANK, header, 0)
        while name := _TOKEN.match(header, at):
            value = _PARAMETER.match(header, name.end()) if offered else None
            if value is None:
                parameters = {}
                offered[name[0].lower()] = parameters
            else:
                quoted, bare = value.groups()
                parameters[name[0].lower()] = bare if quoted is None else _ESCAPED.sub(r"\1", quoted)
            at = _skip_pattern(_BLANK, header, (value or name).end())
        challenges |= offered
    return challenges


def quote_headers(headers: Iterable[str]) -> str:
    """Returns the headers as a message may quote them, empty if they do not exist."""
    texts = [printable(header) for header in list(headers)[:3]]
    return ", ".join(shorten(text, _SHOWN, keep=_SHOWN) for text in texts)


def _skip_pattern(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at
