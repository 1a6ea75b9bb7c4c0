"""Files looked for in the layers of an image: what is there, what upper layers hide, and how much is fetched."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.kubekit.oci.layered import PACKED, Made, folder, hardlink, layout_in, put_image, put_index, symlink, tar
from tests.kubekit.oci.registries import Answer, Asked, odd_registry

from kubekit.oci import file_search, images
from kubekit.oci.access import Access
from kubekit.oci.file_search import FileQuery, Search
from kubekit.oci.reference import parse
from kubekit.oci.registry import RegistryClient
from kubekit.oci.registry_errors import BadImage, BeyondLimits, ImageNotFound, OciError, Unreachable
from kubekit.oci.tar import Entry
from kubekit.oci.tarstream import inner_path

Rule = Callable[[Asked], Answer | None]
FOLDER = "opt/lib/modules/5.14.0"
KO = f"{FOLDER}/simple.ko"


def key(name: str) -> str:
    """The search key of these tests: `.ko` files by their stems."""
    return name.removesuffix(".ko") if name.endswith(".ko") else ""


def sought(*wanted: str, below: str = FOLDER) -> FileQuery:
    """The stems, below the folder."""
    return FileQuery(folder=below, wanted=frozenset(wanted or ("simple",)), key=key)


FOUND = [
    pytest.param([[Made(KO)]], KO, id="in the only layer"),
    pytest.param([[Made(KO)], [Made("etc/other")]], KO, id="in the lower of two"),
    pytest.param([[Made(f"./{KO}")]], KO, id="where names begin with a dot"),
    pytest.param([[Made(f"/{KO}")]], KO, id="where names begin with a slash"),
    pytest.param([[Made(f"{FOLDER}/extra/deep/simple.ko")]], f"{FOLDER}/extra/deep/simple.ko", id="in a sub-folder"),
    pytest.param([[Made("a"), hardlink(KO, "a")]], KO, id="as a hard link"),
    pytest.param(
        [[symlink("opt/lib", "/usr/lib"), Made("usr/lib/modules/5.14.0/simple.ko")]],
        "usr/lib/modules/5.14.0/simple.ko",
        id="where a folder above is a link that comes first",
    ),
    pytest.param(
        [[symlink("opt/lib", "../usr/lib")], [Made("usr/lib/modules/5.14.0/simple.ko")]],
        "usr/lib/modules/5.14.0/simple.ko",
        id="where a folder above is a link of a lower layer",
    ),
    pytest.param(
        [[symlink("opt", "a"), symlink("a/lib", "/b"), symlink("b/modules", "/c"), Made("c/5.14.0/simple.ko")]],
        "c/5.14.0/simple.ko",
        id="where links lead to links",
    ),
    pytest.param(
        [[Made("mods/simple.ko"), symlink(f"{FOLDER}/extra", "/mods")]],
        "mods/simple.ko",
        id="in a folder linked into it",
    ),
    pytest.param(
        [[Made("opt/other/simple.ko"), symlink(KO, "../../../other/simple.ko")]], KO, id="as a link to a file before it"
    ),
    pytest.param(
        [[Made("opt/other/simple.ko")], [symlink(f"{FOLDER}/weak/simple.ko", "/opt/other/simple.ko")]],
        f"{FOLDER}/weak/simple.ko",
        id="as a link to a file of a lower layer",
    ),
    pytest.param(
        [[symlink("opt/lib", "/usr/lib")], [Made(KO)]], KO, id="where a folder stands in a lower link's place"
    ),
    pytest.param([[Made(KO)], [Made("opt/.wh.other")]], KO, id="beside what is hidden"),
    pytest.param([[symlink(KO, "/x/simple.ko"), Made("x/simple.ko")]], KO, id="as a link to a file after it"),
    pytest.param(
        [[symlink(KO, "/x"), symlink("x", "/y/simple.ko"), Made("y/simple.ko")]], KO, id="as a link to a link to a file"
    ),
    pytest.param(
        [[symlink(f"{FOLDER}/x", "/a"), symlink("a/y", "../b"), Made("b/simple.ko")]],
        "b/simple.ko",
        id="in a folder linked into one that is linked into it",
    ),
    pytest.param(
        [[symlink("opt", "../../a"), Made("a/lib/modules/5.14.0/simple.ko")]],
        "a/lib/modules/5.14.0/simple.ko",
        id="where a link would leave the image, which it does not",
    ),
    pytest.param(
        [[Made(KO)], [Made(f"{FOLDER}/a/simple.ko")]], f"{FOLDER}/a/simple.ko", id="in both, of which the upper counts"
    ),
    pytest.param([[Made(KO)], [Made("a"), Made("opt/lib/.wh.x"), Made("b")]], KO, id="below one that ends with others"),
    pytest.param([[Made("d/.wh.x"), Made(KO)]], KO, id="behind a whiteout"),
    pytest.param([[folder(FOLDER), Made(KO)]], KO, id="in a folder that is named"),
    pytest.param([[Made(KO)], [folder(FOLDER)]], KO, id="in a folder that an upper layer names, too"),
    pytest.param([[Made(KO), Made(f"{FOLDER}/.wh.simple.ko")]], KO, id="where its own layer hides what was below"),
    pytest.param([[Made(KO)], [Made(f"{FOLDER}/.wh..wh..opq"), Made(KO)]], KO, id="in an opaque folder's own layer"),
]
MISSING = [
    pytest.param([[Made("opt/lib/modules/5.15.0/simple.ko")]], id="another kernel's"),
    pytest.param([[Made(f"{FOLDER}/other.ko")]], id="another module"),
    pytest.param([[Made("lib/modules/5.14.0/simple.ko")]], id="below another folder"),
    pytest.param([[Made("opt/lib/modules/5.14.0-1/simple.ko")]], id="a kernel whose name goes on"),
    pytest.param([[folder(KO)]], id="a folder of that name"),
    pytest.param([[Made(KO)], [Made(f"{FOLDER}/.wh.simple.ko")]], id="deleted in an upper layer"),
    pytest.param([[Made(KO)], [Made("opt/.wh.lib")]], id="its folder deleted in an upper layer"),
    pytest.param([[Made(KO)], [Made("opt/lib/.wh..wh..opq")]], id="behind an opaque folder"),
    pytest.param([[Made(KO)], [Made(".wh..wh..opq")]], id="behind an opaque root"),
    pytest.param([[Made(KO)], [Made("opt/lib")]], id="a file in its folder's place"),
    pytest.param([[Made(KO)], [symlink("opt/lib", "/nowhere")]], id="a link in its folder's place"),
    pytest.param([[symlink(KO, "/gone/simple.ko")]], id="a link to nothing"),
    pytest.param([[Made(KO)], [symlink(KO, "/gone/simple.ko")]], id="a link to nothing in its place"),
    pytest.param([[symlink("opt", "/a"), symlink("a", "/opt"), Made("x/simple.ko")]], id="links in a circle"),
    pytest.param([[Made("a")]], id="an image without any"),
    pytest.param([[Made(KO)], [folder(KO)]], id="a folder in its place"),
    pytest.param([[Made(KO)], [Made("opt/.wh.lib"), folder(FOLDER)]], id="its folder deleted and made anew"),
    pytest.param([[Made("opt")], [Made("a")]], id="a file where its folder would be"),
    pytest.param([[Made(KO)], [Made("opt")], [Made("a")]], id="a file in its folder's place, two layers up"),
    pytest.param([[symlink(KO, "/x/simple.ko"), folder("x/simple.ko")]], id="a link to a folder"),
]


@pytest.mark.parametrize(("layers", "path"), FOUND)
def test_what_is_there(tmp_path: Path, layers: list[list[Made]], path: str) -> None:
    """It is found, at the place where it is."""
    layout = layout_in(tmp_path)
    made = put_image(layout, *layers)
    with odd_registry(layout) as odd:
        found = RegistryClient().search(parse(f"{odd.host}/a/b@{made.digest}"), sought())
    assert found.found == {"simple": path}


@pytest.mark.parametrize("layers", MISSING)
def test_what_is_not_there(tmp_path: Path, layers: list[list[Made]]) -> None:
    """It is not found, and every layer was read."""
    layout = layout_in(tmp_path)
    made = put_image(layout, *layers)
    with odd_registry(layout) as odd:
        found = RegistryClient().search(parse(f"{odd.host}/a/b@{made.digest}"), sought())
    assert (found.found, found.layers, found.of) == ({}, len(layers), len(layers))


def searched(layers: list[list[Made]]) -> Search:
    """A search of layers that are there, the lowest first."""
    found = Search("image", sought())
    for layer in reversed(layers):
        if found.layer((inner_path(path, "image"), entry) for path, entry in entries(*layer)):
            break
    return found


@pytest.mark.parametrize(("layers", "path"), FOUND)
def test_a_search_ends_where_it_was_found(layers: list[list[Made]], path: str) -> None:
    """The same without a registry."""
    assert searched(layers).found == {"simple": path}


@pytest.mark.parametrize("layers", MISSING)
def test_a_search_finds_nothing_else(layers: list[list[Made]]) -> None:
    """The same without a registry."""
    found = searched(layers)
    assert (found.found, found.complete) == ({}, False)


def test_each_search_counts_its_own_bytes(tmp_path: Path) -> None:
    """Whatever the same client fetched before."""
    layout = layout_in(tmp_path)
    made = put_image(layout, [Made("a", os.urandom(100_000))])
    with odd_registry(layout) as odd:
        client, reference = RegistryClient(), parse(f"{odd.host}/a/b@{made.digest}")
        first, second = client.search(reference, sought()), client.search(reference, sought())
    assert first.fetched == second.fetched > 100_000
    assert client.received_bytes == 2 * first.fetched


@pytest.mark.parametrize(
    ("linked", "found", "faults"),
    [
        pytest.param("simple.ko", ["good"], ["other", "simple"], id="to a file that does not count"),
        pytest.param("good.ko", ["good", "other"], ["simple"], id="to one that counts"),
    ],
)
def test_a_hard_link_counts_as_its_file_does(tmp_path: Path, linked: str, found: list[str], faults: list[str]) -> None:
    """It has no content of its own to be evaluated by."""

    def fault(_path: str, head: bytes) -> str:
        return "a text" if head == b"text" else ""

    layout = layout_in(tmp_path)
    modules = (Made(KO, b"text"), Made(f"{FOLDER}/good.ko"), hardlink(f"{FOLDER}/other.ko", f"{FOLDER}/{linked}"))
    image = put_image(layout, modules)
    with odd_registry(layout) as odd:
        query = FileQuery(folder=FOLDER, wanted=frozenset({"simple", "good", "other"}), key=key, fault=fault)
        result = RegistryClient().search(parse(f"{odd.host}/a/b@{image.digest}"), query)
    assert sorted(result.found) == found
    assert result.faults == {f"{FOLDER}/{name}.ko": "a text" for name in faults}


LINKED = [
    pytest.param(
        [[Made("opt/readme.txt", b"hello"), hardlink(KO, "opt/readme.txt")]], "opt/readme.txt", id="a hard link"
    ),
    pytest.param([[Made("x/simple-1.2.ko"), symlink(KO, "/x/simple-1.2.ko")]], "x/simple-1.2.ko", id="a link after it"),
    pytest.param(
        [[symlink(KO, "simple-1.2.ko"), Made(f"{FOLDER}/simple-1.2.ko")]], f"{FOLDER}/simple-1.2.ko", id="before it"
    ),
    pytest.param(
        [[Made("y/a.ko")], [symlink("x", "y")], [symlink(KO, "/x/a.ko")]], "y/a.ko", id="by a link of another layer"
    ),
]


def test_a_link_of_the_folder_to_such_a_link_is_not_known() -> None:
    """The unread file is outside of the folder."""
    query = FileQuery(folder=FOLDER, wanted=frozenset({"simple"}), key=key, fault=lambda _path, _head: "")
    found = Search("image", query)
    layer = (Made("opt/readme.txt", b"hello"), hardlink("x/simple.ko", "opt/readme.txt"), symlink(KO, "/x/simple.ko"))
    found.layer((inner_path(path, "image"), entry) for path, entry in entries(*layer))
    assert (found.found, found.faults) == ({}, {})
    assert found.unread == {"x/simple.ko": ("simple", "opt/readme.txt")}


@pytest.mark.parametrize(("layers", "target"), LINKED)
def test_a_link_to_a_file_of_another_name_is_not_known(tmp_path: Path, layers: list[list[Made]], target: str) -> None:
    """The link's target was not examined, so it counts neither as found nor as a fault."""
    layout = layout_in(tmp_path)
    image = put_image(layout, *layers)
    with odd_registry(layout) as odd:
        query = FileQuery(folder=FOLDER, wanted=frozenset({"simple"}), key=key, fault=lambda _path, _head: "")
        result = RegistryClient().search(parse(f"{odd.host}/a/b@{image.digest}"), query)
    assert (result.found, result.faults, result.unread) == ({}, {}, {KO: ("simple", target)})


