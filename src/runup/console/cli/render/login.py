"""Renders the page of the login, and the page of a request that has no other answer. Pure."""

from __future__ import annotations

from runup.cli.render.html.markup import el
from runup.console.cli.render.frame import message, whole_page


def login_page(problem: str, next_page: str) -> str:
    """Returns the page with the form; `problem` says why the last try was refused."""
    form = el(
        "form",
        el("p", problem, class_="bad", role="alert", id="problem") if problem else None,
        el("label", "Bearer token of the cluster", for_="token"),
        el("p", "`oc whoami -t` or `kubectl create token NAME` prints one. It is not kept.", class_="faint", id="hint"),
        el(
            "textarea",
            id="token",
            name="token",
            required="",
            autocomplete="off",
            spellcheck="false",
            aria_describedby="problem hint" if problem else "hint",
        ),
        el("input", type="hidden", name="next", value=next_page),
        el("button", "Log in", type="submit"),
        method="post",
        action="/login",
    )
    rights_text = "Whoever may get the cluster's ClusterVersion may look."
    return whole_page("Login", el("section", el("h1", "Login"), el("p", rights_text), form, class_="card"))


def problem_page(status: int, problem: str) -> str:
    """Returns the page of an error."""
    return whole_page("Error", message(f"{status}: not shown", f"{problem[:1].upper()}{problem[1:]}."))
