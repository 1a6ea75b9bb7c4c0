"""Reads an UpdatePolicy and UpdateCalendars from a YAML or JSON file; an unknown field is an error."""

from __future__ import annotations

from pathlib import Path

import msgspec

from kubekit.api import codec
from kubekit.error_types import InputError
from runup.api.update_policy_v1alpha1 import API_VERSION, HealthExpression, UpdateCalendar, UpdatePolicy
from runup.dump.documents import BadManifest, objects_in
from runup.rollout.decide import calendar
from runup.rollout.decide.expressions import errors_of

_KINDS: dict[str, type[UpdateCalendar | UpdatePolicy]] = {
    "UpdateCalendar": UpdateCalendar,
    "UpdatePolicy": UpdatePolicy,
}


class PolicyFile(msgspec.Struct, frozen=True):
    """The objects of the file at `path`."""

    path: str
    policies: tuple[UpdatePolicy, ...]
    calendars: tuple[UpdateCalendar, ...]

    @property
    def expressions(self) -> tuple[HealthExpression, ...]:
        """The health expressions of the policies."""
        return tuple(each for policy in self.policies for each in policy.spec.gates.health.expressions)


def read(path: str) -> PolicyFile:
    """Returns the policies and calendars of a file. Raises InputError that names the file and the field."""
    policies: list[UpdatePolicy] = []
    calendars: list[UpdateCalendar] = []
    try:
        objects = objects_in(Path(path))
    except BadManifest as error:
        raise InputError(error.message) from error
    for obj in objects:
        kind, name = str(obj.get("kind")), str((obj.get("metadata") or {}).get("name", ""))
        if obj.get("apiVersion") != API_VERSION or kind not in _KINDS:
            known = " and ".join(_KINDS)
            raise InputError(f"{path}: {kind} {name} must be one of {known} of {API_VERSION}")
        try:
            decoded = codec.convert(_KINDS[kind], obj)
        except codec.DecodeError as error:
            raise InputError(f"{path}: {kind} {name}: {error}") from error
        if isinstance(decoded, UpdatePolicy):
            if errors := errors_of(decoded.spec.gates.health.expressions):
                raise InputError(f"{path}: {kind} {name}: {'; '.join(errors)}")
            policies.append(decoded)
        else:
            calendar.read(decoded)
            calendars.append(decoded)
    return PolicyFile(path, tuple(policies), tuple(calendars))
