"""The addresses of templates, agents and tools."""

from __future__ import annotations

from starlette.routing import Route

from plansurvive.apps.web.library import agents, templates

routes = [
    Route("/templates", templates.listed),
    Route("/templates/new", templates.new, methods=["POST"]),
    Route("/templates/save", templates.save, methods=["POST"]),
    Route("/templates/{name}", templates.show),
    Route("/templates/{name}/delete", templates.delete, methods=["POST"]),
    Route("/agents", agents.listed),
    Route("/agents", agents.start, methods=["POST"]),
    Route("/agents/rebuild", agents.rebuild, methods=["POST"]),
    Route("/agents/{agent_id}", agents.show),
    Route("/tools", agents.tools),
]
