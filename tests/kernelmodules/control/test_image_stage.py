"""The image stage against registries: what is verified, what is said where it is not, and what that costs."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from tests.kubekit.oci.layered import (
    Made,
    elf,
    hardlink,
    layout_in,
    packed,
    put_document,
    put_image,
    put_index,
    symlink,
)
from tests.kubekit.oci.registries import REAL, Answer, Asked, Odd, odd_registry, self_signed, writing

from kubekit.lang.text import stored_bytes
from kubekit.oci import images
from kubekit.oci.access import Access, Mirror
from kubekit.oci.layout import Layout
from kubekit.oci.reference import parse
from kubekit.oci.registry import RegistryClient
from runup.api.kmm_v1beta1 import TLSOptions
from runup.kernelmodules.control.image_stage import LONGEST_REASON, verify_image
from runup.kernelmodules.control.registries import GivenRegistries
from runup.kernelmodules.decide.module_state import ImageQuestion
from runup.kernelmodules.decide.texts import IMAGE_VERIFIED
from runup.kernelmodules.decide.verdict import ExaminationOutcome, ImageVerdict

KERNEL = "5.14.0-427.50.1.el9_4.x86_64"
FOLDER = f"opt/lib/modules/{KERNEL}"
KO = f"{FOLDER}/simple-kmod.ko"
GOOD = [Made(KO)]
Rule = Callable[[Asked], Answer | None]


def question(image: str, *names: str, **changes: object) -> ImageQuestion:
    """Is the module in that image?"""
    asked = ImageQuestion(
        image=image,
        kernel=KERNEL,
        dir_name="/opt",
        module_names=names or ("simple_kmod",),
        tls=TLSOptions(),
        namespace="drivers",
    )
    return replace(asked, **changes)  # type: ignore[arg-type]


def quick(**changes: object) -> GivenRegistries:
    """Registries that are asked once."""
    return GivenRegistries(Access(attempts=1, **changes))  # type: ignore[arg-type]


async def verdict(
    image: str, *names: str, registries: GivenRegistries | None = None, **changes: object
) -> ImageVerdict:
    """The verdict on it."""
    return await verify_image(question(image, *names, **changes), registries or quick())


@pytest.fixture(params=list(REAL))
def real(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """`host:port` of a real registry, with what the tests below name."""
    layout = layout_in(tmp_path)
    with REAL[request.param](tmp_path) as host:
        made = {
            "good": put_image(layout, [Made("base", os.urandom(300_000))], GOOD),
            "other-kernel": put_image(layout, [Made("opt/lib/modules/5.13.0/simple-kmod.ko")]),
            "deleted": put_image(layout, GOOD, [Made(f"{FOLDER}/.wh.simple-kmod.ko")]),
            "zstd": put_image(layout, GOOD, media_type=images.LAYER_ZSTD),
            "untyped": put_image(layout, [Made("x"), *GOOD], manifest_type=""),
            "arm": put_image(layout, [Made("empty")], architecture="arm64"),
        }
        client = RegistryClient(writing(host))
        for tag, descriptor in made.items():
            client.push(layout, descriptor.digest, parse(f"{host}/kmods/simple:{tag}"))
        listed = {"index": images.INDEX, "docker-list": images.DOCKER_LIST}
        for tag, media_type in listed.items():
            index = put_index(layout, made["good"], made["arm"], media_type=media_type)
            push_index(host, tag, layout.read(index.digest), media_type)
        yield host


def push_index(host: str, tag: str, data: bytes, media_type: str) -> None:
    """As any client does it (distribution-spec, "Pushing Manifests")."""
    from tests.kubekit.oci.registries import basic

    headers = {"Content-Type": media_type, "Authorization": basic("writer", "word")}
    url = f"http://{host}/v2/kmods/simple/manifests/{tag}"
    with urllib.request.urlopen(urllib.request.Request(url, data=data, headers=headers, method="PUT")) as answer:
        assert answer.status == 201


REAL_CASES = [
    pytest.param("kmods/simple:good", ExaminationOutcome.VERIFIED, IMAGE_VERIFIED, id="a good one by tag"),
    pytest.param(
        "kmods/simple:untyped", ExaminationOutcome.VERIFIED, "Verification successful", id="a manifest without type"
    ),
    pytest.param("kmods/simple:zstd", ExaminationOutcome.VERIFIED, "Verification successful", id="packed with zstd"),
    pytest.param("kmods/simple:index", ExaminationOutcome.VERIFIED, "Verification successful", id="an OCI index"),
    pytest.param(
        "kmods/simple:docker-list", ExaminationOutcome.VERIFIED, "Verification successful", id="a manifest list"
    ),
    pytest.param(
        "kmods/simple:other-kernel",
        ExaminationOutcome.FAILED,
        f"does not contain kernel module for kernel {KERNEL} on any layer: looked for /{FOLDER}/simple_kmod.ko, "
        "compressed or not, and in folders below; it has /opt/lib/modules/5.13.0/simple-kmod.ko",
        id="a module for another kernel",
    ),
    pytest.param("kmods/simple:deleted", ExaminationOutcome.FAILED, "on any layer", id="deleted by its upper layer"),
    pytest.param(
        "kmods/simple:nope",
        ExaminationOutcome.FAILED,
        "inaccessible or does not exists: ",
        id="a tag that is not there",
    ),
    pytest.param(
        "other/one:1",
        ExaminationOutcome.FAILED,
        "inaccessible or does not exists: ",
        id="a repository that is not there",
    ),
]


async def test_images_in_a_real_registry(real: str) -> None:
    """One registry, all rows: each verdict, and the words that follow the stable ones."""
    for row in REAL_CASES:
        name, outcome, said = row.values
        found = await verdict(f"{real}/{name}")
        assert (row.id, found.outcome) == (row.id, outcome)
        assert str(said) in found.message, row.id
        assert f"image {real}/{name} " in found.message or found.verified


async def test_an_image_by_digest_and_each_architecture(real: str) -> None:
    """By digest as by tag; every architecture that is asked for must have the module."""
    digest = RegistryClient().resolve(parse(f"{real}/kmods/simple:good"))
    assert (await verdict(f"{real}/kmods/simple@{digest}")).verified
    index = f"{real}/kmods/simple:index"
    assert (await verdict(index, architectures=("amd64",))).verified
    assert not (await verdict(index, architectures=("amd64", "arm64"))).verified
    assert not (await verdict(index, architectures=("arm64", "amd64"))).verified
    absent = await verdict(index, architectures=("s390x",))
    assert (absent.outcome, "no image for linux/s390x; it has amd64, arm64" in absent.message) == (
        ExaminationOutcome.FAILED,
        True,
    )


async def test_a_module_for_another_machine_is_named_where_it_is(tmp_path: Path) -> None:
    """In another kernel's folder, next to what fits; the hint says for which machine it is."""
    arm, other = "opt/lib/modules/5.14.0-1.aarch64", "opt/lib/modules/5.13.0"
    layout = layout_in(tmp_path)
    made = put_image(layout, [Made(f"{arm}/a.ko", elf(183)), Made(f"{other}/a.ko", elf())])
    with odd_registry(layout) as odd:
        found = await verdict(f"{odd.host}/a/b@{made.digest}", "a", architectures=("amd64",))
    hint = f"/{other}/a.ko, /{arm}/a.ko, which is a kernel module for arm64, not for amd64"
    assert found.message.endswith(f"; it has {hint}")


