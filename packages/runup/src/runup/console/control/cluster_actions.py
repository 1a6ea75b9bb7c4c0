"""Carries out the actions of the console's pages, as the commands do: on the ClusterVersion, or on an update run.

With a login it uses the user's token, which is sent to the cluster of the login and nowhere else; without one, the
kubeconfig with which the console was started. Afterwards the cluster is read again, and its state is shown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from msgspec.structs import replace

from kubekit.api import codec
from kubekit.api.conditions import find
from kubekit.error_types import InputError
from kubekit.kube.api_errors import ConfigError, Forbidden, KubeError, Transient, Unauthorized
from kubekit.kube.auth import Static, bearer_credential
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.config import ClusterConfig
from runup import __version__
from runup.advice.control.acceptance_records import user_name
from runup.advice.decide.acceptance import accepted_names
from runup.advice.decide.acceptance_change import Change
from runup.api.config_v1 import Update
from runup.clusterversion.control.upgrade import AcceptanceReason, accept_risks, checked, planned_update, start_update
from runup.clusterversion.decide.upgrade_target import Flags, check_flags
from runup.console.control import run_actions
from runup.console.decide.asked_actions import (
    ACCEPT,
    OF_RUNS,
    ActionResult,
    ClusterState,
    RequestedAction,
    RunState,
    seal,
)
from runup.fleet.control.cluster_sources import connection_to
from runup.preflight.control import cluster_records
from runup.preflight.decide.findings import all_findings, known_risk_names
from runup.process import clusterversion_client as clusters
from runup.process.connection import Connection
from runup.process.error_texts import kube_text, with_prefix
from runup.process.messages import Output

_CHANGED = "the cluster has changed since this was confirmed, so nothing was done; see what is so now, and confirm that"
_AGENT = f"runup/{__version__} (serve)"


@dataclass(frozen=True)
class ClusterActions:
    """Reads and changes clusters on behalf of users; `login` is the cluster whose tokens they log in with."""

    connection: Connection
    login: ClusterConfig | None = None

    def look(self, asked: RequestedAction) -> ActionResult:
        """Returns the cluster's state, and what the command would print or refuse; changes nothing."""
        return self._with_client(asked, lambda client: self._preview(asked, client))

    def act(self, asked: RequestedAction, confirmed: str) -> ActionResult:
        """Carries out the action if the state is still the `confirmed` one; returns the state afterwards."""
        return self._with_client(asked, lambda client: self._carry_out(asked, confirmed, client))

    def _with_client(self, asked: RequestedAction, work: Callable[[SyncClient], ActionResult]) -> ActionResult:
        """Returns what `work` returns for a client of the asked cluster, or why the cluster could not be asked."""
        try:
            with SyncClient(self._config(asked), user_agent=_AGENT) as client:
                return work(client)
        except (InputError, KubeError, codec.DecodeError) as error:
            return _refused_result(error)

    def _config(self, asked: RequestedAction) -> ClusterConfig:
        """Returns where to ask, and as whom. Raises InputError for a cluster to which a user's token may not go."""
        own = connection_to(asked.member, self.connection).config()
        if self.login is None:
            return own
        if own.address != self.login.address:
            raise InputError(
                f"you are logged in to {self.login.address}, and {asked.member.name} is another cluster, to which your "
                "token is never sent; type the command where you have an account there"
            )
        if not asked.token:
            raise InputError("there is no token to ask with; log in again")
        login = self.login
        # Nothing else of the console's own account goes along: no certificate, no impersonation.
        return ClusterConfig(
            server=login.server,
            ca_data=login.ca_data,
            insecure=login.insecure,
            tls_server_name=login.tls_server_name,
            auth=Static(bearer_credential(asked.token)),
        )

    def _preview(self, asked: RequestedAction, client: SyncClient) -> ActionResult:
        """Returns the cluster's state and what the command would print; changes nothing."""
        truth = _read_state(asked, client)
        if not asked.target:
            return ActionResult(truth=truth)
        messages = _Messages()
        try:
            if isinstance(truth, RunState):
                messages.say(*run_actions.check(asked, truth, client))
            elif asked.action == ACCEPT:
                messages.say(*checked(_acceptance_of(asked), clusters.read(client, no="no", server="")))
            else:
                flags = Flags(to=asked.version)
                messages.say(*check_flags(flags))
                if planned_update(flags, client, messages.say) is None:
                    return ActionResult(truth=truth, refused="\n".join(messages.texts), status=409)
        except (InputError, KubeError) as error:
            return _refused_result(error, truth, messages)
        return ActionResult(truth=truth, said=tuple(messages.texts))

    def _carry_out(self, asked: RequestedAction, confirmed: str, client: SyncClient) -> ActionResult:
        """Carries out the action if the state is still the `confirmed` one; returns the state afterwards."""
        truth = _read_state(asked, client)
        if not asked.target or seal(asked, truth) != confirmed:
            return ActionResult(truth=truth, refused=_CHANGED, status=409)
        messages = _Messages()
        try:
            if isinstance(truth, RunState):
                messages.say(*run_actions.carry_out(asked, truth, client))
            elif asked.action == ACCEPT:
                accept_risks(_acceptance_of(asked), client, AcceptanceReason(asked.reason, asked.until), messages.say)
            else:
                flags = Flags(to=asked.version)
                messages.say(*check_flags(flags))
                start_update(flags, client, messages.say)
        except (InputError, KubeError) as error:
            # Some of it may have been done before it failed: that is read, too.
            state, unread = _state_or_reason(asked, client)
            return replace(_refused_result(error, state, messages), unread=unread)
        state, unread = _state_or_reason(asked, client)
        return ActionResult(truth=state, said=tuple(messages.texts), done=True, unread=unread)


