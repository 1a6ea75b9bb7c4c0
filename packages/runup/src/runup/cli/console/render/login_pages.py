"""Renders the pages of login and logout, and the page of an error. Pure."""

from __future__ import annotations

from runup.cli.console.render.frame import Site, form, message, whole_page
from runup.cli.render.html.markup import el

_KEPT = "It is kept in memory until you log out, and counts for an hour: what you do from here is done by it."


def login_page(problem: str, next_page: str, site: Site) -> str:
    """Returns the page with the form; `problem` says why the last try was refused."""
    content = (
        el("p", problem, class_="bad", role="alert", id="problem") if problem else None,
        el("label", "Bearer token of the cluster", for_="token"),
        el(
            "p",
            "`oc whoami -t` or `kubectl create token NAME` prints one. " + (_KEPT if site.acts else "It is not kept."),
            class_="faint",
            id="hint",
        ),
        el(
            "textarea",
            id="token",
            name="token",
            required="",
            autocomplete="off",
            spellcheck="false",
            aria_describedby="problem hint" if problem else "hint",
        ),
        el("button", "Log in", type="submit"),
    )
    rights_text = "Whoever may get the cluster's ClusterVersion may look."
    shown = form("/login", (("next", next_page),), *content)
    return whole_page(
        "Login", el("section", el("h1", "Login"), el("p", rights_text), shown, class_="card"), site=_nobody(site)
    )


def logout_page(user: str, form_key: str, site: Site) -> str:
    """Returns the page with the form that ends a session; `user` is empty for a session of the printed address."""
    who = f"You are logged in as {user}." if user else "You came by the address that the console printed."
    after = "Whoever has your cookie can do nothing with it afterwards."
    button = el("button", "Log out", type="submit")
    shown = form("/logout", (("key", form_key),), el("p", f"{who} {after}"), button)
    return whole_page(
        "Log out", el("section", el("h1", "Log out"), shown, class_="card"), current_path="logout", site=site
    )


def _nobody(site: Site) -> Site:
    return Site(acts=site.acts)


def problem_page(status: int, problem: str, site: Site) -> str:
    """Returns the page of an error."""
    return whole_page(
        "Error", message(f"{status}: not shown", f"{problem[:1].upper()}{problem[1:]}."), site=_nobody(site)
    )
