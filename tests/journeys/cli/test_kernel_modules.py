"""Three kernel modules before an update: one has an image for the new kernel, one has none, one is built by a Job.

The operator runs as a pod of the sandbox with the rights of its manifests, the builder as the Job's pod, and images
come from the sandbox's registry.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.journeys.conftest import Sandbox
from tests.servers import eventually

from kubekit.api.scheme import resource_of
from kubekit.kube import calls
from kubekit.kube.api_errors import AlreadyExists, ServerError
from runup.api.kmm_v1beta1 import Module
from runup.api.kmm_v1beta1 import PreflightValidationOCP as OldPreflightValidationOCP
from runup.api.kmm_v1beta2 import PreflightValidation, PreflightValidationOCP
from runup.kernelmodules.decide.build_jobs import JOBS

OCPS, OLD = resource_of(PreflightValidationOCP), resource_of(OldPreflightValidationOCP)
KERNEL = "5.14.0-611.5.1.el9_7.x86_64"
# Two pods start, pull and run, on a machine that may be busy with everything else.
DEADLINE_S = 240.0

pytestmark = pytest.mark.timeout(600)


def module_statuses(sandbox: Sandbox) -> dict[str, tuple[str, str]]:
    """Status and stage of every Module, as the PreflightValidationOCP has them."""
    found = sandbox.client.send(calls.get(PreflightValidationOCP, "preflight"))
    return {each.name: (each.verification_status, each.verification_stage) for each in found.status.modules}


def ocp(image: str) -> dict[str, Any]:
    """As Kernel Module Management's documentation has it: in the older version, which the server converts."""
    return {
        "apiVersion": OLD.api_version,
        "kind": OCPS.kind,
        "metadata": {"name": "preflight"},
        "spec": {"releaseImage": image, "pushBuiltImage": True},
    }


def asked(sandbox: Sandbox, body: dict[str, Any]) -> bool:
    """Whether the validation was taken: for a moment the operator's webhook is not there yet."""
    try:
        sandbox.client.send(calls.create(OLD, body))
    except AlreadyExists:
        return True
    except ServerError:
        return False
    return True


def nothing_is_left(sandbox: Sandbox) -> bool:
    kinds = (resource_of(PreflightValidation), JOBS)
    return not any(sandbox.client.send(calls.list_raw(kind)).items for kind in kinds)


def test_one_is_good_one_is_missing_one_is_built(kernel_modules: Sandbox) -> None:
    """And the one that is missing is tried again as soon as its Module is fixed."""
    sandbox = kernel_modules
    repository = sandbox.cluster_version().status.desired.image.partition("@")[0]
    eventually(lambda: asked(sandbox, ocp(f"{repository}:5.1.0")), "the webhook answers", DEADLINE_S)
    expected = {"good": ("Success", "Done"), "missing": ("Failure", "Done"), "built": ("Success", "Done")}
    eventually(
        lambda: module_statuses(sandbox) == expected, f"{expected}, not only {module_statuses(sandbox)}", DEADLINE_S
    )
    status = sandbox.client.send(calls.get(PreflightValidationOCP, "preflight")).status
    assert [each.kernel_version for each in status.kernels] == [KERNEL]
    reasons = {each.name: each.status_reason for each in status.modules}
    assert "inaccessible or does not exists" in reasons["missing"]
    assert "build compiles and image pushed" in reasons["built"]
    old = sandbox.client.send(calls.get(OldPreflightValidationOCP, "preflight")).status.cr_statuses
    assert {key: each.verification_status for key, each in old.items() if "/" in key} == {
        f"drivers/{name}": str(verified == "Success") for name, (verified, _) in expected.items()
    }
    good = sandbox.client.send(calls.get_raw(resource_of(Module), "good", "drivers"))
    mended = {"spec": {"moduleLoader": good["spec"]["moduleLoader"]}}
    sandbox.client.send(calls.merge_patch(resource_of(Module), "missing", mended, "drivers"))
    eventually(
        lambda: module_statuses(sandbox)["missing"] == ("Success", "Done"), "the mended Module is verified", DEADLINE_S
    )
    # What was built is in the registry now: without the controller, and without a build, it is found there.
    image = good["spec"]["moduleLoader"]["container"]["kernelMappings"][0]["containerImage"]
    checked = sandbox.run("kmod", "check", "--kernel", KERNEL, "--inner-registry", image.partition("/")[0])
    assert checked.code == 0, checked.out + checked.err
    sandbox.client.send(calls.delete(OCPS, "preflight"))
    eventually(lambda: nothing_is_left(sandbox), "what the validation made goes with it", DEADLINE_S)
