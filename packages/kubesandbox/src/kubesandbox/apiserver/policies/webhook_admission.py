"""Calls the admission webhooks for a write: mutating ones one after another, validating ones at the same time.

In: a write, and how its object is completed. Out: the object as the webhooks want it, or ApiError; warnings and audit
annotations are added to the request's. Order, matching, and messages follow
k8s.io/apiserver/pkg/admission/plugin/webhook. Configurations are read from the store at each write, so that a stored
one is in force at once.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import uuid
from collections.abc import Awaitable, Callable, Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any

import orjson

from kubekit.lang.cel_authorizer import Authorize
from kubekit.rules import policy_evaluation as evaluation
from kubesandbox.apiserver import status_errors
from kubesandbox.apiserver.patch.json import apply_json_patch
from kubesandbox.apiserver.policies.webhook_client import BadAuthority, WebhookClient, WebhookFailed
from kubesandbox.apiserver.schema.validate import type_name
from kubesandbox.apiserver.served_kinds import Kind, KindTable
from kubesandbox.apiserver.status_errors import ApiError
from kubesandbox.apiserver.store import Store

JSON = dict[str, Any]
# Returns an object of the first kind as the second, another version of it.
Convert = Callable[[Kind, Kind, JSON], Awaitable[JSON]]
# Returns an object as its type has it: without unknown fields, and with defaults. Raises ApiError or ValueError.
Complete = Callable[[Kind, JSON], JSON]

_GROUP = "admissionregistration.k8s.io"
MUTATING = f"mutatingwebhookconfigurations.{_GROUP}"
VALIDATING = f"validatingwebhookconfigurations.{_GROUP}"
_DRY = ("None", "NoneOnDryRun")
_TIMEOUT_S = 10


@dataclass(frozen=True, slots=True)
class _Hook:
    """A webhook, with the name of its configuration."""

    configuration: str
    spec: JSON
    mutates: bool

    @property
    def name(self) -> str:
        return str(self.spec["name"])

    @property
    def ignores_failures(self) -> bool:
        return self.spec.get("failurePolicy") == "Ignore"


@dataclass(frozen=True, slots=True)
class _Answer:
    """The usable part of an admission response."""

    allowed: bool
    result: JSON | None
    patch: bytes
    patch_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Notes:
    """The additions of webhooks to the answer and to the audit log."""

    warnings: list[str]
    annotations: dict[str, str]


class WebhookAdmission:
    """The admission webhooks of a server; one instance for the whole of it."""

    def __init__(
        self,
        store: Store,
        kinds: KindTable,
        *,
        client: WebhookClient,
        convert: Convert,
        complete: Complete,
        authorize: Authorize,
        disabled: Collection[str] = (),
    ) -> None:
        """`disabled` may have the names of the two admission plugins."""
        self._mutates = "MutatingAdmissionWebhook" not in disabled
        self._validates = "ValidatingAdmissionWebhook" not in disabled
        self._store, self._kinds, self._client = store, kinds, client
        self._convert, self._complete, self._authorize = convert, complete, authorize

    def may_mutate(self, kind: Kind) -> bool:
        """Returns whether there are mutating webhooks which writes of a kind could meet."""
        return self._mutates and bool(self._store.items(MUTATING, "")) and not evaluation.is_exempt(kind)

    async def mutate(self, write: evaluation.Write, again: Callable[[JSON], None], notes: Notes) -> JSON | None:
        """Returns the object of a write as the mutating webhooks change it. Raises ApiError.

        `again` completes an object that was changed, as the admission plugins of the server do, before webhooks with a
        reinvocationPolicy are called a second time.
        """
        if evaluation.is_exempt(write.kind):
            return write.obj
        rounds = _Rounds()
        write = await self._mutate_once(write, rounds, notes)
        if rounds.is_changed and write.obj is not None:
            before = orjson.dumps(write.obj)
            again(write.obj)
            if orjson.dumps(write.obj) != before:
                rounds.require_again()
            write = await self._mutate_once(write, rounds, notes, number=1)
        return write.obj

    async def _mutate_once(
        self, write: evaluation.Write, rounds: _Rounds, notes: Notes, *, number: int = 0
    ) -> evaluation.Write:
        """Returns the write as all webhooks change it; in round 1 as those change it that must be called again."""
        for index, hook in enumerate(self._hooks(MUTATING)):
            kind = self._matched_kind(hook, write)
            if kind is None or (number and not rounds.is_required(hook)):
                continue
            changed = await self._mutate_by(hook, write, kind, notes=notes, place=f"round_{number}_index_{index}")
            rounds.note(hook, is_changed=changed is not None and changed != write.obj)
            if changed is not None:
                write = replace(write, obj=changed)
        return write

    async def validate(self, write: evaluation.Write, notes: Notes) -> None:
        """Lets a write pass, or raises the ApiError of the first webhook that refuses it."""
        if not self._validates or not self._store.items(VALIDATING, "") or evaluation.is_exempt(write.kind):
            return
        matched = [(hook, kind) for hook in self._hooks(VALIDATING) if (kind := self._matched_kind(hook, write))]
        calls = (
            self._validate_by(hook, write, kind, notes=notes, place=f"round_0_index_{index}")
            for index, (hook, kind) in enumerate(matched)
        )
        for outcome in await asyncio.gather(*calls, return_exceptions=True):
            if outcome is not None:
                raise outcome

    def _hooks(self, resource: str) -> Iterator[_Hook]:
        """Yields the webhooks by the name of their configuration, within one in its order."""
        for entry in sorted(self._store.items(resource, ""), key=lambda entry: entry.name):
            for spec in entry.load().get("webhooks") or ():
                yield _Hook(entry.name, spec, resource == MUTATING)

    def _matched_kind(self, hook: _Hook, write: evaluation.Write) -> Kind | None:
        """Returns the kind in whose version a webhook gets the write, or None. Raises ApiError 403."""
        own, labels = _kind_of(write), self._namespace_labels(write)
        criteria = {**hook.spec, "matchPolicy": "Exact"}
        for rule in hook.spec.get("rules") or ():
            if evaluation.matches_criteria({**criteria, "resourceRules": [rule]}, write, labels):
                return own if self._conditions_hold(hook, write, own) else None
        if hook.spec.get("matchPolicy") == "Exact":
            return None
        others = [kind for kind in self._kinds if kind.storage == own.storage and kind is not own]
        for rule in hook.spec.get("rules") or ():
            for kind in others:
                as_other = replace(write, kind=kind)
                if evaluation.matches_criteria({**criteria, "resourceRules": [rule]}, as_other, labels):
                    return kind if self._conditions_hold(hook, write, kind) else None
        return None

    def _conditions_hold(self, hook: _Hook, write: evaluation.Write, kind: Kind) -> bool:
        if not hook.spec.get("matchConditions"):
            return True
        policy = {"spec": {key: hook.spec.get(key) for key in ("matchConditions", "failurePolicy")}}
        conditions = evaluation.Evaluation(policy, replace(write, kind=kind), None, None, authorize=self._authorize)
        try:
            return conditions.conditions_hold()
        except evaluation.EvaluationFailed as error:
            name = write.name
            raise status_errors.forbidden(write.kind.plural, write.kind.group, name, str(error)) from None

    def _namespace_labels(self, write: evaluation.Write) -> dict[str, str] | None:
        entry = self._store.get("namespaces", "", write.namespace) if write.namespace else None
        return dict(entry.labels) if entry is not None else None

    async def _mutate_by(
        self, hook: _Hook, write: evaluation.Write, kind: Kind, *, notes: Notes, place: str
    ) -> JSON | None:
        """Returns the object as one webhook changes it, None if it does not. Raises ApiError."""
        note = {"configuration": hook.configuration, "webhook": hook.name, "mutated": False}
        try:
            seen, answer = await self._call(hook, write, kind, notes=notes)
            of_object = kind if write.object_kind is None else _object_kind(write)
            changed = self._patched(hook, of_object, seen, answer) if answer.patch else None
        except WebhookFailed as error:
            _fail(hook, error, notes, f"failed-open.mutation.webhook.admission.k8s.io/{place}")
            changed = None
        else:
            if changed is not None and changed != seen:
                note["mutated"] = True
        finally:
            text = json.dumps(note, separators=(",", ":"))
            notes.annotations.setdefault(f"mutation.webhook.admission.k8s.io/{place}", text)
        if changed is None or kind is write.kind or write.object_kind is not None:
            return changed
        return await self._convert(kind, _kind_of(write), changed)

    async def _validate_by(
        self, hook: _Hook, write: evaluation.Write, kind: Kind, *, notes: Notes, place: str
    ) -> ApiError | None:
        """Returns the error of a webhook that refuses the write, or None."""
        try:
            await self._call(hook, write, kind, notes=notes)
        except ApiError as error:
            return error
        except WebhookFailed as error:
            try:
                _fail(hook, error, notes, f"failed-open.validating.webhook.admission.k8s.io/{place}")
            except ApiError as failure:
                return failure
        return None

    async def _call(
        self, hook: _Hook, write: evaluation.Write, kind: Kind, *, notes: Notes
    ) -> tuple[JSON | None, _Answer]:
        """Returns the object as the webhook saw it, and its answer. Raises WebhookFailed, or ApiError if it refuses."""
        if write.dry_run and hook.spec.get("sideEffects") not in _DRY:
            raise status_errors.bad_request(f'admission webhook "{hook.name}" does not support dry run')
        obj, old = write.obj, write.old
        own = _kind_of(write)
        if kind is not own and write.object_kind is None:
            obj = await self._convert(own, kind, obj) if obj is not None else None
            old = await self._convert(own, kind, old) if old is not None else None
        review = _review_of(hook, replace(write, obj=obj, old=old), kind)
        config, timeout_s = hook.spec.get("clientConfig") or {}, int(hook.spec.get("timeoutSeconds") or _TIMEOUT_S)
        try:
            raw = await self._client.post_review(config, review, timeout_s)
            _check_kind(review, raw)
        except BadAuthority as error:
            raise WebhookFailed(f"could not get REST client: {error}") from None
        except WebhookFailed as error:
            raise WebhookFailed(f"failed to call webhook: {error}") from None
        try:
            response = _verified_response(review, raw, mutating=hook.mutates)
        except WebhookFailed as error:
            raise WebhookFailed(f"received invalid webhook response: {error}") from None
        for key, value in (response.get("auditAnnotations") or {}).items():
            if "/" not in key:
                notes.annotations.setdefault(f"{hook.name}/{key}", value)
        notes.warnings.extend(response.get("warnings") or ())
        answer = _read_answer(response)
        if not answer.allowed:
            raise _rejection(hook.name, answer.result)
        return obj, answer

    def _patched(self, hook: _Hook, kind: Kind, obj: JSON | None, answer: _Answer) -> JSON | None:
        """Returns the object after the patch of an answer, None if the patch is empty.

        Raises ApiError 500, or WebhookFailed.
        """
        try:
            operations = orjson.loads(answer.patch)
        except orjson.JSONDecodeError as error:
            raise WebhookFailed(f"received undecodable patch in webhook response: {error}") from None
        if not isinstance(operations, list | type(None)):
            into = f"json: cannot unmarshal {type_name(operations)} into Go value of type jsonpatch.Patch"
            raise WebhookFailed(f"received undecodable patch in webhook response: {into}")
        if not operations:
            return None
        if obj is None:
            why = "attempted to modify the object, which is not supported for this operation"
            raise status_errors.internal(f'admission webhook "{hook.name}" {why}')
        if answer.patch_type != "JSONPatch":
            raise WebhookFailed(f'unsupported patch type "{answer.patch_type}"')
        try:
            return self._complete(kind, apply_json_patch(obj, operations))
        except (ApiError, ValueError) as error:
            text = error.message if isinstance(error, ApiError) else str(error)
            raise status_errors.internal(text) from None


def _kind_of(write: evaluation.Write) -> Kind:
    assert isinstance(write.kind, Kind)
    return write.kind


def _object_kind(write: evaluation.Write) -> Kind:
    assert isinstance(write.object_kind, Kind)
    return write.object_kind


class _Rounds:
    """The mutating webhooks that are called a second time (reinvocationcontext.go)."""

    def __init__(self) -> None:
        self.is_changed = False
        self._again: set[tuple[str, str]] = set()
        self._called: set[tuple[str, str]] = set()

    def note(self, hook: _Hook, *, is_changed: bool) -> None:
        """Notes that a webhook was called, and whether it changed the object."""
        if is_changed:
            self.is_changed = True
            self.require_again()
        if hook.spec.get("reinvocationPolicy") == "IfNeeded":
            self._called.add((hook.configuration, hook.name))

    def require_again(self) -> None:
        """Requires a second call of the webhooks that were called before the object changed."""
        self._again |= self._called
        self._called = set()

    def is_required(self, hook: _Hook) -> bool:
        """Returns whether a webhook must be called a second time."""
        return (hook.configuration, hook.name) in self._again


def _fail(hook: _Hook, error: WebhookFailed, notes: Notes, key: str) -> None:
    """Notes a failed call that the failurePolicy ignores. Raises ApiError 500 otherwise."""
    if not hook.ignores_failures:
        raise status_errors.internal(f'failed calling webhook "{hook.name}": {error}') from None
    notes.annotations.setdefault(key, hook.name)


def _review_of(hook: _Hook, write: evaluation.Write, kind: Kind) -> JSON:
    """Returns the AdmissionReview that a webhook gets. Raises WebhookFailed if it reads no known version."""
    known = [version for version in hook.spec.get("admissionReviewVersions") or () if version in ("v1", "v1beta1")]
    if not known:
        why = "webhook does not accept known AdmissionReview versions (v1, v1beta1)"
        raise WebhookFailed(f"could not create admission objects: {why}")
    about = evaluation.admission_request(write, kind)
    request = {
        "uid": str(uuid.uuid4()),
        # Go's encoder leaves empty texts out.
        **{key: value for key, value in about.items() if value != ""},
        "object": write.obj,
        "oldObject": write.old,
    }
    return {"kind": "AdmissionReview", "apiVersion": f"admission.k8s.io/{known[0]}", "request": request}


def _check_kind(review: JSON, raw: Any) -> None:
    """Raises WebhookFailed if an answer says that it is of another kind than AdmissionReview, or of another version."""
    if not isinstance(raw, dict) or not (kind := raw.get("kind")) or not (version := raw.get("apiVersion")):
        return
    expected = review["apiVersion"]
    if kind != "AdmissionReview" or not str(version).startswith("admission.k8s.io/"):
        where = 'in scheme "pkg/runtime/scheme.go:110"'
        raise WebhookFailed(f'no kind "{kind}" is registered for version "{version}" {where}')
    if version != expected:
        versions = (f"({each.rpartition('/')[2]}.AdmissionReview)" for each in (version, expected))
        raise WebhookFailed(f"converting {' to '.join(versions)}: unknown conversion")


def _verified_response(review: JSON, raw: Any, *, mutating: bool) -> JSON:
    """Returns the response of an answer (VerifyAdmissionResponse). Raises WebhookFailed."""
    response = raw.get("response") if isinstance(raw, dict) else None
    if not isinstance(response, dict):
        raise WebhookFailed("webhook response was absent")
    if not review["apiVersion"].endswith("/v1"):
        return {**response, "patchType": "JSONPatch" if response.get("patch") and mutating else ""}
    if (uid := response.get("uid", "")) != (expected := review["request"]["uid"]):
        raise WebhookFailed(f'expected response.uid="{expected}", got "{uid}"')
    version, kind = raw.get("apiVersion") or "/", raw.get("kind", "")
    if (version, kind) != (review["apiVersion"], "AdmissionReview"):
        wanted = f"{review['apiVersion']}, Kind=AdmissionReview"
        raise WebhookFailed(f"expected webhook response of {wanted}, got {version}, Kind={kind}")
    patch, type_ = response.get("patch"), response.get("patchType")
    if not mutating and (patch or type_ is not None):
        raise WebhookFailed(f"validating webhook may not return response.{'patch' if patch else 'patchType'}")
    if patch and type_ is None:
        raise WebhookFailed("webhook returned response.patch but not response.patchType")
    if not patch and type_ is not None:
        raise WebhookFailed("webhook returned response.patchType but not response.patch")
    if type_ == "":
        raise WebhookFailed('webhook returned invalid response.patchType of ""')
    return response


def _read_answer(response: JSON) -> _Answer:
    """Returns the parts of a response that decide about the write. Raises WebhookFailed."""
    try:
        patch = base64.b64decode(response.get("patch") or "", validate=True)
    except (binascii.Error, ValueError, TypeError) as error:
        raise WebhookFailed(f"received undecodable patch in webhook response: {error}") from None
    return _Answer(
        bool(response.get("allowed")),
        response.get("status") if "status" in response else None,
        patch,
        response.get("patchType") or "",
    )


def _rejection(name: str, result: JSON | None) -> ApiError:
    """Returns the error of a webhook that refuses a write (ToStatusErr)."""
    result = result or {}
    denied, why = f'admission webhook "{name}" denied the request', result.get("message") or result.get("reason")
    return ApiError(
        max(int(result.get("code") or 0), 400),
        result.get("reason") or "",
        f"{denied}: {why}" if why else f"{denied} without explanation",
        details=result.get("details"),
    )