@pytest.mark.parametrize(
    "layers",
    [
        pytest.param(
            [[symlink(KO, "/x/a.ko"), Made(f"{FOLDER}/b/simple.ko")]], id="of a module that is found elsewhere in it"
        ),
        pytest.param([[symlink("etc/simple.ko", "/x/a.ko")]], id="outside the folder"),
        pytest.param([[symlink(KO, "/gone/simple.ko")]], id="to the module's own name, which would have been seen"),
        pytest.param([[symlink(f"{FOLDER}/b.ko", "/x/a.ko")]], id="of a file that is not wanted"),
        pytest.param([[symlink(KO, "/x/a.ko")], [Made(f"{FOLDER}/.wh.simple.ko")]], id="that an upper layer removes"),
    ],
)
def test_links_that_do_not_matter(layers: list[list[Made]]) -> None:
    """They leave nothing open."""
    assert searched(layers).unread == {}


def test_what_is_elsewhere_is_told(tmp_path: Path) -> None:
    """A file of that name for another kernel helps whoever reads why."""
    layout = layout_in(tmp_path)
    made = put_image(layout, [Made("opt/lib/modules/5.13.0/simple.ko"), Made("opt/lib/modules/5.13.0/b.ko")])
    with odd_registry(layout) as odd:
        found = RegistryClient().search(parse(f"{odd.host}/a/b@{made.digest}"), sought())
    assert found.elsewhere == ("opt/lib/modules/5.13.0/simple.ko",)


