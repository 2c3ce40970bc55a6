"""The command `plan evaluate`: how a recorded run would go with this version, another model or another prompt."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from plansurvive.activities.llm.model import LanguageModel
from plansurvive.apps.evaluation.asking import Spending
from plansurvive.apps.evaluation.playing import Asking
from plansurvive.apps.evaluation.replay import SIDE_BY_SIDE, latest, replay
from plansurvive.apps.evaluation.report import Evaluation, Replayed, summed
from plansurvive.apps.evaluation.report_text import costs, run_rows, total_rows
from plansurvive.client.cli.terminal import output, session
from plansurvive.client.cli.terminal.options import AsJson, complete_plan
from plansurvive.client.cli.terminal.session import Connected
from plansurvive.features.agents.model import prompts as of_agents
from plansurvive.features.planning import prompts as of_plans
from plansurvive.plans.errors import PlanError
from plansurvive.plans.llm.prompt_set import BAD_PROMPT_SET, PromptSet, prompt_set
from plansurvive.plans.text.lists import number_of
from plansurvive.plans.text.safe_text import line
from plansurvive.runtime.settings import SettingError, Settings
from plansurvive.runtime.toml_file import read_toml

DIFFERS = 1
"""Exit code when a run is not identical."""
WORDS = {**of_agents.WORDS, **of_plans.WORDS}
"""The parts of system prompts that a prompt set may replace, by name."""

Ids = Annotated[
    list[str] | None,
    typer.Argument(metavar="ID...", help="Plans or agents, by id.", autocompletion=complete_plan, show_default=False),
]
Last = Annotated[
    int | None, typer.Option("--last", metavar="N", min=1, max=10_000, help="The newest N that have ended.")
]
Model = Annotated[str | None, typer.Option("--model", metavar="NAME", help="Ask this model.")]
Prompts = Annotated[
    Path | None, typer.Option("--prompt-set", metavar="FILE", help="Ask with the prompts of this TOML file.")
]
Ask = Annotated[bool, typer.Option("--ask", help="Ask the model of PLANS_MODEL again.")]
Recorded = Annotated[bool, typer.Option("--recorded", help="Use the recorded answers: the default.")]
GoOn = Annotated[
    bool,
    typer.Option("--continue", help="A call that is not in the record fails, and the agent continues; else it ends."),
]
Estimate = Annotated[bool, typer.Option("--estimate", help="Say what it would take, and ask no LLM.")]
MaxTokens = Annotated[int | None, typer.Option("--max-tokens", metavar="N", min=1, help="Spend at most N tokens.")]
MaxCost = Annotated[
    float | None, typer.Option("--max-cost", metavar="AMOUNT", min=0, help="Stop asking when so much is spent.")
]
Price = Annotated[
    list[str] | None,
    typer.Option("--price", metavar="MODEL=IN/OUT", help="Price of a million tokens; added to PLANS_LLM_PRICES."),
]
SideBySide = Annotated[
    int, typer.Option("--concurrency", metavar="N", min=1, max=64, help="Runs replayed at the same time.")
]
ShowPrompts = Annotated[
    bool, typer.Option("--show-prompts", help="Print the prompts of this version, as a file for --prompt-set.")
]


def evaluate(
    plans: Ids = None, last: Last = None, model: Model = None, prompts: Prompts = None, ask: Ask = False,
    recorded: Recorded = False, go_on: GoOn = False, estimate: Estimate = False, max_tokens: MaxTokens = None,
    max_cost: MaxCost = None, price: Price = None, side_by_side: SideBySide = SIDE_BY_SIDE,
    show_prompts: ShowPrompts = False, as_json: AsJson = False,
) -> int:  # fmt: skip
    """Evaluate recorded runs with another model or prompt.

    LLM requests are asked again, tool calls are answered from the record.
    """
    if show_prompts:
        output.show(shown_prompts())
        return 0
    asks = ask or model is not None or prompts is not None
    if recorded and (asks or estimate):
        raise PlanError("--recorded asks no LLM; leave it or the options that ask one out", "BAD_USAGE")
    if bool(plans) == bool(last):
        raise PlanError("name the plans or agents to evaluate, or --last N", "BAD_USAGE")
    words = read_prompt_set(prompts) if prompts is not None else PromptSet()

    async def go(here: Connected) -> Evaluation:
        settings = _priced(here.settings, price or [])
        asking = _asking(settings, model, words) if asks or estimate else None
        if max_cost is not None and asking is not None and settings.cost_of(asking.model.model or "", 1, 1) is None:
            raise PlanError(f"--max-cost needs a price of '{asking.model.model}': --price MODEL=IN/OUT", "BAD_USAGE")
        spending = Spending(settings.cost_of, max_tokens, max_cost)
        names = plans or await latest(here.client, last or 0)
        return await replay(
            here.client, names, asking, spending=spending, goes_on=go_on, leaves_out=last is not None,
            side_by_side=side_by_side,
            told=lambda each: _tell(each, as_json), before=lambda checks: _begin(checks, asking, settings, estimate),
        )  # fmt: skip

    found = session.run(go, worker=False)
    if as_json:
        output.show_json(found.model_dump(mode="json", by_alias=True, exclude_none=True))
    else:
        output.show("\n".join(total_rows(found)))
    return 0 if found.identical else DIFFERS


def read_prompt_set(path: Path) -> PromptSet:
    """The prompt set of a file. Raises PlanError BAD_PROMPT_SET."""
    try:
        given = read_toml(path, "--prompt-set", is_named=True, may_do=None)
    except SettingError as error:
        raise PlanError(error.message, BAD_PROMPT_SET) from error
    return prompt_set(path.name, given or {}, WORDS)


def shown_prompts() -> str:
    """The parts of our system prompts as a prompt set."""
    rows, table = list[str](), ""
    for name, text in WORDS.items():
        of, _, part = name.partition(".")
        if of != table:
            rows.append(f"[{of}]")
            table = of
        body = json.dumps(text, ensure_ascii=False)[1:-1].replace("\\n", "\n").replace('\\"', '"')
        rows += [f'{part} = """\n{body}"""', ""]
    return "\n".join(rows).rstrip()


def _asking(settings: Settings, model: str | None, words: PromptSet) -> Asking:
    """Whom to ask. Raises PlanError LLM_NO_KEY, LLM_MODEL or LLM_REQUEST."""
    llm = LanguageModel(
        settings.openai_base_url, settings.openai_api_key, model or settings.model, settings.llm_timeout
    )
    llm.check(where="")
    return Asking(llm, words, settings.context_tokens, settings.inline_bytes)


def _priced(settings: Settings, given: list[str]) -> Settings:
    return settings.with_flags(llm_prices=(*settings.llm_prices, *given)) if given else settings


def _begin(checks: Sequence[Replayed], asking: Asking | None, settings: Settings, is_estimate: bool) -> bool:
    """Say what asking anew will take, as far as the record tells. Whether to ask."""
    was = summed(each.check.was for each in checks)
    model = asking.model.model or "" if asking else ""
    amount = settings.cost_of(model, was.prompt_tokens, was.answer_tokens)
    output.say(
        f"{number_of(len(checks), 'run')}: about {number_of(was.requests, 'LLM request')} to {line(model)},"
        f" {was.tokens:,} tokens as recorded{f', about {costs(amount)}' if amount is not None else ''}"
    )
    return not is_estimate


def _tell(each: Replayed, as_json: bool) -> None:
    if as_json:
        output.say(run_rows(each)[0])
    else:
        output.show("\n".join(run_rows(each)))
