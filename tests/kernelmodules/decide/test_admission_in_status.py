"""The status reports objects that predate the rules, or come from another operator's definition."""

from __future__ import annotations

import pytest
from tests.kernelmodules.decide.validation_world import KERNEL, NOW, Story, module, observed_with, ocp

from runup.api.kmm_v1beta1 import Module
from runup.kernelmodules.decide.reconcile import reconcile
from runup.process.plan import PatchStatus


@pytest.mark.parametrize(
    ("bad", "shown"),
    [
        pytest.param(
            module(image="localhost:5000/kmod"),
            "container image must explicitely set a tag or digest; got: localhost:5000/kmod",
            id="neither tag nor digest",
        ),
        pytest.param(
            module(
                moduleLoader={
                    "container": {
                        "modprobe": {"moduleName": "kmod"},
                        "kernelMappings": [{"literal": KERNEL, "regexp": "(", "containerImage": "a:1"}],
                    }
                }
            ),
            "regexp and literal are mutually exclusive properties at kernelMappings[0]; invalid regexp at index 0: ",
            id="all that is wrong at once",
        ),
    ],
)
def test_a_module_that_cannot_work_is_not_tried(bad: Module, shown: str) -> None:
    """No registry is asked; it is looked at again once it is edited."""
    story = Story(observed_with(bad)).step()
    assert story.plan.work == ()
    assert story.observed.validation is not None
    (said,) = story.observed.validation.status.modules
    assert (said.verification_status, said.verification_stage) == ("Failure", "Done")
    assert said.status_reason.startswith(f"the Module is invalid: {shown}")


def test_a_release_and_a_kernel_at_once_are_refused() -> None:
    """Which of them is meant, nobody knows; so neither is taken."""
    both = ocp(spec={"releaseImage": "registry.example/release:1", "kernelVersion": KERNEL})
    plan = reconcile(observed_with(module(), ocp=both, validation=None), now=NOW)
    (patch,) = (action for action in plan.actions if isinstance(action, PatchStatus))
    (condition,) = patch.fields["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "ReleaseUnusable")
    assert condition["message"].endswith("releaseImage and kernelVersion are mutually exclusive properties")
    assert plan.work == ()