def test_only_what_was_not_found_is_told_elsewhere() -> None:
    """All of it, sorted; what was found is of no interest in other places."""
    found = Search("image", sought("a", "b", "c"))
    complete = found.layer(entries(*(Made(f"{each}.ko") for each in ("y/a", "x/a", "x/b", f"{FOLDER}/b"))))
    assert (complete, found.complete) == (False, False)
    assert found.elsewhere == ("x/a.ko", "y/a.ko")
    assert found.found == {"b": f"{FOLDER}/b.ko"}
    assert found.layer(entries(Made(f"{FOLDER}/a.ko"), Made(f"{FOLDER}/c.ko"), Made("d.ko"))) is True
    assert found.complete


@pytest.mark.parametrize("below", ["", "/", ".", "opt/", "/opt//lib/.."])
def test_a_folder_is_named_in_any_way(below: str) -> None:
    """The root is one, too."""
    found = Search("image", sought(below=below))
    assert found.layer(entries(Made("opt/x/simple.ko"))) is True
    assert found.found == {"simple": "opt/x/simple.ko"}


@pytest.mark.parametrize("media_type", list(PACKED))
@pytest.mark.parametrize("wanted", ["simple", "absent"])
def test_every_compression_is_read(tmp_path: Path, media_type: str, wanted: str) -> None:
    """gzip, zstd and none."""
    layout = layout_in(tmp_path)
    made = put_image(layout, [Made("big", os.urandom(2_000_000)), Made(KO)], media_type=media_type)
    with odd_registry(layout) as odd:
        found = RegistryClient().search(parse(f"{odd.host}/a/b@{made.digest}"), sought(wanted))
    assert set(found.found) == {"simple"} & {wanted}


