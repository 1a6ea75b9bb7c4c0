"""A second writing of `upgrade status`, kept only to check the first: objects as plain dicts in, the exact text out.

It imports nothing of runup and shares no helper with it, so that a rule that was misread once is not misread twice.
It is flat on purpose: a function for each part of the text, in the order of the text, the rules written out where they
apply. Times are integers, nanoseconds since 1970; an absent time is the year 1, and differences saturate, as in Go.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterable
from typing import Any

Obj = dict[str, Any]

SECOND, MINUTE, HOUR = 10**9, 60 * 10**9, 3600 * 10**9
ZERO_TIME = -62135596800 * SECOND
LONGEST = 2**63 - 1
MCO = "machineconfiguration.openshift.io/"
NEWEST_IMAGE = MCO + "newestImageEquivalentConfig"
VERSION_OF_CONFIG = MCO + "release-image-version"
UNSCHEDULABLE = "Node is marked unschedulable"
BEING_PROCESSED = "Machine Config Daemon is processing the node"
DETAILS = ("none", "all", "nodes", "health", "operators")
LEVELS = ("Info", "Warning", "Error", "Critical")
ASSESSMENTS = ("Degraded", "Unavailable", "Progressing", "Excluded", "Outdated", "Completed")
PHASES = ("Draining", "Updating", "Rebooting", "Paused", "Pending", "Updated")
OPENSHIFT_DOCS = "https://docs.openshift.com/container-platform/latest/"
RUNBOOKS = "https://github.com/openshift/runbooks/blob/master/alerts/cluster-monitoring-operator/"
ABOUT_NODES = OPENSHIFT_DOCS + (
    "post_installation_configuration/machine-configuration-tasks.html#understanding-the-machine-config-operator"
)
ABOUT_PAUSED_POOLS = OPENSHIFT_DOCS + (
    "support/troubleshooting/troubleshooting-operator-issues.html"
    "#troubleshooting-disabling-autoreboot-mco_troubleshooting-operator-issues"
)
ABOUT_DEGRADED = RUNBOOKS + "ClusterOperatorDegraded.md"
ABOUT_DOWN = RUNBOOKS + "ClusterOperatorDown.md"
ABOUT_HISTORY = OPENSHIFT_DOCS + (
    "updating/troubleshooting_updates/gathering-data-cluster-update.html"
    "#gathering-clusterversion-history-cli_troubleshooting_updates"
)
PAUSED = (
    "Pool is paused, which stops all changes to the nodes in the pool, including updates. "
    "The nodes will not be updated until the pool is unpaused by the administrator."
)
UNCLEAR = (
    "Current status of Cluster Version reconciliation is unclear.  See "
    "'oc -n openshift-cluster-version logs -l k8s-app=cluster-version-operator --tail -1' to debug."
)


class Refused(Exception):
    """The command prints `error: <this>` on stderr and exits 1."""


def status(files: Obj, details: str, real_now: int) -> str:
    """The text on stdout.

    `files` has `cv` (one ClusterVersion), `co`, `mcp`, `mc`, `node` (lists), and optionally `alerts` (the decoded
    answer, None when there is none to read) and `mco` (the Deployment). `real_now` only judges how long a node has been
    unready.
    """
    if details not in DETAILS:
        raise Refused(f"invalid value for --details: {details} (must be one of {', '.join(DETAILS)})")
    cv, operators = files["cv"], files["co"]
    if not operators:
        raise Refused(
            "no cluster operator information available - you must be connected to an OpenShift version 4 server"
        )
    progressing = first(conditions(cv), "Progressing")
    if progressing is None:
        raise Refused("no current Progressing info, see `oc describe clusterversion` for more details.\n")
    now = latest_transition(cv, operators)
    history = (cv.get("status") or {}).get("history") or []
    pools = [
        pool_numbers(pool, files, history=history, progressing=progressing, real_now=real_now) for pool in files["mcp"]
    ]
    workers = [pool for pool in pools if pool["name"] != "master"]
    rolling = any(pool["total"] > 0 and pool["updated"] != pool["total"] for pool in workers)
    if progressing["status"] != "True" and not rolling:
        return "The cluster is not updating.\n"

    started = instant(history[0].get("startedTime")) if history else instant(progressing.get("lastTransitionTime"))
    counted = [op for op in operators if is_counted(op)]
    plane, done = control_plane(
        cv,
        counted,
        deployment=files.get("mco"),
        history=history,
        now=now,
        list_updating=details in ("all", "operators"),
    )
    text = plane
    all_nodes = details in ("all", "nodes")
    for master in [pool for pool in pools if pool["name"] == "master" and pool["total"] > 0][:1]:
        if master["updated"] == master["total"]:
            version = sorted_nodes(master)[0]["version"] or "?"
            text += f"\nAll control plane nodes successfully updated to {version}\n"
        else:
            text += "\nControl Plane Nodes" + node_table(master, all_nodes)
    if any(pool["total"] > 0 for pool in workers):
        text += "\n= Worker Upgrade =\n\n" + pool_table(workers)
        for pool in workers:
            if pool["total"] > 0:
                text += f"\nWorker Pool Nodes: {pool['name']}" + node_table(pool, all_nodes)

    insights = []
    for pool in pools:
        insights += pool_insights(pool)
    insights += alert_insights(files.get("alerts"), started)
    insights += version_insights(cv, now)
    for op in counted:
        insights += operator_insights(op, now)
    if not done and len(history) > 1 and history[1].get("state") == "Partial":
        insights.append(partial_insight(cv, history))
    insights = [one for one in insights if one["summary"] and one["description"] and one["reference"]]
    insights.sort(key=lambda one: ZERO_TIME if one["since"] is None else one["since"], reverse=True)
    insights.sort(key=lambda one: LEVELS.index(one["level"]), reverse=True)
    updating_for = rounded(difference(now, started), SECOND)
    return text + health(insights, now, updating_for, details in ("all", "health"))


def latest_transition(cv: Obj, operators: list[Obj]) -> int:
    """Now: each condition that is later than now moves it to 368.975 µs after itself."""
    now = ZERO_TIME
    for one in [cv, *operators]:
        for condition in conditions(one):
            if instant(condition.get("lastTransitionTime")) > now:
                now = instant(condition.get("lastTransitionTime")) + 368975
    return now


# Nodes and pools


def pool_of(node: Obj, pools: list[Obj]) -> str | None:
    """The pool that a node belongs to: master, else a custom one, else worker."""
    labels = node["metadata"].get("labels") or {}
    matching = [
        pool["metadata"]["name"] for pool in pools if selects((pool.get("spec") or {}).get("nodeSelector"), labels)
    ]
    if "master" in matching:
        return "master"
    for name in matching:
        if name != "worker":
            return name
    return "worker" if "worker" in matching else None


def selects(selector: Obj | None, labels: Obj) -> bool:
    """A label selector: absent matches nothing, empty everything."""
    if selector is None:
        return False
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    for wanted in selector.get("matchExpressions") or []:
        key, values = wanted["key"], wanted.get("values") or []
        ok = {
            "In": key in labels and labels[key] in values,
            "NotIn": key not in labels or labels[key] not in values,
            "Exists": key in labels,
            "DoesNotExist": key not in labels,
        }[wanted["operator"]]
        if not ok:
            return False
    return True


def pool_numbers(pool: Obj, files: Obj, history: list[Obj], progressing: Obj, real_now: int) -> Obj:
    """A pool with its nodes in the order of the node list, and what it counts."""
    name = pool["metadata"]["name"]
    versions = {}
    for config in files["mc"]:
        versions[config["metadata"]["name"]] = (config["metadata"].get("annotations") or {}).get(VERSION_OF_CONFIG, "")
    migrating = is_multi(history) and progressing["status"] == "True"
    nodes = [
        node_state(node, pool, versions=versions, history=history, migrating=migrating, real_now=real_now)
        for node in files["node"]
        if pool_of(node, files["mcp"]) == name
    ]
    moving = ("Draining", "Updating", "Rebooting")
    return {
        "name": name,
        "paused": bool((pool.get("spec") or {}).get("paused")),
        "nodes": nodes,
        "total": len(nodes),
        "available": sum(not node["unavailable"] for node in nodes),
        "degraded": sum(node["degraded"] for node in nodes),
        "outdated": sum(node["phase"] != "Updated" for node in nodes),
        "draining": sum(node["phase"] == "Draining" for node in nodes),
        "excluded": sum(node["phase"] == "Paused" for node in nodes),
        "progressing": sum(node["phase"] in moving and not node["degraded"] for node in nodes),
        "updated": sum(node["phase"] == "Updated" for node in nodes),
        "pending": sum(node["phase"] == "Pending" for node in nodes),
    }


def is_multi(history: list[Obj]) -> bool:
    """The same version twice with different images: a migration to the multi-architecture payload."""
    if len(history) < 2:
        return False
    newest, before = ({key: entry.get(key, "") for key in ("version", "image")} for entry in history[:2])
    return bool(newest["version"] == before["version"] and newest["image"] != before["image"])


def node_state(node: Obj, pool: Obj, versions: Obj, history: list[Obj], migrating: bool, real_now: int) -> Obj:
    """All that the texts need to know about one node."""
    name = node["metadata"]["name"]
    notes = node["metadata"].get("annotations") or {}
    spec = pool.get("spec") or {}
    current, desired = notes.get(MCO + "currentConfig", ""), notes.get(MCO + "desiredConfig", "")
    state, reason = notes.get(MCO + "state", ""), notes.get(MCO + "reason", "")
    target = history[0].get("version", "") if history else None
    cur, des = versions.get(current, ""), versions.get(desired, "")
    same = current == desired
    on_target = desired == (spec.get("configuration") or {}).get("name", "")

    updated = cur != "" and target is not None and cur == target
    if migrating and MCO + "desiredConfig" in notes:
        updated = updated and same and on_target
    updating = not updated and cur != "" and des != "" and des == target and not same and on_target
    degraded = desired != "" and state in ("Degraded", "Unreconcilable")

    # Each of bad is (reason, summary, description, last transition or None, too young to be serious).
    bad: list[tuple[str, str, str, int | None, bool]] = []
    for condition in (node.get("status") or {}).get("conditions") or []:
        kind, is_now = condition.get("type"), condition.get("status", "")
        since = instant(condition["lastTransitionTime"]) if condition.get("lastTransitionTime") else None
        age = difference(real_now, since) if since is not None else LONGEST
        said = quoted(condition.get("message", ""))
        if kind == "Ready" and is_now != "True":
            about = f'Node has a Ready!=True condition with Reason "Not ready" and message {said}'
            bad.append(("Not ready", f"Node {name} is not ready", about, since, age < 5 * MINUTE))
        if kind == "DiskPressure" and is_now != "False":
            about = f'Node has a DiskPressure!=False condition with Reason "Disk pressure" and message {said}'
            bad.append(("Disk pressure", f"Node {name} has disk pressure", about, since, age < MINUTE))
        if kind == "NetworkUnavailable" and is_now != "False":
            about = (
                f'Node has a NetworkUnavailable!=False condition with Reason "Network unavailable" and message {said}'
            )
            bad.append(("Network unavailable", f"Node {name} has unavailable network", about, since, age < MINUTE))
    if (node.get("spec") or {}).get("unschedulable"):
        bad.append((UNSCHEDULABLE, UNSCHEDULABLE, UNSCHEDULABLE, None, True))
    if not bad:
        images = [notes.get(MCO + "currentImage"), notes.get(MCO + "desiredImage")]
        images_agree = images == [None, None] or (bool(images[0]) and images[0] == images[1])
        finished = current != "" and same and images_agree and state == "Done"
        if not finished and state not in ("Degraded", "Unreconcilable"):
            bad.append((BEING_PROCESSED, BEING_PROCESSED, BEING_PROCESSED, None, True))
    serious = any(not young for _, _, _, _, young in bad)
    newest = (pool["metadata"].get("annotations") or {}).get(NEWEST_IMAGE, "")
    if MCO + "layering-enabled" in (pool["metadata"].get("labels") or {}) and newest:
        image_holds = notes.get(MCO + "desiredImage", "") == newest
    else:
        image_holds = not notes.get(MCO + "desiredImage")
    unavailable = bool(bad) and image_holds

    wanted, applied = notes.get(MCO + "desiredDrain", ""), notes.get(MCO + "lastAppliedDrain", "")
    drain_asked = wanted != applied and wanted.split("-")[0] == "drain"
    draining = updating and wanted != "" and applied != "" and (drain_asked or state == "Done")
    if draining:
        phase, assessment, estimate = "Draining", "Progressing", "+10m"
    elif updating and state == "Done":
        phase, assessment, estimate = "Updated", "Completed", "-"
    elif updating:
        phase, assessment, estimate = "Rebooting" if state == "Rebooting" else "Updating", "Progressing", "+5m"
    elif updated:
        phase, assessment, estimate = "Updated", "Completed", "-"
    elif spec.get("paused"):
        phase, assessment, estimate = "Paused", "Excluded", "-"
    else:
        phase, assessment, estimate = "Pending", "Outdated", "?"

    message = ""
    if unavailable and not updating:
        assessment, estimate = "Unavailable", "-" if updated else "?"
        message = " | ".join(one[0] for one in bad)
    if degraded:
        assessment, estimate = "Degraded", "-" if updated else "?"
        message = reason
    if len(name.encode()) >= 8:
        message = message.replace(name, "<node>")
    known_times = [one[3] for one in bad if one[3] is not None]
    return {
        "name": name,
        "version": cur,
        "updated": updated,
        "updating": updating,
        "degraded": degraded,
        "unavailable": unavailable,
        "serious": serious,
        "phase": phase,
        "assessment": assessment,
        "estimate": estimate,
        "message": message,
        "reason": reason,
        "summary": " | ".join(one[1] for one in bad),
        "description": " | ".join(one[2] for one in bad),
        "since": min(known_times) if known_times else None,
    }


def sorted_nodes(pool: Obj) -> list[Obj]:
    """The nodes of a pool as the table lists them."""
    return sorted(
        pool["nodes"],
        key=lambda node: (ASSESSMENTS.index(node["assessment"]), PHASES.index(node["phase"]), node["name"].encode()),
    )


def pool_table(pools: list[Obj]) -> str:
    """The worker pools, one a row."""
    lines = ["WORKER POOL\tASSESSMENT\tCOMPLETION\tSTATUS"]
    for pool in pools:
        total = pool["total"]
        if total == 0:
            lines.append(f"{pool['name']}\tEmpty\t\t0 Total")
            continue
        if pool["updated"] == total:
            assessment = "Completed"
        elif pool["pending"] == total:
            assessment = "Pending"
        elif pool["degraded"] > 0:
            assessment = "Degraded"
        elif pool["excluded"] > 0:
            assessment = "Excluded"
        else:
            assessment = "Progressing"
        completion = f"{100 * pool['updated'] / total:.0f}% ({total - pool['outdated']}/{total})"
        state = f"{pool['available']} Available, {pool['progressing']} Progressing, {pool['draining']} Draining"
        if pool["excluded"]:
            state += f", {pool['excluded']} Excluded"
        if pool["degraded"]:
            state += f", {pool['degraded']} Degraded"
        lines.append(f"{pool['name']}\t{assessment}\t{completion}\t{state}")
    return table(lines)


def node_table(pool: Obj, every_node: bool) -> str:
    """The nodes of a pool: all of them, or ten and those in trouble."""
    lines, omitted = ["NAME\tASSESSMENT\tPHASE\tVERSION\tEST\tMESSAGE"], []
    for index, node in enumerate(sorted_nodes(pool)):
        in_trouble = node["degraded"] or (node["unavailable"] and not node["updating"])
        if not every_node and index >= 10 and not in_trouble:
            omitted.append(node)
            continue
        cells = [
            node["name"],
            node["assessment"],
            node["phase"],
            node["version"] or "?",
            node["estimate"],
            node["message"],
        ]
        lines.append("\t".join(cells))
    text = "\n" + table(lines)
    if omitted:
        text += (
            f"...\nOmitted additional {len(omitted)} Total, {sum(node['updated'] for node in omitted)} Completed, "
            f"{sum(not node['unavailable'] for node in omitted)} Available, "
            f"{sum(node['assessment'] == 'Progressing' for node in omitted)} Progressing, "
            f"{sum(not node['updated'] for node in omitted)} Outdated, "
            f"{sum(node['phase'] == 'Draining' for node in omitted)} Draining, "
            f"{sum(node['phase'] == 'Paused' for node in omitted)} Excluded, and 0 Degraded nodes.\n"
            "Pass along --details=nodes to see all information.\n"
        )
    return text


# The control plane


def is_counted(operator: Obj) -> bool:
    """Whether a release put this operator there, by its annotations."""
    prefixes = ("include.release.openshift.io/", "exclude.release.openshift.io/")
    return any(key.startswith(prefixes) for key in operator["metadata"].get("annotations") or {})


def is_updated(operator: Obj, target: str, mco_image: str) -> bool:
    """Whether an operator says that it runs the target."""
    versions = (operator.get("status") or {}).get("versions") or []
    if not any(one.get("name") == "operator" and one.get("version", "") == target for one in versions):
        return False
    if operator["metadata"]["name"] != "machine-config":
        return True
    return not any(one.get("name") == "operator-image" and one.get("version", "") != mco_image for one in versions)


def image_of(deployment: Obj | None) -> str:
    """The image of the machine-config-operator container."""
    spec = ((deployment or {}).get("spec") or {}).get("template") or {}
    for container in (spec.get("spec") or {}).get("containers") or []:
        if container.get("name") == "machine-config-operator":
            return container.get("image", "")
    return ""


def control_plane(
    cv: Obj, counted: list[Obj], deployment: Obj | None, history: list[Obj], now: int, list_updating: bool
) -> tuple[str, bool]:
    """The first section, and whether the control plane is done."""
    target = ((cv.get("status") or {}).get("desired") or {}).get("version", "")
    updated, updating, waiting, unavailable, degraded, last = 0, [], 0, 0, 0, ZERO_TIME
    for op in counted:
        progressing = first(conditions(op), "Progressing")
        available, is_degraded = first(conditions(op), "Available"), first(conditions(op), "Degraded")
        if is_updated(op, target, image_of(deployment)):
            updated += 1
        elif progressing and progressing["status"] == "True":
            updating.append(op)
        elif progressing and progressing["status"] == "False":
            waiting += 1
        if available is None or available["status"] != "True":
            unavailable += 1
        elif is_degraded and is_degraded["status"] == "True":
            degraded += 1
        if progressing:
            last = max(last, instant(progressing.get("lastTransitionTime")))
    for op in updating:
        if op["metadata"]["name"] == "machine-config" and len(counted) - updated == 1:
            last = instant(progressing_of(op).get("lastTransitionTime"))
    elapsed, to_last, end = 0, 0, ZERO_TIME
    if history:
        began = instant(history[0].get("startedTime"))
        if not last > began:
            last = now
        to_last = difference(last, began)
        end = instant(history[0].get("completionTime")) if history[0].get("state") == "Completed" else now
        elapsed = difference(end, began)
    shown = rounded(elapsed, MINUTE if elapsed > 10 * MINUTE else SECOND)
    if updated == len(counted):
        version = history[0].get("version", "") if history else "unknown"
        return (
            f"= Control Plane =\nUpdate to {version} successfully completed at {utc(end)} (duration: {short(shown)})\n"
        ), True

    share = updated / len(counted)
    estimate = estimated(share, to_last, elapsed, history)
    assessment = "Stalled" if estimate < -10 * MINUTE else "Progressing - Slow" if estimate < 0 else "Progressing"
    text = f"= Control Plane =\nAssessment:      {assessment}\nTarget Version:  {target_text(history)}\n"
    if updating:
        text += f"Updating:        {', '.join(op['metadata']['name'] for op in updating)}\n"
    text += f"Completion:      {100 * share:.0f}% "
    text += f"({updated} operators updated, {len(updating)} updating, {waiting} waiting)\n"
    text += f"Duration:        {short(shown)}"
    if estimate != 0:
        whole = elapsed + estimate
        whole -= whole % MINUTE if whole >= 0 else -(-whole % MINUTE)
        if is_multi(history):
            remaining = "N/A for Multi-Architecture Migration"
        elif estimate < -10 * MINUTE:
            remaining = f"N/A; estimate duration was {short(whole)}"
        elif estimate < 10 * MINUTE:
            remaining = "<10m"
        else:
            remaining = short(estimate)
        text += f" (Est. Time Remaining: {remaining})"
    text += f"\nOperator Health: {len(counted) - unavailable - degraded} Healthy"
    if unavailable:
        text += f", {unavailable} Unavailable"
    if degraded:
        text += f", {degraded} Available but degraded"
    text += "\n"
    if list_updating and updating:
        text += "\nUpdating Cluster Operators\n" + operator_table(updating, now)
    return text, False


def estimated(share: float, to_last: int, elapsed: int, history: list[Obj]) -> int:
    """Returns the remaining time, estimated from other updates."""
    baseline = HOUR
    if len(history) >= 3:
        for one in history[1:-1]:
            if one.get("state") == "Completed":
                baseline = difference(instant(one.get("completionTime")), instant(one.get("startedTime")))
                break
    c = share
    if c < 0.25:
        used = -0.03078788 + 2.62886 * c - 3.823954 * c**2
    elif c < 0.9:
        used = 0.1851215 + 1.64994 * c - 4.676898 * c**2 + 5.451824 * c**3 - 2.125286 * c**4
    else:
        used = 25053.32 - 107394.3 * c + 172527.2 * c**2 - 123107 * c**3 + 32921.81 * c**4
    total = seconds(to_last) / used if c > 0 and used > 0 and to_last > 5 * MINUTE else seconds(baseline)
    remaining = total - seconds(elapsed)
    estimate = int(remaining * 1.2) if remaining >= 0 else int(remaining * (1 / 1.2))
    estimate *= SECOND
    return rounded(estimate, MINUTE) if estimate > 10 * MINUTE else estimate


def target_text(history: list[Obj]) -> str:
    """From which version to which."""
    if not history:
        return "unknown (from unknown)"
    version = history[0].get("version", "")
    if len(history) == 1:
        return f"{version} (a new install)"
    before = history[1].get("version", "")
    if history[1].get("state") == "Partial":
        return f"{version} (from incomplete {before})"
    if is_multi(history):
        return f"{version} to Multi-Architecture"
    return f"{version} (from {before})"


def operator_table(updating: list[Obj], now: int) -> str:
    """The operators that are being updated, with every line of what they say."""
    lines = ["NAME\tSINCE\tREASON\tMESSAGE"]
    for op in updating:
        condition = progressing_of(op)
        reason = condition.get("reason", "") or "-"
        if len(reason) > 20:
            reason = reason[:17] + "..."
        message, *more = condition.get("message", "").split("\n")
        since = short(difference(now, instant(condition.get("lastTransitionTime"))))
        lines.append(f"{op['metadata']['name']}\t{since}\t{reason}\t{message}")
        lines += [f"\t\t\t{line}" for line in more]
    return table(lines)


# Health


def insight(level: str, impact: str, since: int | None, summary: str, description: str, reference: str, on: str) -> Obj:
    """One finding."""
    return {
        "level": level,
        "impact": impact,
        "since": since,
        "summary": summary,
        "description": description,
        "reference": reference,
        "on": on,
    }


def pool_insights(pool: Obj) -> list[Obj]:
    """Of the nodes in the order of the list, then of the pool."""
    found = []
    for node in pool["nodes"]:
        name, on = node["name"], f"nodes: {node['name']}"
        if node["unavailable"] and node["serious"] and not node["updating"]:
            about = node["reason"] if node["degraded"] else node["description"]
            found.append(
                insight(
                    "Warning",
                    "Update Speed",
                    since=node["since"],
                    summary=node["summary"],
                    description=about,
                    reference=ABOUT_NODES,
                    on=on,
                )
            )
        if node["degraded"]:
            summary = f"Node {name} is degraded"
            found.append(
                insight(
                    "Error",
                    "Update Stalled",
                    since=None,
                    summary=summary,
                    description=node["reason"],
                    reference=ABOUT_NODES,
                    on=on,
                )
            )
    if pool["paused"] and pool["excluded"] > 0:
        summary = f"Outdated nodes in a paused pool '{pool['name']}' will not be updated"
        on = f"machineconfigpools.machineconfiguration.openshift.io: {pool['name']}"
        found.append(
            insight(
                "Warning",
                "Update Stalled",
                since=None,
                summary=summary,
                description=PAUSED,
                reference=ABOUT_PAUSED_POOLS,
                on=on,
            )
        )
    return found


def alert_insights(answer: Obj | None, started: int) -> list[Obj]:
    """Of the alerts that fire and that the update may have caused, or that may hinder it."""
    found = []
    for alert in ((answer or {}).get("data") or {}).get("alerts") or []:
        labels, notes = alert.get("labels") or {}, alert.get("annotations") or {}
        name, since = labels.get("alertname") or "", instant(alert.get("activeAt"))
        during = started < since
        known = name in ("PodDisruptionBudgetLimit", "PodDisruptionBudgetAtLimit")
        level = {"warning": "Warning", "critical": "Critical"}.get(labels.get("severity") or "", "Info")
        if not name or not (known or during) or alert.get("state") == "pending" or level == "Info":
            continue
        if known and during:
            lead = "Alert known to affect updates started firing during the update."
        elif known:
            lead = "Alert known to affect updates has been firing since before the update started."
        else:
            lead = "Alert started firing during the update."
        seen = [notes[key] for key in ("description", "message") if notes.get(key)]
        about = f" The alert description is: {' | '.join(seen)}" if seen else " The alert has no description."
        summary = f"Alert is firing: {notes.get('summary') or name}"
        reference = notes.get("runbook_url") or "<alert does not have a runbook_url annotation>"
        where = f"{labels['namespace']}/{name}" if labels.get("namespace") else name
        on = f"alerts.config.openshift.io: {where}"
        known_since = None if since == ZERO_TIME else since
        found.append(
            insight(
                level,
                "Unknown",
                since=known_since,
                summary=summary,
                description=lead + about,
                reference=reference,
                on=on,
            )
        )
    return found


def version_insights(cv: Obj, now: int) -> list[Obj]:
    """Of the ClusterVersion's Failing."""
    name, failing = cv["metadata"]["name"], first(conditions(cv), "Failing")
    on = f"clusterversions.config.openshift.io: {name}"
    if failing is None:
        summary = f"Cluster Version {name} has no Failing condition"
        return [
            insight(
                "Warning",
                "Update Stalled",
                since=now,
                summary=summary,
                description=UNCLEAR,
                reference=ABOUT_DEGRADED,
                on=on,
            )
        ]
    if failing["status"] == "False":
        return []
    verb = "may be" if failing["status"] == "Unknown" else "is"
    summary = f"Cluster Version {name} {verb} failing to proceed with the update ({failing.get('reason', '')})"
    since = since_of(failing)
    return [
        insight(
            "Warning",
            "Update Stalled",
            since=since,
            summary=summary,
            description=failing.get("message", ""),
            reference=ABOUT_DEGRADED,
            on=on,
        )
    ]