@pytest.mark.parametrize(
    ("layers", "kernels"),
    [
        pytest.param([[Made("opt/lib/modules/5.13.0/other.ko")]], {"5.13.0"}, id="another module for another kernel"),
        pytest.param([[Made(f"{FOLDER}/other.ko")]], {KERNEL}, id="another module for this kernel"),
        pytest.param(
            [[Made("opt/lib/modules/5.13.0/a.ko.xz")], [symlink("lib/modules/5.12.0/a.ko", "/a.ko")]],
            {"5.13.0", "5.12.0"},
            id="packed, and a link",
        ),
        pytest.param(
            [[Made("opt/lib/modules/5.13.0/a.ko")], [Made("opt/lib/modules/.wh.5.13.0")]], set(), id="deleted again"
        ),
        pytest.param([[Made("opt/lib/modules/5.13.0/modules.dep")]], set(), id="no module"),
    ],
)
async def test_for_which_kernels_an_image_has_modules(
    tmp_path: Path, layers: list[list[Made]], kernels: set[str]
) -> None:
    """Those of any name: a push would take them from the nodes that use them."""
    layout = layout_in(tmp_path)
    made = put_image(layout, *layers)
    with odd_registry(layout) as odd:
        found = await verdict(f"{odd.host}/a/b@{made.digest}")
    assert (found.verified, found.kernels) == (False, frozenset(kernels))


