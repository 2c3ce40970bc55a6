"""The addresses of the review of plans."""

from __future__ import annotations

from starlette.routing import Route

from plansurvive.apps.web.drafts import again, changes, event_page, review_page, step_page, undo_page

routes = [
    Route("/plans/{plan_id}/draft", review_page.draft),
    Route("/plans/{plan_id}/begin", review_page.begin, methods=["POST"]),
    Route("/plans/{plan_id}/regenerate", review_page.regenerate, methods=["POST"]),
    Route("/plans/{plan_id}/draft/add", step_page.add_page),
    Route("/plans/{plan_id}/draft/add", step_page.add, methods=["POST"]),
    Route("/plans/{plan_id}/draft/steps/{step_id:path}", step_page.edit_page),
    Route("/plans/{plan_id}/draft/steps/{step_id:path}", step_page.edit, methods=["POST"]),
    *(Route(f"/plans/{{plan_id}}/draft/{op}", changes.change_by(op), methods=["POST"]) for op in changes.OPS),
    Route("/plans/{plan_id}/resume", again.resume_page),
    Route("/plans/{plan_id}/resume", again.resume, methods=["POST"]),
    Route("/plans/{plan_id}/rerun", again.rerun_page),
    Route("/plans/{plan_id}/rerun", again.rerun, methods=["POST"]),
    Route("/plans/{plan_id}/event", event_page.event_page),
    Route("/plans/{plan_id}/event", event_page.event, methods=["POST"]),
    Route("/plans/{plan_id}/undo", undo_page.preview),
    Route("/plans/{plan_id}/undo", undo_page.undo, methods=["POST"]),
]
