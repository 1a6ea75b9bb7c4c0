"""Which preflights count as ended: of targets that are ahead, what nobody looks at, and not asked for now."""

from __future__ import annotations

import pytest
from tests.factories import NOW, cluster_version

from kubekit.api.meta_v1 import Condition
from runup.api.config_v1 import ConditionalUpdate, ConditionalUpdateRisk, Release, Update
from runup.preflight.decide.findings import ended_findings
from runup.preflight.decide.stored_reports import History
from runup.report.report import FORMAT, Report

IMAGE = "example.com/release@sha256:"


def image(version: str) -> str:
    """The image of a release."""
    return IMAGE + version.replace(".", "") * 20


def offered(version: str, *reasons: str) -> ConditionalUpdate:
    """An update with a risk for each of the reasons that are given."""
    risks = tuple(
        ConditionalUpdateRisk(
            name=f"Risk{number}",
            message="m",
            url="https://example.com",
            conditions=(Condition(type="Applies", status="Unknown", reason=reason, last_transition_time=NOW),),
        )
        for number, reason in enumerate(reasons)
    )
    names = tuple(risk.name for risk in risks)
    return ConditionalUpdate(Release(version=version, image=image(version)), risk_names=names, risks=risks)


def stored(version: str, source: str = "5.0.0") -> Report:
    """A report that was complete."""
    return Report(
        format=FORMAT,
        preflight_id=f"{source}-{version}",
        source_version=source,
        target_version=version,
        target_image=image(version),
        execution_status="completed",
        observed_time=NOW,
    )


# As read from a server: equal to the reason that is looked for, and not the same string.
OLD = "".join(("Preflight", "Outdated"))
REPORTS = (stored("5.1.0"), stored("5.2.0"))
UPDATES = (offered("5.2.0", OLD), offered("5.1.0", OLD))


def asks(version: str = "", image_: str = "", mode: str = "Preflight") -> Update:
    """Returns the requests."""
    return Update(mode=mode, version=version, image=image_)


@pytest.mark.parametrize(
    ("reports", "updates", "asked", "expected"),
    [
        pytest.param((), UPDATES, None, [], id="nothing was kept"),
        pytest.param(REPORTS, (), None, [], id="nobody offers them any more"),
        pytest.param(REPORTS, UPDATES, None, ["5.1.0", "5.2.0"], id="nothing is asked for: each, the newest first"),
        pytest.param(REPORTS[::-1], UPDATES, None, ["5.2.0", "5.1.0"], id="the newest is the one stored first"),
        pytest.param(REPORTS, UPDATES, asks("5.1.0"), ["5.2.0"], id="one is asked for by its version"),
        pytest.param(REPORTS, UPDATES, asks("", image("5.1.0")), ["5.2.0"], id="one is asked for by its image"),
        pytest.param(REPORTS, UPDATES, asks("5.1.0", image("5.1.0")), ["5.2.0"], id="one is asked for by both"),
        pytest.param(REPORTS, UPDATES, asks("5.3.0"), ["5.1.0", "5.2.0"], id="another is asked for"),
        pytest.param(REPORTS, UPDATES, asks("5.1.0", mode=""), ["5.1.0", "5.2.0"], id="its update is asked for"),
        pytest.param(
            (stored("5.1.0", "4.9.0"), *REPORTS[1:]), UPDATES, None, ["5.1.0", "5.2.0"], id="one is of an older source"
        ),
        pytest.param((stored("5.1.0"), stored("5.1.0", "4.9.0")), UPDATES, None, ["5.1.0"], id="one is of two sources"),
        pytest.param(
            REPORTS,
            (offered("5.1.0", "PreflightValidation"), offered("5.2.0", OLD)),
            None,
            ["5.2.0"],
            id="one is still looked at",
        ),
        pytest.param(
            REPORTS,
            (offered("5.1.0", "PreflightFailed"), offered("5.2.0", OLD)),
            None,
            ["5.2.0"],
            id="one could not be looked at",
        ),
        pytest.param(
            REPORTS[:1],
            (offered("5.1.0", "UpdatePathNotOffered", OLD),),
            None,
            ["5.1.0"],
            id="it has a risk that no preflight found as well",
        ),
    ],
)
def test_which_preflights_are_told_as_ended(
    reports: tuple[Report, ...], updates: tuple[ConditionalUpdate, ...], asked: Update | None, expected: list[str]
) -> None:
    """The preflight that the user watches is reported elsewhere, in its current state."""
    cluster = cluster_version(desired_update=asked, conditional_updates=updates)
    found = ended_findings(cluster, History(reports=reports))
    assert [one.target for one in found] == expected
    assert all(one.ended for one in found)
