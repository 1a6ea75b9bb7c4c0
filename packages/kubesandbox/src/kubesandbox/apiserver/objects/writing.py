"""The verbs create and update: how an object is stored.

In: a request, or an object and options. Out: the stored entry. All writes follow one rule: read the object with its
revision, compute the new one, store it only if that revision is still current, otherwise start over. The particulars of
a kind are in its `Kind` row, in `Admission`, in `strategies` and in its schema.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from kubekit.kube.clock import Clock
from kubekit.rules.policy_evaluation import Write
from kubesandbox.apiserver import status_errors
from kubesandbox.apiserver.http.body import object_type
from kubesandbox.apiserver.http.messages import Request, Response, negotiate
from kubesandbox.apiserver.http.query_parameters import WriteOptions, write_options
from kubesandbox.apiserver.http.request_target import Target
from kubesandbox.apiserver.json_copy import copy_json
from kubesandbox.apiserver.large_steps import is_large, run_step
from kubesandbox.apiserver.metadata import (
    IMPORTED,
    carry_over,
    encoder_of,
    is_same_state,
    key_of,
    meta,
    new_uid,
    stamp_new,
    stamp_restored,
)
from kubesandbox.apiserver.objects import strategies
from kubesandbox.apiserver.objects.admission import Admission
from kubesandbox.apiserver.objects.decoding import Decoding, check_named, check_place
from kubesandbox.apiserver.objects.reading import Reading, check_key
from kubesandbox.apiserver.objects.schemas import COMPLETED, Schemas, is_in_old_version
from kubesandbox.apiserver.objects.views import from_stored, to_stored
from kubesandbox.apiserver.patch import managed_fields
from kubesandbox.apiserver.policies.webhook_admission import Notes, WebhookAdmission
from kubesandbox.apiserver.schema.field_errors import Fault, FieldError
from kubesandbox.apiserver.served_kinds import Kind
from kubesandbox.apiserver.status_errors import JSON, ApiError
from kubesandbox.apiserver.store import Conflict, Entry, Store, StoreError
from kubesandbox.apiserver.validation import write_warnings

# Computes the new state of an object from a copy of the old one.
Change = Callable[[JSON], JSON]
# Attempts after a conflict, as many as k8s.io/apiserver makes for a patch.
RETRIES = 5
# The object itself, and the subresources that are a part of it.
_ADMITTED = frozenset({"", "status", "ephemeralcontainers", "resize", "approval", "finalize"})
_SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_LONGEST_PREFIX = 58
# What the server itself works by: these are validated also when they are restored.
_OF_THE_SERVER = frozenset(
    {"namespaces", "customresourcedefinitions.apiextensions.k8s.io", "apiservices.apiregistration.k8s.io"}
)
_WITHOUT_REVISION = FieldError(Fault.INVALID, "metadata.resourceVersion", 0, "must be specified for an update")

# Metadata that a new object gets after admission (BeforeCreate of registry/rest/create.go), as its generated name.
_GIVEN_LATE = ("uid", "creationTimestamp", "generation")
# Metadata that no update changes (ValidateObjectMetaAccessorUpdate); of the rest the server keeps the old values.
_IMMUTABLE = ("uid", "deletionTimestamp", "deletionGracePeriodSeconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The object of another kind that a subresource has, such as a Scale; admission decides about it.

    `read` returns it of a stored object, `write` the stored object with a changed one.
    """

    kind: Kind
    read: Callable[[JSON], JSON]
    write: Callable[[JSON, JSON], JSON]