@pytest.mark.parametrize("media_type", list(PACKED))
def test_it_ends_where_all_was_found(tmp_path: Path, media_type: str) -> None:
    """Neither the rest of the layer nor a lower one is fetched; the config is, which names the architecture."""
    layout = layout_in(tmp_path)
    lower = [Made("lower", os.urandom(1_000_000))]
    upper = [Made(KO), Made("rest", os.urandom(8_000_000))]
    made = put_image(layout, lower, upper, media_type=media_type)
    with odd_registry(layout) as odd:
        found = RegistryClient().search(parse(f"{odd.host}/a/b@{made.digest}"), sought())
        blobs = [path for path in odd.paths() if "/blobs/" in path]
    assert found.found == {"simple": KO}
    assert (found.layers, found.of, len(blobs)) == (1, 2, 2)
    assert 0 < found.fetched < 2_000_000


def test_all_that_is_wanted_must_be_found(tmp_path: Path) -> None:
    """The search continues until the last one."""
    layout = layout_in(tmp_path)
    made = put_image(layout, [Made(f"{FOLDER}/b.ko")], [Made(KO)])
    with odd_registry(layout) as odd:
        reference = parse(f"{odd.host}/a/b@{made.digest}")
        both = RegistryClient().search(reference, sought("simple", "b"))
        more = RegistryClient().search(reference, sought("simple", "b", "c"))
        none = RegistryClient().search(reference, FileQuery(folder=FOLDER, wanted=frozenset(), key=key))
    assert set(both.found) == set(more.found) == {"simple", "b"}
    assert (none.found, none.layers, none.fetched) == ({}, 0, 0)