class _Messages:
    """The messages of a use case, kept for a page."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def say(self, *output: Output) -> None:
        """Keeps each message, in order."""
        self.texts.extend(text.strip("\n") for _, text in output)


def _state_or_reason(asked: RequestedAction, client: SyncClient) -> tuple[ClusterState | RunState | None, str]:
    try:
        return _read_state(asked, client), ""
    except (InputError, KubeError, codec.DecodeError) as error:
        return None, _error_text(error)


def _acceptance_of(asked: RequestedAction) -> Change:
    """Returns the acceptance of one risk. Raises InputError for what would be several, or a removal."""
    if "," in asked.risk or asked.risk.startswith("-") or asked.risk.endswith("-"):
        raise InputError(f'"{asked.risk}" is not the name of one risk; give one name')
    return Change(add=(asked.risk,))


def _read_state(asked: RequestedAction, client: SyncClient) -> ClusterState | RunState:
    """Returns what the ClusterVersion, or the run, says now. Raises InputError, KubeError and DecodeError."""
    if asked.action in OF_RUNS:
        return run_actions.read_state(asked, client)
    cluster = clusters.read(client)
    status = cluster.status
    progress = find(status.conditions, "Progressing")
    offered = [release.version for release in status.available_updates or ()]
    offered += [update.release.version for update in status.conditional_updates]
    desired, accepted = cluster.spec.desired_update, accepted_names(cluster)
    grown: tuple[str, ...] = ()
    if accepted:
        history = cluster_records.read_history(client, clusters.namespace())
        found = all_findings(cluster, history, cluster_records.read_accepted(client, cluster))
        grown = tuple(dict.fromkeys(text for each in found for text in each.grown_texts))
    return ClusterState(
        cluster=clusters.name_of(client, cluster),
        server=client.config.address,
        user=user_name(client),
        release=status.desired.version or status.desired.image,
        requested=_requested_text(desired),
        accepted=tuple(sorted(accepted)),
        progress=progress.message if progress else "",
        offered=tuple(dict.fromkeys(filter(None, offered))),
        risks=tuple(known_risk_names(cluster)),
        grown=grown,
    )


def _requested_text(desired: Update | None) -> str:
    """Returns the release that is asked for, in words; empty if none is."""
    if desired is None:
        return ""
    release = (
        desired.version or desired.image or (f"architecture {desired.architecture}" if desired.architecture else "")
    )
    words = [f"{desired.mode} of" if desired.mode else "", release, "by force" if desired.force else ""]
    return " ".join(filter(None, words)) if release else ""


def _refused_result(
    error: Exception, truth: ClusterState | RunState | None = None, messages: _Messages | None = None
) -> ActionResult:
    """Returns the answer for an action that failed with `error`."""
    said = tuple(messages.texts) if messages else ()
    return ActionResult(truth=truth, said=said, refused=_error_text(error), status=_http_status(error))


def _error_text(error: Exception) -> str:
    text = with_prefix(error.message) if isinstance(error, InputError) else kube_text(error) or str(error)
    return text.strip().removeprefix("error: ")


def _http_status(error: BaseException) -> int:
    """Returns the status of the answer: 403 if the cluster forbade it, 502 if it could not be asked, else 409."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, Forbidden | Unauthorized):
            return 403
        if isinstance(cause, Transient | ConfigError | codec.DecodeError):
            return 502
        cause = cause.__cause__
    return 409
