"""Registries that lie, break off, are overloaded or lead elsewhere: nothing wrong is believed, and errors help."""

from __future__ import annotations

import gzip
import ssl
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from tests.kubekit.oci.registries import (
    Answer,
    Asked,
    Odd,
    basic,
    odd_registry,
    release,
    sandbox_registry,
    self_signed,
    writing,
)

from kubekit.oci import images
from kubekit.oci.access import Access, Mirror
from kubekit.oci.credentials import AuthFile, Credentials, Login
from kubekit.oci.layers import open_image
from kubekit.oci.layout import Layout
from kubekit.oci.reference import Reference, parse, sha256
from kubekit.oci.registry import RegistryClient
from kubekit.oci.registry_errors import BadImage, ImageNotFound, OciError, Unauthorized, Unreachable
from kubekit.oci.transport import pause_s
from runup.release.control.image_build import BuiltImage

FILE = "release-manifests/release-metadata"
Rule = Callable[[Asked], Answer | None]


@pytest.fixture
def made(tmp_path: Path) -> BuiltImage:
    """A release whose blobs the odd registry has."""
    return release(tmp_path / "made")


class Pauses:
    """Notes how long was to be waited, and does not wait."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __call__(self, seconds: float) -> bool:
        if seconds:
            self.seconds.append(seconds)
        return False


def quick(**changes: object) -> Access:
    """An access that never really waits."""
    return Access(wait=Pauses(), **changes)  # type: ignore[arg-type]


def layer_of(made: BuiltImage) -> images.Descriptor:
    """The image's layer."""
    return open_image(Layout.open(made.layout)).manifest.layers[0]


def first(method: str, part: str, answer: Answer, times: int = 1) -> Rule:
    """A rule for the first requests whose path has `part`."""
    left = [times]

    def rule(asked: Asked) -> Answer | None:
        if asked.method == method and part in asked.path and left[0]:
            left[0] -= 1
            return answer
        return None

    return rule


def always(part: str, answer: Answer) -> Rule:
    """A rule for all requests whose path has `part`."""
    return lambda asked: answer if part in asked.path else None


def name(odd: Odd, made: BuiltImage) -> Reference:
    """The image by digest."""
    return parse(f"{odd.host}/ocp/release@{made.digest}")


def other_manifest() -> bytes:
    """A manifest that is in order, of another image."""
    descriptor = images.Descriptor(media_type=images.CONFIG, digest="sha256:" + "1" * 64, size=2)
    return msgspec.json.encode(images.Manifest(schema_version=2, media_type=images.MANIFEST, config=descriptor))


@pytest.mark.parametrize("read", [False, True], ids=["pulling", "reading one file"])
@pytest.mark.parametrize(
    ("part", "change", "said"),
    [
        pytest.param("manifests", lambda _data: other_manifest(), "sent another manifest", id="another manifest"),
        pytest.param("manifests", lambda data: data[:-1], "sent another manifest", id="a manifest cut short"),
        pytest.param(
            "manifests", lambda data: b" " * (5 << 20) + data, "larger than 1048576 bytes", id="a huge manifest"
        ),
        pytest.param("LAYER", lambda data: data[:-1] + b"x", "other content than its digest", id="a flipped byte"),
        pytest.param("LAYER", lambda data: data + b"x", "larger than the", id="a longer blob"),
    ],
)
def test_what_is_not_what_it_claims_is_refused(
    made: BuiltImage, tmp_path: Path, part: str, change: Callable[[bytes], bytes], said: str, read: bool
) -> None:
    """The error names it, and the layout does not get it."""
    layer = layer_of(made).digest
    part = layer if part == "LAYER" else part
    data = Layout.open(made.layout).blob(made.digest if part == "manifests" else layer).read_bytes()
    with odd_registry(Layout.open(made.layout), always(part, Answer(200, change(data)))) as odd:
        layout = Layout.create(tmp_path / "pulled")
        client = RegistryClient(quick())
        with pytest.raises(BadImage, match=said):
            client.read_file(name(odd, made), FILE) if read else client.pull(name(odd, made), layout)
    assert layout.index().manifests == ()
    assert not layout.blob(layer).exists()
    assert not list((tmp_path / "pulled").glob(".incoming-*"))


