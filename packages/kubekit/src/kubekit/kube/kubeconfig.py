"""Reads kubeconfig files and merges them as kubectl does.

If several files define a context, a cluster, a user or a current context, the first one wins. Relative paths are
relative to the file that contains them.
https://kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig/
"""

import os
from collections.abc import Iterable
from typing import Any

import msgspec

from kubekit.api import codec
from kubekit.api.meta_v1 import Wire
from kubekit.kube.api_errors import ConfigError
from kubekit.lang.files import read_limited

Place = str | os.PathLike[str]


class Extension(Wire, frozen=True):
    """A named extension."""

    name: str = ""
    extension: Any = None


class ExecEnv(Wire, frozen=True):
    """An environment variable for a plugin."""

    name: str
    value: str = ""


class ExecStanza(Wire, frozen=True):
    """`users[].user.exec` as written; `exec_plugin` validates it."""

    api_version: str = ""
    command: str = ""
    args: tuple[str, ...] = ()
    env: tuple[ExecEnv, ...] = ()
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""
    # client-go does not read this field from a kubeconfig, so it is ignored.
    config: Any = msgspec.UNSET


class Cluster(Wire, frozen=True, rename="kebab"):
    """`clusters[].cluster`: the server's address and its certificate authority."""

    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    disable_compression: bool = False
    extensions: tuple[Extension, ...] = ()


class User(Wire, frozen=True, rename="kebab"):
    """`users[].user`: the client's credentials."""

    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    as_: str = msgspec.field(default="", name="as")
    as_uid: str = ""
    as_groups: tuple[str, ...] = ()
    as_user_extra: dict[str, tuple[str, ...]] = {}
    auth_provider: Any = None
    exec: ExecStanza | None = None


class Context(Wire, frozen=True):
    """`contexts[].context`: a cluster and a user, by name."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(Wire, frozen=True):
    name: str
    cluster: Cluster = Cluster()


class _NamedUser(Wire, frozen=True):
    name: str
    user: User = User()


class _NamedContext(Wire, frozen=True):
    name: str
    context: Context = Context()


class _File(Wire, frozen=True):
    current_context: str = msgspec.field(default="", name="current-context")
    clusters: tuple[_NamedCluster, ...] = ()
    users: tuple[_NamedUser, ...] = ()
    contexts: tuple[_NamedContext, ...] = ()


class From(msgspec.Struct, frozen=True):
    """The folder of the file in which something is defined; relative paths start there."""

    folder: str

    def path(self, text: str) -> str:
        """Returns the path of a file named in the kubeconfig."""
        return os.path.join(self.folder, text)  # noqa: PTH118 (pathlib is not needed to talk to a cluster)

    def command(self, text: str) -> str:
        """Returns a program's path: relative to the kubeconfig if it has a slash, else a name to look up in PATH."""
        return self.path(text) if "/" in text else text


class Kubeconfig(msgspec.Struct, frozen=True):
    """The merged files. Clusters and users come with the folder to which their paths are relative."""

    current_context: str
    contexts: dict[str, Context]
    clusters: dict[str, tuple[Cluster, From]]
    users: dict[str, tuple[User, From]]

    def __bool__(self) -> bool:
        return bool(self.contexts or self.clusters)


def load_files(paths: Iterable[str], *, required: bool) -> Kubeconfig:
    """Reads and merges `paths`; earlier ones take precedence.

    A file that does not exist is skipped unless `required`, as kubectl treats KUBECONFIG and --kubeconfig. Raises
    ConfigError for an unreadable or invalid file.
    """
    current = ""
    contexts: dict[str, Context] = {}
    clusters: dict[str, tuple[Cluster, From]] = {}
    users: dict[str, tuple[User, From]] = {}
    for path in paths:
        file = _read_kubeconfig(path, required=required)
        working_directory = "" if os.path.isabs(path) else os.getcwd()  # noqa: PTH109, PTH117
        origin = From(os.path.dirname(From(working_directory).path(path)))  # noqa: PTH120
        current = current or file.current_context
        contexts = {context.name: context.context for context in file.contexts} | contexts
        clusters = {cluster.name: (cluster.cluster, origin) for cluster in file.clusters} | clusters
        users = {user.name: (user.user, origin) for user in file.users} | users
    return Kubeconfig(current, contexts, clusters, users)


def _read_kubeconfig(path: str, *, required: bool) -> _File:
    """Returns one kubeconfig file; a missing one is empty unless it is `required`. Raises ConfigError."""
    # Imported here, so that importing a client does not load YAML.
    from kubekit.lang import yaml

    try:
        document = yaml.load(read_limited(path))
    except FileNotFoundError as error:
        if not required:
            return _File()
        raise ConfigError(f"stat {path}: no such file or directory", reason="KubeconfigMissing") from error
    except OSError as error:
        raise ConfigError(f'error loading config file "{path}": {(error.strerror or str(error)).lower()}') from error
    except yaml.YamlError as error:
        raise ConfigError(f'error loading config file "{path}": yaml: {error}') from error
    try:
        return codec.convert(_File, document if document is not None else {})
    except codec.DecodeError as error:
        raise ConfigError(f'error loading config file "{path}": {error}') from error
