"""The conversion webhook `/convert`, by which the API server converts validations between their versions.

Every replica serves it from its start, leader or not, because the answer depends only on the request.
"""

from __future__ import annotations

import msgspec
import structlog
from aiohttp import web

from runup.kernelmodules.decide.conversion import review

PATH = "/convert"
log = structlog.get_logger("convert")


async def _convert(request: web.Request) -> web.Response:
    """Answers one ConversionReview; what cannot be converted is refused with a reason."""
    try:
        question = msgspec.json.decode(await request.read())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return web.Response(text=f"give a ConversionReview as JSON: {error}\n", status=400)
    if not isinstance(question, dict) or question.get("kind") != "ConversionReview":
        return web.Response(text="give a ConversionReview\n", status=400)
    answer = review(question)
    if message := answer["response"]["result"].get("message"):
        log.warning("a conversion was refused", why=message)
    return web.Response(body=msgspec.json.encode(answer), content_type="application/json")


ROUTES = (web.post(PATH, _convert),)
"""The routes for `Endpoint(..., webhooks=ROUTES)`."""