@pytest.mark.parametrize(
    ("layer", "architectures", "kernels"),
    [
        pytest.param([Made("etc/motd")], ("amd64", "arm64"), None, id="no module, and another image"),
        pytest.param([Made(f"{FOLDER}/other.ko")], ("amd64", "arm64"), None, id="this kernel's, and another image"),
        pytest.param([Made("opt/lib/modules/5.13.0/other.ko")], ("amd64", "arm64"), {"5.13.0"}, id="another kernel's"),
        pytest.param([Made("etc/motd")], ("amd64", "unknown"), set(), id="an attestation is no other image"),
        pytest.param([Made("etc/motd")], ("amd64",), set(), id="one image"),
    ],
)
async def test_a_push_would_replace_the_images_of_other_architectures(
    tmp_path: Path, layer: list[Made], architectures: tuple[str, ...], kernels: set[str] | None
) -> None:
    """An index is replaced as a whole, so what its other images have counts, and it was not read."""
    layout = layout_in(tmp_path)
    entries = [put_image(layout, layer if name == "amd64" else GOOD, architecture=name) for name in architectures]
    index = put_index(layout, *entries)
    with odd_registry(layout) as odd:
        found = await verdict(f"{odd.host}/a/b@{index.digest}", architectures=("amd64",))
    assert (found.verified, found.kernels) == (False, None if kernels is None else frozenset(kernels))


async def test_whether_it_is_known_for_which_kernels_an_image_has_modules(real: str) -> None:
    """An image that does not exist has none; one that could not be read, or is for another machine, may have some."""
    for tag, architectures, kernels in (
        ("other-kernel", ("amd64",), {"5.13.0"}),
        ("nope", ("amd64",), set()),
        ("index", ("s390x",), None),
    ):
        found = await verdict(f"{real}/kmods/simple:{tag}", architectures=architectures)
        assert (tag, found.kernels) == (tag, None if kernels is None else frozenset(kernels))


@pytest.mark.slow
async def test_fifty_at_once(real: str) -> None:
    """Each has its own verdict, whatever the others have."""
    names = ["good", "other-kernel"] * 25
    gate = asyncio.Semaphore(8)

    async def one(tag: str) -> bool:
        async with gate:
            return (await verdict(f"{real}/kmods/simple:{tag}")).verified

    assert await asyncio.gather(*(one(tag) for tag in names)) == [True, False] * 25


