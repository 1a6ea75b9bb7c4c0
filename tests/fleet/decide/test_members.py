"""Which clusters a fleet has: each once, by a separate name, chosen by labels; anything else is one clear answer."""

from __future__ import annotations

from typing import Any

import pytest

from kubekit.lang import yaml as kyaml
from runup.fleet.decide.members import BadFleet, Member, fleet_of, members_in, refuse_password, select_members

HARBOUR = Member(name="harbour", context="harbour", labels={"env": "production", "zone": "a"})
ISLAND = Member(name="island", dump="dumps/island.tar.gz", labels={"env": "test"})
LIGHT = Member(name="light", kubeconfig="light.kubeconfig")


def test_a_fleet_is_sorted_by_name() -> None:
    """However it was named: results of two runs are compared."""
    assert fleet_of([LIGHT, HARBOUR, ISLAND]) == (HARBOUR, ISLAND, LIGHT)


REFUSED: dict[str, tuple[list[Member], str]] = {
    "no cluster": (
        [],
        "the fleet has no cluster; name some with --contexts, --kubeconfigs, --dumps, --inventory or --hub",
    ),
    "two of one name": (
        [Member(name="a", dump="x/a"), Member(name="a", context="a")],
        "2 clusters are called a: dump x/a and context a; give each a different name in a file for --inventory",
    ),
    "one context twice": (
        [Member(name="a", context="c"), Member(name="b", context="c")],
        "context c is given twice (as a and as b); a cluster counts once, so give it once",
    ),
    "one dump twice": (
        [Member(name="a", dump="x/a"), Member(name="a", dump="x/a")],
        "dump x/a is given twice; a cluster counts once, so give it once",
    ),
}


@pytest.mark.parametrize(("members", "said"), REFUSED.values(), ids=list(REFUSED))
def test_a_fleet_that_nobody_could_read(members: list[Member], said: str) -> None:
    """Names the error and the way out."""
    with pytest.raises(BadFleet) as caught:
        fleet_of(members)
    assert caught.value.message == said


@pytest.mark.parametrize(
    "address",
    ["s3://bucket/a:b@c", "abfs://container@account/dumps", "ftp://host:21/dumps", "dumps/a:b@c", "/x://y"],
)
def test_addresses_without_a_password(address: str) -> None:
    """A port, a container and what a file is called are none."""
    refuse_password(address, "--dumps")


def test_clusters_that_cannot_be_read_are_not_one_place() -> None:
    """Two broken kubeconfigs are two clusters, each with its own line."""
    broken = [Member(name="a", problem="it is empty"), Member(name="b", problem="it is empty")]
    assert fleet_of(broken) == tuple(broken)


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        pytest.param("", ["harbour", "island", "light"], id="everything"),
        pytest.param("env=production", ["harbour"], id="a value"),
        pytest.param("env == production", ["harbour"], id="with kubectl's other sign"),
        pytest.param("env!=production", ["island", "light"], id="another value, or none"),
        pytest.param("env", ["harbour", "island"], id="a label, whatever it is"),
        pytest.param("!env", ["light"], id="no such label"),
        pytest.param("env, zone=a", ["harbour"], id="two terms"),
    ],
)
def test_clusters_are_chosen_by_labels(selector: str, names: list[str]) -> None:
    """As kubectl's selectors have it."""
    assert [member.name for member in select_members([HARBOUR, ISLAND, LIGHT], selector)] == names


def test_a_selector_that_nothing_fits_is_a_mistake() -> None:
    """Else an empty fleet would have nothing in its way."""
    with pytest.raises(BadFleet) as caught:
        select_members([HARBOUR, ISLAND], "env=prod")
    assert caught.value.message == "no cluster has labels that fit 'env=prod'; the labels that there are: env, zone"


INVENTORY = """\
clusters:
- name: harbour
  context: admin@harbour
  labels: {env: production, edge: false, rack: 7}
- {name: light, kubeconfig: light.kubeconfig}
- {name: island, dump: /dumps/island.tar.gz}
- {name: far, dump: "s3://gathers/nov/far.tar.gz"}
"""


def test_an_inventory_names_clusters_and_where_they_are_read() -> None:
    """Paths are relative to its file."""
    assert members_in(kyaml.load(INVENTORY), "fleets/all.yaml") == (
        Member(name="harbour", context="admin@harbour", labels={"env": "production", "edge": "false", "rack": "7"}),
        Member(name="light", kubeconfig="fleets/light.kubeconfig"),
        Member(name="island", dump="/dumps/island.tar.gz"),
        Member(name="far", dump="s3://gathers/nov/far.tar.gz"),
    )


NO_LIST = "--inventory f.yaml: has no list `clusters`, of which an item is for example {name: NAME, context: CONTEXT}"
BAD: dict[str, tuple[Any, str]] = {
    "nothing": (None, NO_LIST),
    "a list": ([], NO_LIST),
    "the settings of another tool": ({"services": {"web": {"image": "nginx"}}}, NO_LIST),
    "a word": ({"clusters": ["a"]}, "f.yaml: clusters[0]: is not a map"),
    "no name": ({"clusters": [{"context": "a"}]}, "f.yaml: clusters[0]: name is missing"),
    "no place": (
        {"clusters": [{"name": "a"}]},
        "f.yaml: clusters[0]: where a is read is missing; give context, kubeconfig or dump",
    ),
    "two places": (
        {"clusters": [{"name": "a", "dump": "d", "context": "c"}]},
        "f.yaml: clusters[0]: dump and context both say where a is read",
    ),
    "a password": (
        {"clusters": [{"name": "a", "dump": "ftp://u:p@dumps.example/x"}]},
        "f.yaml: clusters[0]: dump: an address with a password would be printed and kept; leave it out, fsspec reads "
        "it from its configuration (~/.config/fsspec) or the environment",
    ),
    "a field that there is not": (
        {"clusters": [{"name": "a", "ctx": "a"}]},
        "f.yaml: clusters[0]: does not know ctx; it has name, context, kubeconfig, dump, labels",
    ),
    "a number for a name": ({"clusters": [{"name": 7, "dump": "d"}]}, "f.yaml: clusters[0]: name is not text"),
    "labels in a list": (
        {"clusters": [{"name": "a", "dump": "d", "labels": ["x"]}]},
        "f.yaml: clusters[0]: labels is not a map of names and values",
    ),
}


@pytest.mark.parametrize(("document", "said"), BAD.values(), ids=list(BAD))
def test_an_inventory_that_is_wrong_says_where(document: Any, said: str) -> None:
    """By entry and field."""
    with pytest.raises(BadFleet) as caught:
        members_in(document, "f.yaml")
    assert caught.value.message == said
