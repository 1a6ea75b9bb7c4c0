"""The verbs on stored resources, assembled into one object for subresources and the server; the patch verb is here.

A patch has four forms: JSON patch, merge patch, strategic merge patch, server-side apply. Each computes the new object
from the old one; `Writing.change` stores it, and computes again after a conflict with another writer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import orjson
from msgspec.structs import replace

from kubekit.kube.clock import Clock
from kubesandbox.apiserver import status_errors
from kubesandbox.apiserver.http.body import PATCH_TYPES, go_type, media_type, read_members
from kubesandbox.apiserver.http.go_syntax import json_error
from kubesandbox.apiserver.http.messages import Request, Response, negotiate
from kubesandbox.apiserver.http.query_parameters import WriteOptions, write_options
from kubesandbox.apiserver.http.request_target import Target
from kubesandbox.apiserver.json_copy import merge_patch
from kubesandbox.apiserver.large_steps import run_step
from kubesandbox.apiserver.metadata import JSON, meta
from kubesandbox.apiserver.objects.admission import Admission
from kubesandbox.apiserver.objects.decoding import Decoding, check_named, check_place
from kubesandbox.apiserver.objects.object_deletion import Deleting
from kubesandbox.apiserver.objects.reading import Reading, Renderer
from kubesandbox.apiserver.objects.schemas import Schemas
from kubesandbox.apiserver.objects.views import from_stored
from kubesandbox.apiserver.objects.writing import Change, View, Writing, parse_revision
from kubesandbox.apiserver.patch import managed_fields
from kubesandbox.apiserver.patch.apply import apply_patch
from kubesandbox.apiserver.patch.json import apply_json_patch
from kubesandbox.apiserver.patch.strategic import strategic_merge
from kubesandbox.apiserver.schema.field_errors import go_plain
from kubesandbox.apiserver.schema.structural import SchemaNode
from kubesandbox.apiserver.served_kinds import Kind, KindTable
from kubesandbox.apiserver.store import Entry, Store

_JSON_PATCH, _MERGE, _STRATEGIC, APPLY = PATCH_TYPES
_PATCHES_OF_CUSTOM_RESOURCES = (_JSON_PATCH, _MERGE, APPLY)


class Patching:
    """The patch verb; one instance for the whole server."""

    def __init__(
        self,
        *,
        kinds: KindTable,
        schemas: Schemas,
        decoding: Decoding,
        reading: Reading,
        writing: Writing,
        clock: Clock,
    ) -> None:
        self._kinds, self._schemas, self._decoding = kinds, schemas, decoding
        self._reading, self._writing, self._clock = reading, writing, clock
        # Set by the server: creating by apply needs the right to create.
        self.authorize: Callable[[Request, Target], None] | None = None

    async def patch(self, request: Request, target: Target, kind: Kind) -> Response:
        """Handles PATCH by its content type. Raises ApiError."""
        check_patch_type(request, kind)
        negotiate(request.header("accept"))
        if media_type(request) == APPLY:
            return await self._serve_apply(request, target, kind)
        options = write_options(request, "PatchOptions")
        # The real server reads the patch when it has the object.
        await self._reading.known(lambda: self._reading.entry(kind, target.namespace, target.name))
        new_object = await self.read_patch(request, kind, options)

        def compute_new(old: JSON) -> JSON:
            """Returns the stored object with the patch applied and decoded. Raises ApiError 400 or 422."""
            decoded = new_object(old)
            check_named(decoded, target.name)
            check_place(kind, target.namespace, target.name, decoded)
            return decoded

        entry = await self._writing.change(kind, target, compute_new, options)
        return await self._reading.answer(request, kind, entry)

    async def read_patch(self, request: Request, kind: Kind, options: WriteOptions) -> Callable[[JSON], JSON]:
        """Reads a patch, and returns the function that applies it to an object of a kind. Both raise ApiError."""
        return await run_step(lambda: self._patch_function(request, kind, options), large=options.large)

    def _patch_function(self, request: Request, kind: Kind, options: WriteOptions) -> Callable[[JSON], JSON]:
        type_ = media_type(request)
        try:
            patch = orjson.loads(request.body)
        except orjson.JSONDecodeError as error:
            # In the words of Go's decoder.
            why = json_error(request.body) or str(error)
            raise status_errors.bad_request(why if type_ == _STRATEGIC else f"error decoding patch: {why}") from None
        if type_ == _JSON_PATCH and (fault := _operation_fault(patch)):
            raise status_errors.bad_request(f"error decoding patch: {fault}")
        if type_ == _MERGE and not isinstance(patch, dict):
            why = f"json: cannot unmarshal {go_type(patch)} into Go value of type map[string]interface {{}}"
            raise status_errors.bad_request(f"error decoding patch: {why}")
        prefix = "json patch " if type_ == _JSON_PATCH else ""
        duplicates = [f'{prefix}duplicate field "{path}"' for path in read_members(request.body).again]

        def patched(old: JSON) -> JSON:
            """Returns an object with the patch applied, decoded. Raises ApiError 400 or 422."""
            new = self._patch_object(kind, old, type_, patch)
            patch_text = go_plain(patch) if type_ == _STRATEGIC else orjson.dumps(new).decode()
            return self._decoding.patched(request, kind, new, options, patch=patch_text, duplicates=duplicates)

        return patched

    def _patch_object(self, kind: Kind, old: JSON, type_: str, patch: Any) -> Any:
        """Returns `old` with a patch of the content type `type_` applied. Raises ApiError."""
        # The revision is a precondition only if the patch itself sets it.
        before = meta(old).pop("resourceVersion", "")
        if type_ == _MERGE:
            return merge_patch(old, patch)
        if type_ == _STRATEGIC:
            return strategic_merge(self._schemas.tree(kind), old, patch)
        meta(old)["resourceVersion"] = before
        new = apply_json_patch(old, patch)
        if isinstance(new, dict) and meta(new).get("resourceVersion") == before:
            meta(new).pop("resourceVersion", None)
        return new

    # -- apply -----------------------------------------------------------------------------------------------------

    async def _serve_apply(self, request: Request, target: Target, kind: Kind) -> Response:
        """Handles a server-side apply, which creates the object if it does not exist."""
        options = write_options(request, "PatchOptions", apply=True)
        if target.subresource:
            await self._reading.known(lambda: self._reading.entry(kind, target.namespace, target.name))
        config = await self._decoding.applied(request, kind, target, options)
        has_name = bool(meta(config).get("name"))
        check_place(kind, target.namespace, target.name, config)

        def compute(live: JSON | None) -> JSON:
            new = self.applied(kind, live, config, options, part=target.subresource)
            if uid := meta(config).get("uid"):
                meta(new)["uid"] = uid  # no manager owns it, but an update must not change it
            return new

        if self._writing.exists(kind, target):
            revision = parse_revision(meta(config).get("resourceVersion"))
            entry = await self._writing.change(
                kind, target, compute, options, expected_revision=revision, applying=True
            )
            return await self._reading.answer(request, kind, entry)
        check_named(config if has_name else {}, target.name)
        if uid := meta(config).get("uid"):
            why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise status_errors.conflict(kind.plural, kind.group, target.name, why)
        if self.authorize is not None:
            # With the name, unlike a POST: a rule with resourceNames can allow it.
            self.authorize(request, replace(target, verb="create", subresource=""))
        entry = await self._writing.create_applied(kind, lambda: compute(None), options)
        return await self._reading.answer(request, kind, entry, 201)

    def applied(self, kind: Kind, live: JSON | None, config: JSON, options: WriteOptions, *, part: str) -> JSON:
        """Returns the live object (None for a new one) with the configuration applied. Raises ApiError 409."""

        def stored_form(obj: JSON) -> JSON:
            return self._decoding.stored_form(kind, obj)

        applied = apply_patch(
            self._schemas.tree(kind),
            kind,
            live,
            config,
            manager=options.manager,
            force=options.force,
            now=self._clock.now(),
            subresource=part,
            empty=self._schemas.empty(kind),
            default=lambda obj: self._schemas.default(kind, stored_form(obj)),
            tree_of=lambda version: self._tree_of(kind, version),
        )
        return stored_form(applied)

    def _tree_of(self, kind: Kind, api_version: str) -> SchemaNode | None:
        """Returns the schema of a kind in another version, or None if that is not served."""
        group, _, version = api_version.rpartition("/")
        other = self._kinds.find(group, version, kind.plural)
        return self._schemas.tree(other) or SchemaNode(preserve_unknown=True) if other is not None else None

    def record_update(self, kind: Kind, old: JSON, new: JSON, options: WriteOptions, *, part: str) -> None:
        """Records the owners of what a PUT or a patch changed in `new`."""
        tree, now = self._schemas.tree(kind), self._clock.now()
        managed_fields.on_update(tree, kind, old, new, manager=options.manager, now=now, subresource=part)


def check_patch_type(request: Request, kind: Kind) -> None:
    """Raises ApiError (415) for a content type that is no patch of the kind's objects."""
    type_ = media_type(request)
    if kind.custom and type_ not in _PATCHES_OF_CUSTOM_RESOURCES:
        raise status_errors.unsupported_media_type(_PATCHES_OF_CUSTOM_RESOURCES)
    if type_ not in PATCH_TYPES:
        raise status_errors.unsupported_patch_type()