@pytest.mark.parametrize(
    ("layers", "names", "shown"),
    [
        pytest.param([[Made(f"{FOLDER}/simple_kmod.ko")]], ("simple_kmod",), "", id="where it belongs"),
        pytest.param([GOOD], ("simple_kmod",), f"; found /{KO}", id="a dash for an underscore"),
        pytest.param([[Made(f"{FOLDER}/a.ko.xz")]], ("a",), f"; found /{FOLDER}/a.ko.xz", id="packed with xz"),
        pytest.param([[Made(f"{FOLDER}/a.ko.gz")]], ("a",), f"; found /{FOLDER}/a.ko.gz", id="packed with gzip"),
        pytest.param([[Made(f"{FOLDER}/a.ko.zst")]], ("a",), f"; found /{FOLDER}/a.ko.zst", id="packed with zstd"),
        pytest.param([[Made(f"{FOLDER}/extra/a.ko")]], ("a",), f"; found /{FOLDER}/extra/a.ko", id="in a sub-folder"),
        pytest.param(
            [[Made(f"usr/lib/modules/{KERNEL}/a.ko"), symlink("opt/lib", "/usr/lib")]],
            ("a",),
            f"; found /usr/lib/modules/{KERNEL}/a.ko",
            id="behind a link",
        ),
        pytest.param([[Made("whatever")]], (), "", id="nothing with raw arguments alone"),
    ],
)
async def test_files_as_modprobe_finds_them(
    tmp_path: Path, layers: list[list[Made]], names: tuple[str, ...], shown: str
) -> None:
    """Accepted, and told where they are not quite where they are looked for."""
    layout = layout_in(tmp_path)
    made = put_image(layout, *layers)
    with odd_registry(layout) as odd:
        asked = replace(question(f"{odd.host}/a/b@{made.digest}"), module_names=names)
        found = await verify_image(asked, quick())
    assert (found.outcome, found.message) == (ExaminationOutcome.VERIFIED, f"{IMAGE_VERIFIED}{shown}")


async def test_every_module_of_the_loading_order_is_needed(tmp_path: Path) -> None:
    """The ones that lack are named."""
    layout = layout_in(tmp_path)
    made = put_image(layout, [Made(f"{FOLDER}/a.ko"), Made(f"{FOLDER}/b.ko")])
    with odd_registry(layout) as odd:
        image = f"{odd.host}/a/b@{made.digest}"
        assert (await verdict(image, "a", "b")).verified
        found = await verdict(image, "a", "b", "c")
    assert found.outcome is ExaminationOutcome.FAILED
    assert f"looked for /{FOLDER}/c.ko, compressed" in found.message


def everything(status: int) -> Rule:
    """That answer, whatever is asked."""
    return lambda _asked: Answer(status)


def of_layers(answer: Answer) -> Rule:
    """That answer for layers; the manifest is there."""
    return lambda asked: answer if "/blobs/" in asked.path else None


MANIFEST = "inaccessible or does not exists: "
LAYER = " is inaccessible: "


@pytest.mark.parametrize(
    ("rule", "outcome", "stable", "cause"),
    [
        pytest.param(everything(404), ExaminationOutcome.FAILED, MANIFEST, "manifest unknown", id="404"),
        pytest.param(everything(401), ExaminationOutcome.FAILED, MANIFEST, "asks for nothing known", id="401"),
        pytest.param(
            everything(403), ExaminationOutcome.FAILED, MANIFEST, "wants credentials, and none are known", id="403"
        ),
        pytest.param(everything(429), ExaminationOutcome.UNKNOWN, MANIFEST, "answered 429", id="429"),
        pytest.param(everything(503), ExaminationOutcome.UNKNOWN, MANIFEST, "answered 503", id="503"),
        pytest.param(
            of_layers(Answer(404)), ExaminationOutcome.FAILED, LAYER, "blob unknown", id="a layer that is not there"
        ),
        pytest.param(
            of_layers(Answer(200, b"\0" * 400, cut=20)), ExaminationOutcome.UNKNOWN, LAYER, "broke off", id="cut short"
        ),
        pytest.param(
            of_layers(Answer(200, b"something else" * 400)),
            ExaminationOutcome.FAILED,
            LAYER,
            "is larger than",
            id="another blob",
        ),
    ],
)
async def test_a_registry_that_does_not_answer(
    tmp_path: Path, rule: Rule, outcome: ExaminationOutcome, stable: str, cause: str
) -> None:
    """The words of Kernel Module Management first, then which of the many causes it was."""
    layout = layout_in(tmp_path)
    made = put_image(layout, GOOD)
    with odd_registry(layout, rule) as odd:
        found = await verdict(f"{odd.host}/a/b@{made.digest}")
    assert (found.outcome, found.verified) == (outcome, False)
    before, _, after = found.message.partition(stable)
    assert before.startswith("image 127.0.0.1")
    assert ("layer sha256:" in before) == (stable is LAYER)
    assert cause in after