def test_the_image_of_an_architecture(tmp_path: Path) -> None:
    """Of an index that of the architecture is searched; one that it lacks is reported with those that it has."""
    layout = layout_in(tmp_path)
    amd, arm = put_image(layout, [Made(KO)]), put_image(layout, [Made("a")], architecture="arm64")
    index = put_index(layout, amd, arm)
    with odd_registry(layout) as odd:
        reference = parse(f"{odd.host}/a/b@{index.digest}")
        assert RegistryClient().search(reference, sought()).found
        assert not RegistryClient().search(reference, sought(), architecture="arm64").found
        with pytest.raises(BadImage, match="no image for linux/s390x; it has amd64, arm64") as raised:
            RegistryClient().search(reference, sought(), architecture="s390x")
    assert raised.value.layer == ""


def cut(asked: Asked) -> Answer | None:
    """Layers break off after a hundred bytes, each time."""
    return None if "/blobs/" not in asked.path else Answer(200, b"x" * 1000, cut=100)


def gone(asked: Asked) -> Answer | None:
    """Layers are not there."""
    return Answer(404) if "/blobs/" in asked.path else None


def wrong(asked: Asked) -> Answer | None:
    """Layers are something else, and more of it."""
    return Answer(200, b"no gzip" * 1000) if "/blobs/" in asked.path else None


@pytest.mark.parametrize(
    ("rule", "error"), [(cut, Unreachable), (gone, ImageNotFound), (wrong, BadImage)], ids=["cut", "gone", "wrong"]
)
def test_an_error_names_its_layer(tmp_path: Path, rule: Rule, error: type[OciError]) -> None:
    """So that it is known from one about the manifest."""
    layout = layout_in(tmp_path)
    made = put_image(layout, [Made(KO)])
    access = Access(wait=lambda _seconds: False)
    with odd_registry(layout, rule) as odd, pytest.raises(error) as raised:
        RegistryClient(access).search(parse(f"{odd.host}/a/b@{made.digest}"), sought())
    assert raised.value.layer.startswith("sha256:")


def entries(*made: Made) -> list[tuple[str, Entry]]:
    """Entries as a layer's reader gives them."""
    return [
        (one.name, Entry(name=one.name, kind=one.type, size=len(one.data), mode=0o644, linkname=one.link))
        for one in made
    ]


FOLDERS = ("opt", "opt/lib", "opt/lib/modules", FOLDER)