def operator_insights(op: Obj, now: int) -> list[Obj]:
    """Of an operator: that it is unavailable for 5 minutes (20), that it is degraded for 5 minutes (40)."""
    found = []
    rules = (
        ("Available", "False", "unavailable", 20 * MINUTE, ABOUT_DOWN),
        ("Degraded", "True", "degraded", 40 * MINUTE, ABOUT_DEGRADED),
    )
    for kind, wrong, word, error_after, reference in rules:
        condition = first(conditions(op), kind)
        if condition is None or condition["status"] != wrong:
            continue
        age = difference(now, instant(condition.get("lastTransitionTime")))
        if age <= 5 * MINUTE:
            continue
        name = op["metadata"]["name"]
        summary = f"Cluster Operator {name} is {word} ({condition.get('reason', '')})"
        level = "Error" if age > error_after else "Warning"
        about = condition.get("message", "") or "<no message>"
        on = f"clusteroperators.config.openshift.io: {name}"
        found.append(
            insight(
                level,
                "API Availability",
                since=since_of(condition),
                summary=summary,
                description=about,
                reference=reference,
                on=on,
            )
        )
    return found


def partial_insight(cv: Obj, history: list[Obj]) -> Obj:
    """Of an update that was started before the one before it was complete."""
    before, complete = history[1].get("version", ""), "unknown"
    for one in history[2:]:
        if one.get("state") == "Completed":
            complete = one.get("version", "")
            break
    summary = f"Previous update to {before} never completed, last complete update was {complete}"
    about = (
        f"Current update to {history[0].get('version', '')} was initiated while the previous update to version "
        f"{before} was still in progress"
    )
    on = f"clusterversions.config.openshift.io: {cv['metadata']['name']}"
    began = instant(history[0].get("startedTime"))
    return insight(
        "Warning",
        "None",
        since=None if began == ZERO_TIME else began,
        summary=summary,
        description=about,
        reference=ABOUT_HISTORY,
        on=on,
    )


