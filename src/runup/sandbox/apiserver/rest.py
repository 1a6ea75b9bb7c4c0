"""The verbs on stored resources: get, list, watch, create, update, patch, delete, deletecollection.

In: a `Request`, what its path means, and the `Kind`. Out: a `Response`. One rule runs through all writes: read
the object with its revision, compute the new one, store it only if that revision is still current, else begin again.
What is special about a kind is in its `Kind` row, in `Admission` and in the schema, not here.
"""

from __future__ import annotations

import base64
import copy
import secrets
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any, cast

import orjson
import yaml

from runup.kube.clock import Clock
from runup.sandbox.apiserver import errors
from runup.sandbox.apiserver.accept import negotiate
from runup.sandbox.apiserver.admission import Admission
from runup.sandbox.apiserver.body import (
    PATCH_TYPES,
    decode_json,
    decode_yaml,
    duplicate_fields,
    media_type,
    read_object,
)
from runup.sandbox.apiserver.errors import ApiError
from runup.sandbox.apiserver.http import Request, Response
from runup.sandbox.apiserver.kinds import Kind, KindTable
from runup.sandbox.apiserver.objects import carry_over, encoder, meta, rfc3339, same, stamp_new
from runup.sandbox.apiserver.options import ListOptions, WriteOptions, list_options, write_options
from runup.sandbox.apiserver.patch import managed
from runup.sandbox.apiserver.patch.apply import apply_patch
from runup.sandbox.apiserver.patch.json import apply_json_patch
from runup.sandbox.apiserver.patch.merge import merge
from runup.sandbox.apiserver.patch.strategic import strategic_merge
from runup.sandbox.apiserver.render import Renderer
from runup.sandbox.apiserver.routing import Target
from runup.sandbox.apiserver.schema import DecodeError, Fault, FieldError
from runup.sandbox.apiserver.schemas import Schemas
from runup.sandbox.apiserver.selectors import parse_selector
from runup.sandbox.apiserver.views import from_stored, to_stored
from runup.sandbox.apiserver.watch import DEFAULT_TIMEOUT_S, Watch, Watcher
from runup.sandbox.store import Conflict, Entry, Expired, Store, StoreError

JSON = dict[str, Any]
# Computes the new state of an object from a copy of the old one.
Change = Callable[[JSON], JSON]

# As often as k8s.io/apiserver retries a patch that met another writer.
_RETRIES = 5
_SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_CONTINUE_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter."
)


