"""Loads the configuration of a cluster and a user, from kubeconfig files or from a pod's service account files.

`load` reads everything that a connection needs (certificates included) once, so that a mistake shows before the first
request, as one ConfigError that names the file and the remedy. Several files are merged as kubectl does: the first one
that defines a context, a cluster, a user or a current context wins, and relative paths are relative to the file that
contains them. https://kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig/
"""

import binascii
import os
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import SplitResult, urlsplit

import msgspec
from msgspec.structs import replace

from kubekit.api import codec
from kubekit.api.meta_v1 import Wire
from kubekit.kube import auth as credentials
from kubekit.kube.api_errors import ConfigError
from kubekit.lang.files import read_limited

Place = str | os.PathLike[str]


class Extension(Wire, frozen=True):
    """A named extension."""

    name: str = ""
    extension: Any = None


class Cluster(Wire, frozen=True, rename="kebab", kw_only=True):
    """`clusters[].cluster`: the server's address and its certificate authority."""

    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    disable_compression: bool = False
    extensions: tuple[Extension, ...] = ()


class User(Wire, frozen=True, rename="kebab", kw_only=True):
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
    exec: credentials.ExecStanza | None = None


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
    try:
        content = read_limited(path)
    except FileNotFoundError as error:
        if not required:
            return _File()
        raise ConfigError(f"stat {path}: no such file or directory", reason="KubeconfigMissing") from error
    except OSError as error:
        raise ConfigError(f'error loading config file "{path}": {(error.strerror or str(error)).lower()}') from error
    return _parse(content, f'error loading config file "{path}"')


def _parse(content: bytes, problem: str) -> _File:
    """Returns a kubeconfig; the text of its ConfigError begins with `problem`."""
    # Imported here, so that importing a client does not load YAML.
    from kubekit.lang import yaml

    try:
        document = yaml.load(content)
    except yaml.YamlError as error:
        raise ConfigError(f"{problem}: yaml: {error}") from error
    try:
        return codec.convert(_File, document if document is not None else {})
    except codec.DecodeError as error:
        raise ConfigError(f"{problem}: {error}") from error


SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_EXEC_EXTENSION = "client.authentication.k8s.io/exec"

# The same text as `oc` prints, so that people can search for it.
MISSING = """\
Missing or incomplete configuration info.  Please point to an existing, complete config file:


  1. Via the command-line flag --kubeconfig
  2. Via the KUBECONFIG environment variable
  3. In your home directory as ~/.kube/config

To view or change it, use `kubectl config`."""


class ClusterConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster and a user. Certificates are PEM bytes; `headers` are sent with every request (impersonation)."""

    server: str
    ca_data: bytes = b""
    insecure: bool = False
    tls_server_name: str = ""
    client_cert: bytes = b""
    client_key: bytes = b""
    auth: credentials.Auth = credentials.Static()
    headers: tuple[tuple[str, str], ...] = ()
    namespace: str = "default"
    context: str = ""

    def __repr__(self) -> str:
        """Returns server and context only; no key, no token."""
        return f"ClusterConfig(server={self.server!r}, context={self.context!r})"

    @property
    def url(self) -> SplitResult:
        """The server's URL in parts, without a trailing slash."""
        return urlsplit(self.server)

    @property
    def address(self) -> str:
        """The `host:port` of the server."""
        url = self.url
        host = f"[{url.hostname}]" if ":" in (url.hostname or "") else url.hostname
        return f"{host}:{url.port or (443 if url.scheme == 'https' else 80)}"


def load(
    kubeconfig: str | None = None,
    context: str | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    service_account: Place = SERVICE_ACCOUNT,
) -> ClusterConfig:
    """Returns the configuration of the cluster. Raises ConfigError if it does not exist, or it cannot be used.

    It is read from `kubeconfig` alone if given, else from the files in KUBECONFIG, else from ~/.kube/config, else from
    the service account files of a pod. `context` selects another context than the current one.
    """
    environ = os.environ if environ is None else environ
    merged = _kubeconfig_files(kubeconfig, environ)
    if merged:
        return _config_of_context(merged, context or merged.current_context)
    if context:
        raise ConfigError(f'context "{context}" does not exist', reason="ContextMissing")
    if kubeconfig is None and environ.get("KUBERNETES_SERVICE_HOST") and _has_file(service_account, "token"):
        return in_cluster(environ, service_account)
    raise ConfigError(MISSING, reason="KubeconfigMissing")


