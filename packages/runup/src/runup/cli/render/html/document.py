"""The frame of every page: one file that loads nothing, with cluster and time at the top.

Its only script puts a button for copying next to each command, and its hash is in the page's policy.

The style sheet is light or dark as the reader's system is set, and has rules for paper.
"""

from __future__ import annotations

from base64 import b64encode
from datetime import datetime
from hashlib import sha256

from runup import __version__
from runup.cli.render.html.markup import Child, Markup, el, minute_text

# Reports contain other people's text: even if some of it were taken for markup, no script of it runs and nothing is
# loaded.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
COPY_SCRIPT = """
"use strict";
for (const line of navigator.clipboard ? document.querySelectorAll("code.command") : []) {
  const button = document.createElement("button");
  const say = word => { button.textContent = word; button.setAttribute("aria-label", word + ": " + line.textContent); };
  button.type = "button";
  button.className = "copy";
  say("Copy");
  button.addEventListener("click", () =>
    navigator.clipboard.writeText(line.textContent).then(() => say("Copied"), () => say("Not copied")));
  line.after(button);
}
"""
_COPY_POLICY = f"{_POLICY}; script-src 'sha256-{b64encode(sha256(COPY_SCRIPT.encode()).digest()).decode()}'"


def document(title: str, *body: Child, now: datetime, cluster: str = "") -> str:
    """Returns the page `title`, of `cluster`, as of `now`."""
    full_title = f"{title}: {cluster}" if cluster else title
    has_commands = any('class="command"' in part for part in body if part)
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", http_equiv="Content-Security-Policy", content=_COPY_POLICY if has_commands else _POLICY),
        el("meta", name="color-scheme", content="light dark"),
        el("title", full_title),
        el("style", Markup(STYLE)),
    )
    cluster_part = (el("span", "Cluster ", el("strong", cluster)),) if cluster else ()
    top = el("header", *cluster_part, el("span", "As of ", el("strong", minute_text(now))), class_="top")
    foot = el("footer", f"All times are UTC. Made by runup {__version__}.")
    script = el("script", Markup(COPY_SCRIPT)) if has_commands else None
    return f"<!DOCTYPE html>\n{el('html', head, el('body', el('main', top, *body, foot), script), lang='en')}\n"