def test_a_broken_download_goes_on_where_it_stopped(made: BuiltImage, tmp_path: Path) -> None:
    """The second request asks for the rest alone, and the whole is what was pushed."""
    layer = layer_of(made)
    data = Layout.open(made.layout).blob(layer.digest).read_bytes()

    def rule(asked: Asked) -> Answer | None:
        if layer.digest not in asked.path:
            return None
        if "Range" not in asked.headers:
            return Answer(200, data, cut=100)
        start = int(asked.headers["Range"].removeprefix("bytes=").rstrip("-"))
        return Answer(206, data[start:], {"Content-Range": f"bytes {start}-{len(data) - 1}/{len(data)}"})

    with odd_registry(Layout.open(made.layout), rule) as odd:
        layout = Layout.create(tmp_path / "pulled")
        RegistryClient(quick()).pull(name(odd, made), layout)
        ranges = [asked.headers.get("Range") for asked in odd.asked if layer.digest in asked.path]
    assert ranges == [None, "bytes=100-"]
    assert layout.blob(layer.digest).read_bytes() == data


@pytest.mark.parametrize(("kept", "asked"), [(None, 0), (100, 1)], ids=["the whole layer", "the beginning of it"])
def test_what_is_there_already_is_not_fetched_again(
    made: BuiltImage, tmp_path: Path, kept: int | None, asked: int
) -> None:
    """By its size: half a file that something else left is none."""
    layer = layer_of(made)
    data = Layout.open(made.layout).blob(layer.digest).read_bytes()
    layout = Layout.create(tmp_path / "pulled")
    layout.blob(layer.digest).parent.mkdir(parents=True, exist_ok=True)
    layout.blob(layer.digest).write_bytes(data[:kept])
    with odd_registry(Layout.open(made.layout), lambda _asked: None) as odd:
        RegistryClient(quick()).pull(name(odd, made), layout)
        assert sum(layer.digest in path for path in odd.paths()) == asked
    assert layout.blob(layer.digest).read_bytes() == data


def test_a_registry_without_ranges_sends_all_again(made: BuiltImage, tmp_path: Path) -> None:
    """Received bytes are skipped, not written twice."""
    layer = layer_of(made)
    data = Layout.open(made.layout).blob(layer.digest).read_bytes()
    with odd_registry(Layout.open(made.layout), first("GET", layer.digest, Answer(200, data, cut=100))) as odd:
        layout = Layout.create(tmp_path / "pulled")
        RegistryClient(quick()).pull(name(odd, made), layout)
    assert layout.blob(layer.digest).read_bytes() == data


def test_a_download_that_never_ends_well_is_an_error(made: BuiltImage, tmp_path: Path) -> None:
    """After the last attempt the error says how far it came; nothing is left of it."""
    layer = layer_of(made)
    data = Layout.open(made.layout).blob(layer.digest).read_bytes()
    with odd_registry(Layout.open(made.layout), always(layer.digest, Answer(200, data, cut=50))) as odd:
        layout = Layout.create(tmp_path / "pulled")
        with pytest.raises(Unreachable, match=rf"broke off: .*50.* of|more expected|ended after 50 of {layer.size}"):
            RegistryClient(quick()).pull(name(odd, made), layout)
        assert sum(layer.digest in asked.path for asked in odd.asked) == 4
    assert not layout.blob(layer.digest).exists()


