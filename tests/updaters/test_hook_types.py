"""Case 36: the extension reads requests of Cluster API v1.14.2, whose types read its answers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.controlplane.build import Unavailable, compile_into
from tests.updaters.definitions import HERE

from runup.rollout.decide import hooks

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that encodes requests and decodes answers, built from Cluster API's module."""
    folder = tmp_path_factory.mktemp("hooks") / "bin"
    go = shutil.which("go")
    try:
        if go is None:
            raise Unavailable("there is no Go to build the types of Cluster API with")
        compile_into(go, folder, HERE, packages=("./hooks",), programs=("hooks",), environ=os.environ)
    except Unavailable as error:
        if os.environ.get("RUNUP_E2E") == "required":
            raise
        pytest.skip(str(error))
    return folder / "hooks"


def test_36_the_types_of_cluster_api(program: Path) -> None:
    """Each request has the version of its first step, and each answer has the fields of its type and no others."""
    printed = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    asked = [json.loads(line) for line in printed.splitlines()]
    assert [each["kind"] for each in asked] == [f"{hook}Request" for hook in hooks.HOOKS]
    answers = [hooks.discovery()]
    for hook, body in zip(hooks.HOOKS, asked, strict=True):
        read = hooks.read_request(hook, body)
        assert read == hooks.HookRequest(hook=hook, namespace="clusters", name="harbour", version="v1.35.1")
        answers.append(hooks.answer(read, hooks.KnownRuns(), ("clusters", "harbour"), datetime.now(UTC)))
    lines = "\n".join(map(json.dumps, answers))
    done = subprocess.run([program, "-answers"], input=lines, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == [each["kind"] for each in answers]