@pytest.mark.parametrize("text", ["", "a/UPPER", "registry.example/a b:1", "host/x@sha256:1"])
async def test_a_name_that_is_none(text: str) -> None:
    """Told as an image that is not there."""
    found = await verdict(text)
    assert (found.outcome, "invalid reference format" in found.message) == (ExaminationOutcome.FAILED, True)


async def test_nobody_there() -> None:
    """A registry that cannot be reached has said nothing of the image."""
    found = await verdict("127.0.0.1:1/a/b:1")
    assert (found.outcome, "cannot be reached" in found.message) == (ExaminationOutcome.UNKNOWN, True)


async def test_time_runs_out(tmp_path: Path) -> None:
    """The verdict is unknown, and the thread ends with whoever asked."""
    with odd_registry(layout_in(tmp_path), everything(429)) as odd:
        endless = GivenRegistries(Access(attempts=1000))
        found = await verify_image(question(f"{odd.host}/a/b:1"), endless, within_s=0.2)
    assert (found.outcome, "was not read within 0.2 s" in found.message) == (ExaminationOutcome.UNKNOWN, True)


def elsewhere(odd: Odd) -> str:
    """The same registry under an address that does not count as this machine's."""
    return f"0.0.0.0:{odd.host.rpartition(':')[2]}"