def health(insights: list[Obj], now: int, updating_for: int, detailed: bool) -> str:
    """The last section."""
    heading = "\n= Update Health =\n"
    if not insights:
        row = f"{short(updating_for)}\tInfo\tNone\tUpdate is proceeding well"
        return heading + table(["SINCE\tLEVEL\tIMPACT\tMESSAGE", row])
    since = []
    for one in insights:
        age = 0 if one["since"] is None else difference(now, one["since"])
        whole = abs(age) // SECOND * SECOND
        since.append("-" if one["since"] is None else short(whole if age >= 0 else -whole))
    if not detailed:
        lines = ["SINCE\tLEVEL\tIMPACT\tMESSAGE"]
        for one, age in zip(insights, since, strict=True):
            lines.append(f"{age}\t{one['level']}\t{one['impact']}\t{one['summary']}")
        return (
            heading
            + table(lines)
            + "\nRun with --details=health for additional description and links to related online documentation\n"
        )
    blocks = []
    for one, age in zip(insights, since, strict=True):
        description = one["description"].replace("\n", "\n" + " " * 15 + ", ")
        blocks.append(
            f"Message: {one['summary']}\n"
            f"  Since:       {age}\n  Level:       {one['level']}\n  Impact:      {one['impact']}\n"
            f"  Reference:   {one['reference']}\n  Resources:\n    {one['on']}\n  Description: {description}\n"
        )
    return heading + "\n".join(blocks)


