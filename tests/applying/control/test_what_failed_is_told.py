"""Every class of error of the API server has a reason and a cause, and its own words are reported with them."""

from __future__ import annotations

import pytest
from tests.applying.decide.tasks import task

from kubekit.api.codec import DecodeError
from kubekit.api.meta_v1 import Status, StatusDetails
from kubekit.error_types import Terminal
from kubekit.kube.api_errors import Unreachable, error_of_status
from kubekit.kube.request import Request
from runup.applying.control.task_errors import KindMissing, problem_of

WRITE = Request(method="PATCH", path="/api/v1/namespaces/ns/configmaps/c")
LOOK_UP = Request(method="GET", path="/api/v1")
NAMED = StatusDetails(name="c")


def refused(code: int, reason: str, request: Request = WRITE, details: StatusDetails | None = NAMED) -> Exception:
    """What the transport makes of such an answer."""
    status = Status(status="Failure", code=code, reason=reason, message="so it said", details=details)
    return error_of_status(status, request)


@pytest.mark.parametrize(
    ("error", "reason", "cause"),
    [
        pytest.param(refused(404, "NotFound"), "ResourceNotFound", "resource may have been deleted", id="not found"),
        pytest.param(
            refused(409, "AlreadyExists"), "ResourceNotFound", "resource may have been deleted", id="there already"
        ),
        pytest.param(
            refused(409, "Conflict"),
            "ResourceConflict",
            "someone else is updating this resource",
            id="somebody else was faster",
        ),
        pytest.param(
            refused(504, "Timeout"), "ClusterDown", "the server is down or not responding", id="no answer in time"
        ),
        pytest.param(
            refused(503, "ServiceUnavailable"), "ClusterDown", "the server is down or not responding", id="unavailable"
        ),
        pytest.param(
            refused(500, "InternalError"), "ClusterError", "the server is reporting an internal error", id="its own bug"
        ),
        pytest.param(
            refused(422, "Invalid"),
            "ResourceInvalid",
            "the object is invalid, possibly due to local cluster configuration",
            id="invalid",
        ),
        pytest.param(
            refused(401, "Unauthorized"), "ClusterUnauthorized", "could not authenticate to the server", id="who asks"
        ),
        pytest.param(
            refused(403, "Forbidden"),
            "ResourceForbidden",
            "the server has forbidden updates to this resource",
            id="forbidden",
        ),
        pytest.param(
            refused(500, "ServerTimeout"),
            "ClusterOverloaded",
            "the server is overloaded and is not accepting updates",
            id="it gave up",
        ),
        pytest.param(
            refused(429, "TooManyRequests"),
            "ClusterOverloaded",
            "the server is overloaded and is not accepting updates",
            id="too many requests",
        ),
        pytest.param(
            refused(404, "NotFound", details=None),
            "ResourceTypeMissing",
            "the server does not recognize this resource, check extension API servers",
            id="a path that is not served",
        ),
    ],
)
def test_an_answer_is_told_by_its_class(error: Exception, reason: str, cause: str) -> None:
    """The reasons and causes of docs/reference/upstream.md 4.3; the server's own words in brackets."""
    problem = problem_of(task("c"), error)
    assert (problem.reason, problem.message) == (
        f"UpdatePayload{reason}",
        f'Could not update configmap "ns/c" (1 of 1): {cause} (so it said)',
    )


@pytest.mark.parametrize(
    ("error", "reason", "message"),
    [
        pytest.param(
            KindMissing("ConfigMap in v1"),
            "UpdatePayloadResourceTypeMissing",
            "the server does not recognize this resource, check extension API servers (ConfigMap in v1)",
            id="a kind that the API server does not serve",
        ),
        pytest.param(
            Unreachable("http://there", "there:80", "no answer in time"),
            "UpdatePayloadClusterDown",
            "the server is down or not responding (could not reach http://there: no answer in time)",
            id="nobody there",
        ),
        pytest.param(
            DecodeError("half an answer"),
            "UpdatePayloadClusterDown",
            "the server is down or not responding (half an answer)",
            id="an answer that nobody can read",
        ),
        pytest.param(
            refused(415, "UnsupportedMediaType"), "UpdatePayloadFailed", "(so it said)", id="a class of its own"
        ),
        pytest.param(
            refused(415, "UnsupportedMediaType", LOOK_UP),
            "UpdatePayloadFailed",
            "(GET /api/v1: so it said)",
            id="a question before the write, which is named",
        ),
        pytest.param(
            Terminal("no such value", reason="UpdatePayloadFailed"), "UpdatePayloadFailed", "(no such value)", id="ours"
        ),
    ],
)
def test_what_else_can_go_wrong(error: Exception, reason: str, message: str) -> None:
    """An error that does not concern the object itself names its subject."""
    problem = problem_of(task("c"), error)
    assert problem.reason == reason
    assert problem.message.removeprefix('Could not update configmap "ns/c" (1 of 1)').lstrip(": ") == message