STYLE = """
:root {
  color-scheme: light dark;
  --page: #f6f7f9; --card: #ffffff; --text: #1b2430; --faint: #5b6675; --line: #d9dee5; --track: #edf0f4;
  --good: #1f7a4d; --busy: #1f5fbf; --warn: #9a5b00; --bad: #b3261e; --idle: #55606f;
  --good-soft: #dff2e7; --busy-soft: #dfeafb; --warn-soft: #fdf0d5; --bad-soft: #fbe3e1; --idle-soft: #e8ebef;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #11161d; --card: #1a212b; --text: #e6eaf0; --faint: #9aa6b5; --line: #2e3846; --track: #242d39;
    --good: #5cc98f; --busy: #79aef5; --warn: #e8b04f; --bad: #f2867d; --idle: #9aa6b5;
    --good-soft: #17382a; --busy-soft: #1b3050; --warn-soft: #40300f; --bad-soft: #47211f; --idle-soft: #2a333f;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); font: 15px/1.5 system-ui, "DejaVu Sans", sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 28px 20px 48px; }
h1 { font-size: 1.55rem; line-height: 1.25; margin: 0 0 4px; }
h2 { font-size: 1.15rem; margin: 34px 0 10px; }
h3 { font-size: 1rem; margin: 0; }
p { margin: 0 0 8px; }
a { color: var(--busy); }
.faint { color: var(--faint); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 16px 18px;
  margin: 0 0 12px; }
.head { display: flex; flex-wrap: wrap; gap: 8px 14px; align-items: baseline; justify-content: space-between; }
.badge { display: inline-block; border-radius: 99px; padding: 1px 10px; font-size: .84rem; font-weight: 600;
  white-space: nowrap; }
.good { color: var(--good); } .busy { color: var(--busy); } .warn { color: var(--warn); }
.bad { color: var(--bad); } .idle { color: var(--idle); }
.badge.good { background: var(--good-soft); } .badge.busy { background: var(--busy-soft); }
.badge.warn { background: var(--warn-soft); } .badge.bad { background: var(--bad-soft); }
.badge.idle { background: var(--idle-soft); }
.bar { display: flex; height: 12px; border-radius: 6px; overflow: hidden; background: var(--track);
  margin: 10px 0 8px; }
.bar i { display: block; height: 100%; }
.bar i + i { border-left: 2px solid var(--card); }
.fill-good { background: var(--good); } .fill-busy { background: var(--busy); }
.fill-warn { background: var(--warn); }
.fill-bad { background: var(--bad); } .fill-idle { background: var(--idle); }
dl.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 10px 20px;
  margin: 14px 0; }
dl.facts dt { color: var(--faint); font-size: .84rem; }
dl.facts dd { margin: 0; font-weight: 600; }
.issue { border-left: 5px solid var(--idle); }
.issue.bad { border-left-color: var(--bad); } .issue.warn { border-left-color: var(--warn); }
.issue.busy { border-left-color: var(--busy); } .issue.good { border-left-color: var(--good); }
.issue, .issue h3 { color: var(--text); }
.issue h3 { overflow-wrap: anywhere; flex: 1 1 420px; }
.issue h4 { overflow-wrap: anywhere; font-size: .98rem; margin: 16px 0 0; }
.issue .body { white-space: pre-wrap; overflow-wrap: anywhere; margin: 8px 0 0; }
.issue .refs { margin: 8px 0 0; padding: 0; list-style: none; font-size: .9rem; overflow-wrap: anywhere; }
.tally { display: flex; flex-wrap: wrap; gap: 2px 16px; font-size: .9rem; }
.tally span::before { content: ""; display: inline-block; width: 9px; height: 9px; border-radius: 2px;
  margin-right: 6px; background: currentColor; }
.tally .sum { color: var(--faint); } .tally .sum::before { display: none; }
.top { display: flex; flex-wrap: wrap; gap: 2px 24px; justify-content: space-between; color: var(--faint);
  font-size: .9rem; margin: 0 0 14px; }
.top strong { color: var(--text); }
pre { background: var(--track); border-radius: 6px; padding: 8px 12px; margin: 8px 0 0; white-space: pre-wrap;
  overflow-wrap: anywhere; font-size: .86rem; }
code { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: .92em; overflow-wrap: anywhere; }
code.command { user-select: all; }
button.copy { font: inherit; margin: 0 0 0 10px; padding: 0 8px; font-size: .85rem; border-radius: 6px; cursor: pointer;
  color: var(--busy); background: none; border: 1px solid var(--busy); }
.name { overflow-wrap: anywhere; }
.head .badge + .badge { margin-left: 6px; }
dl.rows { display: grid; grid-template-columns: minmax(90px, 130px) 1fr; gap: 5px 16px; margin: 10px 0 0;
  font-size: .92rem; }
dl.rows dt { color: var(--faint); }
dl.rows dd { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; }
dl.rows ul { margin: 0; padding: 0; list-style: none; columns: 300px 3; column-gap: 24px; }
caption { text-align: left; color: var(--faint); font-size: .84rem; padding: 0 0 6px; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th { text-align: left; color: var(--faint); font-weight: 600; }
tbody th { color: var(--text); font-weight: 400; }
th, td { padding: 5px 12px 5px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
tr:last-child > * { border-bottom: 0; }
th.when { white-space: nowrap; }
td.wide { overflow-wrap: anywhere; width: 40%; white-space: pre-wrap; }
.scroll { overflow-x: auto; margin-top: 12px; }
.card > .scroll:first-child { margin-top: 0; }
summary { cursor: pointer; color: var(--faint); margin-top: 12px; overflow-wrap: anywhere; }
.about p { margin: 8px 0 0; overflow-wrap: anywhere; font-size: .92rem; }
.time { display: grid; grid-template-columns: fit-content(310px) minmax(220px, 1fr) minmax(110px, 190px);
  gap: 3px 14px; align-items: center; font-size: .88rem; }
.time .name { overflow-wrap: anywhere; }
.time .group { grid-column: 1 / -1; font-weight: 600; margin: 14px 0 2px; }
.time .more { grid-column: 1 / -1; color: var(--faint); }
.lane { display: block; background: var(--track); border-radius: 3px; }
.axis { display: block; grid-column: 2; overflow: visible; font-size: .8rem; }
.axis text { fill: var(--faint); font: .8rem system-ui, "DejaVu Sans", sans-serif; stroke: none; }
svg .fill-good { fill: var(--good); } svg .fill-busy { fill: var(--busy); } svg .fill-warn { fill: var(--warn); }
svg .fill-bad { fill: var(--bad); } svg .fill-idle { fill: var(--idle); } svg .fill-shade { fill: var(--busy-soft); }
.mark { display: inline-block; min-width: 1.9em; padding: 0 3px; text-align: center; font-size: .84rem;
  font-weight: 700; border: 2px solid transparent; }
.mark.critical { background: var(--bad); color: var(--card); border-radius: 2px; }
.mark.warning { background: var(--warn-soft); color: var(--warn); border-color: var(--warn); border-radius: 7px; }
.mark.info { background: var(--busy-soft); color: var(--busy); border-radius: 50%; }
.mark.unknown { background: none; border: 2px dashed currentColor; }
.mark.critical.unknown { color: var(--bad); }
.mark.accepted, .mark.informs { background: var(--idle-soft); color: var(--idle); border-color: transparent; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; font-size: .84rem; color: var(--faint); margin: 0 0 10px; }
.matrix thead th { vertical-align: bottom; }
.matrix th.turned { padding: 0 3px 6px; }
.matrix th.turned span { writing-mode: vertical-rl; transform: rotate(180deg); white-space: nowrap; max-height: 17em;
  overflow: hidden; font-weight: 400; }
.matrix td { padding-right: 8px; white-space: nowrap; }
.matrix th.group { font-weight: 600; padding-top: 14px; }
.tip { display: none; font-size: .84rem; overflow-wrap: anywhere; }
.reason:hover .tip, .reason:focus .tip { display: block; }
.chart { margin: 0 0 16px; }
.chart figcaption { font-weight: 600; margin: 0 0 4px; }
.columns { display: block; margin: 6px 0 2px; border-bottom: 1px solid var(--faint); }
.ends { display: flex; justify-content: space-between; color: var(--faint); font-size: .8rem; }
footer { margin-top: 32px; color: var(--faint); font-size: .86rem; }
@media (max-width: 640px) {
  main { padding: 18px 12px 32px; }
  dl.rows { grid-template-columns: 1fr; gap: 0; }
  dl.rows dd { margin: 0 0 8px; }
  .time { grid-template-columns: 1fr auto; grid-auto-flow: row dense; }
  .time .lane, .time .axis, .time .reason { grid-column: 1 / -1; grid-row: auto; margin-bottom: 8px; }
}
@media screen and (max-width: 640px) {
  .matrix, .matrix caption, .matrix tbody, .matrix tr, .matrix tbody th, .matrix td { display: block; }
  .matrix thead, .matrix td:empty { display: none; }
  .matrix tr { border: 1px solid var(--line); border-radius: 8px; padding: 8px 12px; margin: 0 0 10px; }
  .matrix tr.group { border: 0; padding: 0; margin: 0; }
  .matrix tbody th, .matrix td { border: 0; padding: 1px 0; white-space: normal; }
  .matrix tbody th { font-weight: 600; }
  .matrix td[data-label] { display: inline-block; margin-right: 14px; min-width: 0; }
  .matrix td[data-label]::before { content: attr(data-label) " "; color: var(--faint); }
  .matrix td[data-risk]::after { content: attr(data-risk); margin-left: 8px; overflow-wrap: anywhere; }
}
@media print {
  :root {
    color-scheme: light;
    --page: #fff; --card: #fff; --text: #000; --faint: #444; --line: #bbb; --track: #eee;
    --good: #1f7a4d; --busy: #1f5fbf; --warn: #9a5b00; --bad: #b3261e; --idle: #55606f;
    --good-soft: #dff2e7; --busy-soft: #dfeafb; --warn-soft: #fdf0d5; --bad-soft: #fbe3e1; --idle-soft: #e8ebef;
  }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  html, body { font-size: 11px; }
  main { max-width: none; padding: 0; }
  .card { break-inside: avoid; padding: 10px 12px; }
  .card.long { break-inside: auto; }
  h2, h3, .group, .head, .bar, .tally, caption, thead { break-after: avoid; }
  tr, li, dd, .lane, .name { break-inside: avoid; }
  dl.rows ul { columns: 200px 3; }
  details::details-content { content-visibility: visible; height: auto; }
  .about, button.copy { display: none; }
  summary { list-style: none; font-weight: 600; }
  .tip { display: block; }
}
"""