class Rest:
    """The generic handlers; one for the whole server."""

    def __init__(
        self, store: Store, kinds: KindTable, schemas: Schemas, admission: Admission, renderer: Renderer, clock: Clock
    ) -> None:
        self.store = store
        self.kinds = kinds
        self.schemas = schemas
        self.admission = admission
        self.renderer = renderer
        self.clock = clock
        self._watchers: set[Watcher] = set()

    # -- reading ---------------------------------------------------------------------------------------------------

    def entry(self, kind: Kind, namespace: str, name: str) -> Entry:
        """The stored object; raises ApiError 404."""
        found = self.store.get(kind.storage, namespace, name)
        if found is None:
            raise errors.not_found(kind.plural, kind.group, name)
        return found

    def get(self, request: Request, target: Target, kind: Kind) -> Response:
        """One object."""
        return self.answer(request, kind, self.entry(kind, target.namespace, target.name))

    def answer(self, request: Request, kind: Kind, entry: Entry, status: int = 200) -> Response:
        """One stored object in the form that the client accepts."""
        form, as_yaml = negotiate(request.header("accept"))
        raw = self.renderer.one(kind, entry, form, request.query.get("includeObject", ""))
        return _body(raw, status, as_yaml)

    def answer_dict(self, request: Request, kind: Kind, obj: JSON, status: int = 200) -> Response:
        """An object that is not (or no longer) stored, in the form that the client accepts."""
        raw = encoder(kind)(to_stored(kind, obj))
        return self.answer(request, kind, Entry(kind.storage, _key(obj), 0, raw), status)

    def list_(self, request: Request, target: Target, kind: Kind) -> Response:
        """A list or a page of it."""
        form, as_yaml = negotiate(request.header("accept"))
        options = list_options(request.query, watch=False)
        selector = parse_selector(kind, options.label_selector, options.field_selector)
        rv, entries = self._candidates(kind, target.namespace, options)
        if selector:
            entries = [entry for entry in entries if selector.matches(entry)]
        # Lists of custom resources name both members always, as Go's unstructured lists do.
        metadata: JSON = {"continue": "", "resourceVersion": str(rv)} if kind.custom else {"resourceVersion": str(rv)}
        if options.limit and len(entries) > options.limit:
            rest = len(entries) - options.limit
            entries = entries[: options.limit]
            metadata["continue"] = _token(rv, entries[-1].key)
            # With a selector the real server does not know how many remain.
            if not selector:
                metadata["remainingItemCount"] = rest
        raw = self.renderer.many(kind, entries, metadata, form, request.query.get("includeObject", ""))
        return _body(raw, 200, as_yaml)

    def _candidates(self, kind: Kind, namespace: str, options: ListOptions) -> tuple[int, list[Entry]]:
        current = self.store.rv
        try:
            if options.continue_:
                rv, after = _read_token(options.continue_)
                return rv, self.store.items_at(kind.storage, rv, namespace, after)
            wanted = options.resource_version
            if wanted and wanted > current:
                raise errors.too_large_resource_version(wanted, current)
            exact = options.match == "Exact" or (options.limit and wanted and not options.match)
            if wanted and exact:
                return wanted, self.store.items_at(kind.storage, wanted, namespace)
        except Expired as error:
            raise errors.expired(_CONTINUE_TOO_OLD if options.continue_ else str(error)) from None
        return current, self.store.items(kind.storage, namespace)

    def watch(self, request: Request, target: Target, kind: Kind) -> Response:
        """A watch: a response that goes on."""
        form, _ = negotiate(request.header("accept"))
        options = list_options(request.query, watch=True)
        fields = options.field_selector
        if target.name:
            fields = ",".join(filter(None, (fields, f"metadata.name={target.name}")))
        selector = parse_selector(kind, options.label_selector, fields)
        include = request.query.get("includeObject", "")
        since = options.resource_version or None
        if "sendInitialEvents" in request.query:
            since = None if options.initial_events else (since or self.store.rv)
        watch = Watch(
            kind=kind,
            namespace=target.namespace,
            selector=selector,
            since=since,
            bookmarks=options.bookmarks,
            initial_bookmark=options.initial_events and options.bookmarks,
            timeout_s=options.timeout_s or DEFAULT_TIMEOUT_S,
            form=f"{form.value}/{include}",
            render=self.renderer.for_watch(kind, form, include),
        )
        return Response(stream=self._stream(Watcher(self.store, watch, self.clock.monotonic)))

    async def _stream(self, watcher: Watcher) -> AsyncIterator[bytes]:
        self._watchers.add(watcher)
        try:
            async for chunk in watcher.run():
                yield chunk
        finally:
            self._watchers.discard(watcher)

    def stop_watches(self) -> None:
        """End every watch, so that a shutdown waits for nobody."""
        for watcher in tuple(self._watchers):
            watcher.stop()

    # -- create ----------------------------------------------------------------------------------------------------

    async def create(self, request: Request, target: Target, kind: Kind) -> Response:
        """POST of a new object."""
        options = write_options(request, "CreateOptions")
        obj = self.decode(request, kind, read_object(request), options)
        entry = await self.create_object(kind, target.namespace, obj, options)
        return self.answer(request, kind, entry, 201)

    async def create_object(self, kind: Kind, namespace: str, obj: JSON, options: WriteOptions) -> Entry:
        """Store a new object (already decoded and pruned); raises ApiError."""
        self._check_place(kind, namespace, "", obj)
        if meta(obj).get("resourceVersion"):
            raise ApiError(500, "", "resourceVersion should not be set on objects to be created")
        name = meta(obj).get("name", "")
        if not name and meta(obj).get("generateName"):
            name = meta(obj)["name"] = meta(obj)["generateName"][:58] + _suffix()
        stamp_new(kind, obj, uid=str(uuid.uuid4()), now=self.clock.now())
        if not kind.custom and kind.has_status and kind.plural not in _STATUS_ON_CREATE:
            obj.pop("status", None)
        if kind.custom and kind.has_status:
            obj.pop("status", None)
        obj = self.schemas.default(kind, obj)
        self.admission.before_create(kind, obj)
        managed.on_update(
            self.schemas.tree(kind),
            kind,
            None,
            obj,
            empty=self.schemas.empty(kind),
            manager=options.manager,
            now=self.clock.now(),
            subresource="",
        )
        self._validate(kind, obj, None)
        return await self._store_new(kind, namespace, obj, options)

    async def _store_new(self, kind: Kind, namespace: str, obj: JSON, options: WriteOptions) -> Entry:
        name = meta(obj)["name"]
        if self.store.get(kind.storage, namespace, name) is not None:
            raise errors.already_exists(kind.plural, kind.group, name)
        obj = to_stored(kind, obj)
        if options.dry_run:
            return Entry(kind.storage, _key(obj), 0, self._encoder(kind)(obj))
        try:
            return await self._put(kind, namespace, name, obj, 0)
        except Conflict:
            raise errors.already_exists(kind.plural, kind.group, name) from None

    def decode(self, request: Request, kind: Kind, obj: JSON, options: WriteOptions) -> JSON:
        """A body as an object of `kind`: type checked, unknown fields dropped (refused when strict)."""
        _check_type(kind, obj)
        faults = [f'duplicate field "{path}"' for path in self._duplicates(request, options)]
        version, name = obj["apiVersion"].rpartition("/")[2], obj["kind"]
        why = f'{name} in version "{version}" cannot be handled as a {kind.kind}'
        try:
            pruned, unknown = self.schemas.decode(kind, obj)
        except DecodeError as error:
            raise errors.bad_request(f"{why}: {error}") from None
        faults += [f'unknown field "{path}"' for path in unknown]
        self._report(request, faults, options, lambda text: errors.bad_request(f"{why}: {text}"))
        return pruned

    def _decode_applied(
        self, request: Request, kind: Kind, target: Target, config: JSON, options: WriteOptions
    ) -> JSON:
        """An applied configuration. A field that the schema does not know can have no owner: it is always refused."""
        _check_type(kind, config)
        duplicates = [f'duplicate field "{path}"' for path in self._duplicates(request, options)]
        self._report(
            request, duplicates, options, lambda text: errors.bad_request(f"error strict decoding YAML: {text}")
        )
        try:
            pruned, unknown = self.schemas.decode(kind, config)
        except DecodeError as error:
            raise errors.bad_request(str(error)) from None
        if unknown:
            what = f"{target.namespace}/{target.name}; {kind.api_version}, Kind={kind.kind}"
            lines = [f".{path}: field not declared in schema" for path in unknown]
            text = lines[0] if len(lines) == 1 else "errors:\n" + "\n".join(f"  {line}" for line in lines)
            raise ApiError(500, "", f"failed to create typed patch object ({what}): {text}")
        return pruned if kind.custom else config

    def _duplicates(self, request: Request, options: WriteOptions) -> list[str]:
        if options.validation == "Ignore" or media_type(request) not in {"", "application/json"}:
            return []
        return duplicate_fields(request.body)

    def _report(
        self, request: Request, faults: list[str], options: WriteOptions, refusal: Callable[[str], ApiError]
    ) -> None:
        if not faults or options.validation == "Ignore":
            return
        if options.strict:
            raise refusal(f"strict decoding error: {', '.join(faults)}")
        request.warnings.extend(fault for fault in faults if fault not in request.warnings)

    def _check_place(self, kind: Kind, namespace: str, name: str, obj: JSON) -> None:
        metadata = meta(obj)
        given = metadata.get("namespace") or ""
        if kind.namespaced:
            if given and given != namespace:
                raise errors.bad_request(
                    "the namespace of the provided object does not match the namespace sent on the request"
                )
            metadata["namespace"] = namespace
        else:
            metadata.pop("namespace", None)
        if name and metadata.get("name") not in {None, "", name}:
            raise errors.bad_request(
                f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})"
            )
        if name:
            metadata["name"] = name

    def _validate(self, kind: Kind, obj: JSON, old: JSON | None) -> None:
        faults = [*self.admission.faults(kind, obj, old), *self.schemas.validate(kind, obj, old)]
        if faults:
            raise errors.invalid(kind.kind, kind.group, meta(obj).get("name", ""), faults)

    def _encoder(self, kind: Kind) -> Callable[[JSON], bytes]:
        return encoder(kind)

    # -- update ----------------------------------------------------------------------------------------------------

    async def update(self, request: Request, target: Target, kind: Kind) -> Response:
        """PUT of a whole object, or of its status."""
        options = write_options(request, "UpdateOptions")
        body = self.decode(request, kind, read_object(request), options)
        self._check_place(kind, target.namespace, target.name, body)
        asked = _int(meta(body).get("resourceVersion"))
        if kind.custom and not meta(body).get("resourceVersion"):
            entry = self.entry(kind, target.namespace, target.name)
            raise errors.invalid(
                kind.kind,
                kind.group,
                target.name,
                [FieldError(Fault.INVALID, "metadata.resourceVersion", 0, "must be specified for an update")],
            )
        if self.store.get(kind.storage, target.namespace, target.name) is None and kind.resource in _CREATE_ON_UPDATE:
            entry = await self.create_object(kind, target.namespace, body, options)
            return self.answer(request, kind, entry, 201)
        entry = await self.change(kind, target, lambda _: copy.deepcopy(body), options, asked=asked)
        return self.answer(request, kind, entry)

    async def change(
        self,
        kind: Kind,
        target: Target,
        compute: Change,
        options: WriteOptions,
        *,
        asked: int = 0,
        applying: bool = False,
        subresource: str | None = None,
    ) -> Entry:
        """Read, compute, compare, store; again when another writer was quicker. Raises ApiError.

        `asked` is the revision that the client insists on. `compute` gets the object as the client sees it.
        """
        part = target.subresource if subresource is None else subresource
        for attempt in range(_RETRIES):
            entry = self.entry(kind, target.namespace, target.name)
            old = from_stored(kind, entry.load())
            new = compute(copy.deepcopy(old))
            asked_now = asked or _int(meta(new).get("resourceVersion"))
            if asked_now and asked_now != entry.rv:
                raise errors.conflict(kind.plural, kind.group, target.name)
            uid = meta(new).get("uid")
            if uid and uid != meta(old).get("uid"):
                why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {meta(old).get('uid')}"
                raise errors.conflict(kind.plural, kind.group, target.name, why)
            new = self._finish(kind, old, new, options, part, applying=applying)
            try:
                return await self._store_change(kind, entry, old, new, options)
            except Conflict as error:
                if asked or not error.current or attempt == _RETRIES - 1:
                    break
        if self.store.get(kind.storage, target.namespace, target.name) is None:
            raise errors.not_found(kind.plural, kind.group, target.name)
        raise errors.conflict(kind.plural, kind.group, target.name)

    def _finish(self, kind: Kind, old: JSON, new: JSON, options: WriteOptions, part: str, *, applying: bool) -> JSON:
        carry_over(kind, new, old)
        new = _only(kind, part, new, old)
        new["apiVersion"], new["kind"] = kind.api_version, kind.kind
        new = self.schemas.default(kind, new)
        self.admission.before_update(kind, new)
        if not applying:
            managed.on_update(
                self.schemas.tree(kind), kind, old, new, manager=options.manager, now=self.clock.now(), subresource=part
            )
        self._validate(kind, new, old)
        return new

    async def _store_change(self, kind: Kind, entry: Entry, old: JSON, new: JSON, options: WriteOptions) -> Entry:
        if same(old, new):
            return entry
        stored = to_stored(kind, new)
        if options.dry_run:
            stored["metadata"]["resourceVersion"] = str(entry.rv)
            return Entry(kind.storage, entry.key, entry.rv, self._encoder(kind)(stored))
        metadata = meta(new)
        if "deletionTimestamp" in metadata and not metadata.get("finalizers") and self._may_go(kind, new):
            return await self._remove(kind, entry, stored)
        return await self._put(kind, entry.namespace, entry.name, stored, entry.rv)

    def _may_go(self, kind: Kind, obj: JSON) -> bool:
        if kind.resource == "namespaces" and (obj.get("spec") or {}).get("finalizers"):
            return False
        return not meta(obj).get("deletionGracePeriodSeconds")

    async def _put(self, kind: Kind, namespace: str, name: str, obj: JSON, expected: int) -> Entry:
        try:
            return await self.store.put(
                kind.storage, namespace, name, obj, expected=expected, encode=self._encoder(kind)
            )
        except StoreError as error:
            raise errors.internal(f"storage: {error}") from error

    async def _remove(self, kind: Kind, entry: Entry, obj: JSON) -> Entry:
        try:
            return await self.store.delete(
                kind.storage, entry.namespace, entry.name, obj, expected=entry.rv, encode=self._encoder(kind)
            )
        except StoreError as error:
            raise errors.internal(f"storage: {error}") from error

    # -- patch -----------------------------------------------------------------------------------------------------

    async def patch(self, request: Request, target: Target, kind: Kind) -> Response:
        """PATCH in any of the four ways."""
        type_ = media_type(request)
        accepted = [t for t in PATCH_TYPES if not (kind.custom and t.startswith("application/strategic"))]
        if type_ not in accepted:
            raise errors.unsupported_media_type(accepted)
        if type_ == "application/apply-patch+yaml":
            return await self._apply(request, target, kind)
        options = write_options(request, "PatchOptions")
        patch = _read_patch(request)
        uninterested = self._reader(request, kind, options, type_, patch)
        entry = await self.change(kind, target, uninterested, options)
        return self.answer(request, kind, entry)

    def _reader(self, request: Request, kind: Kind, options: WriteOptions, type_: str, patch: Any) -> Change:
        def compute(old: JSON) -> JSON:
            # What a client sees has no revision of its own to insist on unless the patch says so.
            before = meta(old).pop("resourceVersion", "")
            if type_ == "application/json-patch+json":
                meta(old)["resourceVersion"] = before
                new = apply_json_patch(old, patch)
                if isinstance(new, dict) and meta(new).get("resourceVersion") == before:
                    meta(new).pop("resourceVersion", None)
            elif type_ == "application/merge-patch+json":
                new = merge(old, patch)
            else:
                new = strategic_merge(self.schemas.tree(kind), old, patch)
            if not isinstance(new, dict):
                raise errors.bad_request("the patch does not leave an object")
            shown = go_format(patch) if type_.startswith("application/strategic") else orjson.dumps(new).decode()
            return self._decoded_patch(request, kind, new, options, shown)

        return compute

    def _decoded_patch(self, request: Request, kind: Kind, new: JSON, options: WriteOptions, shown: str) -> JSON:
        new.setdefault("apiVersion", kind.api_version)
        new.setdefault("kind", kind.kind)
        _check_type(kind, new)
        try:
            new, unknown = self.schemas.decode(kind, new)
        except DecodeError as error:
            raise _invalid_patch(shown, str(error)) from None
        faults = [f'unknown field "{path}"' for path in unknown]
        self._report(request, faults, options, lambda text: _invalid_patch(shown, text))
        return new

    async def _apply(self, request: Request, target: Target, kind: Kind) -> Response:
        options = write_options(request, "PatchOptions", apply=True)
        config = decode_yaml(request.body)
        if not isinstance(config, dict):
            raise errors.bad_request("error decoding YAML: the body is not an object")
        _check_apply(config, target.name)
        config = self._decode_applied(request, kind, target, config, options)
        self._check_place(kind, target.namespace, target.name, config)
        tree = self.schemas.tree(kind)

        def compute(live: JSON | None) -> JSON:
            return self._as_decoded(
                kind,
                apply_patch(
                    tree,
                    kind,
                    live,
                    config,
                    manager=options.manager,
                    force=options.force,
                    now=self.clock.now(),
                    subresource=target.subresource,
                    default=lambda obj: self.schemas.default(kind, self._as_decoded(kind, obj)),
                ),
            )

        if self.store.get(kind.storage, target.namespace, target.name) is not None:
            entry = await self.change(
                kind, target, compute, options, asked=_int(meta(config).get("resourceVersion")), applying=True
            )
            return self.answer(request, kind, entry)
        if target.subresource or meta(config).get("resourceVersion") or meta(config).get("uid"):
            raise errors.not_found(kind.plural, kind.group, target.name)
        entry = await self._create_by_apply(request, target, kind, compute, options)
        return self.answer(request, kind, entry, 201)

    def _as_decoded(self, kind: Kind, obj: JSON) -> JSON:
        # What was applied is checked already; here it gets the form in which it is stored.
        return obj if kind.custom else self.schemas.decode(kind, obj)[0]

    async def _create_by_apply(
        self,
        request: Request,
        target: Target,
        kind: Kind,
        compute: Callable[[JSON | None], JSON],
        options: WriteOptions,
    ) -> Entry:
        await self._authorize_create(request, target)
        obj = compute(None)
        fields = meta(obj).get("managedFields")
        stamp_new(kind, obj, uid=str(uuid.uuid4()), now=self.clock.now())
        if kind.has_status:
            obj.pop("status", None)
        obj = self.schemas.default(kind, obj)
        self.admission.before_create(kind, obj)
        meta(obj)["managedFields"] = fields
        self._validate(kind, obj, None)
        return await self._store_new(kind, target.namespace, obj, options)

    # Set by the server: creating by patch needs the right to create.
    async def _authorize_create(self, request: Request, target: Target) -> None:
        if self.authorize is not None:
            # With the name, unlike a POST: a rule with resourceNames can allow it.
            self.authorize(request, replace(target, verb="create", subresource=""))

    authorize: Callable[[Request, Target], None] | None = None

    # -- delete ----------------------------------------------------------------------------------------------------

    async def delete(self, request: Request, target: Target, kind: Kind) -> Response:
        """DELETE of one object: at once, or marked until its finalizers (or its grace period) are over."""
        options = self._delete_options(request)
        gone, entry = await self.delete_one(kind, target.namespace, target.name, options)
        if gone and kind.resource not in _RETURN_DELETED:
            uid = meta(entry.load()).get("uid", "")
            details = {"name": target.name, "group": kind.group, "kind": kind.plural, "uid": uid}
            status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
            status["details"] = {key: value for key, value in details.items() if value}
            return _body(orjson.dumps(status), 200, False)
        return self.answer(request, kind, entry, 200)

    def _delete_options(self, request: Request) -> JSON:
        body: JSON = {}
        if request.body:
            value = decode_yaml(request.body) if media_type(request).endswith("yaml") else decode_json(request.body)
            body = value if isinstance(value, dict) else {}
        query = request.query
        options: JSON = {
            "propagationPolicy": body.get("propagationPolicy") or query.get("propagationPolicy", ""),
            "gracePeriodSeconds": body.get("gracePeriodSeconds", _int_or_none(query.get("gracePeriodSeconds"))),
            "orphanDependents": body.get("orphanDependents"),
            "preconditions": body.get("preconditions") or {},
            "dryRun": body.get("dryRun") or ([query["dryRun"]] if query.get("dryRun") else []),
        }
        policy = options["propagationPolicy"]
        if policy and policy not in {"Foreground", "Background", "Orphan"}:
            raise errors.ApiError(
                422,
                "Invalid",
                f'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "{policy}": supported '
                'values: "Background", "Foreground", "Orphan", "nil"',
                details={"group": "meta.k8s.io", "kind": "DeleteOptions"},
                causes=[
                    errors.Cause(
                        "FieldValueNotSupported",
                        f'Unsupported value: "{policy}": supported values: "Background", "Foreground", "Orphan", "nil"',
                        "propagationPolicy",
                    )
                ],
            )
        if options["orphanDependents"] is not None and not policy:
            options["propagationPolicy"] = "Orphan" if options["orphanDependents"] else "Background"
        return options

    async def delete_one(self, kind: Kind, namespace: str, name: str, options: JSON) -> tuple[bool, Entry]:
        """Delete or mark one object; returns whether it is gone, and its last (or new) state. Raises ApiError."""
        for _ in range(_RETRIES):
            entry = self.entry(kind, namespace, name)
            obj = entry.load()
            _check_preconditions(kind, name, obj, options["preconditions"])
            self.admission.before_delete(kind, obj)
            marked = self._marked(kind, obj, options)
            if options["dryRun"]:
                return marked is None, entry
            try:
                if marked is None:
                    return True, await self._remove(kind, entry, obj)
                if same(marked, entry.load()):
                    return False, entry
                return False, await self._put(kind, namespace, name, marked, entry.rv)
            except Conflict:
                continue
        raise errors.conflict(kind.plural, kind.group, name)

    def _marked(self, kind: Kind, obj: JSON, options: JSON) -> JSON | None:
        """The object marked for deletion, None when it can go at once."""
        metadata = meta(obj)
        finalizers = list(metadata.get("finalizers") or ())
        for policy, finalizer in (("Foreground", "foregroundDeletion"), ("Orphan", "orphan")):
            if options["propagationPolicy"] == policy and finalizer not in finalizers:
                finalizers.append(finalizer)
            elif options["propagationPolicy"] and options["propagationPolicy"] != policy and finalizer in finalizers:
                finalizers.remove(finalizer)
        if finalizers:
            metadata["finalizers"] = finalizers
        else:
            metadata.pop("finalizers", None)
        grace = self.admission.grace_period(kind, obj, options["gracePeriodSeconds"])
        namespace_content = kind.resource == "namespaces" and (obj.get("spec") or {}).get("finalizers")
        if not finalizers and not grace and not namespace_content:
            return None
        if "deletionTimestamp" not in metadata:
            metadata["deletionTimestamp"] = rfc3339(self.clock.now()) if not grace else self._later(grace)
            metadata["deletionGracePeriodSeconds"] = grace
            if "generation" in metadata:
                metadata["generation"] += 1
        elif grace < int(metadata.get("deletionGracePeriodSeconds") or 0):
            metadata["deletionGracePeriodSeconds"] = grace
            metadata["deletionTimestamp"] = self._later(grace)
        if kind.resource == "namespaces":
            obj.setdefault("status", {})["phase"] = "Terminating"
        return obj

    def _later(self, seconds: int) -> str:
        from datetime import timedelta

        return rfc3339(self.clock.now() + timedelta(seconds=seconds))

    async def delete_collection(self, request: Request, target: Target, kind: Kind) -> Response:
        """DELETE of everything that a selector matches."""
        listing = list_options(request.query, watch=False)
        selector = parse_selector(kind, listing.label_selector, listing.field_selector)
        options = self._delete_options(request)
        chosen = [e for e in self.store.items(kind.storage, target.namespace) if not selector or selector.matches(e)]
        deleted = []
        for entry in chosen:
            try:
                deleted.append((await self.delete_one(kind, entry.namespace, entry.name, options))[1])
            except ApiError as error:
                if error.code != 404:
                    raise
        form, as_yaml = negotiate(request.header("accept"))
        raw = self.renderer.many(kind, deleted, {"resourceVersion": str(self.store.rv)}, form, "")
        return _body(raw, 200, as_yaml)


