"""`meta/v1`: what every Kubernetes object carries, and the base of every wire type.

Field names are snake_case here and camelCase on the wire; `kubekit.api.codec` is the only place where they meet.
"""

from datetime import datetime
from typing import ClassVar, Literal

import msgspec

ConditionStatus = Literal["True", "False", "Unknown"]


class Wire(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """Base of every wire type. Unknown fields are ignored on decoding, defaults are left out on encoding.

    Frozen values made from JSON hold no reference cycles, so the garbage collector need not walk them: without that,
    it takes two thirds of the time to decode 50,000 pods.
    """


class OwnerReference(Wire, frozen=True):
    """Who owns an object; the garbage collector deletes it when the owner of this uid is gone."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False
    block_owner_deletion: bool = False


class ObjectMeta(Wire, frozen=True):
    """The part of `metadata` that runup reads."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()


class Condition(Wire, frozen=True):
    """`metav1.Condition`, and its older kin that lack `reason` or `observedGeneration`."""

    type: str
    status: ConditionStatus
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None
    observed_generation: int = 0


class LooseCondition(Wire, frozen=True):
    """A condition of a component that sends its status as it likes."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None


class LabelSelectorRequirement(Wire, frozen=True):
    """One set-based requirement of a label selector; `operator` is In, NotIn, Exists or DoesNotExist."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class LabelSelector(Wire, frozen=True):
    """Selects by labels; all parts must match, an empty selector matches everything."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()

    def matches(self, labels: dict[str, str]) -> bool:
        """Whether `labels` satisfy every requirement (an unknown operator satisfies nothing)."""
        # Asked of each of many objects: a loop takes a third of what `any` does.
        for name, wanted in self.match_labels.items():
            if labels.get(name) != wanted:
                return False
        for requirement in self.match_expressions:
            present = requirement.key in labels
            value = labels.get(requirement.key)
            satisfied = {
                "In": present and value in requirement.values,
                "NotIn": not present or value not in requirement.values,
                "Exists": present,
                "DoesNotExist": not present,
            }.get(requirement.operator, False)
            if not satisfied:
                return False
        return True


class StatusCause(Wire, frozen=True):
    """One cause inside an API error: which field, and what is wrong with it."""

    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(Wire, frozen=True):
    """What an API error is about."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[StatusCause, ...] = ()
    retry_after_seconds: int = 0


class Status(Wire, frozen=True):
    """The body of an API server's error (`kind: Status`)."""

    status: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: StatusDetails | None = None


class Object(Wire, frozen=True):
    """Any object, as far as its identity goes; the base of every kind.

    Of a kind that says `metadata_alone` nothing else is asked of a server, as of an Object itself.
    """

    metadata_alone: ClassVar[bool] = False
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()


class NamespacedName(msgspec.Struct, frozen=True, order=True, gc=False):
    """The key of an object within its kind; `namespace` is empty for cluster-scoped kinds."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def key_of(obj: Object) -> NamespacedName:
    """The key of `obj` within its kind."""
    return NamespacedName(obj.metadata.namespace, obj.metadata.name)
