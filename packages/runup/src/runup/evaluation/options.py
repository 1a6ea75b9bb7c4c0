"""The options of `runup preflight run`, as typed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JobFlags:
    """The options of `--in-cluster` as typed. An empty `image` means this release's own."""

    image: str = ""
    timeout_s: int = 600
    keep: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """The options as typed."""

    to: str
    from_: str
    to_image: str
    release_dir: str
    dumps: tuple[str, ...]
    # (form, file) of each output; the file of what is printed is `-`.
    outputs: tuple[tuple[str, str], ...]
    fail_on: str
    suppressions: str
    check_timeout_s: float
    prometheus_url: str = ""
    prometheus_ca: str = ""
    catalogs: tuple[str, ...] = ()
    reads_catalogs: bool = False
    verbose: bool = False
    inner_registries: tuple[str, ...] = ()
    manifests: tuple[str, ...] = ()
    helm_releases: bool = False
    api_metrics: bool = False
    # None: the checks run on this machine.
    job: JobFlags | None = None
    # The folder in which every report is kept, and the earlier result beyond which only what is new counts.
    store: str = ""
    baseline: str = ""
