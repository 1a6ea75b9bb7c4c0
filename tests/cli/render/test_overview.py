"""`upgrade` without flags, byte for byte. Expected texts are oc's, from its documented behaviour."""

from __future__ import annotations

from typing import Any

import pytest

from runup.cli import facts
from runup.cli.render.overview import overview

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
    """The sample of the reference: the second column starts at 14."""
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
