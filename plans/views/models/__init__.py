"""Typed views of a plan for clients: PlanView, BriefView, EventView and their parts.

Clients parse them from the JSON data that `plans.views.views` builds. Absent fields stay unset, so `to_json` returns
what was read. Worker and client may have different versions: unknown fields are ignored, and every field that an older
worker may omit has a default.
"""

from plansurvive.plans.views.models.agents import AgentView
from plansurvive.plans.views.models.nested import InsideView
from plansurvive.plans.views.models.plan import (
    BriefStep,
    BriefView,
    CallView,
    DecisionView,
    InnerStep,
    InsidePage,
    PlanView,
    StepView,
    TaskView,
    listed_steps,
)
from plansurvive.plans.views.models.records import ChangeView, ChildView, EntryView, NoteView, TokensView, ToolCallView
from plansurvive.plans.views.models.result import ResultView
from plansurvive.plans.views.models.view import View

__all__ = [
    "AgentView",
    "BriefStep",
    "BriefView",
    "CallView",
    "ChangeView",
    "ChildView",
    "DecisionView",
    "EntryView",
    "InnerStep",
    "InsidePage",
    "InsideView",
    "NoteView",
    "PlanView",
    "ResultView",
    "StepView",
    "TaskView",
    "TokensView",
    "ToolCallView",
    "View",
    "listed_steps",
]
