"""Turns the flags of `runup install` into options, and reads options that were not given from the cluster."""

from __future__ import annotations

import re

import msgspec

from kubekit.error_types import InputError
from kubekit.lang import oc_pull_spec as pull_spec_parsing
from runup.install.decide.component import (
    COMPONENTS,
    OPERATOR,
    PROMETHEUS,
    Certificates,
    Component,
    Options,
    Platform,
)
from runup.install.decide.component_objects import GROUP
from runup.install.decide.refusals import Cluster

AUTO = "auto"
# https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#dns-label-names
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")


class Flags(msgspec.Struct, frozen=True, kw_only=True):
    """The flags that decide which objects there are, as typed; `printed` with -o yaml."""

    component: str
    namespace: str | None
    image: str | None
    least_privilege: bool
    with_pools: bool
    hub: bool
    monitoring: str
    prometheus: str | None
    platform: str
    certificates: str | None
    printed: bool

    @property
    def chosen(self) -> Component:
        """The component."""
        return COMPONENTS[self.component]

    @property
    def asks_the_cluster(self) -> bool:
        """Returns whether anything is left to the cluster."""
        return AUTO in (self.platform, self.monitoring)


def options_of(flags: Flags, cluster: Cluster | None, own_image: str | None) -> Options:
    """Returns the options; `cluster` is needed where the flags leave something to it. Raises InputError."""
    if flags.platform != AUTO:
        platform = Platform(flags.platform)
    else:
        assert cluster is not None
        platform = cluster.platform
    monitoring = flags.monitoring == "on" or (
        flags.monitoring == AUTO and cluster is not None and GROUP in cluster.groups
    )
    if flags.namespace and not _LABEL.fullmatch(flags.namespace):
        raise InputError(f"--namespace {flags.namespace}: the name of a namespace has a-z, 0-9 and -, 63 at most")
    if flags.chosen.fixed and flags.namespace not in (None, flags.chosen.namespace):
        raise InputError(
            f"--namespace {flags.namespace}: {flags.component} must be in {flags.chosen.namespace}, because "
            "other objects name that namespace; leave the flag out"
        )
    if flags.with_pools and not flags.chosen.of_pools:
        raise InputError(f"--with-pools: {flags.component} pauses no pools; leave the flag out")
    if flags.hub and not flags.chosen.of_hubs:
        raise InputError(f"--hub: {flags.component} takes no runs from a hub; leave the flag out")
    if flags.chosen == OPERATOR and not flags.image:
        raise InputError("--image is needed: the operator runs as a release, whose image `runup release new` makes")
    image = flags.image or own_image
    if not image:
        raise InputError(
            "--image is needed: this runup is not a released version, so its image is not known; "
            "deploy/Containerfile builds one"
        )
    # It is put into manifests that are text: what is not a reference could be more than an image there.
    try:
        parsed = pull_spec_parsing.pull_spec(image)
    except ValueError as error:
        raise InputError(f"--image {image}: {error}") from error
    if flags.chosen == OPERATOR and not parsed.digest:
        raise InputError(f"--image {image}: name the release by digest (NAME@sha256:...); a tag can move")
    certificates = _certificates(flags, platform)
    namespace, slash, account = (flags.prometheus or "").partition("/")
    if flags.prometheus and (not (namespace and slash and account) or "/" in account):
        raise InputError(
            f"--prometheus {flags.prometheus}: give NAMESPACE/ACCOUNT, for example monitoring/prometheus-k8s"
        )
    return Options(
        image=image,
        namespace=flags.namespace or flags.chosen.namespace,
        platform=platform,
        monitoring=monitoring,
        certificates=certificates,
        least_privilege=flags.least_privilege,
        with_pools=flags.with_pools,
        hub=flags.hub,
        prometheus=(namespace, account) if flags.prometheus else PROMETHEUS[platform],
        api_ports=cluster.api_ports
        if cluster is not None
        else Options(image="", namespace="", platform=platform).api_ports,
    )


def _certificates(flags: Flags, platform: Platform) -> Certificates:
    """Returns where certificates come from. Raises InputError if the flag does not suit the platform."""
    if platform is Platform.OPENSHIFT:
        if flags.certificates:
            raise InputError("--certificates: on OpenShift the service CA makes them; leave the flag out")
        return Certificates.SERVICE_CA
    if flags.printed and flags.certificates == Certificates.OWN:
        # A key in a file is nobody's secret any more.
        raise InputError("--certificates=own makes a key, which -o yaml would print; use --certificates=cert-manager")
    return Certificates(flags.certificates or (Certificates.CERT_MANAGER if flags.printed else Certificates.OWN))
