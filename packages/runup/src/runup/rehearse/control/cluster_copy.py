"""Makes the copy of a cluster: the sandbox's API server on a temporary folder, filled straight into its store.

Why not through the API? What is copied was admitted by another server: its managed fields, its versions and its faults
are what the rehearsal is about, and a create would lose them. Nothing acts on the copy: no controllers, no nodes, no
webhooks, and conversion webhooks are not called either, since a copy reaches no other server (docs/decisions/0091).
"""

from __future__ import annotations

import asyncio
import copy
import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.kube.config import load as load_kubeconfig
from kubekit.lang.files import remove_tree
from kubekit.rules.policy_evaluation import AUTHORIZER
from kubesandbox.apiserver.custom import custom_kinds
from kubesandbox.apiserver.metadata import encoder_of, stamp_restored
from kubesandbox.apiserver.objects.views import to_stored
from kubesandbox.apiserver.schema.typed import DecodeError
from kubesandbox.apiserver.served_kinds import Kind
from kubesandbox.apiserver.server import ApiServer
from kubesandbox.apiserver.status_errors import ApiError
from kubesandbox.apiserver.store import Conflict, Entry
from runup.dump.documents import JSON, identity
from runup.dump.large_lists import unpacked
from runup.rehearse.control.cluster_source import ClusterSource
from runup.rehearse.decide.rehearsal_outcome import LeftOut
from runup.release.decide.manifest import Identity
from runup.sandbox.setup.scenario_objects import missing_definitions

DEFINITION = ("apiextensions.k8s.io", "CustomResourceDefinition")
POLICIES = "admissionregistration.k8s.io"
SCRATCH_PREFIX = "runup-rehearse-"
# Objects that are stored at a time: the store commits so many writes together.
_WRITES_AT_ONCE = 256
# The account of the cluster version operator, by which admission policies may know it, with an administrator's rights.
_ADMINISTRATOR_GROUPS = ("system:serviceaccounts", "system:authenticated", "system:masters")


