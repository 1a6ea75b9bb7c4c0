"""`upgrade` without flags, byte for byte. Expected texts are oc's, from its documented behaviour."""

from __future__ import annotations

from typing import Any

import pytest

from runup.api import clusterversion_json as facts
from runup.cli.render.overview import as_data, overview

IMAGE = "quay.io/openshift-release-dev/ocp-release@sha256:36783a"


def _condition(type_: str, status: str, reason: str = "R", message: str = "") -> dict[str, Any]:
    return {"type": type_, "status": status, "reason": reason, "message": message}


FINE = [_condition("Failing", "False"), _condition("Progressing", "False", message="Cluster version is 4.14.1")]


def _printed(
    *, conditions: list[dict[str, Any]], spec: dict[str, Any] | None = None, flag: bool = False, **status: Any
) -> tuple[str, str]:
    seen = facts.read({"spec": {"clusterID": "x", **(spec or {})}, "status": {"conditions": conditions, **status}})
    printed = list(overview(seen, include_not_recommended=flag))
    return tuple("".join(text for stream, text in printed if stream == wanted) for wanted in ("out", "err"))  # type: ignore[return-value]


def _warning(type_: str) -> str:
    return f"warning: No current {type_} info, see `oc describe clusterversion` for more details.\n"


NO_UPDATES = (
    "No updates available. You may still upgrade to a specific release image with --to-image or wait for new updates "
    "to be available.\n"
)


def test_an_update_in_progress() -> None:
    """A sample of `oc`'s (docs/reference/upstream.md 12.1): the second column starts at 14."""
    out, err = _printed(
        conditions=[
            FINE[0],
            _condition("Progressing", "True", message="Working towards 4.14.1: 139 of 859 done (16% complete)"),
        ],
        spec={"channel": "candidate-4.14", "upstream": "https://api.integration.openshift.com/api/upgrades_info/graph"},
        desired={"version": "4.14.1", "channels": ["candidate-4.14", "candidate-4.15"]},
        availableUpdates=[{"version": "4.14.11", "image": IMAGE}],
    )
    assert err == ""
    assert out == (
        "info: An upgrade is in progress. Working towards 4.14.1: 139 of 859 done (16% complete)\n"
        "\n"
        "Upstream: https://api.integration.openshift.com/api/upgrades_info/graph\n"
        "Channel: candidate-4.14 (available channels: candidate-4.14, candidate-4.15)\n"
        "\n"
        "Recommended updates:\n"
        "\n"
        "  VERSION     IMAGE\n"
        f"  4.14.11     {IMAGE}\n"
    )


def test_a_cluster_that_knows_nothing() -> None:
    """Two warnings, the blank line, no channel block."""
    out, err = _printed(conditions=[])
    assert err == _warning("Failing") + _warning("Progressing")
    assert out == "\n" + NO_UPDATES


def test_everything_that_is_wrong() -> None:
    """Failing and ReleaseAccepted with a colon or equals sign as oc has them, Upgradeable without a colon."""
    out, err = _printed(
        conditions=[
            _condition("Failing", "Unknown", "Slow", "a\n\nb"),
            _condition("Progressing", "False", message="Cluster version is 4.14.1"),
            _condition("Upgradeable", "False", "Not", "c"),
            _condition("ReleaseAccepted", "False", "UnacceptedRisks", "d"),
            _condition("RetrievedUpdates", "False", "RemoteFailed", "e"),
        ],
        spec={"channel": "stable-4.14"},
    )
    assert err == "warning: Cannot display available updates:\n  Reason: RemoteFailed\n  Message: e\n\n"
    assert out == (
        "Failing=Unknown:\n\n  Reason: Slow\n  Message: a\n  \n  b\n\n"
        "Cluster version is 4.14.1\n"
        "\n"
        "Upgradeable=False\n\n  Reason: Not\n  Message: c\n\n"
        "ReleaseAccepted=False\n\n  Reason: UnacceptedRisks\n  Message: d\n\n"
        "Upstream is unset, so the cluster will use an appropriate default.\n"
        "Channel: stable-4.14\n"
    )


def test_stale_updates_are_shown_with_a_warning() -> None:
    """The list stays, stderr says that it cannot be refreshed."""
    out, err = _printed(
        conditions=[*FINE, _condition("RetrievedUpdates", "False", "RemoteFailed", "e")],
        availableUpdates=[{"version": "4.14.2", "image": "x"}, {"version": "4.14.11", "image": "y"}],
    )
    assert err == "warning: Cannot refresh available updates:\n  Reason: RemoteFailed\n  Message: e\n\n"
    assert out.endswith("\nRecommended updates:\n\n  VERSION     IMAGE\n  4.14.11     y\n  4.14.2      x\n")


def test_a_long_version_has_one_space_behind_it() -> None:
    """As `oc` writes the table: tabwriter.NewWriter(o.Out, 14, 2, 1, ' ', 0) in pkg/cli/admin/upgrade/upgrade.go."""
    out, _ = _printed(conditions=FINE, availableUpdates=[{"version": "4.15.0-rc.10", "image": "x"}])
    assert out.endswith("\nRecommended updates:\n\n  VERSION      IMAGE\n  4.15.0-rc.10 x\n")


