"""Edits by one button: remove, move, skip and unskip a step, set a field of the plan or of any step by its path."""

from __future__ import annotations

import json
from urllib.parse import quote

from pydantic import ValidationError
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from plansurvive.apps.web.common.service import service_of
from plansurvive.apps.web.drafts.memory import loaded
from plansurvive.apps.web.drafts.review_page import refused, version_of
from plansurvive.client import runs
from plansurvive.client.access import Role
from plansurvive.client.access.forms import form_of, text_of
from plansurvive.client.access.people import Handler, needs, person_of
from plansurvive.client.page.pages import done
from plansurvive.plans.editing.edits import Edit, MoveStep, RemoveStep, SetField, SkipStep, UnskipStep
from plansurvive.plans.errors import PlanError

OPS = ("remove", "move", "skip", "unskip", "set")


def change_by(op: str) -> Handler:
    """The handler of one kind of edit."""

    @needs(Role.OPERATOR)
    async def change(request: Request) -> Response:
        return await _change(request, op)

    return change


async def _change(request: Request, op: str) -> Response:
    """Apply an edit to the version that the form was made for."""
    form, name = await form_of(request), request.path_params["plan_id"]
    version = version_of(text_of(form, "version"))
    why = text_of(form, "why").strip()
    client, author = await service_of(request).client(), person_of(request).author
    try:
        edit = _edit(op, form, why)
        edited = await runs.edit(client, name, [edit], expect_version=version, why=why[:2_000], **author)
    except PlanError as error:
        return refused(request, await loaded(request), error, version)
    said = " ".join([f"Version {edited.version}: {'; '.join(edited.diff[:3])}.", *edited.warnings])
    since = f"?since={version}" if version is not None else ""
    return done(request, f"/plans/{quote(name, safe='')}/draft{since}", said)


def _edit(op: str, form: FormData, why: str) -> Edit:
    """The edit of a form. Raises PlanError BAD_USAGE."""
    step, after = text_of(form, "step"), text_of(form, "after")
    try:
        if op == "remove":
            return RemoveStep(op="remove", step_id=step)
        if op == "move":
            return MoveStep(op="move", step_id=step, after=after or None)
        if op == "skip":
            return SkipStep(op="skip", step_id=step, reason=why[:1_000])
        if op == "unskip":
            return UnskipStep(op="unskip", step_id=step)
        path, value = text_of(form, "path").strip(), text_of(form, "value").replace("\r\n", "\n")
        return SetField(op="set", step_id=step or None, path=path, value=_value(value))
    except ValidationError:
        raise PlanError("name the step and the field, such as `args.path`", "BAD_USAGE") from None


def _value(text: str) -> object:
    """JSON if it is, else text, as `plan edit --set` reads it."""
    try:
        return json.loads(text)
    except ValueError:
        return text
