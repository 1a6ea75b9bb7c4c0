"""The verbs delete and deletecollection: objects go at once, or are marked until finalizers and grace period are over.

In: a request, or a kind, a name and DeleteOptions. Out: whether the object is gone, and its last (or new) state.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta

from kubekit.kube.clock import Clock
from kubekit.rules.policy_evaluation import Write
from kubesandbox.apiserver import status_errors
from kubesandbox.apiserver.http.body import PROTOBUF, decode_options, decode_protobuf, decode_yaml, object_type
from kubesandbox.apiserver.http.list_options import Query, invalid_options, not_supported, parse_number
from kubesandbox.apiserver.http.messages import Request, Response, json_response, negotiate
from kubesandbox.apiserver.http.query_parameters import dry_run_faults
from kubesandbox.apiserver.http.request_target import Target
from kubesandbox.apiserver.metadata import IMPORTED, JSON, is_same_state, meta, rfc3339
from kubesandbox.apiserver.objects import strategies
from kubesandbox.apiserver.objects.admission import Admission
from kubesandbox.apiserver.objects.reading import Reading, read_listing, read_token
from kubesandbox.apiserver.objects.views import from_stored
from kubesandbox.apiserver.objects.writing import RETRIES, Writing
from kubesandbox.apiserver.policies.webhook_admission import Notes
from kubesandbox.apiserver.schema.typed import DecodeError, decode_object, shape_of
from kubesandbox.apiserver.served_kinds import Kind
from kubesandbox.apiserver.store import Conflict, Entry, Store

_POLICIES = ("Foreground", "Background", "Orphan")
# The finalizer by which a propagation policy requests the garbage collector's work.
_FINALIZERS = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}
_READERS = {"application/yaml": decode_yaml, PROTOBUF: decode_protobuf}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions:
    """The options of a deletion."""

    policy: str = ""
    grace_s: int | None = None
    uid: str = ""
    resource_version: str = ""
    dry_run: bool = False
    collection: bool = False  # one of many: a real server passes no name to its policies
    request: Request | None = field(default=None, compare=False)  # whose policies decide; None for the server itself

    def to_dict(self) -> JSON:
        """Returns the options in their API form, for policies and webhooks."""
        preconditions = {"uid": self.uid, "resourceVersion": self.resource_version}
        members = {
            "gracePeriodSeconds": self.grace_s,
            "preconditions": {key: value for key, value in preconditions.items() if value} or None,
            "propagationPolicy": self.policy or None,
            "dryRun": ["All"] if self.dry_run else None,
        }
        given = {key: value for key, value in members.items() if value is not None}
        return {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1", **given}


class Deleting:
    """The deleting verbs; one instance for the whole server."""

    def __init__(self, *, store: Store, admission: Admission, reading: Reading, writing: Writing, clock: Clock) -> None:
        self._store, self._admission = store, admission
        self._reading, self._writing, self._clock = reading, writing, clock

    async def delete(self, request: Request, target: Target, kind: Kind) -> Response:
        """Handles DELETE of one object."""
        negotiate(request.header("accept"))
        options = read_options(request)
        deleted, entry = await self.delete_one(kind, target.namespace, target.name, options)
        if not deleted or kind.resource in strategies.RETURN_DELETED:
            return await self._reading.answer(request, kind, entry)
        uid = meta(entry.load()).get("uid", "")
        details = {"name": target.name, "group": kind.group, "kind": kind.plural, "uid": uid}
        status: JSON = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
        return json_response({**status, "details": {key: value for key, value in details.items() if value}})

    async def delete_collection(self, request: Request, target: Target, kind: Kind) -> Response:
        """Handles DELETE of all objects that a selector matches."""
        negotiate(request.header("accept"))
        listing, selector, _ = read_listing(request, target, kind)
        if listing.continue_:
            read_token(listing.continue_)
        options = replace(read_options(request), collection=True)
        entries = await self._reading.known(lambda: self._reading.entries(kind, target.namespace))
        selected = [entry for entry in entries if not selector or selector.matches(entry)]
        deleted = []
        for entry in selected:
            try:
                deleted.append((await self.delete_one(kind, entry.namespace, entry.name, options))[1])
            except status_errors.ApiError as error:
                if error.code != 404:
                    raise
        return await self._reading.answer_many(request, kind, deleted, {"resourceVersion": str(self._store.rv)})

    async def delete_one(self, kind: Kind, namespace: str, name: str, options: DeleteOptions) -> tuple[bool, Entry]:
        """Deletes or marks one object, and returns whether it is gone and its last (or new) state. Raises ApiError."""
        for _ in range(RETRIES):
            entry = await self._reading.known(lambda: self._reading.entry(kind, namespace, name))
            obj = entry.load()
            uid, version, why = meta(obj).get("uid"), meta(obj).get("resourceVersion"), ""
            if options.uid and options.uid != uid:
                why = f"the UID in the precondition ({options.uid}) does not match the UID in record ({uid}). The "
                why += "object might have been deleted and then recreated"
            elif options.resource_version and options.resource_version != version:
                why = f"the ResourceVersion in the precondition ({options.resource_version}) does not match the "
                why += f"ResourceVersion in record ({version}). The object might have been modified"
            if why:  # the real server names the kind here, not the resource
                raise status_errors.conflict(kind.kind, kind.group, name, why)
            self._admission.before_delete(kind, obj)
            await self._admit_deletion(kind, from_stored(kind, obj), options, namespace=namespace, name=name)
            marked = self._marked_for_deletion(kind, obj, options)
            if options.dry_run:
                return marked is None, entry
            try:
                if marked is None:
                    return True, await self._writing.remove(kind, entry, obj)
                if is_same_state(marked, entry.load()):
                    return False, entry
                return False, await self._writing.put(kind, marked, expected=entry.rv)
            except Conflict:
                continue
        raise status_errors.conflict(kind.plural, kind.group, name)

    async def _admit_deletion(
        self, kind: Kind, old: JSON, options: DeleteOptions, *, namespace: str, name: str
    ) -> None:
        """Raises ApiError if a policy or a webhook refuses a user's deletion."""
        request, policies, hooks = options.request, self._writing.policies, self._writing.webhooks
        if request is None or request.user is None:
            return
        write = Write(
            operation="DELETE",
            kind=kind,
            namespace=namespace,
            name="" if options.collection else name,
            user=request.user,
            obj=None,
            old=old,
            dry_run=options.dry_run,
            options=options.to_dict(),
        )
        notes = Notes(warnings=request.warnings, annotations=request.annotations)
        if hooks is not None:
            await hooks.mutate(write, lambda _: None, notes)
        if policies is not None:
            policies(write, request.warnings, request.annotations)
        if hooks is not None:
            await hooks.validate(write, notes)

    def _marked_for_deletion(self, kind: Kind, obj: JSON, options: DeleteOptions) -> JSON | None:
        """Returns the object marked for deletion, or None if it can be removed at once."""
        metadata = meta(obj)
        # Controllers leave imported objects alone, also those that were being deleted in their cluster. This deletion
        # is a new one, which they must carry out.
        if isinstance(labels := metadata.get("labels"), dict) and labels.pop(IMPORTED, None) is not None and not labels:
            del metadata["labels"]
        finalizers = list(metadata.pop("finalizers", None) or ())
        if options.policy:
            # The finalizer of the propagation policy takes the place of those of other policies.
            finalizer = _FINALIZERS.get(options.policy)
            finalizers = [name for name in finalizers if name == finalizer or name not in _FINALIZERS.values()]
            finalizers += [finalizer] if finalizer and finalizer not in finalizers else []
        if finalizers:
            metadata["finalizers"] = finalizers
        grace_s = self._admission.grace_period(kind, obj, options.grace_s)
        content = kind.resource == "namespaces" and (obj.get("spec") or {}).get("finalizers")
        if not finalizers and not grace_s and not content:
            return None
        is_marked, set_s = "deletionTimestamp" in metadata, int(metadata.get("deletionGracePeriodSeconds") or 0)
        if not is_marked or grace_s < set_s:
            # Marking for deletion counts as a change of the desired state (BeforeDelete in registry/rest/delete.go).
            if not is_marked and "generation" in metadata:
                metadata["generation"] += 1
            metadata["deletionTimestamp"] = rfc3339(self._clock.now() + timedelta(seconds=grace_s))
            metadata["deletionGracePeriodSeconds"] = grace_s
        if kind.resource == "namespaces":
            obj["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}
        return obj


def read_options(request: Request) -> DeleteOptions:
    """Returns the options in a request's body, or else in its query. Raises ApiError 400 or 422."""
    body: JSON = {}
    if request.body:
        value = _READERS.get(object_type(request), decode_options)(request.body)
        body = value if isinstance(value, dict) else {}
        if (kind := body.get("kind") or "DeleteOptions") != "DeleteOptions":
            version, scheme = body.get("apiVersion") or "meta.k8s.io/v1", "pkg/runtime/scheme.go:110"
            why = f'no kind "{kind}" is registered for version "{version}" in scheme "{scheme}"'
            raise status_errors.ApiError(500, "", why)
        if shape := shape_of("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"):
            try:
                body, _ = decode_object(shape, body)
            except DecodeError as error:
                # The code of a real server, too.
                raise status_errors.ApiError(500, "", str(error)) from None
    # The real server reads the query only if there is no body.
    query = Query() if request.body else request.query
    return replace(options_of(body, query), request=request)


def options_of(body: JSON, query: Query) -> DeleteOptions:
    """Returns DeleteOptions from their API form. Raises ApiError 400 or 422."""
    policy = body.get("propagationPolicy") or query.get("propagationPolicy", "")
    orphans, dry_run = body.get("orphanDependents"), body.get("dryRun") or query.all_of("dryRun")
    if "orphanDependents" in query:
        orphans = query.flag("orphanDependents")
    faults = []
    if policy and orphans is not None:
        text = f'Invalid value: "{policy}": orphanDependents and deletionPropagation cannot be both set'
        faults.append(status_errors.Cause("FieldValueInvalid", text, "propagationPolicy"))
    if policy and policy not in _POLICIES:
        faults.append(not_supported("propagationPolicy", policy, (*_POLICIES, "nil")))
    if faults := [*faults, *dry_run_faults(dry_run)]:
        raise invalid_options("DeleteOptions", faults)
    if not policy and orphans is not None:
        policy = "Orphan" if orphans else "Background"
    grace_s = body.get("gracePeriodSeconds", parse_number(query, "gracePeriodSeconds"))
    preconditions = body.get("preconditions") or {}
    return DeleteOptions(
        policy=policy,
        # A negative grace period becomes 1 s, the minimum (registry/rest/delete.go).
        grace_s=1 if grace_s is not None and grace_s < 0 else grace_s,
        uid=preconditions.get("uid") or query.get("uid", ""),
        resource_version=preconditions.get("resourceVersion") or query.get("resourceVersion", ""),
        dry_run=bool(dry_run),
    )
