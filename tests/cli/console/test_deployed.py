"""The console as `deploy/console` has it: its account is enough to look, is not used to act, and its names agree."""

from __future__ import annotations

import os
import re
import ssl
import subprocess
import sys
import urllib.request
from html import unescape
from http.cookiejar import Cookie, CookieJar
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode, urlsplit

import pytest
from tests.cli.commands import Server
from tests.cli.console.test_actions import READS, STATUS, WRITES
from tests.cli.console.test_serve_command import ADDRESS
from tests.console.accounts import token_for, token_of
from tests.documents import documents
from tests.servers import eventually

from kubekit.api.scheme import Resource
from kubekit.kube import calls, config
from kubekit.kube.clock import SystemClock
from kubekit.lang import yaml as kyaml
from kubesandbox.apiserver.access.certs import issue_server, new_ca
from runup.cli.console.command import serve

FILE = Path(__file__).parents[3] / "deploy" / "console" / "console.yaml"
OBJECTS = {(each["kind"], each["metadata"]["name"]): each for each in documents(FILE)}
POD = OBJECTS["Deployment", "console"]["spec"]["template"]["spec"]
CONTAINER = POD["containers"][0]
RBAC = "rbac.authorization.k8s.io"
KINDS = {
    "Namespace": Resource(group="", version="v1", kind="Namespace", plural="namespaces", namespaced=False),
    "ServiceAccount": Resource(
        group="", version="v1", kind="ServiceAccount", plural="serviceaccounts", namespaced=True
    ),
    "ConfigMap": Resource(group="", version="v1", kind="ConfigMap", plural="configmaps", namespaced=True),
    "Service": Resource(group="", version="v1", kind="Service", plural="services", namespaced=True),
    "Deployment": Resource(group="apps", version="v1", kind="Deployment", plural="deployments", namespaced=True),
    "NetworkPolicy": Resource(
        group="networking.k8s.io", version="v1", kind="NetworkPolicy", plural="networkpolicies", namespaced=True
    ),
    "ClusterRole": Resource(group=RBAC, version="v1", kind="ClusterRole", plural="clusterroles", namespaced=False),
    "ClusterRoleBinding": Resource(
        group=RBAC, version="v1", kind="ClusterRoleBinding", plural="clusterrolebindings", namespaced=False
    ),
}


def test_one_name() -> None:
    """The console answers to the name of its Route, to which the link in the web console leads."""
    host = OBJECTS["Route", "console"]["spec"]["host"]
    assert f"--host={host}" in CONTAINER["args"]
    link = OBJECTS["ConsoleLink", "runup-console"]["spec"]
    address = urlsplit(link["href"])
    assert (address.scheme, address.netloc) == ("https", host)
    # github.com/openshift/api console/v1: the section is needed where the location is ApplicationMenu.
    assert link["location"] == "ApplicationMenu"
    assert link["applicationMenu"]["section"]
    assert FILE.read_text().count(host) == 4


def test_what_is_mounted() -> None:
    """The certificate is the one that the Service asks for; the kubeconfig is where the console looks for it."""
    annotations = OBJECTS["Service", "console"]["metadata"]["annotations"]
    volumes = {volume["name"]: volume for volume in POD["volumes"]}
    assert volumes["serving-cert"]["secret"]["secretName"] == next(iter(annotations.values()))
    mounts = {mount["name"]: mount["mountPath"] for mount in CONTAINER["volumeMounts"]}
    assert f"--tls-cert={mounts['serving-cert']}/tls.crt" in CONTAINER["args"]
    assert {"name": "KUBECONFIG", "value": f"{mounts['clusters']}/kubeconfig"} in CONTAINER["env"]
    assert volumes["clusters"]["configMap"]["name"] == OBJECTS["ConfigMap", "clusters"]["metadata"]["name"]
    assert "kubeconfig" in OBJECTS["ConfigMap", "clusters"]["data"]


def test_what_is_typed() -> None:
    """The command takes its flags, and actions are off."""
    assert CONTAINER["args"][0] == "serve"
    # click keeps the option of the first context, which is otherwise that of `runup` with -h.
    with serve.make_context("serve", CONTAINER["args"][1:], help_option_names=["-h", "--help"]) as context:
        assert context.params["hosts"] == (OBJECTS["Route", "console"]["spec"]["host"],)
        assert context.params["allow_actions"] is False


