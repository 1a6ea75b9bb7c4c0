"""Words that do not go together: each command says which, before it asks anything of a cluster, an image or a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.commands import Run

UPGRADE, PREFLIGHT = ("upgrade",), ("upgrade", "--mode=preflight", "--to=5.2.0")
WITH_IT = "may not be specified with any other flags"
DIGEST = "sha256:" + "1" * 64
RUN = ("preflight", "run", "--to=1.36")
OF_A_JOB = ("--image=a.b/c", "--timeout=20", "--keep")
READ_HERE = "--helm-releases and --api-metrics"
BOTH_NAME_IT = "--to-image and --release-dir both name the release; give one of them"

# An unset variable of a script must not make a command read the live cluster.
EMPTY = [
    ((*words, option, ""), f"{option} must not be empty")
    for words, option in (
        (("upgrade", "status"), "--dump"),
        (("upgrade", "status"), "--hosted-cluster"),
        (("preflight", "run"), "--dump"),
        (("preflight", "run", "--to-image=a"), "--release-dir"),
        (("rehearse", "drain"), "--dump"),
        (("upgrade", "forecast"), "--dump"),
        (("upgrade", "gate", "--to=5.1.0"), "--policy"),
        (("fleet", "update", "status", "a"), "--journal"),
    )
]
ROWS = [
    *EMPTY,
    ((*UPGRADE, "--timeout=5m", "--to=5.2.0"), "--timeout needs --mode=preflight: an update is followed with"),
    ((*PREFLIGHT, "--timeout=5m"), "--timeout needs --wait"),
    ((*PREFLIGHT, "-o", "html"), "-o html is a page of the result, so it needs --wait"),
    ((*UPGRADE, "--to=5.2.0", "-o", "wide"), "-o wide is for showing; the result of an action is text"),
    ((*UPGRADE, "--clear", "-o", "html"), "-o html is for showing; the result of an action is text"),
    ((*UPGRADE, "--clear-preflight", "-o", "wide"), "-o wide is for showing"),
    ((*UPGRADE, "--to-latest", "-o", "html"), "-o html is for showing"),
    ((*UPGRADE, "--to-multi-arch", "-o", "wide"), "-o wide is for showing"),
    ((*UPGRADE, f"--to-image=a.b/c/d@{DIGEST}", "-o", "wide"), "-o wide is for showing"),
    ((*UPGRADE, "-o", "json", "accept", "A"), "--output cannot be used with `accept`"),
    ((*UPGRADE, "--wait", "channel"), "--wait cannot be used with `channel`"),
    ((*UPGRADE, "--dump=.", "--to=5.2.0"), "--to needs a cluster, and a dump is not a cluster; leave out one"),
    ((*UPGRADE, "--dump=.", "--as=kim"), "--as needs a cluster"),
    ((*UPGRADE, "--clear-preflight", "--force"), f"--clear-preflight {WITH_IT}"),
    ((*UPGRADE, "--clear-preflight", "--include-not-recommended"), f"--clear-preflight {WITH_IT}"),
    ((*UPGRADE, "--clear-preflight", "--to=5.2.0"), f"--clear-preflight {WITH_IT}"),
    ((*PREFLIGHT, "--clear-preflight"), f"--clear-preflight {WITH_IT}"),
    ((*UPGRADE, "--clear-preflight", "--wait"), f"--clear-preflight {WITH_IT}"),
    (("upgrade", "--mode=preflight", "--clear"), f"--clear {WITH_IT}"),
    (("kmod", "check"), "give one of --to-image, --kernel and --toolkit-image"),
    (
        ("kmod", "check", "--to-image", f"a.b/c@{DIGEST}", "--kernel", "5.14.0"),
        "give one of --to-image, --kernel and --toolkit-image",
    ),
    (("release", "diff", "oci:a"), "give two releases, FROM and TO; with --live TO alone will do"),
    (("release", "diff", "oci:a", "oci:b", "oci:c"), "give two releases, FROM and TO"),
    (("release", "extract", "oci:a"), "give --to DIR for all files, or --file PATH for one"),
    (
        ("release", "extract", "oci:a", "--to", "b", "--file", "c"),
        "give --to DIR for all files, or --file PATH for one",
    ),
    (("release", "new", "--version=5.2.0", "--to=oci:a"), "there is nothing to make a release of; give --from-dir"),
    (("preflight", "run", "--dump=a", "--dump=b", "--to=5.2.0", "-o", "html"), "give one --dump"),
    (("sandbox", "start", "--scenario=a", "--import=b"), "--scenario and --import exclude each other"),
    *(((*RUN, flag), "--image, --timeout and --keep are about a Job; give --in-cluster too") for flag in OF_A_JOB),
    *(
        (
            (*RUN, "--manifests=a", *flags),
            "--manifests are evaluated by themselves: give only --to, and what is printed",
        )
        for flags in (
            ("--dump=a",),
            ("--in-cluster",),
            ("--to-image=a.b/c",),
            ("--release-dir=.",),
            ("--helm-releases",),
            ("--api-metrics",),
            ("--from=5.0.0",),
        )
    ),
    *(
        ((*RUN, *flags), f"{READ_HERE} are read from here: leave out --dump and --in-cluster")
        for flags in (("--helm-releases", "--dump=a"), ("--api-metrics", "--in-cluster"))
    ),
    ((*RUN, "--manifests=a", "--store=b"), "--store keeps reports of clusters; manifests have no cluster"),
    (("preflight", "run", "--manifests=."), "--manifests: which version they are for is not known; give it with --to"),
    (("preflight", "run", "--manifests=.", "--to=x"), "--to: "),
    (("preflight", "run", "--manifests=nowhere", "--to=1.36"), "--manifests nowhere: there is no such file or folder"),
    ((*RUN, "--to-image=a.b/c", "--release-dir=."), BOTH_NAME_IT),
    ((*RUN, "--dump=a", "--prometheus-url=http://b"), "what Prometheus says now is about a cluster, not about a dump"),
    ((*RUN, "--baseline=nowhere"), "--baseline nowhere: cannot be read: No such file or directory"),
    ((*RUN, "--suppressions=nowhere"), "--suppressions nowhere: cannot be read: No such file or directory"),
    ((*RUN, "-o", "json=nowhere/a"), "-o: there is no folder nowhere for nowhere/a; make it first"),
    ((*RUN, "-o", "json="), "'json=' has no file; `-` is the terminal"),
    (
        (*RUN, "-o", "json=a,junit=a"),
        "json and junit cannot both go to a; give each a separate file: -o json=FILE",
    ),
    ((*RUN, "-o", "json,yaml"), "json and yaml cannot both go to the terminal"),
    ((*RUN, "-o", "json=."), "-o: . is a folder; name a file in it"),
    (
        ("preflight", "history", "--in-cluster", "--dump=a"),
        "--in-cluster and --dump name two sources; give one of them",
    ),
    (("dump", "collect", "a", "--redact="), "--redact: the word is empty"),
    (("dump", "collect", "/"), "'/' cannot be the name of a new folder"),
    (("rehearse", "--dump=a", "--to-image=a.b/c", "--release-dir=."), BOTH_NAME_IT),
    *(
        (("rehearse", "--to-kubernetes=1.36", *flags), "--to-kubernetes is about a cluster without releases; leave out")
        for flags in (("--to=5.2.0",), ("--release-dir=.",), ("--operators=stuck:etcd",))
    ),
    (("rehearse", "--dump=a"), "name the target: --to, --to-image, --release-dir or --to-kubernetes"),
    (("rehearse", "--release-dir=.", "--operators=etcd"), "--operators etcd: only stuck:NAME is known"),
    *(
        (("fleet", "rehearse", "--dumps=.", *flags), "name the target release of every cluster: --to-image or")
        for flags in ((), ("--to-image=a.b/c", "--release-dir=."))
    ),
    (
        ("fleet", "rehearse", "--dumps=.", "--release-dir=.", "--engine=dask", "--scheduler=tcp://127.0.0.1:9"),
        "--engine dask: copies of clusters are made on this machine; leave it out",
    ),
    (("fleet", "preflight", "--dumps=.", "--to-image=a.b/c", "--release-dir=."), BOTH_NAME_IT),
    (("fleet", "history", "--store=nowhere"), "--store nowhere"),
    (
        ("serve", "--dumps=.", "--engine=dask", "--scheduler=tcp://127.0.0.1:9"),
        "--engine dask: the console evaluates",
    ),
    (("serve", "--dumps=.", "--tls-cert=a"), "--tls-cert and --tls-key are a pair; give both"),
    (("serve", "--dumps=.", "--tls-key=a"), "--tls-cert and --tls-key are a pair; give both"),
    (("serve", "--dumps=.", "--listen=0.0.0.0:0"), "others reach this address, so tokens are asked for, never in the"),
    (
        ("serve", "--dumps=.", "--listen=0.0.0.0:0", "--behind-proxy"),
        "by which name browsers ask is not known; give it",
    ),
    (("serve", "--dumps=.", "--behind-proxy"), "by which name browsers ask is not known; give it with --host NAME"),
    (("serve", "--dumps=.", "--to-image=a.b/c", "--release-dir=."), BOTH_NAME_IT),
    (
        ("install", "update-status", "--image=a.b/c", "--wait", "--dry-run=server"),
        "--wait and --dry-run: what is not written cannot become healthy; use one of them",
    ),
    (
        ("release", "new", "--version=5.2.0", "--to=oci:a", "--from-dir=.", "--base=oci:b", "--entrypoint=c"),
        "--base brings the operator, so --entrypoint cannot be given with it",
    ),
    (
        ("release", "new", "--version=5.2.0", "--to=oci:a", "--component=etcd=oci:b"),
        "no cluster pulls from a layout; say where it will be pulled from, --image-reference etcd=HOST/REPOSITORY@",
    ),
]


@pytest.mark.parametrize(("words", "said"), ROWS, ids=[" ".join(row[0]).replace(DIGEST, "...") for row in ROWS])
def test_what_does_not_go_together(run: Run, words: tuple[str, ...], said: str) -> None:
    """One text on stderr, nothing on stdout."""
    ran = run(*words)
    assert said in " ".join(ran.err.split())
    assert (ran.code, ran.out) == (1, "")


@pytest.mark.parametrize("command", ["lint", "test"])
def test_a_folder_without_checks(run: Run, tmp_path: Path, command: str) -> None:
    """It is named; what else is in it is no check."""
    (tmp_path / "pod.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    ran = run("checks", command, tmp_path)
    assert (ran.code, ran.err) == (1, f"error: no PreflightCheck in {tmp_path}\n")
