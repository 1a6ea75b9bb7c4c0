"""Cloud credentials are managed manually, and those of the target do not exist yet.

Applies when CloudCredential says credentialsMode Manual and its annotation
`cloudcredential.openshift.io/upgradeable-to` names no version as new as the target. The target's CredentialsRequests
that the cluster does not have are named, where its manifests can be read.

Why it matters: a component of the target that needs a new account, or a new right, does not start.

Remedy: create the accounts from the target's CredentialsRequests (`ccoctl`, `oc adm release extract
--credentials-requests`), then set the annotation to the target's version.

Accepting it is right where the target needs nothing new.

Source of the rule: cloud-credential-operator, `pkg/operator/status` (upgradeable), and the OpenShift documentation of
clusters with manually maintained credentials.
"""

from __future__ import annotations

from kubekit.lang.version import parse
from runup.api.operator_v1 import CloudCredential, CredentialsRequest
from runup.checks.decide.model import DEFINITIONS, Context, Snapshot, Unreadable
from runup.checks.writing import MINOR, Findings, declared, full_name, names, resource_of, risk

NAME = "CloudCredentialsNotReady"
ANNOTATION = "cloudcredential.openshift.io/upgradeable-to"
EXAMPLE = """
apiVersion: operator.openshift.io/v1
kind: CloudCredential
metadata: {name: cluster}
spec: {credentialsMode: Manual}
"""


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields a risk if credentials are maintained manually and not annotated as ready for the target."""
    for config in snapshot.all_or_none(CloudCredential):
        annotation = config.metadata.annotations.get(ANNOTATION, "")
        # Compared as the operator does: the version may begin with `v`, and may lack the patch.
        text = annotation.removeprefix("v")
        ready_for = parse(text) or parse(f"{text}.0")
        is_ready = ready_for is not None and ready_for.minor_version >= context.target.minor_version
        # In any other mode the operator makes the credentials itself.
        if config.spec.credentials_mode != "Manual" or is_ready:
            continue
        lacking: Unreadable | None = None
        new: set[str] = set()
        try:
            present = {full_name(request) for request in snapshot.all_or_none(CredentialsRequest)}
            # Which are new is known only if all of the cluster's own are.
            if snapshot.has_all(resource_of(CredentialsRequest)):
                of_target = [each for each in context.manifests or () if each.get("kind") == "CredentialsRequest"]
                metadata = [manifest["metadata"] for manifest in of_target]
                new = {f"{each.get('namespace', '')}/{each.get('name', '')}" for each in metadata} - present
        except Unreadable as error:
            lacking = error
        says = f"says {annotation!r}" if annotation else "is not set"
        yield risk(
            NAME,
            f"Credentials are maintained by hand, and annotation {ANNOTATION} {says}, so nobody has confirmed those of "
            f"{context.target}{f'; new are {names(sorted(new))}' if new else ''}.",
            [config],
            fix=f"Make the accounts that {context.target} asks for, then annotate CloudCredential cluster with it.",
        )
        if lacking:
            raise lacking


CHECK = declared(
    run,
    NAME,
    "cloud-credential-operator",
    reads=(CloudCredential, CredentialsRequest, DEFINITIONS),
    rank=380,
    updates=MINOR,
)
