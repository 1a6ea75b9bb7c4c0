"""The target's image can only be pulled from mirrors.

Applies when an ImageDigestMirrorSet has mirrors for the repository of the target's image and mirrorSourcePolicy
NeverContactSource. Of several sources that cover it the most specific counts. It is critical where no mirror may be
used: no mirror exists, or Image `cluster` blocks the registry of each. If the target's image is not known, the check
uses the repository of the running release: without a source that covers this repository there is no finding, otherwise
the result is Unknown.

Why it matters: images that are not in a mirror cannot be pulled: pods of a release that was not mirrored end in
ImagePullBackOff, and the update stops at its beginning.

Remedy: mirror the target release with its images and
signatures first (`oc adm release mirror`, `oc mirror`), and try one of them: `oc adm release info MIRROR@DIGEST`.

Accepting it is right once the release is in the mirror.

Source of the rule: openshift/api, `config/v1` (ImageDigestMirrorSet, mirrorSourcePolicy);
containers-registries.conf(5); the OpenShift documentation of disconnected environments, Mirroring images.
"""

from __future__ import annotations

from runup.api.cluster_settings_v1 import Image, ImageDigestMirrorSet, ImageMirrors
from runup.api.config_v1 import ClusterVersion
from runup.checks.catalogue.shared.pull_specs import covers, repository_of, running_repository
from runup.checks.writing import DEFINITIONS, Context, Findings, Snapshot, declared, names, risk, unknown

NAME = "TargetOnlyMirrored"
EXAMPLE = """
apiVersion: config.openshift.io/v1
kind: ImageDigestMirrorSet
metadata: {name: releases}
spec:
  imageDigestMirrors:
  - source: quay.io/example/release
    mirrors: [mirror.example.com:5000/release]
    mirrorSourcePolicy: NeverContactSource
---
apiVersion: config.openshift.io/v1
kind: Image
metadata: {name: cluster}
spec: {registrySources: {blockedRegistries: ["mirror.example.com:5000"]}}
"""


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields a finding where nodes may pull the target's image from mirrors alone; critical if none is usable."""
    sets = sorted(snapshot.all_or_none(ImageDigestMirrorSet), key=lambda mirror_set: mirror_set.metadata.name)
    all_entries = [(mirror_set, entry) for mirror_set in sets for entry in mirror_set.spec.image_digest_mirrors]
    closed = [(mirror_set, entry) for mirror_set, entry in all_entries if _never_contacts_source(entry)]
    if not closed:
        return
    repository = repository_of(context.target_image)
    if not repository:
        running = running_repository(snapshot)
        affected = [mirror_set for mirror_set, entry in closed if not running or covers(entry.source, running)]
        if affected:
            yield unknown(
                NAME,
                "mirrors are asked instead of their sources, and the target's image is not known",
                {mirror_set.metadata.name: mirror_set for mirror_set in affected}.values(),
                fix="Compare the sources of `oc get imagedigestmirrorset -o yaml` with it.",
            )
        return
    # The entries with the most specific source count.
    covering = [(mirror_set, entry) for mirror_set, entry in all_entries if covers(entry.source, repository)]
    longest = max((len(entry.source) for _, entry in covering), default=0)
    entries = [(mirror_set, entry) for mirror_set, entry in covering if len(entry.source) == longest]
    if not any(_never_contacts_source(entry) for _, entry in entries):
        return
    blocked = [
        registry for image in snapshot.all_or_none(Image) for registry in image.spec.registry_sources.blocked_registries
    ]
    mirrors = list(dict.fromkeys(mirror for _, entry in entries for mirror in entry.mirrors))
    usable = [mirror for mirror in mirrors if not any(covers(registry, mirror) for registry in blocked)]
    # A set may have several of the entries, and is named once.
    about = list({id(mirror_set): mirror_set for mirror_set, _ in entries}.values())
    if usable:
        yield risk(
            NAME,
            f"The target's image {repository} is pulled from {names(usable)} alone.",
            about,
            severity="info",
            fix="Mirror the target release first, and look at it there: `oc adm release info MIRROR@DIGEST`.",
        )
    else:
        why = f"Image cluster blocks {names(mirrors)}" if mirrors else "no mirror exists"
        yield risk(
            NAME,
            f"The target's image {repository} may only be pulled from mirrors, and {why}.",
            about,
            severity="critical",
            fix="Name a mirror that nodes may use with `oc edit imagedigestmirrorset NAME`, and mirror the release.",
        )


def _never_contacts_source(entry: ImageMirrors) -> bool:
    return entry.mirror_source_policy == "NeverContactSource"


CHECK = declared(
    run,
    NAME,
    "machine-config-operator",
    reads=(ImageDigestMirrorSet, Image, ClusterVersion, DEFINITIONS),
    rank=702,
    severity="critical",
)
