"""Which proxy a request goes through, and whom a process trusts on the way out of a cluster."""

from __future__ import annotations

import base64
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.kubekit.oci.registries import self_signed

from kubekit.http.proxies import Egress, Proxies, Proxy, environment_proxies

# What ProxyFunc of golang.org/x/net/http/httpproxy v0.43.0 returned for HTTPProxy http://p:1 and HTTPSProxy http://p:2.
OF_GO = [
    ("", "http://foo.com/", "http://p:1"),
    ("", "https://[::1]/", ""),
    ("", "https://localhost/", ""),
    ("", "https://127.0.0.1:5000/", ""),
    ("", "https://127.3.4.5/", ""),
    ("", "https://[::ffff:127.0.0.1]/", ""),
    ("", "https://127.1/", "http://p:2"),
    ("*", "http://foo.com/", ""),
    ("*", "https://10.1.2.3/", ""),
    ("*", "https://[fd00::1]/", ""),
    ("foo.com", "http://foo.com/", ""),
    ("foo.com", "https://bar.foo.com/", ""),
    ("foo.com", "https://xfoo.com", "http://p:2"),
    ("foo.com", "https://foo.com./", "http://p:2"),
    ("foo.com", "https://FOO.com/", ""),
    (".foo.com", "http://foo.com/", "http://p:1"),
    (".foo.com", "https://bar.foo.com/", ""),
    ("*.foo.com", "http://foo.com/", "http://p:1"),
    ("*.foo.com", "https://bar.foo.com/", ""),
    ("foo.com:443", "http://foo.com/", "http://p:1"),
    ("foo.com:443", "https://foo.com/", ""),
    ("foo.com:443", "https://bar.foo.com/", ""),
    ("*.foo.com:8080", "https://bar.foo.com/", "http://p:2"),
    ("*.foo.com:8080", "http://bar.foo.com:8080/", ""),
    ("10.0.0.0/8", "http://foo.com/", "http://p:1"),
    ("10.0.0.0/8", "https://10.1.2.3/", ""),
    ("10.0.0.0/8", "https://10.1.2.3:8443/", ""),
    ("10.0.0.0/8", "http://11.0.0.1", "http://p:1"),
    ("10.0.0.0/8", "https://[::ffff:10.1.2.3]/", ""),
    ("10.1.2.3:443", "https://10.1.2.3/", ""),
    ("10.1.2.3:443", "https://10.1.2.3:8443/", "http://p:2"),
    ("10.1.2.3/8", "https://10.1.2.3/", ""),
    ("10.1.2.3/8", "http://11.0.0.1", "http://p:1"),
    ("fd00::/8", "https://[fd00::1]/", ""),
    ("[fd00::1]:443", "https://[fd00::1]/", ""),
    ("[fd00::1]:443", "https://[fd00::1]:8443/", "http://p:2"),
    ("[fd00::1]", "https://[fd00::1]/", "http://p:2"),
    ("fd00::1", "https://[fd00::1]:8443/", ""),
    (" FOO.com , bar.com", "https://bar.foo.com/", ""),
    (" FOO.com , bar.com", "https://bar.com", ""),
    ("foo.com,*", "https://bar.com", ""),
    (",,", "https://bar.com", "http://p:2"),
    (":80", "http://foo.com/", "http://p:1"),
    ("10.0.0.0/255.0.0.0", "https://10.1.2.3/", "http://p:2"),
    ("10.0.0/8", "https://10.1.2.3/", "http://p:2"),
    ("*foo.com", "https://xfoo.com", "http://p:2"),
    ("bücher.example", "https://bücher.example/", ""),
    ("xn--bcher-kva.example", "https://bücher.example/", ""),
]


@pytest.mark.parametrize(("no_proxy", "url", "expected"), OF_GO)
def test_no_proxy_counts_as_in_go(no_proxy: str, url: str, expected: str) -> None:
    """Domains, ports, networks and this machine; an empty answer is no proxy."""
    proxy = Proxies("http://p:1", "http://p:2", no_proxy).proxy_for(urlsplit(url))
    assert (proxy.url if proxy is not None else "") == expected


@pytest.mark.parametrize(
    ("text", "proxy"),
    [
        ("http://p:3128", Proxy("http", "p", 3128)),
        ("http://p/", Proxy("http", "p", 80)),
        ("https://p", Proxy("https", "p", 443)),
        ("p:3128", Proxy("http", "p", 3128)),
        ("http://[::1]:3128", Proxy("http", "::1", 3128)),
        ("http://user@p:1", Proxy("http", "p", 1, "Basic " + base64.b64encode(b"user:").decode())),
        ("http://user:a%40b@p:1", Proxy("http", "p", 1, "Basic " + base64.b64encode(b"user:a@b").decode())),
    ],
)
def test_how_a_proxy_is_named(text: str, proxy: Proxy) -> None:
    """By a URL, or by host and port."""
    assert Proxy.parse(text) == proxy


@pytest.mark.parametrize(
    "text", ["socks5://u:secret@p:1080", "http://u:secret@p:99999", "http://u:secret@", "http://[u"]
)
def test_what_names_no_proxy(text: str) -> None:
    """The error has the way out, and no password."""
    with pytest.raises(OSError, match=r"a URL such as http://proxy\.example:3128") as caught:
        Proxies(https=text).proxy_for(urlsplit("https://h.example/"))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        pytest.param({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "a"}, Proxies("", "http://p:1", "a"), id="upper case"),
        pytest.param({"http_proxy": "http://p:1", "no_proxy": "a"}, Proxies("http://p:1", "", "a"), id="lower case"),
        pytest.param({"HTTP_PROXY": "http://p:1", "http_proxy": "http://q:1"}, Proxies("http://p:1"), id="both"),
        pytest.param({"HTTP_PROXY": "http://p:1", "REQUEST_METHOD": "GET"}, Proxies(), id="of a CGI program"),
        pytest.param({}, Proxies(), id="none"),
    ],
)
def test_the_environment_names_proxies(
    environ: dict[str, str], expected: Proxies, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In either case, as in Go."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "REQUEST_METHOD"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert environment_proxies() == expected


def test_a_cluster_s_proxies_count_instead_of_the_environment_s(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the cluster has none."""
    monkeypatch.setenv("HTTPS_PROXY", "http://p:1")
    url = urlsplit("https://h.example/")
    assert Egress().proxy_for(url) == Proxy("http", "p", 1)
    assert Egress(Proxies()).proxy_for(url) is None
    assert Egress(Proxies(https="q:2")).proxy_for(url) == Proxy("http", "q", 2)


def test_a_bundle_is_trusted_in_place_of_the_system_s_authorities(tmp_path: Path) -> None:
    """Its comments may be in any language; a file that was named counts alone."""
    certificate, _ = self_signed("127.0.0.1", tmp_path)
    bundle = "# Főtanúsítvány\n" + certificate.read_text()
    assert len(Egress(authorities=bundle).context().get_ca_certs()) == 1
    assert len(Egress().context(str(certificate)).get_ca_certs()) == 1
    with pytest.raises(OSError, match="the cluster's certificate authorities cannot be used"):
        Egress(authorities="no certificate").context()