class ClusterCopy:
    """The copy of a cluster, as its API server holds it."""

    def __init__(self, server: ApiServer, client: Client, folder: Path, *, has_authorizer: bool = False) -> None:
        self.server = server
        self.client = client
        self.folder = folder
        self._has_authorizer = has_authorizer
        # Storage and key of what the server had before anything was copied.
        self.initial: frozenset[tuple[str, str]] = frozenset()
        self.left_out: list[LeftOut] = []
        # Admission policies that the copy's API server could only get wrong.
        self.not_evaluated: list[LeftOut] = []
        # Group and kind of objects that could not be copied.
        self.damaged: set[tuple[str, str]] = set()
        # Definitions that the source lacks: kinds by `GROUP/KIND`.
        self.invented: set[tuple[str, str]] = set()

    def kind_of(self, group: str, kind: str) -> Kind | None:
        """Returns any served version of a kind, or None."""
        return self.server.kinds.of_kind(group, kind)

    def entry(self, identity_: Identity) -> Entry | None:
        """Returns the stored object, or None."""
        kind = self.kind_of(identity_.group, identity_.kind)
        return self.server.store.get(kind.storage, identity_.namespace, identity_.name) if kind else None

    def get(self, identity_: Identity) -> JSON | None:
        """Returns the object as it is stored, or None."""
        entry = self.entry(identity_)
        return entry.load() if entry is not None else None

    def all(self, group: str, kind: str, namespace: str = "") -> list[JSON]:
        """Returns all objects of a kind, in a namespace if one is given."""
        served = self.kind_of(group, kind)
        return [entry.load() for entry in self.server.store.items(served.storage, namespace)] if served else []

    def stored_entries(self, group: str, kind: str, plural: str) -> list[Entry]:
        """Returns the stored objects of a kind, in the form in which they were copied."""
        served = self.kind_of(group, kind)
        # A definition that is refused, or gone, still has its objects in the store.
        return self.server.store.items(served.storage if served is not None else f"{plural}.{group}")

    async def wait_until_served(self, definition: JSON) -> None:
        """Waits until the copy serves the kind of `definition`, which was just applied. This copy serves it at once."""
        del definition

    def objects_in_namespace(self, namespace: str) -> list[Identity]:
        """Returns every object in a namespace."""
        storages = {kind.storage: kind for kind in self.server.kinds if kind.namespaced}
        return [
            Identity(kind.group, kind.kind, entry.namespace, entry.name)
            for storage, kind in storages.items()
            for entry in self.server.store.items(storage, namespace)
        ]

    def dependents(self, owners: Mapping[str, Identity]) -> list[tuple[Identity, str]]:
        """Returns the objects that the garbage collector deletes with objects of these uids, and why.

        Source: https://kubernetes.io/docs/concepts/architecture/garbage-collection/#owners-dependents. An object with
        another owner stays.
        """
        owned = self._objects_by_owner() if owners else {}
        dependents_found: list[tuple[Identity, str]] = []
        gone_owners, waiting = dict(owners), list(owners)
        while waiting:
            for identity_, uid, uids in owned.get(waiting.pop(), ()):
                if uid not in gone_owners and uids <= gone_owners.keys():
                    gone_owners[uid] = gone_owners[next(iter(uids))]
                    dependents_found.append((identity_, f"its owner {gone_owners[uid]} goes"))
                    waiting.append(uid)
        return dependents_found

    def _objects_by_owner(self) -> dict[str, list[tuple[Identity, str, set[str]]]]:
        """Returns the objects that have owners by the uid of each: with their own uid, and those of all owners."""
        owned: dict[str, list[tuple[Identity, str, set[str]]]] = {}
        for kind in {kind.storage: kind for kind in self.server.kinds}.values():
            for entry in self.server.store.items(kind.storage):
                if b'"ownerReferences"' not in entry.raw:
                    continue
                metadata = entry.load()["metadata"]
                uids = {str(owner.get("uid")) for owner in metadata.get("ownerReferences") or ()}
                row = (Identity(kind.group, kind.kind, entry.namespace, entry.name), str(metadata.get("uid")), uids)
                for uid in uids:
                    owned.setdefault(uid, []).append(row)
        return owned

    async def fill(self, source: ClusterSource) -> None:
        """Stores the objects of `source`: definitions first, then the objects of the kinds that they define."""
        self.initial = frozenset(
            (kind.storage, entry.key) for kind in self.server.kinds for entry in self.server.store.items(kind.storage)
        )
        objects = source.objects
        definitions = self._usable_definitions(unpacked(obj) for obj in objects if identity(obj)[:2] == DEFINITION)
        defined_kinds = {
            (definition["spec"]["group"], definition["spec"]["names"]["kind"]) for definition in definitions
        }
        # Kubernetes' own kinds that the server lacks are left out and named.
        of_kubernetes = {identity(obj)[:2] for obj in objects if identity(obj)[0].endswith(".k8s.io")}
        missing = missing_definitions(objects, definitions, of_kubernetes)
        stand_ins = [_rename_from_source(stand_in, source) for stand_in in missing]
        self.invented = {(d["spec"]["group"], d["spec"]["names"]["kind"]) for d in stand_ins} - defined_kinds
        await self._store_all(
            [*definitions, *(_with_established_status(each, self.server.clock) for each in stand_ins)]
        )
        declared = {identity(obj)[3] for obj in objects if identity(obj)[:2] == ("", "Namespace")}
        named_namespaces = {identity(obj)[2] for obj in objects} - declared - {""}
        undeclared_namespaces = [
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
                "spec": {"finalizers": ["kubernetes"]},
                "status": {"phase": "Active"},
            }
            for name in sorted(named_namespaces)
        ]
        await self._store_all(undeclared_namespaces)
        await self._store_all(obj for obj in objects if identity(obj)[:2] != DEFINITION and self._is_evaluated(obj))

    def _is_evaluated(self, obj: JSON) -> bool:
        """Returns whether the copy may have the object: not a policy that it would not evaluate as the cluster does."""
        group, kind, _, name = identity(obj)
        problem = ""
        if group == POLICIES and kind == "MutatingAdmissionPolicy":
            problem = "the copy's API server has no policies that change objects"
        elif (
            not self._has_authorizer
            and (group, kind) == (POLICIES, "ValidatingAdmissionPolicy")
            and asks_authorizer(unpacked(obj))
        ):
            problem = "its expressions ask the authorizer, and an administrator applies the release to the copy"
        if problem:
            self.not_evaluated.append(LeftOut(f"{kind} {name}", problem))
        return not problem

    def _usable_definitions(self, definitions: Iterable[JSON]) -> list[JSON]:
        """Returns the definitions with all fields that the API requires; reports the others as left out."""
        usable = []
        for definition in definitions:
            try:
                spec = definition["spec"]
                names = [spec["group"], spec["names"]["kind"], spec["names"]["plural"], spec["versions"][0]["name"]]
                if all(isinstance(name, str) and name for name in names):
                    usable.append(
                        _with_established_status(
                            self._decode_object(self._kind_of_definitions, definition), self.server.clock
                        )
                    )
                    continue
                problem = "a name in its spec is not text"
            except (DecodeError, KeyError, IndexError, TypeError) as error:
                problem = f"it is not a definition: {error or type(error).__name__}"
            self.damaged.add(DEFINITION)
            self.left_out.append(LeftOut(f"CustomResourceDefinition {definition['metadata']['name']}", problem, 1))
        return usable

    @property
    def _kind_of_definitions(self) -> Kind:
        kind = self.kind_of(*DEFINITION)
        assert kind is not None
        return kind

    async def _store_all(self, objects: Iterable[JSON]) -> None:
        """Stores the objects in batches; kinds that the copy does not serve are counted in `left_out`."""
        batch: list[Any] = []
        unserved: dict[str, int] = {}
        for obj in objects:
            group, kind_name, namespace, _ = identity(obj)
            kind = self._kind_in_version(obj) or self.kind_of(group, kind_name)
            if kind is None or kind.namespaced != bool(namespace):
                name = f"{kind_name}.{group}" if group else kind_name
                unserved[name] = unserved.get(name, 0) + 1
                continue
            batch.append(self._store_one(kind, obj))
            if len(batch) == _WRITES_AT_ONCE:
                await asyncio.gather(*batch)
                batch.clear()
        await asyncio.gather(*batch)
        for name, count in sorted(unserved.items()):
            text = "the copy's API server does not serve this kind"
            self.left_out.append(LeftOut(name, text, count))

    def _kind_in_version(self, obj: JSON) -> Kind | None:
        group, kind_name, *_ = identity(obj)
        version = obj["apiVersion"].rpartition("/")[2]
        kinds = self.server.kinds
        return next((k for k in kinds if (k.group, k.version, k.kind) == (group, version, kind_name)), None)

    def _decode_object(self, kind: Kind, obj: JSON) -> JSON:
        """Returns the object as a server's codec reads it. Raises DecodeError if no server can have stored it."""
        if not kind.custom:
            typed, unknown = self.server.schemas.decode(kind, obj)
            # A field that a newer server knows is kept.
            return obj if unknown else typed
        # Nothing of a custom resource may be pruned here. Its metadata have the same type as those of a ConfigMap.
        config_map = self.kind_of("", "ConfigMap")
        assert config_map is not None
        of_metadata = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": obj["metadata"]}
        return {**obj, "metadata": self.server.schemas.decode(config_map, of_metadata)[0]["metadata"]}

    async def _store_one(self, kind: Kind, obj: JSON) -> None:
        """Decodes, defaults and stores one object; notes in `left_out` an object that cannot be stored."""
        server = self.server
        obj = dict(unpacked(obj))
        obj["metadata"] = dict(obj["metadata"])
        try:
            obj = self._decode_object(kind, obj)
            stamp_restored(kind, obj, server.clock.now())
            obj = obj if kind.custom else server.schemas.default(kind, obj)
            stored = to_stored(kind, obj)
            name, namespace = obj["metadata"]["name"], obj["metadata"].get("namespace", "")
            stored_entry = server.store.get(kind.storage, namespace, name)
            await server.store.put(
                kind.storage,
                namespace,
                name,
                stored,
                expected=stored_entry.rv if stored_entry else 0,
                encode=encoder_of(kind),
            )
        except (Conflict, ApiError, DecodeError, ValueError, TypeError, KeyError, AttributeError) as error:
            # A dump's object may have any form. One that cannot be stored is reported, and its kind counts as damaged:
            # nothing is concluded from what the copy has of it.
            object_name = f"{kind.kind} {obj['metadata'].get('name')}"
            self.damaged.add((kind.group, kind.kind))
            self.left_out.append(LeftOut(object_name, f"it could not be copied: {error or type(error).__name__}", 1))