@pytest.mark.parametrize(
    ("headers", "waited"),
    [
        pytest.param({}, [1.0], id="as long as we think"),
        pytest.param({"Retry-After": "7"}, [7.0], id="as many seconds as it asks for"),
        pytest.param(
            {"Retry-After": "Fri, 21 Nov 2026 10:00:09 GMT", "Date": "Fri, 21 Nov 2026 10:00:00 GMT"},
            [9.0],
            id="until the time that it names",
        ),
        pytest.param({"Retry-After": "86400"}, [60.0], id="not a day"),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
def test_an_overloaded_registry_is_asked_again(
    made: BuiltImage, tmp_path: Path, status: int, headers: dict[str, str], waited: list[float]
) -> None:
    """After a pause, and then the pull succeeds."""
    pauses = Pauses()
    with odd_registry(Layout.open(made.layout), first("GET", "manifests", Answer(status, b"", headers))) as odd:
        RegistryClient(Access(wait=pauses)).pull(name(odd, made), Layout.create(tmp_path / "pulled"))
    assert pauses.seconds == waited


@pytest.mark.parametrize(
    ("attempt", "retry_after", "date", "expected"),
    [
        (1, None, None, 1.0),
        (3, None, None, 4.0),
        (1, "0", None, 0.0),
        (1, "-5", None, 0.0),
        (2, "nan", None, 2.0),
        (2, "soon", None, 2.0),
        (1, "Fri, 21 Nov 2026 10:00:09 GMT", None, 1.0),
        (1, "Fri, 21 Nov 2026 10:00:09 GMT", f"Fri, {'9' * 20} Nov 2026 10:00:00 GMT", 1.0),
        (1, "Fri, 21 Nov 2026 09:00:00 GMT", "Fri, 21 Nov 2026 10:00:00 GMT", 0.0),
        (1, "59.5", None, 59.5),
        (1, "61", None, 60.0),
        (1, "inf", None, 60.0),
        (4, None, None, 8.0),
    ],
)
def test_pauses(attempt: int, retry_after: str | None, date: str | None, expected: float) -> None:
    """What the registry asks for within bounds, else doubling."""
    assert pause_s(attempt, retry_after, date) == expected


def test_a_registry_that_stays_overloaded_is_an_error(made: BuiltImage, tmp_path: Path) -> None:
    """With its own words, after four attempts."""
    body = b'{"errors":[{"code":"TOOMANYREQUESTS","message":"slow down,\\n please"}]}'
    with odd_registry(Layout.open(made.layout), always("manifests", Answer(429, body))) as odd:
        with pytest.raises(Unreachable, match=r'answered 429 \(the registry says: "slow down, please"\)'):
            RegistryClient(quick()).pull(name(odd, made), Layout.create(tmp_path / "pulled"))
        assert len(odd.asked) == 4


def test_a_refusal_nested_without_end_has_no_words(made: BuiltImage, tmp_path: Path) -> None:
    """And is a refusal like any other."""
    nested = always("manifests", Answer(429, b"[" * 4000))
    with odd_registry(Layout.open(made.layout), nested) as odd, pytest.raises(Unreachable, match=r"answered 429\Z"):
        RegistryClient(quick()).pull(name(odd, made), Layout.create(tmp_path / "pulled"))


def test_giving_up_ends_a_pull(made: BuiltImage, tmp_path: Path) -> None:
    """As soon as the waiting says so; nothing is left."""
    with odd_registry(Layout.open(made.layout)) as odd:
        layout = Layout.create(tmp_path / "pulled")
        with pytest.raises(Unreachable, match="given up"):
            RegistryClient(Access(wait=lambda _seconds: True)).pull(name(odd, made), layout)
    assert not list(layout.path.glob(".incoming-*"))


def test_nobody_there_is_one_error_at_once(tmp_path: Path) -> None:
    """A refused connection is not tried again."""
    pauses = Pauses()
    with pytest.raises(Unreachable, match=r"registry 127\.0\.0\.1:1 cannot be reached: Connection refused"):
        RegistryClient(Access(wait=pauses)).pull(parse("127.0.0.1:1/a:1"), Layout.create(tmp_path / "pulled"))
    assert pauses.seconds == []


def elsewhere(odd: Odd) -> str:
    """The same registry under an address that does not count as this machine, though it leads here."""
    return odd.host.replace("127.0.0.1", "0.0.0.0")


def test_only_a_listed_host_is_asked_by_plain_http(made: BuiltImage, tmp_path: Path) -> None:
    """Another machine is asked by TLS; where it does not speak that, the error says how it can be listed."""
    with odd_registry(Layout.open(made.layout)) as odd:
        reference = parse(f"{elsewhere(odd)}/ocp/release@{made.digest}")
        with pytest.raises(
            Unreachable, match=r"does not speak TLS as expected .* if it speaks plain HTTP, name it by --plain-http"
        ):
            RegistryClient(quick()).pull(reference, Layout.create(tmp_path / "pulled"))
        assert odd.asked == []
        ways = quick(plain_http=frozenset({elsewhere(odd)}))
        assert RegistryClient(ways).pull(reference, Layout.create(tmp_path / "pulled")) == made.digest


def test_a_certificate_counts_by_its_authority(made: BuiltImage, tmp_path: Path) -> None:
    """Unknown it is refused, with the way out; named it is trusted."""
    certificate, key = self_signed("0.0.0.0", tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    with odd_registry(Layout.open(made.layout), tls=tls) as odd:
        reference = parse(f"{elsewhere(odd)}/ocp/release@{made.digest}")
        with pytest.raises(Unreachable, match=r"is not trusted .* name its certificate authority"):
            RegistryClient(quick()).pull(reference, Layout.create(tmp_path / "pulled"))
        ways = quick(ca_file=str(certificate))
        assert RegistryClient(ways).pull(reference, Layout.create(tmp_path / "pulled")) == made.digest


def test_a_token_is_fetched_once_and_sent(made: BuiltImage, tmp_path: Path) -> None:
    """The challenge's service and the repository's scope go to the token service, with the user's password."""
    login = Credentials((AuthFile("test", {"HOST": Login("ann", "word")}),))

    def rule(asked: Asked) -> Answer | None:
        if asked.path.startswith("/token"):
            return (
                Answer(200, b'{"token": "abc"}')
                if asked.headers.get("Authorization") == basic("ann", "word")
                else Answer(401)
            )
        if asked.headers.get("Authorization") == "Bearer abc":
            return None
        challenge = f'Bearer realm="http://{odd.host}/token",service="reg,1",scope="repository:x:pull"'
        return Answer(401, b"", {"WWW-Authenticate": challenge})

    with odd_registry(Layout.open(made.layout), rule) as odd:
        login = Credentials((AuthFile("test", {odd.host: Login("ann", "word")}),))
        RegistryClient(quick(credentials=login)).pull(name(odd, made), Layout.create(tmp_path / "pulled"))
        tokens = [path for path in odd.paths() if path.startswith("/token")]
        assert tokens == ["/token?service=reg%2C1&scope=repository%3Aocp%2Frelease%3Apull"]


def test_an_identity_token_is_traded(made: BuiltImage, tmp_path: Path) -> None:
    """By POST with the refresh token in the body, never as a password."""

    def rule(asked: Asked) -> Answer | None:
        if asked.path.startswith("/token"):
            assert asked.method == "POST"
            assert "Authorization" not in asked.headers
            assert b"grant_type=refresh_token&refresh_token=secret" in asked.body
            return Answer(200, b'{"access_token": "abc"}')
        if asked.headers.get("Authorization") == "Bearer abc":
            return None
        return Answer(401, b"", {"WWW-Authenticate": f'Bearer realm="http://{odd.host}/token"'})

    with odd_registry(Layout.open(made.layout), rule) as odd:
        login = Credentials((AuthFile("test", {odd.host: Login(identity_token="secret")}),))
        RegistryClient(quick(credentials=login)).pull(name(odd, made), Layout.create(tmp_path / "pulled"))


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        pytest.param(Answer(401), "refused reading", id="refused"),
        pytest.param(Answer(200, b"<html>"), "no JSON", id="no JSON"),
        pytest.param(Answer(200, b'{"token": ""}'), "sent no token", id="no token"),
        pytest.param(Answer(200, b'{"token": "a\\r\\nX: b"}'), "sent no token", id="a token with a line break"),
        pytest.param(Answer(200, b'["a"]'), "no JSON", id="a list"),
        pytest.param(Answer(200, b"[" * 100_000), "no JSON", id="lists without end"),
    ],
)
def test_a_token_service_that_does_not_help(made: BuiltImage, tmp_path: Path, answer: Answer, said: str) -> None:
    """One error; the password is not in it."""

    def rule(asked: Asked) -> Answer | None:
        if asked.path.startswith("/token"):
            return answer
        return Answer(401, b"", {"WWW-Authenticate": f'Bearer realm="http://{odd.host}/token"'})

    with odd_registry(Layout.open(made.layout), rule) as odd:
        login = Credentials((AuthFile("test", {odd.host: Login("ann", "word-of-ann")}),))
        with pytest.raises(Unauthorized, match=said) as caught:
            RegistryClient(quick(credentials=login)).pull(name(odd, made), Layout.create(tmp_path / "pulled"))
    assert "word-of-ann" not in caught.value.message


@pytest.mark.parametrize(
    "realm", ["http://192.0.2.1/token", "file:///etc/passwd", "ftp://127.0.0.1/x", "http://[bad/token"]
)
def test_credentials_do_not_go_where_they_should_not(made: BuiltImage, tmp_path: Path, realm: str) -> None:
    """Plain HTTP to another machine and other schemes are refused before anything is sent."""
    challenge = Answer(401, b"", {"WWW-Authenticate": f'Bearer realm="{realm}"'})
    with odd_registry(Layout.open(made.layout), always("", challenge)) as odd:
        login = Credentials((AuthFile("test", {odd.host: Login("ann", "word")}),))
        with pytest.raises(OciError, match="leads to"):
            RegistryClient(quick(credentials=login)).pull(name(odd, made), Layout.create(tmp_path / "pulled"))


def test_a_registry_that_wants_what_nobody_has_is_refused(made: BuiltImage, tmp_path: Path) -> None:
    """A scheme that is not known is named, and nothing is sent in its place."""
    challenge = Answer(401, b"", {"WWW-Authenticate": "Negotiate"})
    refused = pytest.raises(Unauthorized, match="asks for Negotiate")
    with odd_registry(Layout.open(made.layout), always("", challenge)) as odd, refused:
        RegistryClient(quick()).pull(name(odd, made), Layout.create(tmp_path / "pulled"))


def test_credentials_stay_behind_at_a_redirect(made: BuiltImage, tmp_path: Path) -> None:
    """A store of another owner that has the blobs gets the request, and no Authorization."""
    layer = layer_of(made).digest
    with odd_registry(Layout.open(made.layout)) as store:

        def rule(asked: Asked) -> Answer | None:
            if asked.headers.get("Authorization") != basic("ann", "word"):
                return Answer(401, b"", {"WWW-Authenticate": 'Basic realm="x"'})
            return Answer(307, b"", {"Location": f"http://{store.host}{asked.path}"}) if layer in asked.path else None

        with odd_registry(Layout.open(made.layout), rule) as odd:
            login = Credentials((AuthFile("test", {odd.host: Login("ann", "word")}),))
            RegistryClient(quick(credentials=login)).pull(name(odd, made), Layout.create(tmp_path / "pulled"))
    assert [asked.path for asked in store.asked] == [f"/v2/ocp/release/blobs/{layer}"]
    assert all("Authorization" not in asked.headers for asked in store.asked)


@pytest.mark.parametrize("location", ["file:///etc/passwd", "http://192.0.2.1/blob"])
def test_a_redirect_elsewhere_is_refused(made: BuiltImage, tmp_path: Path, location: str) -> None:
    """No file of ours, and no plain HTTP to another machine."""
    rule = always("/blobs/", Answer(302, b"", {"Location": location}))
    with odd_registry(Layout.open(made.layout), rule) as odd, pytest.raises(OciError, match="leads to"):
        RegistryClient(quick()).pull(name(odd, made), Layout.create(tmp_path / "pulled"))


def test_an_upload_elsewhere_gets_no_credentials(made: BuiltImage) -> None:
    """The registry may name another host for the upload, which must not learn who we are."""
    uploads: list[Asked] = []

    def store_rule(asked: Asked) -> Answer:
        uploads.append(asked)
        return Answer(201)

    with odd_registry(Layout.open(made.layout), store_rule) as store:

        def rule(asked: Asked) -> Answer | None:
            if asked.headers.get("Authorization") != basic("ann", "word"):
                return Answer(401, b"", {"WWW-Authenticate": 'Basic realm="x"'})
            if asked.method == "HEAD":
                return Answer(404)
            if asked.method == "POST":
                return Answer(202, b"", {"Location": f"http://{store.host}/put?state=1"})
            return Answer(201)

        with odd_registry(Layout.open(made.layout), rule) as odd:
            login = Credentials((AuthFile("test", {odd.host: Login("ann", "word")}),))
            target = parse(f"{odd.host}/ocp/release:1")
            RegistryClient(quick(credentials=login)).push(Layout.open(made.layout), made.digest, target)
    assert len(uploads) == 2
    assert all("Authorization" not in asked.headers for asked in uploads)
    layer = layer_of(made)
    assert {sha256(asked.body) for asked in uploads} >= {layer.digest}
    assert all(asked.path.startswith("/put?state=1&digest=sha256%3A") for asked in uploads)


def test_a_registry_that_stores_something_else_is_noticed(made: BuiltImage) -> None:
    """It says so itself, by the digest that it gives back."""

    def rule(asked: Asked) -> Answer | None:
        if asked.method == "PUT":
            return Answer(201, b"", {"Docker-Content-Digest": "sha256:" + "0" * 64})
        return Answer(200)

    with odd_registry(Layout.open(made.layout), rule) as odd, pytest.raises(BadImage, match="stored another image"):
        RegistryClient(quick()).push(Layout.open(made.layout), made.digest, parse(f"{odd.host}/a:1"))


def test_mirrors_are_asked_first_for_a_digest(made: BuiltImage, tmp_path: Path) -> None:
    """The source is not asked where the mirror has it."""
    with odd_registry(Layout.open(made.layout)) as mirror, odd_registry(Layout.open(made.layout)) as source:
        ways = quick(mirrors=(Mirror(f"{source.host}/ocp", (f"{mirror.host}/copy/of",)),))
        RegistryClient(ways).pull(name(source, made), Layout.create(tmp_path / "pulled"))
        assert source.asked == []
        assert mirror.asked[0].path == f"/v2/copy/of/release/manifests/{made.digest}"


def test_the_source_is_asked_where_the_mirror_cannot(made: BuiltImage, tmp_path: Path) -> None:
    """A mirror that lies or lacks the image costs nothing but time."""
    with odd_registry(Layout.open(made.layout), always("", Answer(200, b"{}"))) as mirror:
        with odd_registry(Layout.open(made.layout)) as source:
            ways = quick(mirrors=(Mirror(source.host, (mirror.host, "127.0.0.1:1")),))
            assert RegistryClient(ways).pull(name(source, made), Layout.create(tmp_path / "pulled")) == made.digest
        assert len(mirror.asked) == 1


def test_every_place_is_named_where_none_has_it(made: BuiltImage, tmp_path: Path) -> None:
    """The source's error first, then what the mirrors said."""
    with odd_registry(Layout.open(made.layout), always("", Answer(404))) as source:
        ways = quick(mirrors=(Mirror(source.host, ("127.0.0.1:1",)),))
        with pytest.raises(ImageNotFound, match=r"manifest unknown; mirror: .*127\.0\.0\.1:1 cannot be reached"):
            RegistryClient(ways).pull(name(source, made), Layout.create(tmp_path / "pulled"))


def test_a_mirror_is_no_place_for_a_tag(made: BuiltImage, tmp_path: Path) -> None:
    """It could lie about it."""
    with odd_registry(Layout.open(made.layout)) as mirror, odd_registry(Layout.open(made.layout)) as source:
        ways = quick(mirrors=(Mirror(source.host, (mirror.host,)),))
        RegistryClient(ways).resolve(parse(f"{source.host}/ocp/release:5.2.0"))
        assert mirror.asked == []


def test_of_several_architectures_one_is_pulled(tmp_path: Path) -> None:
    """An index names one image a machine; a machine that it does not name is an error with what there is."""
    one, two = release(tmp_path / "all", "5.2.0"), release(tmp_path / "all", "5.2.1")
    layout = Layout.open(tmp_path / "all")
    described = tuple(
        images.Descriptor(
            media_type=images.MANIFEST,
            digest=built.digest,
            size=layout.blob(built.digest).stat().st_size,
            platform=images.Platform(architecture=machine, os="linux"),
        )
        for built, machine in ((one, "amd64"), (two, "arm64"))
    )
    index = msgspec.json.encode(images.Index(schema_version=2, media_type=images.INDEX, manifests=described))
    digest = layout.add_blob(index)
    layout.add_manifest(images.Descriptor(media_type=images.INDEX, digest=digest, size=len(index)), "multi")
    with odd_registry(layout) as odd:
        reference = parse(f"{odd.host}/ocp/release:multi")
        client, pulled = RegistryClient(quick()), Layout.create(tmp_path / "pulled")
        assert client.pull(reference, pulled, architecture="arm64") == digest
        assert open_image(pulled, digest, architecture="arm64").digest == two.digest
        assert not pulled.blob(one.digest).exists()
        with pytest.raises(BadImage, match="no image for linux/s390x; it has amd64, arm64"):
            client.pull(reference, pulled, architecture="s390x")


@pytest.mark.parametrize(
    ("size", "said"), [(-1, "claims"), (5 << 40, "claims")], ids=["less than nothing", "five terabytes"]
)
def test_a_size_that_cannot_be_is_refused(made: BuiltImage, tmp_path: Path, size: int, said: str) -> None:
    """Before a byte of it is fetched."""
    layout = Layout.open(made.layout)
    image = open_image(layout)
    layers = (msgspec.structs.replace(image.manifest.layers[0], size=size),)
    data = msgspec.json.encode(msgspec.structs.replace(image.manifest, layers=layers))
    layout.add_blob(data)
    with odd_registry(layout) as odd, pytest.raises(BadImage, match=said):
        RegistryClient(quick()).pull(parse(f"{odd.host}/a@{sha256(data)}"), Layout.create(tmp_path / "pulled"))
    assert [path for path in odd.paths() if "blobs" in path] == []


def test_a_layer_by_another_digest_than_sha256_is_refused(made: BuiltImage) -> None:
    """Content that cannot be verified is not read."""
    layout = Layout.open(made.layout)
    manifest = open_image(layout).manifest
    layer = msgspec.structs.replace(manifest.layers[0], digest="sha512:" + "1" * 128)
    data = msgspec.json.encode(msgspec.structs.replace(manifest, layers=(layer,)))
    layout.add_blob(data)
    with odd_registry(layout) as odd:
        with pytest.raises(BadImage, match="is not a sha256 digest"):
            RegistryClient(quick()).read_file(parse(f"{odd.host}/a@{sha256(data)}"), FILE)
        assert [path for path in odd.paths() if "sha512" in path] == []


def test_an_image_by_another_digest_than_sha256_is_refused(made: BuiltImage) -> None:
    """Before anything is asked, and not as an image that the registry got wrong."""
    with odd_registry(Layout.open(made.layout)) as odd:
        with pytest.raises(BadImage, match="is not a sha256 digest"):
            RegistryClient(quick()).read_file(parse(f"{odd.host}/a@sha512:{'1' * 128}"), FILE)
        assert odd.paths() == []


def test_an_image_of_too_many_layers_is_refused(made: BuiltImage, tmp_path: Path) -> None:
    """By its manifest, before a byte of them is fetched."""
    layout = Layout.open(made.layout)
    manifest = open_image(layout).manifest
    data = msgspec.json.encode(msgspec.structs.replace(manifest, layers=manifest.layers[:1] * 129))
    layout.add_blob(data)
    with odd_registry(layout) as odd, pytest.raises(BadImage, match="has 129 layers; the limit is 128"):
        RegistryClient(quick()).pull(parse(f"{odd.host}/a@{sha256(data)}"), Layout.create(tmp_path / "pulled"))
    assert [path for path in odd.paths() if "blobs" in path] == []


def test_a_layer_that_grows_without_end_is_refused(made: BuiltImage, monkeypatch: pytest.MonkeyPatch) -> None:
    """One file is looked for in it; unpacking stops at the limit, not at the end of the memory."""
    monkeypatch.setattr("kubekit.oci.tarstream.MAX_IMAGE_BYTES", 1 << 20)
    layout = Layout.open(made.layout)
    image = open_image(layout)
    bomb = gzip.compress(bytes(64 << 20))
    layer = msgspec.structs.replace(image.manifest.layers[0], digest=layout.add_blob(bomb), size=len(bomb))
    data = msgspec.json.encode(msgspec.structs.replace(image.manifest, layers=(layer,)))
    layout.add_blob(data)
    with odd_registry(layout) as odd, pytest.raises(BadImage, match="unpacks to more than 1048576 bytes"):
        RegistryClient(quick()).read_file(parse(f"{odd.host}/a@{sha256(data)}"), FILE)


def test_a_certificate_authority_file_that_is_none(tmp_path: Path) -> None:
    """The error names the file, not the registry."""
    (tmp_path / "ca.crt").write_text("no certificate")
    with pytest.raises(OciError, match=r"ca\.crt: no certificate authorities"):
        RegistryClient(quick(ca_file=str(tmp_path / "ca.crt"))).resolve(parse("127.0.0.1:1/a:1"))


def test_loopback_registries_need_no_proxy(made: BuiltImage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy of the environment is for other machines."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with sandbox_registry(tmp_path) as host:
        RegistryClient(writing(host)).push(Layout.open(made.layout), made.digest, parse(f"{host}/a:1"))


def test_tls_is_the_default() -> None:
    """A remote registry that is not listed is queried by HTTPS."""
    assert not Access().is_plain("registry.example:5000")
    assert Access(plain_http=frozenset({"registry.example:5000"})).is_plain("registry.example:5000")
    assert [Access().is_plain(host) for host in ("127.0.0.1:5000", "localhost", "[::1]:5000", "127.0.0.1.example")] == [
        True,
        True,
        True,
        False,
    ]
    assert ssl.create_default_context().verify_mode is ssl.CERT_REQUIRED