# Kinds whose deletion answers with the object (ReturnDeletedObject in the registries of kube-apiserver).
_RETURN_DELETED = frozenset(
    {"pods", "services", "persistentvolumes", "persistentvolumeclaims", "podtemplates", "resourcequotas",
     "serviceaccounts", "volumeattachments.storage.k8s.io", "storageclasses.storage.k8s.io", "csinodes.storage.k8s.io",
     "csidrivers.storage.k8s.io"}
)  # fmt: skip
# Kinds that a PUT creates (AllowCreateOnUpdate).
_CREATE_ON_UPDATE = frozenset(
    {"leases.coordination.k8s.io", "endpoints", "events", "events.events.k8s.io", "limitranges",
     "clusterroles.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io",
     "roles.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io"}
)  # fmt: skip
# Kinds whose status may be given at creation: the strategy clears it otherwise.
_STATUS_ON_CREATE = frozenset({"nodes"})


def _invalid_patch(shown: str, why: str) -> ApiError:
    return errors.invalid("", "", "", [FieldError(Fault.INVALID, "patch", shown, why)])


def go_format(value: Any) -> str:
    """A value as Go's `%+v` prints it: how a strategic patch is quoted in errors."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{go_format(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(go_format(item) for item in value)}]"
    return "<nil>" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _only(kind: Kind, part: str, new: JSON, old: JSON) -> JSON:
    """What a write through `part` may change: the status alone, or everything but the status."""
    if not kind.has_status:
        return new
    if part == "status":
        kept_meta = dict(meta(old))
        for key in ("managedFields", *(() if kind.custom else ("annotations", "labels"))):
            if key in meta(new):
                kept_meta[key] = meta(new)[key]
            else:
                kept_meta.pop(key, None)
        changed = {**old, "metadata": kept_meta}
        if "status" in new:
            changed["status"] = new["status"]
        else:
            changed.pop("status", None)
        return changed
    if part == "":
        if "status" in old:
            new["status"] = old["status"]
        else:
            new.pop("status", None)
    return new


def _check_type(kind: Kind, obj: JSON) -> None:
    version, name = obj.get("apiVersion") or "", obj.get("kind") or ""
    if not name and kind.custom:
        raise errors.bad_request(f"Object 'Kind' is missing in '{orjson.dumps(obj).decode()}'")
    version, name = version or kind.api_version, name or kind.kind
    group, _, bare = version.rpartition("/")
    if (version, name) != (kind.api_version, kind.kind):
        raise errors.bad_request(
            f'{name} in version "{bare or version}" cannot be handled as a {kind.kind}: no kind "{name}" is registered '
            f'for version "{version}" in scheme "pkg/api/legacyscheme/scheme.go:30"'
            if not kind.custom
            else f"the API version in the data ({version}) does not match the expected API version ({kind.api_version})"
            if version != kind.api_version
            else f"invalid object type: {group or ''}/{bare}, Kind={name}"
        )
    obj["apiVersion"], obj["kind"] = version, name


def _check_apply(config: JSON, name: str) -> None:
    if not config.get("apiVersion") or not config.get("kind"):
        missing = "apiVersion" if not config.get("apiVersion") else "kind"
        raise errors.bad_request(f"failed to create typed patch object: {missing} must be set")
    if meta(config).get("managedFields"):
        raise errors.bad_request("metadata.managedFields must be nil")
    if meta(config).get("name") not in {None, "", name}:
        raise errors.bad_request(
            f"the name of the object ({meta(config)['name']}) does not match the name on the URL ({name})"
        )


def _check_preconditions(kind: Kind, name: str, obj: JSON, wanted: JSON) -> None:
    uid, version = meta(obj).get("uid"), meta(obj).get("resourceVersion")
    if wanted.get("uid") and wanted["uid"] != uid:
        why = f"Precondition failed: UID in precondition: {wanted['uid']}, UID in object meta: {uid}"
        raise errors.conflict(kind.plural, kind.group, name, why)
    if wanted.get("resourceVersion") and wanted["resourceVersion"] != version:
        why = (
            f"Precondition failed: ResourceVersion in precondition: {wanted['resourceVersion']}, ResourceVersion in "
            f"object meta: {version}"
        )
        raise errors.conflict(kind.plural, kind.group, name, why)


def _read_patch(request: Request) -> Any:
    try:
        return orjson.loads(request.body)
    except orjson.JSONDecodeError as error:
        raise errors.bad_request(f"error decoding patch: {error}") from None


def _body(raw: bytes, status: int, as_yaml: bool) -> Response:
    if as_yaml:
        text = yaml.safe_dump(orjson.loads(raw), sort_keys=True, default_flow_style=False)
        return Response(status, text.encode(), "application/yaml")
    return Response(status, raw)


def _key(obj: JSON) -> str:
    metadata = meta(obj)
    return f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else metadata.get("name", "")


def _suffix() -> str:
    return "".join(secrets.choice(_SUFFIX_ALPHABET) for _ in range(5))


def _token(rv: int, key: str) -> str:
    text = orjson.dumps({"v": "meta.k8s.io/v1", "rv": rv, "start": f"{key}\u0000"})
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def _read_token(token: str) -> tuple[int, str]:
    try:
        value = orjson.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        return int(value["rv"]), cast("str", value["start"]).rstrip("\u0000")
    except (ValueError, KeyError, TypeError, AttributeError):
        raise errors.bad_request("continue key is not valid: invalid character in token") from None


def _int(value: Any) -> int:
    text = str(value or "0")
    return int(text) if text.isdigit() else 0


def _int_or_none(value: str | None) -> int | None:
    return int(value) if value and value.isdigit() else None