@pytest.mark.parametrize(
    ("tls", "outcome", "cause"),
    [
        pytest.param(
            TLSOptions(), ExaminationOutcome.UNKNOWN, "the certificate of", id="a certificate of nobody known"
        ),
        pytest.param(TLSOptions(insecure_skip_tls_verify=True), ExaminationOutcome.VERIFIED, "", id="not looked at"),
        pytest.param(
            TLSOptions(insecure=True), ExaminationOutcome.UNKNOWN, "0.0.0.0", id="plain HTTP allowed, which it is not"
        ),
    ],
)
async def test_a_certificate_of_nobody_known(
    tmp_path: Path, tls: TLSOptions, outcome: ExaminationOutcome, cause: str
) -> None:
    """What the Module says about its registry counts."""
    layout = layout_in(tmp_path)
    made = put_image(layout, GOOD)
    certificate, key = self_signed("0.0.0.0", tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with odd_registry(layout, tls=context) as odd:
        found = await verdict(f"{elsewhere(odd)}/a/b@{made.digest}", tls=tls)
    assert (found.outcome, cause in found.message) == (outcome, True)


CERTIFICATES = [
    pytest.param(
        "0.0.0.0", 1, 1, False,
        "is not trusted (self-signed certificate); name its certificate authority", id="untrusted",
    ),
    pytest.param("0.0.0.0", 3, -1, True, "has expired (certificate has expired); renew it", id="expired"),
    pytest.param(
        "0.0.0.0", -1, 3, True, "is not valid yet (certificate is not yet valid); set the clocks right", id="too early"
    ),
    pytest.param(
        "192.0.2.1", 1, 1, True, "is for another host (IP address mismatch, certificate is not valid for '0.0.0.0'.); "
        "name the registry as its certificate does, or give it one for 0.0.0.0", id="of another host",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("address", "since", "until", "known", "cause"), CERTIFICATES)
@pytest.mark.parametrize("tls", [TLSOptions(), TLSOptions(insecure=True)], ids=["TLS", "or plain HTTP"])
async def test_what_is_wrong_with_a_certificate(
    tmp_path: Path, address: str, since: int, until: int, known: bool, cause: str, tls: TLSOptions
) -> None:
    """Each has its own cause and a remedy that helps; plain HTTP would tell nothing of a server that speaks TLS."""
    layout = layout_in(tmp_path)
    made = put_image(layout, GOOD)
    certificate, key = self_signed(address, tmp_path, since, until)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with odd_registry(layout, tls=context) as odd:
        host = elsewhere(odd)
        registries = quick(ca_file=str(certificate)) if known else quick()
        found = await verdict(f"{host}/a/b@{made.digest}", tls=tls, registries=registries)
    assert (found.outcome, f"the certificate of {host} {cause}" in found.message) == (ExaminationOutcome.UNKNOWN, True)


@pytest.mark.parametrize("trusted", [False, True])
async def test_a_registry_with_tls_on_this_machine(tmp_path: Path, trusted: bool) -> None:
    """Plain HTTP is tried first there; what speaks TLS is asked by that, with its certificate verified."""
    layout = layout_in(tmp_path)
    made = put_image(layout, GOOD)
    certificate, key = self_signed("127.0.0.1", tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with odd_registry(layout, tls=context) as odd:
        registries = quick(ca_file=str(certificate)) if trusted else quick()
        found = await verdict(f"{odd.host}/a/b@{made.digest}", registries=registries)
        skipped = await verdict(f"{odd.host}/a/b@{made.digest}", tls=TLSOptions(insecure_skip_tls_verify=True))
    assert found.outcome is (ExaminationOutcome.VERIFIED if trusted else ExaminationOutcome.UNKNOWN), found.message
    assert ("is not trusted (self-signed certificate)" in found.message) is not trusted
    assert skipped.outcome is ExaminationOutcome.VERIFIED


async def test_plain_http_to_a_server_that_speaks_tls(tmp_path: Path) -> None:
    """An administrator listed it for that: nothing is sent another way than was said, and the list is named."""
    layout = layout_in(tmp_path)
    made = put_image(layout, GOOD)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*self_signed("0.0.0.0", tmp_path))
    with odd_registry(layout, tls=context) as odd:
        host = elsewhere(odd)
        found = await verdict(f"{host}/a/b@{made.digest}", registries=quick(plain_http=frozenset({host})))
    assert found.outcome is ExaminationOutcome.UNKNOWN
    assert f"{host} speaks TLS, but is listed for plain HTTP: do not list it" in found.message


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(
            b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n", id="as Go does"
        ),
        pytest.param(b"\x15\x03\x01\x00\x02\x02\x46", id="by an alert"),
        pytest.param(b"", id="not at all"),
    ],
)
async def test_servers_refuse_plain_http_in_several_ways(tmp_path: Path, answer: bytes) -> None:
    """Whatever it is, the next look is by TLS; here that is no server either, and the first answer's error is told."""
    listener = socket.create_server(("127.0.0.1", 0))
    host = f"127.0.0.1:{listener.getsockname()[1]}"
    seen: list[bytes] = []

    def serve() -> None:
        with suppress(OSError):
            while True:
                caller, _ = listener.accept()
                with caller, suppress(OSError):
                    seen.append(caller.recv(4096)[:1])
                    caller.sendall(answer)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        found = await verdict(f"{host}/a/b:1")
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(60)
    # 0x16 begins a TLS handshake.
    assert seen == [b"G", b"\x16"]
    assert not found.verified


@pytest.mark.parametrize("insecure", [False, True])
async def test_plain_http_only_where_the_module_allows_it(tmp_path: Path, insecure: bool) -> None:
    """On another machine; TLS is tried first."""
    layout = layout_in(tmp_path)
    made = put_image(layout, GOOD)
    with odd_registry(layout) as odd:
        image = f"{elsewhere(odd)}/a/b@{made.digest}"
        found = await verdict(image, tls=TLSOptions(insecure=insecure))
    assert found.outcome is (ExaminationOutcome.VERIFIED if insecure else ExaminationOutcome.UNKNOWN)


