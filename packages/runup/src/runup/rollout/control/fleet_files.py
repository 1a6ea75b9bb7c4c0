"""Reads a FleetUpdate and its UpdateCalendars from a YAML or JSON file; an unknown field is an error."""

from __future__ import annotations

from pathlib import Path

import msgspec

from kubekit.api import codec
from kubekit.error_types import InputError
from runup.api.fleet_update_v1alpha1 import FleetUpdate
from runup.api.update_policy_v1alpha1 import API_VERSION, UpdateCalendar
from runup.dump.documents import BadManifest, objects_in
from runup.rollout.decide import calendar, fleet_file

_KINDS: dict[str, type[UpdateCalendar | FleetUpdate]] = {"UpdateCalendar": UpdateCalendar, "FleetUpdate": FleetUpdate}


class FleetFile(msgspec.Struct, frozen=True):
    """The objects of a file."""

    update: FleetUpdate
    calendars: tuple[UpdateCalendar, ...]


def read(path: str) -> FleetFile:
    """Returns the FleetUpdate of a file and its calendars. Raises InputError that names the file and the field.

    The update must be one that needs no hub.
    """
    found = read_objects(path)
    try:
        fleet_file.check(found.update, frozenset(each.metadata.name for each in found.calendars))
    except InputError as error:
        raise InputError(f"{path}: FleetUpdate {found.update.metadata.name}: {error.message}") from error
    return found


def read_objects(path: str) -> FleetFile:
    """Returns the FleetUpdate of a file and its calendars, also one for a hub. Raises InputError as `read` does."""
    updates: list[FleetUpdate] = []
    calendars: dict[str, UpdateCalendar] = {}
    try:
        objects = objects_in(Path(path))
    except BadManifest as error:
        raise InputError(error.message) from error
    for obj in objects:
        kind, name = str(obj.get("kind")), str((obj.get("metadata") or {}).get("name", ""))
        if obj.get("apiVersion") != API_VERSION or kind not in _KINDS:
            raise InputError(f"{path}: {kind} {name} must be one of {' and '.join(_KINDS)} of {API_VERSION}")
        try:
            fleet_file.refuse_empty_labels(obj)
            decoded = codec.convert(_KINDS[kind], obj)
        except (codec.DecodeError, InputError) as error:
            raise InputError(f"{path}: {kind} {name}: {error}") from error
        if isinstance(decoded, FleetUpdate):
            updates.append(decoded)
        elif name in calendars:
            raise InputError(f"{path}: two UpdateCalendars are called {name}; give each a different name")
        else:
            calendar.read(decoded)
            calendars[name] = decoded
    if len(updates) != 1:
        raise InputError(f"{path}: must have one FleetUpdate; it has {len(updates)}")
    return FleetFile(updates[0], tuple(calendars.values()))