class Writing:
    """The common part of the writing verbs; one instance for the whole server."""

    def __init__(
        self,
        *,
        store: Store,
        schemas: Schemas,
        admission: Admission,
        decoding: Decoding,
        reading: Reading,
        clock: Clock,
    ) -> None:
        self._store, self._schemas, self._admission = store, schemas, admission
        self._decoding, self._reading, self._clock = decoding, reading, clock
        # The server sets these four once it is assembled. Each raises ApiError to deny a write.
        # Privilege escalation: the user, the kind, the new object and the old one.
        self.guard: Callable[[WriteOptions, Kind, JSON, JSON | None], None] | None = None
        # ValidatingAdmissionPolicies: they add warnings, and annotations of the audit log.
        self.policies: Callable[[Write, list[str], dict[str, str]], None] | None = None
        self.webhooks: WebhookAdmission | None = None
        # ResourceQuotas, which charge a write that they allow.
        self.quotas: Callable[[Write], Awaitable[None]] | None = None

    # -- create ----------------------------------------------------------------------------------------------------

    async def create(self, request: Request, target: Target, kind: Kind) -> Response:
        """Handles POST of a new object."""
        negotiate(request.header("accept"))
        object_type(request)
        options = write_options(request, "CreateOptions")
        obj = await self._decoding.body(request, kind, options)
        entry = await self.create_object(kind, target.namespace, obj, options)
        return await self._reading.answer(request, kind, entry, 201)

    async def create_object(self, kind: Kind, namespace: str, obj: JSON, options: WriteOptions) -> Entry:
        """Stores a new object (already decoded). Raises ApiError."""
        check_place(kind, namespace, "", obj)
        strategies.stamp_requester(kind, obj, options.user)
        metadata = meta(obj)
        # Only administrators restore an object, which can have any owner, uid and status.
        is_admin = options.user is not None and "system:masters" in options.user.groups
        labels = metadata.get("labels")
        restored = is_admin and isinstance(labels, dict) and IMPORTED in labels and bool(metadata.get("name"))
        as_is = restored and kind.resource not in _OF_THE_SERVER

        def compute() -> JSON:
            """Returns the object as it is stored. Raises ApiError."""
            self._check_escalation(kind, obj, None, options)
            if as_is:
                stamp_restored(kind, obj, self._clock.now())
                new = self._schemas.default(kind, obj)
            else:
                new = self._prepare_new(kind, obj, restored=restored)
            tree, empty, now = self._schemas.tree(kind), self._schemas.empty(kind), self._clock.now()
            managed_fields.on_update(
                tree, kind, None, new, empty=empty, manager=options.manager, now=now, subresource=""
            )
            return new

        if as_is and (existing := self._store.get(kind.storage, namespace, metadata["name"])) is not None:
            raise _already_there(kind, metadata["name"], existing)
        new = await run_step(compute, large=options.large)
        # A restored object is not validated: its faults are what the reader of a dump wants to see.
        return await (self._put_new(kind, to_stored(kind, new)) if as_is else self._admit_new(kind, new, options))

    async def create_applied(self, kind: Kind, apply: Callable[[], JSON], options: WriteOptions) -> Entry:
        """Stores the object that `apply` returns, with the owners that the apply recorded. Raises ApiError."""

        def compute() -> JSON:
            applied = apply()
            self._check_escalation(kind, applied, None, options)
            fields = meta(applied).get("managedFields")
            new = self._prepare_new(kind, applied)
            if fields:
                meta(new)["managedFields"] = fields
            return new

        return await self._admit_new(kind, await run_step(compute, large=options.large), options)

    def _check_escalation(self, kind: Kind, obj: JSON, old: JSON | None, options: WriteOptions) -> None:
        if self.guard is not None:
            self.guard(options, kind, obj, old)

    def _prepare_new(self, kind: Kind, obj: JSON, *, restored: bool = False) -> JSON:
        now = self._clock.now()
        if restored:
            stamp_restored(kind, obj, now)
            if kind.resource != "namespaces":  # the server would end the kind, and its objects with it
                meta(obj).pop("deletionTimestamp", None)
        else:
            stamp_new(kind, obj, uid=new_uid(), now=now)
        strategies.for_create(kind, obj)
        return self._schemas.default(kind, obj)

    async def _admit_new(self, kind: Kind, obj: JSON, options: WriteOptions) -> Entry:
        """Stores a prepared object once it has passed admission and validation. Raises ApiError."""
        # After field ownership is recorded: nobody owns the fields that registries and admission plugins add.
        given = {key: meta(obj).pop(key) for key in _GIVEN_LATE if key in meta(obj)}
        new = await self._mutated(kind, obj, None, options, part="")
        metadata = meta(new)
        metadata.update(given)
        if not metadata.get("name") and metadata.get("generateName"):
            suffix = "".join(secrets.choice(_SUFFIX_ALPHABET) for _ in range(5))
            metadata["name"] = metadata["generateName"][:_LONGEST_PREFIX] + suffix

        def complete() -> None:
            self._admission.before_create(kind, new, self._clock.now())
            self._validate_object(kind, new, None, options)

        await run_step(complete, large=options.large)
        await self._ask_validating(kind, new, None, options, part="")
        return await self._store_new(kind, new, options)

    async def admit_other(
        self, kind: Kind, target: Target, obj: JSON, options: WriteOptions, *, object_kind: Kind
    ) -> JSON:
        """Returns the object that is posted to a subresource, such as an Eviction, as mutating webhooks change it.

        Raises ApiError if a policy or a webhook refuses it.
        """
        if options.user is None or self.webhooks is None:
            return obj
        write = replace(
            _write_of(kind, obj, None, options, part=target.subresource),
            namespace=target.namespace,
            name=target.name,
            object_kind=object_kind,
        )
        if self.webhooks.may_mutate(kind):
            changed = await self.webhooks.mutate(write, lambda _: None, _notes_of(options))
            assert changed is not None
            write = replace(write, obj=changed)
        if self.policies is not None:
            self.policies(write, options.warnings, options.annotations)
        await self.webhooks.validate(write, _notes_of(options))
        assert write.obj is not None
        return dict(write.obj)

    async def _mutated(
        self, kind: Kind, obj: JSON, old: JSON | None, options: WriteOptions, *, part: str, view: View | None = None
    ) -> JSON:
        """Returns an object as admission plugins and mutating webhooks complete it. Raises ApiError."""

        def admit(new: JSON) -> None:
            self._admission.admit(kind, new, old)

        await run_step(lambda: admit(obj), large=options.large)
        hooks = self.webhooks
        if hooks is None or options.user is None or not hooks.may_mutate(kind) or not (part in _ADMITTED or view):
            return obj
        write = _write_of(kind, obj, old, options, part=part, view=view)
        changed = await hooks.mutate(write, (lambda _: None) if view else admit, _notes_of(options))
        assert changed is not None
        return view.write(obj, changed) if view else changed

    async def _ask_validating(
        self, kind: Kind, obj: JSON, old: JSON | None, options: WriteOptions, *, part: str, view: View | None = None
    ) -> None:
        """Raises ApiError if a validating webhook refuses a user's write."""
        if self.webhooks is not None and options.user is not None and (part in _ADMITTED or view):
            await self.webhooks.validate(_write_of(kind, obj, old, options, part=part, view=view), _notes_of(options))

    async def _store_new(self, kind: Kind, obj: JSON, options: WriteOptions) -> Entry:
        """Stores a completed object, unless a quota or another object of its name forbids it. Raises ApiError."""
        name, revision = meta(obj)["name"], str(meta(obj).pop("resourceVersion", ""))
        existing = self._store.get(kind.storage, meta(obj).get("namespace", ""), name)
        # A real server also charges for an object that is there already, until its controller counts again.
        charged = options if existing is None else replace(options, dry_run=True)
        await self._charge_quotas(kind, obj, None, charged)
        # The storage reads the resourceVersion, and only if it writes; a text that is no number counts as none.
        if not options.dry_run and revision.isdigit() and int(revision):
            raise ApiError(500, "", "resourceVersion should not be set on objects to be created")
        if existing is not None:
            raise _already_there(kind, name, existing)
        obj = to_stored(kind, obj)
        return await (self._as_stored(kind, obj, 0) if options.dry_run else self._put_new(kind, obj))

    async def _put_new(self, kind: Kind, obj: JSON) -> Entry:
        """Stores a new object. Raises ApiError 409 if there is one of its name."""
        try:
            return await self.put(kind, obj, expected=0)
        except Conflict:
            raise status_errors.already_exists(kind.plural, kind.group, meta(obj)["name"]) from None

    async def _charge_quotas(
        self, kind: Kind, obj: JSON, old: JSON | None, options: WriteOptions, *, part: str = ""
    ) -> None:
        """Checks a user's write against the namespace's quotas; `part` is the subresource. Raises ApiError (403)."""
        # What the server itself makes counts for no quota.
        if self.quotas is not None and options.user is not None:
            await self.quotas(_write_of(kind, obj, old, options, part=part))

    def _validate_object(
        self,
        kind: Kind,
        obj: JSON,
        old: JSON | None,
        options: WriteOptions,
        *,
        part: str = "",
        view: View | None = None,
    ) -> None:
        """Raises ApiError if an object is invalid, or a user's write denied by a policy; `part` is the subresource."""
        faults = [*self._admission.faults(kind, obj, old, part), *self._schemas.validate(kind, obj, old)]
        if faults:
            raise status_errors.invalid(kind.kind, kind.group, meta(obj).get("name", ""), faults)
        options.warnings.extend(write_warnings.warnings_of_write(kind, obj, old))
        if part in ("", "ephemeralcontainers"):
            self._admission.check(kind, obj, old, warnings=options.warnings, annotations=options.annotations)
        if self.policies is not None and options.user is not None and (part in _ADMITTED or view):
            write = _write_of(kind, obj, old, options, part=part, view=view)
            self.policies(write, options.warnings, options.annotations)

    # -- update ----------------------------------------------------------------------------------------------------

    async def update(self, request: Request, target: Target, kind: Kind) -> Response:
        """Handles PUT of a whole object or of its status."""
        if not target.name:
            raise status_errors.bad_request("name must be provided")
        negotiate(request.header("accept"))
        options = write_options(request, "UpdateOptions")
        body = await self._decoding.body(request, kind, options)
        check_named(body, target.name)
        check_place(kind, target.namespace, target.name, body)
        if kind.resource in strategies.CREATE_ON_UPDATE and not self.exists(kind, target):
            entry = await self.create_object(kind, target.namespace, body, options)
            return await self._reading.answer(request, kind, entry, 201)
        is_conditional = kind.custom or kind.resource in strategies.CONDITIONAL_UPDATES
        if is_conditional and not meta(body).get("resourceVersion"):
            await self._read_entry(kind, target)
            raise status_errors.invalid(kind.plural, kind.group, target.name, [_WITHOUT_REVISION])
        expected_revision = parse_revision(meta(body).get("resourceVersion"))
        entry = await self.change(
            kind, target, lambda _: copy_json(body), options, expected_revision=expected_revision, putting=True
        )
        return await self._reading.answer(request, kind, entry)

    async def _read_entry(self, kind: Kind, target: Target) -> Entry:
        return await self._reading.known(lambda: self._reading.entry(kind, target.namespace, target.name))

    def exists(self, kind: Kind, target: Target) -> bool:
        """Returns whether the object that the path names exists. Raises ApiError 400."""
        check_key(kind, target.namespace, target.name)
        return self._store.get(kind.storage, target.namespace, target.name) is not None

    async def change(
        self,
        kind: Kind,
        target: Target,
        compute: Change,
        options: WriteOptions,
        *,
        expected_revision: int = 0,
        applying: bool = False,
        putting: bool = False,
        view: View | None = None,
    ) -> Entry:
        """Reads an object, computes its new state and stores it; starts over after a conflict. Raises ApiError.

        `expected_revision` is the revision that the client requires. `compute` gets the object as the client sees it.
        """
        part = target.subresource
        for attempt in range(RETRIES):
            entry = await self._read_entry(kind, target)

            def compute_stored(entry: Entry = entry) -> tuple[JSON, JSON]:
                """Returns the old and the new state. Raises ApiError."""
                old = from_stored(kind, entry.load())
                new = compute(copy_json(old))
                _check_preconditions(kind, entry, old, new, revision=expected_revision, putting=putting)
                return old, self._prepare_update(kind, old, new, options, part=part, applying=applying)

            large = options.large or is_large(entry.raw)
            old, new = await run_step(compute_stored, large=large)
            new = await self._mutated(kind, new, old, options, part=part, view=view)
            complete = partial(self._complete_update, kind, new, old=old, options=options, part=part, view=view)
            new = await run_step(complete, large=large)
            await self._ask_validating(kind, new, old, options, part=part, view=view)
            await self._charge_quotas(kind, new, old, options, part=part)
            try:
                return await self._store_change(kind, entry, old, new, dry_run=options.dry_run)
            except Conflict as error:
                if expected_revision or not error.current or attempt == RETRIES - 1:
                    break
        if not self.exists(kind, target):
            raise status_errors.not_found(kind.plural, kind.group, target.name)
        raise status_errors.conflict(kind.plural, kind.group, target.name)

    def _prepare_update(
        self, kind: Kind, old: JSON, new: JSON, options: WriteOptions, *, part: str, applying: bool
    ) -> JSON:
        """Returns the new state for admission: limited to its part, with defaults, managers, and generation."""
        new["apiVersion"], new["kind"] = kind.api_version, kind.kind
        new = self._schemas.default(kind, new)
        carry_over(kind, new, old)
        new = strategies.limit_to_part(kind, part, new, old)
        self._check_escalation(kind, new, old, options)
        if not applying:
            tree, now = self._schemas.tree(kind), self._clock.now()
            managed_fields.on_update(tree, kind, old, new, manager=options.manager, now=now, subresource=part)
        return new

    def _complete_update(
        self, kind: Kind, new: JSON, *, old: JSON, options: WriteOptions, part: str, view: View | None
    ) -> JSON:
        """Returns an admitted new state as it is stored. Raises ApiError if it is invalid."""
        # Webhooks may have changed what the server sets.
        carry_over(kind, new, old)
        new = strategies.limit_to_part(kind, part, new, old)
        self._admission.before_update(kind, new, old)
        self._validate_object(kind, new, old, options, part=part, view=view)
        return new

    async def _store_change(self, kind: Kind, entry: Entry, old: JSON, new: JSON, *, dry_run: bool) -> Entry:
        """Stores the new state, unless nothing changed. Raises Conflict, or ApiError 500."""
        if is_same_state(old, new) and COMPLETED not in entry.cache:
            # An object in an old storage version is written all the same.
            current = self._store.get(kind.storage, entry.namespace, entry.name)
            if current is None or current.rv != entry.rv or not is_in_old_version(kind, current):
                return entry
        stored = to_stored(kind, new)
        if dry_run:
            stored["metadata"]["resourceVersion"] = str(entry.rv)
            return await self._as_stored(kind, stored, entry.rv)
        metadata = meta(new)
        content = kind.resource == "namespaces" and (new.get("spec") or {}).get("finalizers")
        held = metadata.get("finalizers") or content or metadata.get("deletionGracePeriodSeconds")
        if "deletionTimestamp" in metadata and not held:
            return await self.remove(kind, entry, stored)
        return await self.put(kind, stored, expected=entry.rv)

    # -- the store -------------------------------------------------------------------------------------------------

    async def put(self, kind: Kind, obj: JSON, *, expected: int) -> Entry:
        """Stores an object over revision `expected` (0: none), and returns the entry as `kind` sees it.

        Raises Conflict, or ApiError 500.
        """
        namespace, name = meta(obj).get("namespace", ""), meta(obj)["name"]
        obj = await self._schemas.conversions.to_storage_version(kind, obj)
        try:
            entry = await self._store.put(
                kind.storage, namespace, name, obj, expected=expected, encode=encoder_of(kind)
            )
        except StoreError as error:
            raise status_errors.internal(f"storage: {error}") from error
        return await self._as_read(kind, entry)

    async def _as_stored(self, kind: Kind, obj: JSON, rv: int) -> Entry:
        """Returns the entry that a dry run would have stored."""
        stored = await self._schemas.conversions.to_storage_version(kind, obj)
        return await self._as_read(kind, Entry(kind.storage, key_of(obj), rv, encoder_of(kind)(stored)))

    async def _as_read(self, kind: Kind, entry: Entry) -> Entry:
        if not kind.converts:
            return entry
        return await self._reading.known(lambda: self._schemas.conversions.entries_in_version(kind, [entry])[0])

    async def remove(self, kind: Kind, entry: Entry, obj: JSON) -> Entry:
        """Removes an object whose last state is `obj`. Raises Conflict, or ApiError 500."""
        obj = await self._schemas.conversions.to_storage_version(kind, obj)
        try:
            deleted = await self._store.delete(
                kind.storage, entry.namespace, entry.name, obj, expected=entry.rv, encode=encoder_of(kind)
            )
        except StoreError as error:
            raise status_errors.internal(f"storage: {error}") from error
        return await self._as_read(kind, deleted)