def of_untrusted(content: bytes, source: str) -> ClusterConfig:
    """Returns the configuration in a kubeconfig that another cluster supplies, such as in a Secret `source`.

    Raises ConfigError if it is invalid, would read a file or start a program of this machine, or does not verify the
    server.
    """
    file = _parse(content, f"{source} is not a kubeconfig")
    for named in file.clusters:
        if named.cluster.certificate_authority or named.cluster.insecure_skip_tls_verify:
            raise ConfigError(f"{source}: cluster {named.name} must contain its certificate authority as data")
    for entry in file.users:
        user = entry.user
        if user.client_certificate or user.client_key or user.token_file or user.exec is not None:
            raise ConfigError(f"{source}: user {entry.name} names files or a program; it must contain its credentials")
    origin = From("")
    merged = Kubeconfig(
        file.current_context,
        {each.name: each.context for each in file.contexts},
        {each.name: (each.cluster, origin) for each in file.clusters},
        {each.name: (each.user, origin) for each in file.users},
    )
    found = _config_of_context(merged, file.current_context)
    if found.url.scheme != "https":
        raise ConfigError(f"{source}: its server must be reached by https, not {found.url.scheme}")
    return found


def context_names(kubeconfig: str | None = None, *, environ: Mapping[str, str] | None = None) -> list[str]:
    """Returns the contexts that `load` could select, sorted. Raises ConfigError."""
    return sorted(_kubeconfig_files(kubeconfig, os.environ if environ is None else environ).contexts)


