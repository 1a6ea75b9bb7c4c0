"""Carries out the actions of the console's pages, as the commands do: accepts a risk, or starts an update.

With a login it uses the user's token, which is sent to the cluster of the login and nowhere else; without one, the
kubeconfig with which the console was started. Afterwards the cluster is read again, and its state is shown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kubekit.api import codec
from kubekit.api.conditions import find
from kubekit.kube.api_errors import ConfigError, Forbidden, KubeError, Transient, Unauthorized
from kubekit.kube.auth import Static, bearer_credential
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.config import ClusterConfig
from runup import __version__
from runup.advice.cli import accept, acceptance_records
from runup.api.config_v1 import Update
from runup.cli import clusterversion_client as clusters
from runup.cli.connection import Connection
from runup.cli.errors import CommandError, describe
from runup.cli.result_output import ResultTexts
from runup.clusterversion.cli import actions as upgrade_actions
from runup.clusterversion.cli import target_choice
from runup.clusterversion.cli.target_choice import Flags
from runup.console.decide.asked_actions import ACCEPT, Asked, Looked, Truth, seal
from runup.fleet.cli.fleet_members import connection_to
from runup.preflight.decide.findings import accepted_names, known_risk_names

_CHANGED = "the cluster has changed since this was confirmed, so nothing was done; see what is so now, and confirm that"
_AGENT = f"runup/{__version__} (serve)"


@dataclass(frozen=True)
class ClusterActions:
    """Reads and changes clusters on behalf of users; `login` is the cluster whose tokens they log in with."""

    connection: Connection
    login: ClusterConfig | None = None

    def look(self, asked: Asked) -> Looked:
        """Returns the cluster's state, and what the command would print or refuse; changes nothing."""
        return self._with_client(asked, lambda client: self._look(asked, client))

    def act(self, asked: Asked, confirmed: str) -> Looked:
        """Carries out the action if the state is still the `confirmed` one; returns the state afterwards."""
        return self._with_client(asked, lambda client: self._act(asked, confirmed, client))

    def _with_client(self, asked: Asked, work: Callable[[SyncClient], Looked]) -> Looked:
        """Returns what `work` returns for a client of the asked cluster, or why the cluster could not be asked."""
        try:
            with SyncClient(self._config(asked), user_agent=_AGENT) as client:
                return work(client)
        except (CommandError, KubeError, codec.DecodeError) as error:
            return _refusal(error)

    def _config(self, asked: Asked) -> ClusterConfig:
        """Returns where to ask, and as whom. Raises CommandError for a cluster to which a user's token may not go."""
        own = connection_to(asked.member, self.connection).config()
        if self.login is None:
            return own
        if own.address != self.login.address:
            raise CommandError(
                f"you are logged in to {self.login.address}, and {asked.member.name} is another cluster, to which your "
                "token is never sent; type the command where you have an account there"
            )
        if not asked.token:
            raise CommandError("there is no token to ask with; log in again")
        login = self.login
        # Nothing else of the console's own account goes along: no certificate, no impersonation.
        return ClusterConfig(
            login.server,
            ca_data=login.ca_data,
            insecure=login.insecure,
            tls_server_name=login.tls_server_name,
            auth=Static(bearer_credential(asked.token)),
        )

    def _look(self, asked: Asked, client: SyncClient) -> Looked:
        """Returns the cluster's state and what the command would print; changes nothing."""
        truth = _truth(client)
        if not asked.target:
            return Looked(truth)
        teller = ResultTexts(asked.action)
        try:
            if asked.action == ACCEPT:
                teller.extend(accept.checked(_change(asked), clusters.read(client, no="no", server="")))
            else:
                flags = _flags(asked)
                teller.extend(target_choice.check_flags(flags))
                if upgrade_actions.planned_update(flags, client, teller) is None:
                    return Looked(truth, refused="\n".join(teller.said), status=409)
        except (CommandError, KubeError) as error:
            return _refusal(error, truth, teller)
        return Looked(truth, tuple(teller.said))

    def _act(self, asked: Asked, confirmed: str, client: SyncClient) -> Looked:
        """Carries out the action if the state is still the `confirmed` one; returns the state afterwards."""
        truth = _truth(client)
        if not asked.target or seal(asked, truth) != confirmed:
            return Looked(truth, refused=_CHANGED, status=409)
        teller = ResultTexts(asked.action)
        try:
            if asked.action == ACCEPT:
                reason = accept.AcceptanceReason(asked.reason, asked.until)
                accept.carry_out(_change(asked), client, reason, teller)
            else:
                flags = _flags(asked)
                teller.extend(target_choice.check_flags(flags))
                upgrade_actions.start_update(flags, client, teller)
        except (CommandError, KubeError) as error:
            # Some of it may have been done before it failed: that is read, too.
            return _refusal(error, None, teller, client)
        return _done(teller, client)


