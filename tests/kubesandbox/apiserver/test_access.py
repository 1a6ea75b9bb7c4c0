"""Rights by aggregated ClusterRoles, and the audit log: what it must have before an answer is sent."""

from __future__ import annotations

import errno
import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.contract.api import Api
from tests.contract.raw import Raw, Request
from tests.servers import api_server

RBAC = "/apis/rbac.authorization.k8s.io/v1"
GROUP = "rbac.authorization.k8s.io"
MAPS = "/api/v1/namespaces/default/configmaps"
JSON_BODY = ("Content-Type", b"application/json")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The data folder of a server in a separate process."""
    data = tmp_path_factory.mktemp("access") / "data"
    with api_server(data):
        yield data


@pytest.fixture
def api(folder: Path) -> Iterator[Api]:
    """The administrator's connection."""
    made = Api("sandbox", str(folder / "admin.kubeconfig"))
    yield made
    made.close()


SECRETS = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}
EXISTS = {"matchExpressions": [{"key": "aggregated", "operator": "Exists"}]}
MISSING = {"matchExpressions": [{"key": "aggregated", "operator": "DoesNotExist"}], "matchLabels": {"of": "row"}}
GATHERED = [
    pytest.param([{"matchLabels": {"aggregated": "yes"}}], True, id="by a label"),
    pytest.param([{"matchLabels": {"aggregated": "no"}}], False, id="by another label"),
    pytest.param([EXISTS], True, id="by an expression"),
    pytest.param([MISSING], False, id="by an expression that does not hold"),
    pytest.param([{"matchLabels": {"aggregated": "yes"}, **MISSING}], False, id="by a label, but not by an expression"),
    pytest.param([MISSING, EXISTS], True, id="by one of two selectors"),
    pytest.param([{}], True, id="by a selector of everything, also itself"),
    pytest.param([{"matchLabels": {"self": "yes"}}, EXISTS], True, id="by a role that selects itself"),
]


@pytest.mark.parametrize(("selectors", "may"), GATHERED)
def test_an_aggregated_role_has_the_rules_of_those_that_it_selects(api: Api, selectors: list[Any], may: bool) -> None:
    """By labels and by expressions, as kube-controller-manager gathers them; no role breaks its subjects' requests."""
    _create_role(api, "secrets", {"aggregated": "yes"}, [SECRETS])
    _create_role(api, "gathering", {"self": "yes", "of": "row"}, [], selectors)
    _bind(api, "pat", "gathering")
    review = {"spec": {"user": "pat", "resourceAttributes": {"verb": "get", "resource": "secrets"}}}
    try:
        found = api.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", review).ok()
        assert found["status"]["allowed"] is may
    finally:
        for name in ("clusterroles/secrets", "clusterroles/gathering", "clusterrolebindings/pat"):
            api.delete(f"{RBAC}/{name}").ok()


@pytest.mark.slow
def test_a_long_chain_of_aggregated_roles_is_followed(api: Api) -> None:
    """Each selects the next one, and the last one the first."""
    count = 400
    for number in range(count):
        selector = {"matchLabels": {"link": str((number + 1) % count)}}
        rules = [SECRETS] if number == count - 1 else []
        _create_role(api, f"link-{number}", {"link": str(number)}, rules, [] if rules else [selector])
    _bind(api, "chained", "link-0")
    assert api.impersonating("chained").get("/api/v1/namespaces/default/secrets/a").code == 404


def _create_role(api: Api, name: str, labels: dict[str, str], rules: list[Any], selectors: list[Any] = []) -> None:  # noqa: B006
    aggregation = {"aggregationRule": {"clusterRoleSelectors": selectors}} if selectors else {}
    role = {"metadata": {"name": name, "labels": labels}, "rules": rules, **aggregation}
    api.post(f"{RBAC}/clusterroles", role).ok()


def _bind(api: Api, user: str, role: str) -> None:
    subject = {"apiGroup": GROUP, "kind": "User", "name": user}
    reference = {"apiGroup": GROUP, "kind": "ClusterRole", "name": role}
    body = {"metadata": {"name": user}, "roleRef": reference, "subjects": [subject]}
    api.post(f"{RBAC}/clusterrolebindings", body).ok()


# -- the audit log -----------------------------------------------------------------------------------------------------

