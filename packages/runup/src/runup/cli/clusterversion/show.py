"""`runup upgrade` without a target: prints the state and updates of a live cluster or of files.

The text is that of `oc adm upgrade`, followed by the cluster's preflights and by an update under way. Modules for these
two are imported only if there are any, so that the command starts fast.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from runup.api import clusterversion_json as facts
from runup.api.clusterversion_json import JSON, mapping, mappings, text, texts
from runup.cli.errors import CommandError
from runup.cli.render import overview
from runup.cli.render.text import Output, machine
from runup.process.names import ACCEPTED, HISTORY

if TYPE_CHECKING:
    from kubekit.kube.client_sync import SyncClient
    from runup.process.connection import Connection


class ShowOptions(msgspec.Struct, frozen=True):
    """The extent and format of the output: None is text, `wide` is text with more columns."""

    include_not_recommended: bool = False
    output: str | None = None


class OperatorConfigMaps(msgspec.Struct, frozen=True):
    """The operator's ConfigMaps: reports, and the reasons for and ends of accepted risks."""

    history: JSON | None = None
    accepted: JSON | None = None
    # Since when no operator keeps the preflight's state up to date; empty if one does or it is not known.
    lapse: str = ""


def show_dump(path: str, options: ShowOptions) -> None:
    """Prints the updates of a dump."""
    if options.output == "html":
        raise CommandError("-o html is a page of a preflight; for a dump leave it out, or take json or yaml")
    from runup.dump import clusterversion_files

    dump = clusterversion_files.dump(path, config_maps=True)
    by_name = {text(mapping(config_map, "metadata"), "name"): config_map for config_map in dump.config_maps}
    show_document(dump.cluster, OperatorConfigMaps(by_name.get(HISTORY), by_name.get(ACCEPTED)), None, options)


def show_live_cluster(connection: Connection, options: ShowOptions) -> None:
    """Prints the updates of a live cluster."""
    with connection.client() as client:
        show_cluster(client, options)


def show_cluster(client: SyncClient, options: ShowOptions) -> None:
    """Prints the updates of the cluster of `client`."""
    from runup.cli.advice.recommend_additions import accepted_names
    from runup.process import clusterversion_client as clusters

    document = clusters.read_raw(client)
    history = clusters.read_record(client, HISTORY)
    # Without accepted names their records are of no use, and the request is spared.
    accepted = clusters.read_record(client, ACCEPTED) if accepted_names(document) else None
    lapse = clusters.read_lapse(client) if has_extra_output(document) else ""
    show_document(document, OperatorConfigMaps(history, accepted, lapse), client.now(), options)


def show_document(document: JSON, config_maps: OperatorConfigMaps, now: datetime | None, options: ShowOptions) -> None:
    """Prints ClusterVersion `document`; `now` is None for files."""
    document_facts = facts.read(document)
    more = _ExtraOutput(document, config_maps, now) if config_maps.history or has_extra_output(document) else None
    if options.output in ("json", "yaml"):
        preflights = more.data if more else {"preflight": None, "endedPreflights": []}
        sys.stdout.write(machine(overview.as_data(document_facts) | preflights, options.output))
        return
    output = overview.overview(document_facts, include_not_recommended=options.include_not_recommended)
    for stream, part in output:
        target = sys.stdout if stream == "out" else sys.stderr
        target.write(part)
        target.flush()
    if more:
        from runup.cli.output import write

        write(more.lines(now or facts.newest_transition(document), wide=options.output == "wide"))


def has_extra_output(document: JSON) -> bool:
    """Returns whether ClusterVersion mentions a preflight, or an update under way."""
    status = mapping(document, "status")
    if text(mapping(mapping(document, "spec"), "desiredUpdate"), "mode"):
        return True
    # The newest entry stays Partial until the update is complete.
    if any(text(entry, "state") == "Partial" for entry in mappings(status, "history")[:1]):
        return True
    return any(text(condition, "type").startswith("Preflight") for condition in mappings(status, "conditions"))


class _ExtraOutput:
    """The output that goes beyond oc's."""

    def __init__(self, document: JSON, config_maps: OperatorConfigMaps, now: datetime | None) -> None:
        from kubekit.api import codec
        from kubekit.api.core_v1 import ConfigMap
        from runup.advice.decide import acceptance
        from runup.api.config_v1 import ClusterVersion
        from runup.preflight.decide import findings
        from runup.preflight.decide import stored_reports as histories

        try:
            self._cluster = codec.convert(ClusterVersion, document)
            past = histories.read(codec.convert(ConfigMap, config_maps.history) if config_maps.history else None)
        except codec.DecodeError as error:
            raise CommandError(f"the ClusterVersion could not be read: {error}") from error
        past = msgspec.structs.replace(past, lapse=config_maps.lapse)
        accepted_findings = acceptance.accepted(self._cluster, texts(config_maps.accepted, "data"), now)
        self._found = findings.current_findings(self._cluster, past, accepted_findings)
        self._attempt = past.attempt
        self._ended = findings.ended_findings(self._cluster, past, accepted_findings)

    @property
    def data(self) -> dict[str, Any]:
        """The same output for programs."""
        from runup.cli.preflight.render import finding_texts as rendered

        current = rendered.as_data(self._found) if self._found else None
        return {"preflight": current, "endedPreflights": [rendered.as_data(target) for target in self._ended]}

    def lines(self, now: datetime | None, *, wide: bool) -> Iterator[Output]:
        """Yields the update under way if `spec.desiredUpdate` does not show it, and the preflights."""
        from runup.cli.output import screen_of
        from runup.cli.preflight.render import finding_texts as rendered
        from runup.clusterversion.decide.upgrade_request import invalid_request, kept_mode, unshown_update

        screen = screen_of(sys.stdout)
        yield from unshown_update(self._cluster)
        yield from kept_mode(self._cluster, self._attempt)
        yield from invalid_request(self._cluster)
        if self._found:
            yield from rendered.section(self._found, screen, wide=wide)
        if self._ended:
            observed = [target.observed for target in self._ended if target.observed]
            moment = now or max(observed, default=None)
            yield from rendered.ended_preflight_lines(self._ended, screen, now=moment or _EPOCH)


_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