def _done(teller: ResultTexts, client: SyncClient) -> Looked:
    truth, unread = _truth_or_why(client)
    return Looked(truth, tuple(teller.said), done=True, unread=unread)


def _truth_or_why(client: SyncClient) -> tuple[Truth | None, str]:
    try:
        return _truth(client), ""
    except (CommandError, KubeError, codec.DecodeError) as error:
        return None, _text_of(error)


def _change(asked: Asked) -> accept.Change:
    """Returns the acceptance of one risk. Raises CommandError for what would be several, or a removal."""
    if "," in asked.risk or asked.risk.startswith("-") or asked.risk.endswith("-"):
        raise CommandError(f'"{asked.risk}" is not the name of one risk; give one name')
    return accept.Change(add=(asked.risk,))


def _flags(asked: Asked) -> Flags:
    return Flags(to=asked.version)


def _truth(client: SyncClient) -> Truth:
    """Returns what the ClusterVersion says now. Raises CommandError, KubeError and DecodeError."""
    cluster = clusters.read(client)
    status = cluster.status
    progress = find(status.conditions, "Progressing")
    offered = [release.version for release in status.available_updates or ()]
    offered += [update.release.version for update in status.conditional_updates]
    desired = cluster.spec.desired_update
    return Truth(
        cluster=clusters.name_of(client, cluster),
        server=client.config.address,
        user=acceptance_records.user_name(client),
        release=status.desired.version or status.desired.image,
        requested=_requested(desired),
        accepted=tuple(sorted(accepted_names(cluster))),
        progress=progress.message if progress else "",
        offered=tuple(dict.fromkeys(filter(None, offered))),
        risks=tuple(known_risk_names(cluster)),
    )


def _requested(desired: Update | None) -> str:
    """Returns the release that is asked for, in words; empty if none is."""
    if desired is None:
        return ""
    release = (
        desired.version or desired.image or (f"architecture {desired.architecture}" if desired.architecture else "")
    )
    words = [f"{desired.mode} of" if desired.mode else "", release, "by force" if desired.force else ""]
    return " ".join(filter(None, words)) if release else ""


def _refusal(
    error: Exception, truth: Truth | None = None, teller: ResultTexts | None = None, client: SyncClient | None = None
) -> Looked:
    """Returns the answer for an action that failed with `error`; reads the state anew if `client` is given."""
    unread = ""
    if client is not None:
        truth, unread = _truth_or_why(client)
    said = tuple(teller.said) if teller else ()
    return Looked(truth, said, _text_of(error), _status_of(error), unread=unread)


def _text_of(error: Exception) -> str:
    failure = describe(error)
    return (failure.text if failure else str(error)).strip().removeprefix("error: ")


def _status_of(error: BaseException) -> int:
    """Returns the status of the answer: 403 if the cluster forbade it, 502 if it could not be asked, else 409."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, Forbidden | Unauthorized):
            return 403
        if isinstance(cause, Transient | ConfigError | codec.DecodeError):
            return 502
        cause = cause.__cause__
    return 409
