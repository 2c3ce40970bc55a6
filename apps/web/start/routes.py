"""The addresses of starting plans."""

from __future__ import annotations

from starlette.routing import Route

from plansurvive.apps.web.start import pages

routes = [
    Route("/start", pages.choose),
    Route("/start/plan", pages.plan_page),
    Route("/start/plan", pages.plan, methods=["POST"]),
    Route("/start/request", pages.make, methods=["POST"]),
    Route("/start/import", pages.import_, methods=["POST"]),
]