@asynccontextmanager
async def open_copy(
    source: ClusterSource,
    clock: Clock,
    *,
    account: tuple[str, str],
    scratch: Path | None = None,
    has_authorizer: bool = False,
) -> AsyncIterator[ClusterCopy]:
    """Yields the copy of a cluster; its folder is removed when the block ends. Raises OSError.

    `account` is namespace and name of the ServiceAccount that applies the release, `scratch` where the folder is made.
    `has_authorizer`: policies that ask the authorizer are copied, for a server that has one.
    """
    folder = Path(tempfile.mkdtemp(prefix=SCRATCH_PREFIX, dir=scratch))
    try:
        async with ApiServer(data=folder / "server", clock=clock) as server:
            server.schemas.conversions.ask = _refuse_conversion
            server.rest.writing.webhooks = None  # those of the cluster have side effects there
            user, groups = account_user(account)
            kubeconfig = folder / "operator.kubeconfig"
            kubeconfig.touch(mode=0o600)
            kubeconfig.write_bytes(server.kubeconfig_for(user, groups))
            async with Client(load_kubeconfig(str(kubeconfig)), clock=clock) as client:
                copy_ = ClusterCopy(server, client, folder, has_authorizer=has_authorizer)
                await copy_.fill(source)
                yield copy_
    finally:
        remove_tree(folder)