def _conditional(version: str, status: str | None) -> dict[str, Any]:
    conditions = [] if status is None else [_condition("Recommended", status, "Risk", " One.\nTwo. ")]
    return {"release": {"version": version, "image": f"image-of-{version}"}, "conditions": conditions}


MORE = (
    "for your cluster configuration are available, to view those re-run the command with --include-not-recommended.\n"
)
CONDITIONAL: dict[str, tuple[list[dict[str, Any]], bool, str]] = {
    "hidden": (
        [_conditional("4.15.0", "False")],
        False,
        f"\nAdditional updates which are not recommended {MORE}",
    ),
    "hidden, one of them unknown": (
        [_conditional("4.15.0", "False"), _conditional("4.15.1", "Unknown")],
        False,
        f'\nAdditional updates which are not recommended, or where the recommended status is "Unknown", {MORE}',
    ),
    "recommended or without the condition": (
        [_conditional("4.15.0", "True"), _conditional("4.15.1", None)],
        False,
        "",
    ),
    "shown": (
        [_conditional("4.15.0", "False"), _conditional("4.15.10", "Unknown")],
        True,
        "\nUpdates with known issues:\n"
        "\n  Version: 4.15.10\n  Image: image-of-4.15.10\n  Reason: Risk\n  Message: One.\n  Two.\n"
        "\n  Version: 4.15.0\n  Image: image-of-4.15.0\n  Reason: Risk\n  Message: One.\n  Two.\n",
    ),
    "shown, but there is none": (
        [],
        True,
        "\nNo updates which are not recommended based on your cluster configuration are available.\n",
    ),
}


@pytest.mark.parametrize("name", CONDITIONAL)
def test_conditional_updates(name: str) -> None:
    """Those that are not recommended are listed only when asked for."""
    updates, flag, text = CONDITIONAL[name]
    out, _ = _printed(conditions=FINE, conditionalUpdates=updates, flag=flag)
    assert out == f"Cluster version is 4.14.1\n\n{NO_UPDATES}{text}"


@pytest.mark.parametrize(
    ("type_", "shown"),
    [
        ("Failing", {"True": "Failing=True:", "Unknown": "Failing=Unknown:", "False": ""}),
        ("Upgradeable", {"True": "", "Unknown": "", "False": "Upgradeable=False"}),
        ("ReleaseAccepted", {"True": "", "Unknown": "ReleaseAccepted=Unknown", "False": "ReleaseAccepted=False"}),
    ],
)
def test_which_conditions_are_shown(type_: str, shown: dict[str, str]) -> None:
    """Of Failing and ReleaseAccepted all that is not well, of Upgradeable a clear no."""
    for status, said in shown.items():
        others = [each for each in FINE if each["type"] != type_]
        out, _ = _printed(conditions=[*others, _condition(type_, status, "R", "m")])
        assert (f"{type_}=" in out) is bool(said)
        assert said in out


@pytest.mark.parametrize(
    ("status", "message", "said"),
    [
        ("True", "m", "info: An upgrade is in progress. m\n"),
        ("False", "m", "m\n"),
        ("Unknown", "m", "m\n"),
        ("True", "", ""),
    ],
)
def test_how_the_update_goes(status: str, message: str, said: str) -> None:
    """Only one that continues is announced; without words there is a warning instead."""
    out, err = _printed(conditions=[FINE[0], _condition("Progressing", status, message=message)])
    assert out == f"{said}\n{NO_UPDATES}"
    assert err == ("" if message else _warning("Progressing"))


@pytest.mark.parametrize(("status", "stale"), [("True", False), ("Unknown", False), ("False", True)])
def test_when_updates_are_stale(status: str, stale: bool) -> None:
    """Where they could not be retrieved."""
    out, err = _printed(conditions=[*FINE, _condition("RetrievedUpdates", status, "R", "e")])
    assert bool(err) is stale
    assert (NO_UPDATES in out) is not stale


def test_the_overview_for_programs() -> None:
    """Both lists by version, newest first; no list is no list."""
    versions = ("4.14.2", "4.14.11", "4.14.3")
    document = {
        "spec": {"channel": "c", "upstream": "u", "desiredUpdate": {"version": "4.14.2"}},
        "status": {
            "desired": {"version": "4.14.1"},
            "conditions": FINE,
            "availableUpdates": [{"version": version} for version in versions],
            "conditionalUpdates": [{"release": {"version": version}} for version in versions],
        },
    }
    data = as_data(facts.read(document))
    newest = ["4.14.11", "4.14.3", "4.14.2"]
    assert [update["version"] for update in data["availableUpdates"]] == newest
    assert [update["release"]["version"] for update in data["conditionalUpdates"]] == newest
    assert {key: data[key] for key in ("desired", "channel", "upstream", "desiredUpdate", "conditions")} == {
        "desired": {"version": "4.14.1"},
        "channel": "c",
        "upstream": "u",
        "desiredUpdate": {"version": "4.14.2"},
        "conditions": FINE,
    }
    bare = as_data(facts.read({"status": {"availableUpdates": None}}))
    assert (bare["availableUpdates"], bare["conditionalUpdates"], bare["desiredUpdate"]) == (None, [], None)
    assert as_data(facts.read({"status": {"availableUpdates": []}}))["availableUpdates"] == []
