"""Renders a run as an OpenShift Build, for clusters that serve them, and reads a Build's status. Pure."""

from __future__ import annotations

from typing import Any

from kubekit.api.meta_v1 import key_of
from kubekit.api.scheme import resource_of
from kubekit.rules.owners import controller_of
from runup.api.build_v1 import Build
from runup.kernelmodules.decide import runs

JSON = dict[str, Any]
BUILDS = resource_of(Build)
# Any other phase (Failed, Error, Cancelled) is a failure; without a phase the Build has not started.
_STATES = {
    "New": runs.RunState.RUNNING,
    "Pending": runs.RunState.RUNNING,
    "Running": runs.RunState.RUNNING,
    "Complete": runs.RunState.SUCCEEDED,
}


def build(wanted_run: runs.WantedRun, owner: JSON, deadline_s: int) -> JSON:
    """Returns the Build to apply for `wanted_run` (build.openshift.io/v1, by the serviceAccount `builder`)."""
    # Without an output the Build runs, and its image is pushed nowhere: the build is only tried.
    output: JSON = {"to": {"kind": "DockerImage", "name": wanted_run.target}} if wanted_run.target else {}
    auth = {"name": wanted_run.auth_secret} if wanted_run.auth_secret else None
    if output and auth:
        output["pushSecret"] = auth
    strategy: JSON = {
        "buildArgs": [{"name": argument.name, "value": argument.value} for argument in wanted_run.arguments],
        "volumes": [
            {
                "name": f"secret-{at}",
                "mounts": [{"destinationPath": secret.path}],
                "source": {"type": "Secret", "secret": {"secretName": secret.name, "optional": False}},
            }
            for at, secret in enumerate(wanted_run.secrets)
        ],
        **({"pullSecret": auth} if auth else {}),
    }
    return {
        "apiVersion": BUILDS.api_version,
        "kind": BUILDS.kind,
        "metadata": {
            "name": wanted_run.key.name,
            "namespace": wanted_run.namespace,
            "labels": runs.labels(wanted_run),
            "annotations": runs.notes(wanted_run),
            "ownerReferences": [owner],
        },
        "spec": {
            "serviceAccount": "builder",
            "source": {"type": "Dockerfile", "dockerfile": wanted_run.dockerfile},
            "strategy": {"type": "Docker", "dockerStrategy": strategy},
            "output": output,
            "nodeSelector": dict(wanted_run.selector),
            "mountTrustedCA": True,
            "completionDeadlineSeconds": deadline_s,
        },
    }


def run_of(build: Build) -> runs.Run | None:
    """Returns the run that a Build represents, None if the Build has no controlling owner."""
    owner = controller_of(build.metadata.owner_references)
    if owner is None:
        return None
    status = build.status
    state = _STATES.get(status.phase, runs.RunState.FAILED if status.phase else runs.RunState.RUNNING)
    # One that failed without saying when counts from when it was made: it would never be tried again otherwise.
    ended_at = status.completion_timestamp or build.metadata.creation_timestamp
    detail = status.message
    if state is runs.RunState.FAILED:
        words = status.log_snippet or status.message or status.reason
        detail = words if status.phase == "Failed" else f"the Build ended as {status.phase}: {words}"
    return runs.Run(
        key=key_of(build),
        uid=build.metadata.uid,
        runner=runs.Runner.BUILDS,
        module=build.metadata.annotations.get(runs.MODULE_LABEL, build.metadata.labels.get(runs.MODULE_LABEL, "")),
        owner_uid=owner.uid,
        state=state,
        detail=runs.snippet(detail),
        ended_at=None if state is runs.RunState.RUNNING else ended_at,
        deleting=build.metadata.deletion_timestamp is not None,
    )