async def test_a_mirror_is_asked_first(tmp_path: Path) -> None:
    """By digest and by tag, as nodes do it."""
    layout = layout_in(tmp_path)
    made = put_image(layout, GOOD, name="6.1")
    with odd_registry(layout) as odd:
        for which, of_tags in ((f"@{made.digest}", False), (":6.1", True)):
            mirror = Mirror("registry.example/kmods", (f"{odd.host}/copy{of_tags:d}",), of_tags=of_tags)
            found = await verdict(f"registry.example/kmods/simple{which}", registries=quick(mirrors=(mirror,)))
            assert any(path.startswith(f"/v2/copy{of_tags:d}/simple/") for path in odd.paths())
            assert found.verified, which


async def test_what_is_said_fits(tmp_path: Path) -> None:
    """However much a registry or an image has to say."""
    layout = layout_in(tmp_path)
    made = put_image(layout, [Made(f"{'x' * 200}/{'y' * 3000}/{at}/a.ko") for at in range(20)])
    with odd_registry(layout) as odd:
        found = await verdict(f"{odd.host}/a/b@{made.digest}", "a")
    assert found.outcome is ExaminationOutcome.FAILED
    assert stored_bytes(found.message) <= LONGEST_REASON


@pytest.mark.slow
async def test_early_exit_in_bytes(tmp_path: Path) -> None:
    """Of sixteen megabytes as many are fetched as are read before the module."""
    layout = layout_in(tmp_path)
    made = put_image(layout, [Made("base", os.urandom(8_000_000))], [*GOOD, Made("tail", os.urandom(8_000_000))])
    with odd_registry(layout) as odd:
        found = await verdict(f"{odd.host}/a/b@{made.digest}")
    assert found.verified
    assert 0 < found.fetched_bytes < 1_500_000


def test_a_layer_of_another_kind_is_not_known(tmp_path: Path) -> None:
    """An encrypted layer may have the module."""
    layout = layout_in(tmp_path)
    made = put_image(layout, GOOD)
    data = layout.read(made.digest).replace(b"tar+gzip", b"tar+gzip+encrypted")
    other = put_document(Layout.open(layout.path), data, images.MANIFEST)
    with odd_registry(layout) as odd:
        found = asyncio.run(verdict(f"{odd.host}/a/b@{other.digest}"))
    assert (found.outcome, "cannot read a layer of type" in found.message) == (ExaminationOutcome.UNKNOWN, True)


AT = f"{FOLDER}/simple_kmod.ko"
FILES = [
    pytest.param([Made(AT)], "", id="a kernel module"),
    *(pytest.param([Made(f"{AT}.{end}")], "", id=f"packed as {end}") for end in ("gz", "xz", "zst")),
    pytest.param([Made(AT, b"")], f"/{AT} is empty", id="an empty file"),
    pytest.param([Made(AT, b"hello")], f"/{AT} is not a 64-bit ELF file", id="a text"),
    pytest.param([Made(AT, elf()[:19])], f"/{AT} is not a 64-bit ELF file", id="a head that is cut"),
    pytest.param([Made(AT, elf(3, bits=1))], f"/{AT} is not a 64-bit ELF file", id="one of 32 bits"),
    pytest.param(
        [Made(AT, elf(kind=2))], f"/{AT} is an ELF file, but not a kernel module, which is relocatable", id="a program"
    ),
    pytest.param([Made(AT, elf(183))], f"/{AT} is a kernel module for arm64, not for amd64", id="one of Arm"),
    pytest.param([Made(AT, elf(22, big=True))], f"/{AT} is a kernel module for s390x, not for amd64", id="one of Z"),
    pytest.param(
        [Made(AT, elf(62, big=True))], f"/{AT} is a kernel module for machine 62, not for amd64", id="swapped"
    ),
    pytest.param([Made(f"{AT}.gz", b"no")], f"/{AT}.gz cannot be unpacked: ", id="what claims to be packed with gzip"),
    pytest.param([Made(f"{AT}.xz", b"no xz at all")], f"/{AT}.xz cannot be unpacked: ", id="or with xz"),
    pytest.param([Made(f"{AT}.zst", b"no zstd at all")], f"/{AT}.zst cannot be unpacked: ", id="or with zstd"),
    pytest.param(
        [Made(f"{AT}.gz", packed("a.gz", b""))], f"/{AT}.gz is not a 64-bit ELF file", id="nothing that was packed"
    ),
    pytest.param([Made(AT, b""), Made(f"{FOLDER}/extra/simple-kmod.ko")], "", id="an empty file and a good one below"),
    pytest.param([Made("base", b"x"), Made(f"{FOLDER}/x.ko", b""), Made(AT)], "", id="another module that is empty"),
]