BAD, SHOWN = b"a\xff\xed\xa0\x80z", "a\ufffd\ufffd\ufffd\ufffdz"
HEADERS = [
    pytest.param(("User-Agent", BAD), lambda event: event["userAgent"], id="the user agent"),
    pytest.param(("Audit-Id", BAD), lambda event: event["auditID"], id="the audit id"),
    pytest.param(("Impersonate-User", BAD), lambda event: event["impersonatedUser"]["username"], id="a user"),
    pytest.param(("Impersonate-Uid", BAD), lambda event: event["impersonatedUser"]["uid"], id="a uid"),
    pytest.param(("Impersonate-Group", BAD), lambda event: event["impersonatedUser"]["groups"][1], id="a group"),
    pytest.param(
        ("Impersonate-Extra-K", BAD), lambda event: event["impersonatedUser"]["extra"]["k"][0], id="an extra value"
    ),
]


@pytest.mark.parametrize(("header", "shown"), HEADERS)
def test_bytes_that_are_not_utf_8_are_replaced_in_the_audit_log(folder: Path, header: Any, shown: Any) -> None:
    """A write is in the log under its name, with the part of it that cannot be encoded replaced."""
    name = f"by-{header[0].lower()}"
    body = json.dumps({"metadata": {"name": name}}).encode()
    masters = [("Impersonate-Group", b"system:masters")] if header[0].startswith("Impersonate") else []
    user = [("Impersonate-User", b"bob")] if masters and header[0] != "Impersonate-User" else []
    raw = Raw(str(folder / "admin.kubeconfig"))
    found = raw.send(Request("POST", MAPS.encode(), [JSON_BODY, *user, *masters, header], body))
    raw.close()
    assert found.code == 201, found
    event = _events(folder / "audit.log")[-1]
    assert (event["objectRef"]["name"], event["verb"], event["responseStatus"]["code"]) == (name, "create", 201)
    assert shown(event) == SHOWN


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        pytest.param([("Audit-Id", b"a\x7fb")], b'{"metadata": {"name": "audited"}}', id="in the audit id"),
        pytest.param([], b'{"metadata": {"name": "warned"}, "da\x7fta": {}}', id="in a warning"),
    ],
)
def test_control_characters_do_not_keep_an_answer_back(folder: Path, headers: Any, body: bytes) -> None:
    """A request that was carried out is answered."""
    raw = Raw(str(folder / "admin.kubeconfig"))
    assert raw.send(Request("POST", f"{MAPS}?dryRun=All".encode(), [JSON_BODY, *headers], body)).code in {201, 400}
    raw.close()


@pytest.mark.parametrize(
    "uri", [b"/api/v1/namespaces/default/configmaps/%FF", b"/api/v1/namespaces/default/configmaps/a?x=%ff", b"/%ff"]
)
def test_paths_that_are_not_utf_8_are_in_the_audit_log(folder: Path, uri: bytes) -> None:
    """Whatever the path is, its request is logged before the answer."""
    raw = Raw(str(folder / "admin.kubeconfig"))
    assert raw.send(Request("GET", uri)).code == 404
    raw.close()
    assert _events(folder / "audit.log")[-1]["requestURI"] == uri.decode()


def _events(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_a_request_that_cannot_be_audited_is_refused(tmp_path: Path) -> None:
    """It is not carried out; once the log can be written again, requests are."""
    command = [sys.executable, "-m", "kubesandbox.apiserver", "--data", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert b"serving at" in process.stdout.readline()
        client = Api("sandbox", str(tmp_path / "admin.kubeconfig"))
        # A limit of a file's size is in place of a full disk.
        _, most = resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
        refused = [client.post(MAPS, {"metadata": {"name": "a"}}), client.get(MAPS)]
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (most, most))
        assert [(each.code, each.body["reason"]) for each in refused] == [(500, "InternalError")] * 2
        assert "the request cannot be audited: File too large" in refused[0].message
        assert client.get(f"{MAPS}/a").code == 404
        client.close()
        process.terminate()


def test_a_server_does_not_start_without_its_audit_log(tmp_path: Path) -> None:
    """A device that takes nothing is found at the start."""
    command = [sys.executable, "-m", "kubesandbox.apiserver", "--data", str(tmp_path), "--audit", "/dev/full"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert os.strerror(errno.ENOSPC) in done.stderr
