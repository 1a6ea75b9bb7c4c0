"""Carries out the actions of the console's pages, as the commands do: accepts a risk, or starts an update.

With a login it uses the user's token, which is sent to the cluster of the login and nowhere else; without one, the
kubeconfig with which the console was started. Afterwards the cluster is read again, and its state is shown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kubekit.api import codec
from kubekit.api.conditions import find
from kubekit.error_types import InputError
from kubekit.kube.api_errors import ConfigError, Forbidden, KubeError, Transient, Unauthorized
from kubekit.kube.auth import Static, bearer_credential
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.config import ClusterConfig
from runup import __version__
from runup.advice.decide.acceptance import accepted_names
from runup.api.config_v1 import Update
from runup.cli.advice import accept, acceptance_records
from runup.cli.clusterversion import actions as upgrade_actions
from runup.cli.clusterversion import target_choice
from runup.cli.clusterversion.target_choice import Flags
from runup.cli.errors import describe
from runup.cli.fleet.fleet_members import connection_to
from runup.cli.result_output import ResultTexts
from runup.console.decide.asked_actions import ACCEPT, ActionResult, ClusterState, RequestedAction, seal
from runup.evaluation.findings import known_risk_names
from runup.process import clusterversion_client as clusters
from runup.process.connection import Connection

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
        truth = _read_state(client)
        if not asked.target:
            return ActionResult(truth)
        printer = ResultTexts(asked.action)
        try:
            if asked.action == ACCEPT:
                printer.extend(accept.checked(_acceptance_of(asked), clusters.read(client, no="no", server="")))
            else:
                flags = _flags_of(asked)
                printer.extend(target_choice.check_flags(flags))
                if upgrade_actions.planned_update(flags, client, printer) is None:
                    return ActionResult(truth, refused="\n".join(printer.said), status=409)
        except (InputError, KubeError) as error:
            return _refused_result(error, truth, printer)
        return ActionResult(truth, tuple(printer.said))

    def _carry_out(self, asked: RequestedAction, confirmed: str, client: SyncClient) -> ActionResult:
        """Carries out the action if the state is still the `confirmed` one; returns the state afterwards."""
        truth = _read_state(client)
        if not asked.target or seal(asked, truth) != confirmed:
            return ActionResult(truth, refused=_CHANGED, status=409)
        printer = ResultTexts(asked.action)
        try:
            if asked.action == ACCEPT:
                reason = accept.AcceptanceReason(asked.reason, asked.until)
                accept.carry_out(_acceptance_of(asked), client, reason, printer)
            else:
                flags = _flags_of(asked)
                printer.extend(target_choice.check_flags(flags))
                upgrade_actions.start_update(flags, client, printer)
        except (InputError, KubeError) as error:
            # Some of it may have been done before it failed: that is read, too.
            return _refused_result(error, None, printer, client)
        return _finished_result(printer, client)


def _finished_result(printer: ResultTexts, client: SyncClient) -> ActionResult:
    truth, unread = _state_or_reason(client)
    return ActionResult(truth, tuple(printer.said), done=True, unread=unread)


def _state_or_reason(client: SyncClient) -> tuple[ClusterState | None, str]:
    try:
        return _read_state(client), ""
    except (InputError, KubeError, codec.DecodeError) as error:
        return None, _error_text(error)


def _acceptance_of(asked: RequestedAction) -> accept.Change:
    """Returns the acceptance of one risk. Raises InputError for what would be several, or a removal."""
    if "," in asked.risk or asked.risk.startswith("-") or asked.risk.endswith("-"):
        raise InputError(f'"{asked.risk}" is not the name of one risk; give one name')
    return accept.Change(add=(asked.risk,))


def _flags_of(asked: RequestedAction) -> Flags:
    return Flags(to=asked.version)


def _read_state(client: SyncClient) -> ClusterState:
    """Returns what the ClusterVersion says now. Raises InputError, KubeError and DecodeError."""
    cluster = clusters.read(client)
    status = cluster.status
    progress = find(status.conditions, "Progressing")
    offered = [release.version for release in status.available_updates or ()]
    offered += [update.release.version for update in status.conditional_updates]
    desired = cluster.spec.desired_update
    return ClusterState(
        cluster=clusters.name_of(client, cluster),
        server=client.config.address,
        user=acceptance_records.user_name(client),
        release=status.desired.version or status.desired.image,
        requested=_requested_text(desired),
        accepted=tuple(sorted(accepted_names(cluster))),
        progress=progress.message if progress else "",
        offered=tuple(dict.fromkeys(filter(None, offered))),
        risks=tuple(known_risk_names(cluster)),
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
    error: Exception,
    truth: ClusterState | None = None,
    printer: ResultTexts | None = None,
    client: SyncClient | None = None,
) -> ActionResult:
    """Returns the answer for an action that failed with `error`; reads the state anew if `client` is given."""
    unread = ""
    if client is not None:
        truth, unread = _state_or_reason(client)
    said = tuple(printer.said) if printer else ()
    return ActionResult(truth, said, _error_text(error), _http_status(error), unread=unread)


def _error_text(error: Exception) -> str:
    failure = describe(error)
    return (failure.text if failure else str(error)).strip().removeprefix("error: ")


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