# Primitives


def conditions(obj: Obj) -> list[Obj]:
    """`status.conditions`, empty where absent."""
    return (obj.get("status") or {}).get("conditions") or []


def first(all_conditions: Iterable[Obj], kind: str) -> Obj | None:
    """The first condition of a type; only that one counts. A status left out is the empty string."""
    for condition in all_conditions:
        if condition.get("type") == kind:
            return {"status": "", **condition}
    return None


def progressing_of(op: Obj) -> Obj:
    """The Progressing condition of an operator that has one."""
    return first(conditions(op), "Progressing") or {}


def since_of(condition: Obj) -> int | None:
    """When a condition became what it is; None if it does not say."""
    return instant(condition["lastTransitionTime"]) if condition.get("lastTransitionTime") else None


def instant(text: str | None) -> int:
    """RFC 3339 to nanoseconds."""
    if not text:
        return ZERO_TIME
    parts = re.fullmatch(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)", text)
    assert parts, text
    year, month, day, hour, minute, second = (int(parts[i]) for i in range(1, 7))
    at = calendar.timegm((year, month, day, hour, minute, second)) * SECOND
    if parts[7]:
        at += int(parts[7][1:10].ljust(9, "0"))
    if parts[8] != "Z":
        offset = int(parts[8][1:3]) * HOUR + int(parts[8][4:6]) * MINUTE
        at -= offset if parts[8][0] == "+" else -offset
    return at


