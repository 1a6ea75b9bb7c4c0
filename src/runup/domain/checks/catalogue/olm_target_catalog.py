"""An installed operator has no way on in the catalog that comes with the target.

Applies when the package of a Subscription is not in the target's catalog, its channel is not, or nothing in that
channel is or follows the installed version; and when the catalog says that one of them is at the end of its life.
Each Subscription is a risk of its own. It runs where `runup preflight run --target-catalog SOURCE=IMAGE` names the
image that a CatalogSource will have on the target, such as
`redhat-operators=registry.example/redhat-operator-index:v4.17`; of a source for which none is named, it is Unknown.

Why it matters once the cluster is updated, its catalogs are those of its new minor version: an operator that is not in
them gets no update any more, and one whose channel is gone stays where it is without a word.

What to do change the Subscription's channel to one that is in both catalogs, and let it update, before the cluster is
updated; `oc get packagemanifest NAME -o yaml` shows those of today.

Accepting it means that this operator stays at its version.

Source of the rule operator-registry, `alpha/declcfg` (file-based catalogs); operator-lifecycle-manager,
`pkg/controller/registry/resolver` (replaces, skips, skipRange).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from runup.api.olm_v1alpha1 import Subscription
from runup.domain.checks.catalogue.declaring import MINOR, declared, named, risk, unsure
from runup.domain.checks.catalogue.olm import READS, target_name
from runup.domain.checks.catalogue.presence import all_or_none
from runup.domain.checks.catalogue.wording import names
from runup.domain.checks.file_based_catalog import Entry, Package
from runup.domain.checks.model import Check, Context, Finding, Snapshot

NAME = "OperatorNotInTargetCatalog"
DEPRECATED = "OperatorDeprecatedInTarget"
EXAMPLE = """
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: logging, namespace: openshift-logging}
spec: {name: logging, channel: stable-5.8, source: redhat-operators}
status: {state: AtLatestKnown, installedCSV: logging.v5.8.1, currentCSV: logging.v5.8.1}
"""


@dataclass(frozen=True, slots=True)
class TargetCatalog:
    """What was read of the image of one CatalogSource: the packages that were looked for, or why it could not be."""

    image: str
    packages: Mapping[str, Package] = field(default_factory=dict)
    problem: str = ""


Catalogs = Mapping[str, TargetCatalog]
_EXAMPLE_CATALOGS: Catalogs = {
    "redhat-operators": TargetCatalog(
        "registry.example/index:v5.2",
        {"logging": Package("logging", "stable-6.2", {"stable-6.2": (Entry("logging.v6.2.0"),)})},
    )
}


def with_catalogs(catalogs: Catalogs) -> Check:
    """The check, judging by these: name of a CatalogSource -> what its image has for the target."""
    return replace(CHECK, run=lambda snapshot, context: _run(snapshot, context, catalogs))


def _run(snapshot: Snapshot, context: Context, catalogs: Catalogs) -> Iterator[Finding]:
    for sub in sorted(all_or_none(snapshot, Subscription), key=named):
        if not sub.status.installed_csv:
            continue  # nothing is installed that could be left behind
        catalog = catalogs.get(sub.spec.source)
        if catalog is None or catalog.problem:
            yield _unknown(sub, catalog)
            continue
        yield from _judged(sub, catalog, context)


def _unknown(sub: Subscription, catalog: TargetCatalog | None) -> Finding:
    source = sub.spec.source or "SOURCE"
    why = f"{catalog.image}: {catalog.problem}" if catalog else f"no image of {source} for the target is named"
    return unsure(
        NAME, f"{named(sub)}: {why}", [sub], fix=f"Name one that can be read: --target-catalog {source}=IMAGE."
    )


def _judged(sub: Subscription, catalog: TargetCatalog, context: Context) -> Iterator[Finding]:
    package = catalog.packages.get(sub.spec.name)
    lack = _lack(sub, package)
    if lack:
        yield risk(
            f"{NAME}-{sub.metadata.name}",
            f"Operator {named(sub)} has no way on in the catalog of {target_name(context)} ({catalog.image}): {lack}.",
            [sub],
            fix="Change its channel to one that both catalogs have, before the cluster is updated; or plan without it.",
        )
    elif package is not None:
        yield from _deprecations(sub, package, context)


def _lack(sub: Subscription, package: Package | None) -> str:
    """What keeps the installed version from going on, empty where nothing does."""
    if package is None or not package.channels:
        return f"it has no package {sub.spec.name}"
    channel = sub.spec.channel or package.default_channel
    entries = package.channels.get(channel)
    if entries is None:
        there = names(sorted(package.channels))
        return f"it has no channel {channel}, but {there} (by default {package.default_channel})"
    if not any(_follows(entry, sub.status.installed_csv) for entry in entries):
        return f"nothing in its channel {channel} is or follows {sub.status.installed_csv}"
    return ""


def _follows(entry: Entry, installed: str) -> bool:
    # A skipRange is of versions, and says nothing that a name could be compared with: it counts as a way on.
    return installed in (entry.name, entry.replaces, *entry.skips) or bool(entry.skip_range)


def _deprecations(sub: Subscription, package: Package, context: Context) -> Iterator[Finding]:
    channel = sub.spec.channel or package.default_channel
    what = ("package", f"channel {channel}", f"bundle {sub.status.installed_csv}")
    said = [f"{key}: {package.deprecated[key]}" for key in what if key in package.deprecated]
    if said:
        yield risk(
            f"{DEPRECATED}-{sub.metadata.name}",
            f"Operator {named(sub)} is at the end of its life in the catalog of {target_name(context)}: "
            f"{'; '.join(said)}.",
            [sub],
            fix="Do what the catalog says: another channel, or another operator.",
            severity="info",
        )


CHECK = declared(
    __doc__,
    NAME,
    "operator-lifecycle-manager",
    (*READS, Subscription),
    lambda snapshot, context: _run(snapshot, context, _EXAMPLE_CATALOGS),
    updates=MINOR,
    example=EXAMPLE,
)
"""As its page shows it; `with_catalogs` is what judges."""