def _notes_of(options: WriteOptions) -> Notes:
    return Notes(warnings=options.warnings, annotations=options.annotations)


def _write_of(
    kind: Kind, obj: JSON, old: JSON | None, options: WriteOptions, *, part: str, view: View | None = None
) -> Write:
    """Returns the write in the form in which quotas and policies decide about it."""
    operation, metadata = "CREATE" if old is None else "UPDATE", meta(obj)
    write_options: JSON = {"kind": f"{operation.capitalize()}Options", "apiVersion": "meta.k8s.io/v1"}
    if options.dry_run:
        write_options["dryRun"] = ["All"]
    write_options |= {key: options.query[key] for key in ("fieldManager", "fieldValidation") if key in options.query}
    assert options.user is not None  # the server's own writes are not asked about
    return Write(
        operation=operation,
        kind=kind,
        namespace=metadata.get("namespace", ""),
        name=metadata.get("name", ""),
        user=options.user,
        obj=view.read(obj) if view else obj,
        old=view.read(old) if view and old is not None else old,
        object_kind=view.kind if view else None,
        subresource=part,
        dry_run=options.dry_run,
        options=write_options,
    )


def _check_preconditions(kind: Kind, entry: Entry, old: JSON, new: JSON, *, revision: int, putting: bool) -> None:
    """Raises ApiError unless an update is one of the stored object: by its uid, and its revision if it has one."""
    uid, is_uid = meta(new).get("uid"), meta(old).get("uid")
    if putting and uid and uid != is_uid:
        # The uid of a PUT is a precondition of the storage.
        key = strategies.registry_key(kind, entry.key)
        why = (
            f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: "
            f"Precondition failed: UID in precondition: {uid}, UID in object meta: {is_uid}"
        )
        raise status_errors.conflict(kind.plural, kind.group, entry.name, why)
    revision = revision or parse_revision(meta(new).get("resourceVersion"))
    if revision and revision != entry.rv:
        raise status_errors.conflict(kind.plural, kind.group, entry.name)
    # Each is reported twice, as the registry and the kind's own rules both check it.
    faults = [
        FieldError(Fault.INVALID, f"metadata.{name}", value, "field is immutable")
        for name in _IMMUTABLE
        if (value := meta(new).get(name)) not in (None, "", meta(old).get(name))
        for _ in range(2)
    ]
    if faults:
        raise status_errors.invalid(kind.kind, kind.group, entry.name, faults)


def parse_revision(value: Any) -> int:
    """Returns a resourceVersion as a number, 0 for none. Raises ApiError 500 if it is not a number."""
    text = str(value or "0")
    if not text.isdigit():
        raise ApiError(500, "", f'strconv.ParseUint: parsing "{text}": invalid syntax')
    return int(text)


def _already_there(kind: Kind, name: str, existing: Entry) -> ApiError:
    error = status_errors.already_exists(kind.plural, kind.group, name)
    if meta(existing.load()).get("deletionTimestamp"):
        error.message = f"object is being deleted: {error.message}"
    return error