def utc(at: int) -> str:
    """YYYY-MM-DDTHH:MM:SSZ, fractions dropped."""
    days, rest = divmod(at // SECOND - ZERO_TIME // SECOND, 86400)
    year, days = 1 + 400 * (days // 146097), days % 146097
    while days >= (366 if calendar.isleap(year) else 365):
        days -= 366 if calendar.isleap(year) else 365
        year += 1
    month = 1
    while days >= calendar.monthrange(year, month)[1]:
        days -= calendar.monthrange(year, month)[1]
        month += 1
    return f"{year:04}-{month:02}-{days + 1:02}T{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}Z"


def difference(later: int, earlier: int) -> int:
    """A duration; too long a one is the longest there is."""
    return max(-LONGEST - 1, min(LONGEST, later - earlier))


def rounded(duration: int, unit: int) -> int:
    """To the nearest unit, halves away from zero."""
    size = abs(duration)
    size = size + unit - size % unit if size % unit * 2 >= unit else size - size % unit
    return max(-LONGEST - 1, min(LONGEST, size if duration >= 0 else -size))


def seconds(duration: int) -> float:
    """Seconds as Go counts them: the whole ones plus the rest."""
    sign = 1 if duration >= 0 else -1
    whole, rest = divmod(abs(duration), SECOND)
    return sign * (whole + rest / 1e9)


def duration_text(duration: int) -> str:
    """Go's text of a duration."""
    sign, size = ("-" if duration < 0 else ""), abs(duration)
    if size == 0:
        return "0s"
    if size < SECOND:
        unit, name = (1, "ns") if size < 1000 else (1000, "µs") if size < 10**6 else (10**6, "ms")
        return sign + decimal(size, unit) + name
    hours, rest = divmod(size, HOUR)
    minutes, rest = divmod(rest, MINUTE)
    text = decimal(rest, SECOND) + "s"
    if hours or minutes:
        text = f"{minutes}m" + text
    if hours:
        text = f"{hours}h" + text
    return sign + text


def decimal(amount: int, unit: int) -> str:
    """amount / unit, exactly, without trailing zeros."""
    whole, rest = divmod(amount, unit)
    digits = str(rest).rjust(len(str(unit)) - 1, "0").rstrip("0") if rest else ""
    return f"{whole}.{digits}" if digits else str(whole)


def short(duration: int) -> str:
    """The short text of a duration, misread units included."""
    text = duration_text(duration)
    if text == "0s":
        return "now"
    if text.endswith("h0m0s"):
        return text[:-4]
    if text.endswith("m0s"):
        return text[:-2]
    if "." in text:
        parts = re.fullmatch(r"(-?)(?:(\d+)h)?(?:(\d+)m)?(\d+)s", text[: text.index(".")] + "s")
        assert parts, text
        again = int(parts[2] or 0) * HOUR + int(parts[3] or 0) * MINUTE + int(parts[4]) * SECOND
        return short(-again if parts[1] else again)
    return text


def quoted(text: str) -> str:
    """Go's %q."""
    named = {
        '"': '\\"',
        "\\": "\\\\",
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
    }
    out = ""
    for char in text:
        if char in named:
            out += named[char]
        elif char.isprintable():
            out += char
        elif ord(char) < 0x20 or ord(char) == 0x7F:
            out += f"\\x{ord(char):02x}"
        else:
            out += f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"
    return f'"{out}"'


def table(lines: list[str]) -> str:
    """Go's tabwriter with a padding of 3: a column is as wide as its widest cell in a run of lines that have it."""
    rows = [line.split("\t") for line in "\n".join(lines).split("\n")]
    out: list[str] = [""] * len(rows)

    def block(begin: int, end: int, widths: list[int]) -> None:
        column, row = len(widths), begin
        while row < end:
            if column >= len(rows[row]) - 1:
                cells = [
                    cell + " " * (widths[at] - len(cell)) if at < column else cell for at, cell in enumerate(rows[row])
                ]
                out[row] = "".join(cells)
                row += 1
                continue
            until = row
            while until < end and column < len(rows[until]) - 1:
                until += 1
            width = max(len(rows[at][column]) + 3 for at in range(row, until))
            block(row, until, [*widths, width])
            row = until

    block(0, len(rows), [])
    return "".join(line + "\n" for line in out)