def _operation_fault(patch: Any) -> str:
    """Returns Go's error about a JSON patch whose operations are of other types; "" without a fault."""
    if not isinstance(patch, list):
        return f"json: cannot unmarshal {go_type(patch)} into Go value of type []handlers.jsonPatchOp"
    for each in patch:
        if each is not None and not isinstance(each, dict):
            return f"json: cannot unmarshal {go_type(each)} into Go value of type handlers.jsonPatchOp"
        for name in ("op", "from", "path"):
            if not isinstance(value := (each or {}).get(name, ""), str) and value is not None:
                return f"json: cannot unmarshal {go_type(value)} into Go struct field jsonPatchOp.{name} of type string"
    return ""


Handler = Callable[[Request, Target, Kind], Response | Awaitable[Response]]


class Rest:
    """The generic handlers; one instance for the whole server."""

    def __init__(
        self,
        *,
        store: Store,
        kinds: KindTable,
        schemas: Schemas,
        admission: Admission,
        renderer: Renderer,
        clock: Clock,
    ) -> None:
        self.store = store
        self.kinds = kinds
        self.decoding = decoding = Decoding(schemas)
        self.reading = reading = Reading(store, schemas, renderer, clock)
        self.writing = writing = Writing(
            store=store, schemas=schemas, admission=admission, decoding=decoding, reading=reading, clock=clock
        )
        self.patching = Patching(
            kinds=kinds, schemas=schemas, decoding=decoding, reading=reading, writing=writing, clock=clock
        )
        self.deleting = Deleting(store=store, admission=admission, reading=reading, writing=writing, clock=clock)
        self.verbs: Mapping[str, Handler] = {
            "get": reading.get,
            "list": reading.list_,
            "watch": reading.watch,
            "create": writing.create,
            "update": writing.update,
            "patch": self.patching.patch,
            "delete": self.deleting.delete,
            "deletecollection": self.deleting.delete_collection,
        }
        """The handlers by verb."""

    def entry(self, kind: Kind, namespace: str, name: str) -> Entry:
        """Returns the stored object. Raises ApiError 404."""
        return self.reading.entry(kind, namespace, name)

    def objects(self, kind: Kind, namespace: str) -> list[dict[str, Any]]:
        """Returns all objects of a kind in a namespace, or in all, as the kind serves them."""
        return [from_stored(kind, entry.load()) for entry in self.reading.entries(kind, namespace)]

    async def change(
        self,
        kind: Kind,
        target: Target,
        compute: Change,
        options: WriteOptions,
        *,
        applying: bool = False,
        view: View | None = None,
    ) -> Entry:
        """Reads an object, computes its new state, compares and stores it. Raises ApiError."""
        return await self.writing.change(kind, target, compute, options, applying=applying, view=view)