@pytest.mark.parametrize(
    ("made", "names"),
    [
        pytest.param([folder("a")], ["a"], id="a folder"),
        pytest.param([folder("a/b/c")], ["a", "a/b", "a/b/c"], id="those that it is in"),
        pytest.param([folder("a/b"), Made("a/b/c"), folder("a")], ["a", "a/b"], id="each of them once"),
        pytest.param([Made("a/b")], ["a"], id="a file of no interest by its folder"),
        pytest.param([symlink("a", "/b/c")], ["a", "b/c"], id="a link, and where it leads"),
        pytest.param([Made("a/.wh.b")], ["a/b"], id="what is hidden"),
        pytest.param([Made("a/.wh..wh..opq")], ["a"], id="a folder that begins anew"),
        pytest.param([Made("a/b.ko")], ["a"], id="a file that is not wanted"),
        pytest.param([Made("simple.ko")], ["simple.ko"], id="a file of a wanted name"),
        pytest.param([symlink("b.ko", "a")], [], id="a link that is not wanted"),
        pytest.param([Made("opt")], ["opt"], id="a file in a folder's place"),
        pytest.param([Made(f"{FOLDER}/b")], [*FOLDERS, f"{FOLDER}/b"], id="a file beside those that are looked for"),
    ],
)
def test_what_is_remembered(made: list[Made], names: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A name costs its characters and 120 bytes; there is room for so much, and for not a byte more."""
    room = sum(len(name) + 120 for name in names)
    monkeypatch.setattr(file_search, "MAX_REMEMBERED_BYTES", room)
    Search("image", sought()).layer(entries(*made))
    if names:
        monkeypatch.setattr(file_search, "MAX_REMEMBERED_BYTES", room - 1)
        with pytest.raises(BeyondLimits):
            Search("image", sought()).layer(entries(*made))


def test_how_much_is_remembered() -> None:
    """8 MiB; an image that is made to fill the memory is not known, not searched on."""
    found = Search("image", sought())
    found.layer(entries(*(folder(f"{at:0880}") for at in range(8388)), folder("x" * 488)))
    with pytest.raises(BeyondLimits) as caught:
        found.layer(entries(folder("y")))
    said = "image image: the names of its folders and links have more than 8388608 bytes"
    assert str(caught.value) == said


def test_how_many_links_are_followed() -> None:
    """512 on the way to the folder or in it, whatever others there are."""
    found = Search("image", sought())
    found.layer(entries(*(symlink(f"{FOLDER}/l{at}", "/x") for at in range(512)), symlink("a", "b")))
    with pytest.raises(BeyondLimits) as caught:
        found.layer(entries(symlink(f"{FOLDER}/l", "/x")))
    assert str(caught.value) == f"image image: more than 512 links lead to or from {FOLDER}"


def test_links_to_other_folders_are_followed_in_bounded_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 512 links to folders elsewhere each is looked at once for each later one; links below those are refused."""
    fan = [symlink(f"{FOLDER}/l{at}", f"/elsewhere/d{at}") for at in range(512)]
    monkeypatch.setattr(file_search, "MAX_LOOKUPS", 512 * 512 * 3)
    Search("image", sought()).layer(entries(*fan))
    nested = [symlink(f"{FOLDER}/l{at}", "/" + "/".join("a" * (at + 1))) for at in range(256)]
    inside = [symlink("/".join("a" * 257) + f"/m{at}", f"/q{at}") for at in range(256)]
    with pytest.raises(BeyondLimits) as caught:
        Search("image", sought()).layer(entries(*nested, *inside))
    assert str(caught.value) == "image image: following its links takes more than 786432 lookups"


@pytest.mark.parametrize("links", [40, 41])
def test_how_many_links_one_after_the_other(links: int) -> None:
    """40, as in Linux; behind more than that nothing is found."""
    found = Search("image", sought())
    chain = ["opt", *(f"l{at}" for at in range(1, links + 1))]
    found.layer(entries(*(symlink(one, f"/{other}") for one, other in itertools.pairwise(chain))))
    assert found.layer(entries(Made(f"l{links}/lib/modules/5.14.0/simple.ko"))) is (links == 40)


def test_links_of_a_distribution_cost_nothing() -> None:
    """Tens of thousands of links that lead elsewhere are remembered once each and looked at no more."""
    found = Search("image", sought())
    found.layer(entries(Made("opt/lib/modules/1/simple.ko"), *(symlink(f"etc/l{at}", "x") for at in range(20_000))))
    assert found.elsewhere == ("opt/lib/modules/1/simple.ko",)
    assert file_search.MAX_REMEMBERED_BYTES > 20_000 * 140


@pytest.mark.parametrize("media_type", [images.LAYER_GZIP, images.LAYER_ZSTD])
def test_a_layer_cut_short_is_broken(tmp_path: Path, media_type: str) -> None:
    """Also where the digest holds: what was not there is unknown absent."""
    layout = layout_in(tmp_path)
    data = tar([Made("a", os.urandom(100_000)), Made("b")])
    made = put_image(layout, data[:50_000], media_type=media_type)
    with odd_registry(layout) as odd, pytest.raises(BadImage, match="is broken"):
        RegistryClient().search(parse(f"{odd.host}/a/b@{made.digest}"), sought())
