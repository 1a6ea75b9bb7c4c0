"""The result of a rehearsal: the contents of the copy, and the effect of each task and each new definition.

`control` fills them in; `findings` makes the report of them, `cli/render` the plan of changes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from runup.release.decide.manifest import Identity

JSON = dict[str, Any]


class Action(StrEnum):
    """The action of a task on its object, as `terraform plan` names it."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    NOTHING = "nothing"


class Weight(StrEnum):
    """The severity of a field's change, the gravest first; the order of the plan of changes."""

    FIXED = "fixed when the object is created"
    SELECTOR = "selector"
    REPLICAS = "replicas"
    IMAGE = "image"
    RESOURCES = "requests and limits"
    RIGHTS = "rights"
    OTHER = "other"
    METADATA = "metadata"


WEIGHTS = tuple(Weight)


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldChange:
    """A field that differs: `path` for people, `before` and `after` (None: the field is not there).

    `others` are the field managers, other than those of releases, that owned the field before: their value is lost.
    """

    path: str
    before: Any
    after: Any
    weight: Weight
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectChange:
    """The change of one object. `known` is False if the copy may lack the object that was there before.

    `owned` is False if it came without `managedFields`: then it is not known whose values the release overwrites, nor
    which fields it no longer has.
    """

    identity: Identity
    action: Action
    fields: tuple[FieldChange, ...] = ()
    known: bool = True
    owned: bool = True

    @property
    def weight(self) -> Weight:
        """The gravest of its fields."""
        return min((field_change.weight for field_change in self.fields), key=WEIGHTS.index, default=Weight.OTHER)


class RefusalKind(StrEnum):
    """The kind of a refusal, which decides the remedy."""

    IMMUTABLE = "immutable"
    POLICY = "policy"
    QUOTA = "quota"
    STORED_VERSION = "stored version"
    NOT_SERVED = "not served"
    NOT_KNOWN = "not known"
    INVALID = "invalid"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A task that the API server refused: number `index` of the release's tasks, `behind` tasks wait for it.

    `message` has the server's own words. `by` names the policy, if that is what refused it.
    """

    identity: Identity
    index: int
    kind: RefusalKind
    message: str
    behind: int = 0
    by: str = ""


@dataclass(frozen=True, slots=True)
class Wait:
    """A task whose object does not become healthy, because it was declared so: the update waits there."""

    identity: Identity
    index: int
    message: str
    behind: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredObject:
    """A custom resource under the target's definition: why its next write is refused, or what it loses then.

    `tolerated` are faults that the server lets pass as long as the field is not changed (validation ratcheting).
    """

    identity: Identity
    refused: tuple[str, ...] = ()
    tolerated: tuple[str, ...] = ()
    pruned: tuple[str, ...] = ()
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class WriteRefused:
    """An object that is stored, and whose next write a real API server refuses, in its own words."""

    identity: Identity
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RealServerOutcome:
    """The result of storing the cluster's own objects on a real API server of Kubernetes `version`, before any release.

    `wanted` is the target's version of Kubernetes, empty if it is not known; `tried` counts the objects that were
    written as dry runs, of `objects`. `read_changes` are objects that read otherwise than on the cluster.
    """

    version: str
    wanted: str
    objects: int = 0
    tried: int = 0
    refused: tuple[WriteRefused, ...] = ()
    read_changes: tuple[ObjectChange, ...] = ()
    too_late: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionOutcome:
    """A definition of the release, the custom resources that were tried under it, and the versions that it removes.

    `writers` are the field managers that wrote in a version that is not served any more, with their objects.
    """

    name: str
    group: str
    kind: str
    plural: str
    tried: int = 0
    objects: tuple[StoredObject, ...] = ()
    gone: tuple[str, ...] = ()
    writers: tuple[tuple[str, Identity], ...] = ()
    complete: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """An admission webhook that a write of the release would be sent to. `ignores`: its failure is ignored."""

    configuration: str
    kind: str
    name: str
    ignores: bool
    conditions: bool
    writes: tuple[Identity, ...]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A kind, or a part of one, that the copy does not have, and why."""

    kind: str
    why: str
    count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyAccount:
    """The content of the copy: the number of objects by kind, omitted kinds, and the source.

    `requests` counts the reads of a live cluster; `whole` and `namespaces` say which kinds are known in full.
    """

    source: str
    objects: int
    kinds: tuple[tuple[str, int], ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    requests: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RightsChange:
    """Rights of a role that were gained or lost, as `VERB RESOURCE.GROUP`, and who has the role, as `KIND NAME`.

    `all_known`: every binding of the cluster is in the copy, so that nobody else has the role.
    """

    identity: Identity
    lost: tuple[str, ...]
    gained: tuple[str, ...]
    subjects: tuple[str, ...]
    all_known: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Unserved:
    """Objects of the cluster that are written in a version, or of a kind, that the target does not serve."""

    group: str
    version: str
    kind: str
    minor: int
    objects: tuple[Identity, ...]
    writers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """The result of a rehearsal. `tasks` is the number of the release's tasks, `tried` how many were carried out.

    `not_evaluated` are admission policies, by kind and name, and why the copy does not have them. `too_late` is why it
    ended early, empty if it did not. `vanished` are the objects that go with what was deleted. `server` is None unless
    the copy was on a real API server.
    """

    account: CopyAccount
    source: str
    target: str
    image: str = ""
    tasks: int = 0
    tried: int = 0
    changes: tuple[ObjectChange, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    waits: tuple[Wait, ...] = ()
    vanished: tuple[tuple[Identity, str], ...] = ()
    rights: tuple[RightsChange, ...] = ()
    definitions: tuple[DefinitionOutcome, ...] = ()
    webhooks: tuple[Webhook, ...] = ()
    unserved: tuple[Unserved, ...] = ()
    unknown: tuple[LeftOut, ...] = ()
    not_evaluated: tuple[LeftOut, ...] = ()
    kubernetes: bool = False
    server: RealServerOutcome | None = None
    too_late: str = ""
    notes: tuple[str, ...] = field(default=())