def _apply(server: Server) -> None:
    """Sends what Kubernetes itself knows, strictly."""
    for (kind, _), obj in OBJECTS.items():
        if kind in KINDS:
            call = calls.apply(KINDS[kind], obj, field_manager="test", force=True, field_validation="Strict")
            server.client.send(call)


def _kubeconfig(server: Server, folder: Path) -> Path:
    """The kubeconfig of the ConfigMap, with the server and the files that are here in place of a pod's."""
    kubeconfig: Any = kyaml.load(OBJECTS["ConfigMap", "clusters"]["data"]["kubeconfig"])
    own = config.load(str(server.kubeconfig))
    (folder / "ca.crt").write_bytes(own.ca_data)
    (folder / "token").write_text(token_for(server.client, "console", "runup-console"))
    kubeconfig["clusters"][0]["cluster"] |= {"server": own.server, "certificate-authority": str(folder / "ca.crt")}
    kubeconfig["users"][0]["user"]["tokenFile"] = str(folder / "token")
    (folder / "kubeconfig").write_text(kyaml.dump(kubeconfig))
    return folder / "kubeconfig"


class Visitor:
    """A client behind the router: TLS to the console, and the Host header of the Route."""

    def __init__(self, url: str, trusted: ssl.SSLContext) -> None:
        self.url = url
        self.cookies: list[Cookie] = []
        self._trusted = trusted

    def ask(self, path: str, form: dict[str, str] | None = None) -> tuple[int, str]:
        """Status and text of a page, after what it leads to."""
        jar = CookieJar()
        request = urllib.request.Request(
            f"{self.url}{path}",
            urlencode(form).encode() if form is not None else None,
            {"Host": OBJECTS["Route", "console"]["spec"]["host"]},
        )
        if self.cookies:
            request.add_header("Cookie", "; ".join(f"{cookie.name}={cookie.value}" for cookie in self.cookies))
        opener = urllib.request.build_opener(_Stays(), urllib.request.HTTPSHandler(context=self._trusted))
        try:
            with opener.open(request, timeout=240) as answer:
                self.cookies = [*jar.make_cookies(answer, request)] or self.cookies
                return answer.status, answer.read().decode()
        except HTTPError as error:
            self.cookies = [*jar.make_cookies(error, request)] or self.cookies  # type: ignore[arg-type]
            return error.code, error.read().decode()


class _Stays(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """Returns nothing: a redirect is an answer."""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_with_the_rights_of_its_account(server: Server, tmp_path: Path) -> None:
    """It evaluates the cluster and takes logins; an update is started by the user's token, and not by its own."""
    server.set_cluster_version(status=STATUS)
    _apply(server)
    kubeconfig = _kubeconfig(server, tmp_path)
    now = SystemClock().now()
    authority = new_ca(now)
    issued = issue_server(authority, now)
    (tmp_path / "tls.crt").write_bytes(issued.cert)
    (tmp_path / "tls.key").write_bytes(issued.key)
    args = [
        arg.replace("/etc/tls/serving-cert", str(tmp_path)).replace("0.0.0.0:8443", "127.0.0.1:0")
        for arg in CONTAINER["args"]
    ]
    # On loopback there is a login only behind a proxy, which the router is.
    command = [sys.executable, "-m", "runup", *args, "--behind-proxy", "--allow-actions"]
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "HOME": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            match = ADDRESS.fullmatch(process.stdout.readline())
            assert match is not None
            url = match[1].rstrip("/")
            trusted = ssl.create_default_context(cadata=authority.cert.decode())
            _use(Visitor(url, trusted), Visitor(url, trusted), server)
        finally:
            process.terminate()
            process.wait(240)


def _use(reader: Visitor, writer: Visitor, server: Server) -> None:
    for visitor, name, verbs in ((reader, "looks", READS), (writer, "updates", WRITES)):
        assert visitor.ask("/login", {"token": token_of(server.client, name, verbs), "next": "/"})[0] == 303
    eventually(lambda: "Not evaluated yet" not in reader.ask("/clusters/this-cluster")[1], "the cluster is judged")
    status, text = reader.ask("/clusters/this-cluster")
    assert (status, "Could not be evaluated" in text) == (200, False)
    for visitor, code in ((reader, 403), (writer, 200)):
        page = visitor.ask("/clusters/this-cluster/start?to=5.1.0")[1]
        fields = {
            name: unescape(value) for name, value in re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', page)
        }
        assert visitor.ask("/clusters/this-cluster/start", fields)[0] == code
    assert server.cluster_version()["spec"]["desiredUpdate"]["version"] == "5.1.0"