def account_user(account: tuple[str, str]) -> tuple[str, tuple[str, ...]]:
    """Returns the user and the groups of a ServiceAccount, by namespace and name, with an administrator's rights."""
    namespace, name = account
    return f"system:serviceaccount:{namespace}:{name}", (*_ADMINISTRATOR_GROUPS, f"system:serviceaccounts:{namespace}")


async def _refuse_conversion(kind: Kind, _objects: Sequence[JSON], _version: str) -> list[JSON]:
    text = f"the conversion webhook of {kind.plural}.{kind.group} cannot be called from a copy of the cluster"
    raise ApiError(500, "InternalError", text)


def asks_authorizer(policy: JSON) -> bool:
    """Returns whether an expression of a policy uses the variable `authorizer`."""
    spec = policy.get("spec")
    members = ("validations", "matchConditions", "variables", "auditAnnotations")
    lists = [spec.get(name) for name in members] if isinstance(spec, dict) else []
    rows = [row for rows_of_list in lists if isinstance(rows_of_list, list) for row in rows_of_list]
    texts = [str(value) for row in rows if isinstance(row, dict) for value in row.values()]
    return any(AUTHORIZER.search(text) for text in texts)


def is_conversion_refusal(message: str) -> bool:
    """Returns whether the message is the copy's own about a conversion webhook."""
    return "cannot be called from a copy of the cluster" in message or message.startswith("conversion webhook for ")


def _rename_from_source(definition: JSON, source: ClusterSource) -> JSON:
    """Returns an invented definition under the resource's own name, as the source has it, and with a status."""
    versions = [{**version, "subresources": {"status": {}}} for version in definition["spec"]["versions"]]
    spec = {**definition["spec"], "versions": versions}
    plural = source.plurals.get((spec["group"], spec["names"]["kind"]))
    if not plural:
        return {**definition, "spec": spec}
    names = {**spec["names"], "plural": plural}
    return {**definition, "metadata": {"name": f"{plural}.{spec['group']}"}, "spec": {**spec, "names": names}}


def _with_established_status(definition: JSON, clock: Clock) -> JSON:
    """Returns the definition with the status that the server keeps, if the source does not have it."""
    definition = copy.deepcopy(definition)
    conditions = (definition.get("status") or {}).get("conditions")
    if not conditions and isinstance(definition.get("spec"), dict):
        custom_kinds.complete_definition(definition, clock.now())
    return definition
