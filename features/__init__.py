"""What some plans use: a folder for each feature, with all its sides. The core names none of them.

A new feature is a new folder and a line in FEATURES. The sides of a feature are its modules of these names, as far as
it has them; each defines one name, and is imported when somebody asks for that side:

- `rules`: `RULES`, a `plans.run.feature.Rules`
- `in_views`: `IN_VIEWS`, a `plans.in_views.InViews`: what views show of steps, and what it proposes about them in words
- `language`: `LANGUAGE`, a `plans.definition.language.Language`: words, checks of steps, and the tools that the
  feature runs in the workflow
- `in_workflow`: `IN_RUN`, a subclass of `workflows.feature.InRun`, or None; `WORKFLOWS`, workflow types of its own
- `in_admission`: `ADMISSION`, a subclass of `workflows.admission.Admission`: who may start and decide
- `settings`: `SETTINGS`, a subclass of `runtime.feature_settings.FeatureSettings`
- `check`: `problems(plan, settings)`, what of a plan does not fit the settings of this machine
- `hints`: `hints(plan, tools)`, what `plan check` suggests; tools by name
- `content`: `content(plan, tools, workspace, state_dir)`, a `client.feature.Content` of the files that a plan names
- `tool_specs`: `described(settings)`, a function that returns the spec of a tool with what the feature says of it
- `in_worker`: `IN_WORKER`, a subclass of `activities.feature.InWorker`
- `in_requests`: `ANSWERS`, the kinds of answers that it asks the LLM for (`plans.llm.answers.AnswerKind`), and
  `COMPOSER`, an `activities.llm.composing.Composer`, or None
- `in_process`: `IN_PROCESS`, a subclass of `activities.feature.InProcess`
- `connection`: `interceptors(settings)` of each client, `variables(settings, environ)` that a worker runs with
- `sealing`: `sealing(settings)`, a `runtime.sealing.Sealing`: how what is sent and stored is encrypted
- `masked`: `masked(settings, environ)`, the secrets it knows of, which no history, view or log may show (`Seen`)
- `tools`: `specs(settings)` and `refresh(settings, data, everything)`, the tools it adds to those of this machine
- `verbs`: functions that are its part of `client.runs`, the API of scripts, which imports them
- `commands`: what `COMMANDS` of its package names: command -> (`module:function`, first sentence of its docstring);
  `GROUP COMMAND` is one of a group
- `upkeep`: `UNUSED`, a `runtime.unused.Unused`: files that `plan prune` removes once nobody has used them
- `leftovers`: `LEFTOVERS`, a `runtime.unused.Leftovers`: what steps have left, which `plan prune` removes as a whole
- `removal`: `RECORDS`, a `runtime.unused.Records`: what only a person removes with `plan prune`
- `library`: `LIBRARY`, a `runtime.plan_files.library.Library`: plans that are kept under names
- `remarks`: `remarks(result)`, sentences about the result of a step, for its page
- `dry_run`: `show(request, as_json)`, what a plan would do, shown instead of starting it (`plan run --dry-run`)
- `foresight`: `foresight(site)`, for a dry run: what would come of a call (`features.forecast.seam`)
- `author`: `author(settings, given)`, who the person at a terminal is, if it can say; refuses a name that is not theirs
- `starting`: `choice(given)`, what is made of its own of the options given to a command that starts a plan (`Choice` in
  client/feature.py), or None
- `restored`: `restored_files(client, run)`, asynchronous: what undos have done since to the files of an ended plan
  (`RestoredFiles`), or None
- `changed`: `changed_files(client, run, queue, seen)`, asynchronous: which of the files that an ended plan has seen
  (`FilesSeen`) differ from that now
- `resuming`: `next_run(state, how)`, a `NextRun` (client/verbs/continuing.py) that continues an ended workflow of its
  own, or None; `id_like(child, plan_id, step_id)`, the id of the first one of that step, if `child` is one
- `filters`: `kept(given)`, a function that says whether `plan list` keeps a plan, for its own of the options given
- `doctor`: `findings(settings, environ)`, its rows of `plan doctor` about this machine
- `doctor_of_server`: `findings(settings, connection)`, asynchronous, its rows about the server and its workers
- `pages`: what it adds to the web page (`client/page/pages.py`)
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from types import ModuleType

FEATURES: tuple[str, ...] = (
    "policy",
    "waiting",
    "planning",
    "budget",
    "editing",
    "cache",
    "limits",
    "notify",
    "locks",
    "quotas",
    "deadline",
    "secrets",
    "templates",
    "tool_servers",
    "forecast",
    "hosts",
    "files",
    "worktrees",
    "upkeep",
    "outputs",
    "keys",
    "audit",
    "telemetry",
    "signing",
    "children",
    "coding_agents",
    "agents",
    "express",
)
"""In this order they are asked: where two of them put something around the same thing, the first is outermost."""


def packages() -> list[ModuleType]:
    """The packages of the features, which hold data about them and import nothing.

    `COMMANDS`: see above. `LISTED`, if it has any: command -> (its group in `plan --help`, the command that it
    stands behind); others are in the last group. `OPTIONS`, if it has any: command -> its further options, name ->
    (metavar, sentence); one without a metavar is a flag, one whose metavar ends with `...` may be given more than
    once. Those of `run` are also of the other commands that start a plan, `start` and `template run`. `ACTIVITIES`,
    if it has any: their names, which no tool may have. `REACHES_OUT`: an evaluation, which replays records, leaves
    the feature out.
    """
    return [import_module(f"{__name__}.{name}") for name in FEATURES]


@cache
def sides(side: str, names: tuple[str, ...] = FEATURES) -> tuple[ModuleType, ...]:
    """The modules of that side, of the features that have it, in their order."""
    places = (f"{__name__}.{name}.{side}" for name in names)
    return tuple(import_module(place) for place in places if find_spec(place) is not None)


def left_out(side: str, names: tuple[str, ...] = FEATURES) -> tuple[ModuleType, ...]:
    """The modules of that side of the features that have a folder here and are not among the names."""
    return sides(side, tuple(each.name for each in iter_modules(__path__) if each.ispkg and each.name not in names))
