"""The suites, their pinned versions, and the tests that cannot pass without containers or flags of the binary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_CONTAINERS = "needs containers that run"
_FLAGS = "sets flags of the kube-apiserver binary"


@dataclass(frozen=True, kw_only=True)
class GoSuite:
    """Tests of a Go module. They start the server as envtest does, from KUBEBUILDER_ASSETS.

    `explained` has reasons by regular expression over the name of a test. With `scaffold` the module is built as a
    program, and these commands of it make the project whose tests are run. `nested` are modules of the same version in
    folders of this one, by folder: the proxy serves each of them separately.
    """

    module: str
    version: str
    packages: Sequence[str] = ("./...",)
    explained: Mapping[str, str] = field(default_factory=dict)
    scaffold: Sequence[Sequence[str]] = ()
    nested: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class PythonSuite:
    """Tests in a source distribution. They find the server through KUBECONFIG.

    `requirements` is what is installed for them, and `objects` are created first. `helpers` are folders next to this
    file that replace helpers of theirs which start a cluster or are missing in the source distribution: by folder,
    where it is copied to.
    """

    version: str
    tests: Sequence[str]
    requirements: Sequence[str] = ()
    options: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    helpers: Mapping[str, str] = field(default_factory=dict)
    explained: Mapping[str, str] = field(default_factory=dict)
    objects: Sequence[Mapping[str, object]] = ()


# Every cluster has pods in kube-system; suites read them.
_COREDNS = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "coredns", "namespace": "kube-system", "labels": {"k8s-app": "kube-dns"}},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"k8s-app": "kube-dns"}},
        "template": {
            "metadata": {"labels": {"k8s-app": "kube-dns"}},
            "spec": {"containers": [{"name": "coredns", "image": "registry.example/coredns:1"}]},
        },
    },
}
_PYTEST = ("pytest==8.4.2", "pytest-asyncio==1.2.0", "pytest-timeout==2.4.0")
SUITES: Mapping[str, GoSuite | PythonSuite] = {
    "kopf": PythonSuite(
        version="1.45.2",
        tests=("examples", "tests/e2e"),
        requirements=(*_PYTEST, "kubernetes==34.1.0", "pykube-ng", "certbuilder", "certvalidator", "freezegun", "kmock",
                      "pytest-mock", "oscrypto", "pyngrok", "setuptools", "looptime"),
        # Transports that the client leaves open until its loop has ended are a matter of the client alone.
        options=("--only-e2e", "--timeout=120", "-W", "ignore::pytest.PytestUnraisableExceptionWarning"),
        explained={r"17-admission": "oscrypto cannot read the version of this machine's libcrypto"},
    ),
    "kr8s": PythonSuite(
        version="0.20.15",
        tests=("kr8s",),
        requirements=(*_PYTEST, "trio", "lightkube", "kubernetes==34.1.0", "pykube-ng", "kubernetes-asyncio",
                      "kubernetes-validate"),
        options=("-o", "addopts=", "--timeout=60"),
        helpers={"pytest_kind": "pytest_kind"},
        objects=(_COREDNS,),
        explained={
            r"port_forward|_exec|test_adoption": _CONTAINERS,
            r"test_wait_replicas": "needs a controller for StatefulSets",
        },
    ),
    "lightkube": PythonSuite(
        version="1.0.1",
        tests=("e2e-tests",),
        requirements=_PYTEST,
        options=("-o", "asyncio_mode=auto", "--timeout=120"),
    ),
    "kubernetes": PythonSuite(
        version="34.1.0",
        tests=("kubernetes/dynamic",),
        requirements=_PYTEST,
        options=("--timeout=60",),
        helpers={"e2e_test": "kubernetes/e2e_test"},
        explained={
            r"custom_resources": "needs apiextensions.k8s.io/v1beta1, removed in Kubernetes 1.22",
            r"test_cache_decoder": "fails on kube-apiserver, too: compares two resources that are never equal",
        },
    ),
    "controller-runtime": GoSuite(
        module="sigs.k8s.io/controller-runtime",
        version="v0.22.4",
        packages=("./pkg/...",),
        explained={r"controlplane |aggregatedDiscovery=false": _FLAGS},
    ),
    "fluxcd-ssa": GoSuite(module="github.com/fluxcd/pkg/ssa", version="v0.63.0"),
    "notification-controller": GoSuite(
        module="github.com/fluxcd/notification-controller",
        version="v1.6.0",
        packages=("./internal/controller",),
        nested={"api": "github.com/fluxcd/notification-controller/api"},
    ),
    "jobset": GoSuite(
        module="sigs.k8s.io/jobset", version="v0.10.1", packages=("./test/integration/...", "./pkg/...")
    ),
    "kubebuilder": GoSuite(
        module="sigs.k8s.io/kubebuilder/v4",
        version="v4.16.0",
        scaffold=(
            ("init", "--domain", "example.org", "--repo", "example.org/ships"),
            ("create", "api", "--group", "sea", "--version", "v1", "--kind", "Ship", "--resource", "--controller"),
            ("create", "webhook", "--group", "sea", "--version", "v1", "--kind", "Ship", "--defaulting",
             "--programmatic-validation"),
        ),
        packages=("./api/...", "./internal/..."),
    ),
}  # fmt: skip
