"""Dispatch of subresources and reviews, the requests other than a plain verb on a stored object."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import isawaitable

from kubesandbox.apiserver import status_errors
from kubesandbox.apiserver.access.review_requests import Reviews
from kubesandbox.apiserver.http.endpoints import not_there
from kubesandbox.apiserver.http.messages import Request, Response
from kubesandbox.apiserver.http.routing import Target
from kubesandbox.apiserver.objects.rest import Handler, Rest
from kubesandbox.apiserver.served_kinds import Kind


class Subresources:
    """The handlers by (resource, subresource); "*" stands for every resource."""

    def __init__(self, rest: Rest, reviews: Reviews, special: dict[tuple[str, str], Handler]) -> None:
        self._rest = rest
        self._reviews = reviews
        self._special = special

    def review(self, kind: Kind) -> Callable[[Request, Target], Awaitable[Response]] | None:
        """Returns the handler of a kind that is never stored, or None for other kinds."""
        return self._reviews.handler(kind)

    async def handle(self, request: Request, target: Target, kind: Kind) -> Response:
        """Handles a request for a subresource. Raises ApiError."""
        sub = kind.subresource(target.subresource)
        if sub is None:
            # A custom resource's handler is registered for any subresource name and reports an unknown one itself.
            raise status_errors.not_found(kind.plural, kind.group, target.name) if kind.custom else not_there()
        if target.verb not in sub.verbs or request.method == "HEAD":
            raise status_errors.method_not_allowed()
        special = self._special.get((kind.resource, sub.name)) or self._special.get(("*", sub.name))
        if special is not None:
            answer = special(request, target, kind)
            return await answer if isawaitable(answer) else answer
        answer = self._rest.verbs[target.verb](request, target, kind)
        return await answer if isawaitable(answer) else answer