def in_cluster(environ: Mapping[str, str], service_account: Place = SERVICE_ACCOUNT) -> ClusterConfig:
    """Returns the configuration of a pod, whose token is read again as the kubelet renews it. Raises ConfigError."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "443")
    path_in_volume = From(os.fspath(service_account)).path
    return ClusterConfig(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        ca_data=_read_file(path_in_volume("ca.crt")),
        auth=credentials.TokenFile(path_in_volume("token")),
        namespace=_read_file(path_in_volume("namespace")).decode().strip()
        if _has_file(service_account, "namespace")
        else "default",
    )


def _kubeconfig_files(kubeconfig: str | None, environ: Mapping[str, str]) -> Kubeconfig:
    """Returns the merged kubeconfig: of the file given, else of $KUBECONFIG, else of ~/.kube/config."""
    if kubeconfig is not None:
        return load_files([kubeconfig], required=True)
    listed = [part for part in environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    if not listed and (home := environ.get("HOME", "")):
        listed = [From(home).path(".kube/config")]
    return load_files(listed, required=False)


def _config_of_context(merged: Kubeconfig, name: str) -> ClusterConfig:
    """Returns the configuration of the context `name`. Raises ConfigError."""
    if not name:
        contexts = ", ".join(sorted(merged.contexts)) or "none"
        raise ConfigError(
            f"the kubeconfig has no current context; choose one with --context (there is {contexts})",
            reason="ContextMissing",
        )
    if (context := merged.contexts.get(name)) is None:
        raise ConfigError(f'context "{name}" does not exist', reason="ContextMissing")
    if (cluster_entry := merged.clusters.get(context.cluster)) is None:
        raise ConfigError(f'context "{name}" names the cluster "{context.cluster}", which does not exist')
    if context.user and context.user not in merged.users:
        raise ConfigError(f'context "{name}" names the user "{context.user}", which does not exist')
    # Paths are relative to the folder of each `_from`.
    cluster, cluster_from = cluster_entry
    user, user_from = merged.users.get(context.user, (User(), cluster_from))
    if cluster.proxy_url:
        raise ConfigError(f'context "{name}": proxy-url is not supported; remove it, or reach the server directly')
    ca_data = _certificate_bytes(cluster.certificate_authority_data, cluster.certificate_authority, cluster_from)
    client_cert = _certificate_bytes(user.client_certificate_data, user.client_certificate, user_from)
    client_key = _certificate_bytes(user.client_key_data, user.client_key, user_from)
    if bool(client_cert) != bool(client_key):
        raise ConfigError(f'context "{name}": a client certificate and its key must be given together')
    # client-go rejects this combination as well.
    if cluster.insecure_skip_tls_verify and ca_data:
        raise ConfigError(f'context "{name}": insecure-skip-tls-verify and certificate-authority exclude each other')
    if not cluster.server:
        raise ConfigError(f'context "{name}": its cluster has no server')
    # client-go's rule for a bare host:port.
    scheme = "https" if ca_data or client_cert else "http"
    url = cluster.server if "://" in cluster.server else f"{scheme}://{cluster.server}"
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable:
        raise ConfigError(f'context "{name}": {cluster.server!r} is not the URL of a server (https://host:port)')
    return ClusterConfig(
        server=url.rstrip("/"),
        ca_data=ca_data,
        insecure=cluster.insecure_skip_tls_verify,
        tls_server_name=cluster.tls_server_name,
        client_cert=client_cert,
        client_key=client_key,
        auth=_auth_of(user, user_from, _cluster_info(cluster, ca_data)),
        headers=_impersonation_headers(user),
        namespace=context.namespace or "default",
        context=name,
    )


def _auth_of(user: User, origin: From, cluster_info: Mapping[str, Any]) -> credentials.Auth:
    """Returns how requests are authenticated: token file, token, basic authentication or plugin. Raises ConfigError."""
    if user.auth_provider is not None:
        raise ConfigError("auth-provider was removed from Kubernetes in 1.26; use a credential plugin (exec) instead")
    # client-go's order: tokenFile before a static token, a plugin only if there is neither.
    if user.token_file:
        return credentials.TokenFile(origin.path(user.token_file))
    if user.token:
        return credentials.Static(credentials.bearer_credential(user.token, "the kubeconfig's token"))
    if user.username:
        return credentials.Static(credentials.basic_credential(user.username, user.password))
    if user.exec is None:
        return credentials.Static()
    spec = credentials.exec_spec(user.exec, cluster_info)
    return credentials.ExecPlugin(replace(spec, command=origin.command(spec.command)))


def _cluster_info(cluster: Cluster, ca_data: bytes) -> Mapping[str, Any]:
    """Returns what a credential plugin learns of its cluster (client.authentication.k8s.io, `spec.cluster`)."""
    extension = next(
        (extension.extension for extension in cluster.extensions if extension.name == _EXEC_EXTENSION), None
    )
    values = {
        "server": cluster.server,
        "tls-server-name": cluster.tls_server_name,
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        "certificate-authority-data": binascii.b2a_base64(ca_data, newline=False).decode(),
        "config": extension,
    }
    return {key: value for key, value in values.items() if value}


def _impersonation_headers(user: User) -> tuple[tuple[str, str], ...]:
    """Returns the headers by which a user acts as another. Raises ConfigError if only its groups or uid are named."""
    if not user.as_:
        if user.as_uid or user.as_groups or user.as_user_extra:
            raise ConfigError("impersonating a group, uid or extra needs a user name (as) too")
        return ()
    headers = (
        ("Impersonate-User", user.as_),
        *((("Impersonate-Uid", user.as_uid),) if user.as_uid else ()),
        *(("Impersonate-Group", group) for group in user.as_groups),
        *((f"Impersonate-Extra-{key}", value) for key, values in user.as_user_extra.items() for value in values),
    )
    for name, value in headers:
        credentials.checked_header_value(f"{name}{value}", "what the kubeconfig impersonates")
    return headers


def _certificate_bytes(data: str, path: str, origin: From) -> bytes:
    """Returns the certificate in `data` (base64), else in the file `path`, else nothing. Raises ConfigError."""
    if data:
        try:
            return binascii.a2b_base64(data, strict_mode=True)
        except (binascii.Error, ValueError) as error:
            raise ConfigError(f"certificate data in the kubeconfig is not base64: {error}") from error
    return _read_file(origin.path(path)) if path else b""


def _read_file(path: str) -> bytes:
    try:
        return read_limited(path)
    except OSError as error:
        raise ConfigError(f"unable to read {path}: {(error.strerror or str(error)).lower()}") from error


def _has_file(folder: Place, name: str) -> bool:
    return os.path.exists(From(os.fspath(folder)).path(name))  # noqa: PTH110
