"""The console's one script: it updates the part of a page with an update's progress, and copies commands.

Without it, pages are whole.
"""

SCRIPT = """
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
(() => {
  const live = document.getElementById("live");
  const state = document.getElementById("live-state");
  if (!live?.dataset.events || !state || !window.EventSource) return;
  const time = () => new Date().toISOString().slice(11, 19) + " UTC";
  const opened = () => [...live.querySelectorAll("details[open] > summary")].map(each => each.textContent);
  const renew = html => {
    const kept = opened();
    const focus = document.activeElement && live.contains(document.activeElement)
      ? [...live.querySelectorAll("a, summary, [tabindex]")].indexOf(document.activeElement) : -1;
    live.innerHTML = html;
    for (const summary of live.querySelectorAll("details > summary"))
      if (kept.includes(summary.textContent)) summary.parentElement.open = true;
    if (focus >= 0) live.querySelectorAll("a, summary, [tabindex]")[focus]?.focus();
  };
  let last = live.innerHTML;
  const events = new EventSource(live.dataset.events);
  events.addEventListener("status", event => {
    if (event.data !== last) renew(last = event.data);
    live.dataset.renewed = event.lastEventId;
    state.textContent = "Renewed at " + time() + "; this page renews itself.";
  });
  events.addEventListener("error", () => {
    state.textContent = events.readyState === EventSource.CLOSED
      ? "This page is not renewed any more: reload it." : "The console does not answer since " + time() + ".";
  });
})();
"""
