"""An installed operator has no update path in the catalog that comes with the target.

Applies when the package of a Subscription is not in the target's catalog, its channel is not, or nothing in that
channel is or follows the installed version; and when the catalog says that one of them is at the end of its life. Each
Subscription is a separate risk. The image of a CatalogSource after the update comes from the target's manifests, from
the annotation `olm.catalogImageTemplate` for the target's Kubernetes, or, for the four catalogs of the platform's
marketplace, from their tag, which is the release's minor version: `redhat-operator-index:v4.17`. All other catalogs
stay as they are, and are not a reason for a finding. In a cluster the target reads the image itself
([how](../operator.md#the-catalogs-of-the-target)); `runup preflight run` does with `--read-catalogs`, or uses
`--target-catalog SOURCE=IMAGE`. An unreadable catalog is Unknown for its operators alone.

Why it matters: once the cluster is updated, its catalogs are those of its new minor version: an operator that is not
in them gets no updates, and neither does one whose channel was removed; no error is reported.

Remedy: change the Subscription's channel to one that is in both catalogs, and let it update, before the cluster is
updated; `oc get packagemanifest NAME -o yaml` shows the present channels, and `oc get subscription NAME -o yaml` the
selected one.

Accepting it means that this operator stays at its version.

Source of the rule: operator-registry, `alpha/declcfg` (file-based catalogs); operator-lifecycle-manager,
`pkg/controller/registry/resolver` (replaces, skips, skipRange) and `pkg/controller/registry/catalogtemplate`;
operator-marketplace, `defaults/`.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubekit.lang.text import cut
from runup.api.olm_v1alpha1 import CatalogSource, Subscription
from runup.checks.catalogue.olm.shared.installed_operators import target_name
from runup.checks.catalogue.olm.shared.olm_catalog_images import IMAGE_UNCHANGED, expected_image
from runup.checks.decide.file_based_catalog import Package
from runup.checks.decide.model import DEFINITIONS, Context, Finding, Snapshot
from runup.checks.writing import LONGEST_CAUSE, MINOR, Findings, declared, full_name, names, risk, unknown

NAME = "OperatorNotInTargetCatalog"
DEPRECATED = "OperatorDeprecatedInTarget"
EXAMPLE = """
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata:
  name: redhat-operators
  namespace: openshift-marketplace
  annotations: {operatorframework.io/managed-by: marketplace-operator}
spec: {image: 'registry.example/redhat-operator-index:v5.0'}
---
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: logging, namespace: openshift-logging}
spec: {name: logging, channel: stable-5.8, source: redhat-operators, sourceNamespace: openshift-marketplace}
status: {state: AtLatestKnown, installedCSV: logging.v5.8.1, currentCSV: logging.v5.8.1}
---
# what registry.example/redhat-operator-index:v5.2 has
schema: olm.package
name: logging
defaultChannel: stable-6.2
---
schema: olm.channel
package: logging
name: stable-6.2
entries: [{name: logging.v6.2.0}]
"""


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields the findings of each Subscription whose catalog for the target lacks its package, channel or version."""
    # Only an installed operator can be left behind.
    subs = [sub for sub in sorted(snapshot.all_or_none(Subscription), key=full_name) if sub.status.installed_csv]
    # CatalogSources are needed only where the user has not named the catalog's image.
    needs_sources = any(sub.spec.source not in context.catalogs.named for sub in subs)
    sources: Sequence[CatalogSource] = snapshot.all_or_none(CatalogSource) if needs_sources else ()
    for sub in subs:
        expected = expected_image(sub, sources, context)
        if expected.problem:
            yield _unknown_finding(sub, expected.problem)
        if expected.problem or expected == IMAGE_UNCHANGED:
            continue
        catalog = context.catalogs.catalog_of(expected.image, sub.spec.name)
        if catalog.problem:
            why = cut(" ".join(catalog.problem.split()), 2 * LONGEST_CAUSE)
            yield _unknown_finding(sub, f"{catalog.image}: {why}")
            continue
        package = catalog.packages.get(sub.spec.name)
        if lack := _lacking_entry(sub, package):
            yield risk(
                f"{NAME}-{sub.metadata.name}",
                f"Operator {full_name(sub)} has no update path in the catalog of {target_name(context)} "
                f"({catalog.image}): {lack}.",
                [sub],
                fix="Change its channel to one that both catalogs have, before the cluster is updated; or plan "
                "without it.",
            )
            continue
        deprecated = package.deprecated if package else {}
        channel = sub.spec.channel or (package.default_channel if package else "")
        keys = ("package", f"channel {channel}", f"bundle {sub.status.installed_csv}")
        if messages := [f"{key}: {deprecated[key]}" for key in keys if key in deprecated]:
            yield risk(
                f"{DEPRECATED}-{sub.metadata.name}",
                f"Operator {full_name(sub)} is at the end of its life in the catalog of "
                f"{target_name(context)}: {'; '.join(messages)}.",
                [sub],
                fix="Do what the catalog says: another channel, or another operator.",
                severity="info",
            )


def _unknown_finding(sub: Subscription, why: str) -> Finding:
    option = f"--target-catalog {sub.spec.source or 'SOURCE'}=IMAGE"
    fix = f"Let it be read, or look from where it can be: runup preflight run --read-catalogs, or {option}."
    return unknown(NAME, f"{full_name(sub)}: {why}", [sub], fix=fix)


def _lacking_entry(sub: Subscription, package: Package | None) -> str:
    """Returns why the installed version has no update path, or an empty string if it has one."""
    if package is None or not package.channels:
        return f"it has no package {sub.spec.name}"
    channel = sub.spec.channel or package.default_channel
    entries = package.channels.get(channel)
    if entries is None:
        channel_names = names(sorted(package.channels))
        return f"it has no channel {channel}, but {channel_names} (by default {package.default_channel})"
    # A skipRange names versions, which a name cannot be compared with: it counts as an update path.
    if not any(
        sub.status.installed_csv in (entry.name, entry.replaces, *entry.skips) or bool(entry.skip_range)
        for entry in entries
    ):
        return f"nothing in its channel {channel} is or follows {sub.status.installed_csv}"
    return ""


CHECK = declared(
    run, NAME, "operator-lifecycle-manager", reads=(Subscription, CatalogSource, DEFINITIONS), rank=470, updates=MINOR
)