@pytest.mark.parametrize(("files", "why"), FILES)
async def test_what_is_in_a_file_of_that_name(files: list[Made], why: str, tmp_path: Path) -> None:
    """Only a relocatable ELF file of the kernel's machine can be loaded; what it is instead is reported."""
    layout = layout_in(tmp_path)
    made = put_image(layout, files)
    with odd_registry(layout) as odd:
        found = await verdict(f"{odd.host}/k@{made.digest}", architectures=("amd64",))
        assert found.outcome is (ExaminationOutcome.FAILED if why else ExaminationOutcome.VERIFIED), found.message
        assert f"does not contain kernel module for kernel {KERNEL} on any layer: {why}" in found.message or not why


@pytest.mark.parametrize("link", [symlink(AT, "/x/simple.ko"), hardlink(AT, "x/simple.ko")], ids=["symbolic", "hard"])
async def test_a_link_to_a_file_of_another_name_is_unknown(link: Made, tmp_path: Path) -> None:
    """The file may be the module or anything else; the module next to it that is missing for sure makes it Failed."""
    layout = layout_in(tmp_path)
    made = put_image(layout, [Made("x/simple.ko", elf()), link])
    with odd_registry(layout) as odd:
        found = await verdict(f"{odd.host}/k@{made.digest}")
        both = await verdict(f"{odd.host}/k@{made.digest}", "simple-kmod", "other")
    assert found.outcome is ExaminationOutcome.UNKNOWN
    assert f"/{AT} is a link to /x/simple.ko, which was not read because it has another name" in found.message
    assert both.outcome is ExaminationOutcome.FAILED
    assert f"looked for /{FOLDER}/other.ko, compressed" in both.message


async def test_a_lower_layers_file_does_not_stand_in_for_one_that_is_no_module(tmp_path: Path) -> None:
    """A node would load the modules that the image shows."""
    layout = layout_in(tmp_path)
    made = put_image(layout, [Made(AT)], [Made(AT, b"")])
    with odd_registry(layout) as odd:
        found = await verdict(f"{odd.host}/k@{made.digest}", architectures=("amd64",))
    assert f"/{AT} is empty" in found.message


@pytest.mark.parametrize(
    ("architecture", "files", "why"),
    [
        pytest.param("amd64", [Made(AT)], "", id="that of the nodes"),
        pytest.param("", [Made(AT)], "", id="none"),
        pytest.param("arm64", [Made(AT)], "has no image for linux/amd64; it is for arm64", id="another"),
    ],
)
async def test_of_which_architecture_a_single_image_is(
    architecture: str, files: list[Made], why: str, tmp_path: Path
) -> None:
    """A node of another would not pull it, or could not run its loader."""
    layout = layout_in(tmp_path)
    made = put_image(layout, files, architecture=architecture)
    with odd_registry(layout) as odd:
        found = await verdict(f"{odd.host}/k@{made.digest}", architectures=("amd64",))
        assert found.outcome is (ExaminationOutcome.FAILED if why else ExaminationOutcome.VERIFIED), found.message
        assert why in found.message
        anyones = await verdict(f"{odd.host}/k@{made.digest}")
        assert anyones.outcome is ExaminationOutcome.VERIFIED
