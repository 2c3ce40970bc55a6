"""agents.toml: what is read, and what is refused with the file, the line, the key and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from plansurvive.client.doctor import Verdict
from plansurvive.features.coding_agents import check, doctor, tool_specs
from plansurvive.features.coding_agents.agents_file import CodingAgent, file_of, read_agents
from plansurvive.features.coding_agents.masked import masked
from plansurvive.features.coding_agents.model import KINDS, AskPermission, permission_specs
from plansurvive.features.coding_agents.reported import Reported, note
from plansurvive.plans.model import Plan
from plansurvive.runtime.settings import SettingError, Settings

TWO = """
[agents.claude]
command = ["sh", "-c", "exit"]
env = {KEY = "env:THE_KEY"}
network = ["*"]

[agents.own]
command = ["sh"]
approve = "never"
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings with a state directory."""
    return Settings(state_dir=tmp_path, cache_dir=tmp_path / "cache")


def written(settings: Settings, text: str) -> Settings:
    """The same with this agents.toml."""
    (settings.state_dir / "agents.toml").write_text(text)
    return settings


def test_agents_are_read_by_name_and_none_without_a_file(settings: Settings) -> None:
    assert read_agents(settings) == {}
    found = read_agents(written(settings, TWO))
    assert list(found) == ["claude", "own"]
    assert (found["claude"].has_network, found["own"].has_network) == (True, False)
    (few,) = read_agents(written(settings, '[agents.a]\ncommand = ["x"]\nnetwork = ["*.example.org:443"]')).values()
    assert (few.has_network, few.hosts) == (False, ["*.example.org:443"])
    assert found["own"].hold == 600


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[agents.a]\ncommand = []", "line 2, agents.a.command"),
        ('[agents.a]\ncomand = ["x"]', "line 2, agents.a.comand: there is no such key; did you mean 'command'?"),
        ('[agents.a]\ncommand = ["x"]\nenv = {KEY = "sk-1234"}', "line 3, agents.a.env.KEY: write where the value is"),
        (
            '[agents.a]\ncommand = ["x"]\n\nnetwork = ["https://x.org"]',
            "line 4, agents.a.network: 'https://x.org' is a URL",
        ),
        ('[agents.a]\ncommand = ["x"]\nnetwork = ["*", "x.org"]', 'line 3, agents.a.network: "*" is the whole network'),
        ('[agents.a]\ncommand = ["x"]\nsandbox = "off"\nnetwork = ["x.org"]', "hosts hold in the sandbox alone"),
        ('[agents.a]\ncommand = ["x"]\nhome = "here"', "line 3, agents.a.home: here is not absolute"),
        ('[agents.a]\ncommand = ["x"]\nread = ["here"]', "line 3, agents.a.read: here is not absolute"),
        ('[agents.a]\ncommand = ["x"]\nopen = ["x", "-r"]', "line 3, agents.a.open: it does not name the session"),
        ('[agents.a]\ncommand = ["x"]\nhold = 0', "line 3, agents.a.hold"),
        ('[agents.a]\ncommand = ["x"]\napprove = "ask"', "line 3, agents.a.approve"),
        ('[agents."A b"]\ncommand = ["x"]', "agents.A b"),
        ("[agents.a\n", "it is not TOML"),
    ],
)
def test_a_mistake_is_refused_with_its_place(text: str, said: str, settings: Settings) -> None:
    with pytest.raises(SettingError) as caught:
        read_agents(written(settings, text))
    assert caught.value.code == "BAD_SETTING:PLANS_AGENTS"
    assert said in caught.value.message
    assert str(file_of(settings)) in caught.value.message
    assert "sk-1234" not in caught.value.message


def test_a_file_that_others_may_change_is_refused(settings: Settings) -> None:
    written(settings, TWO)
    file_of(settings).chmod(0o666)
    with pytest.raises(SettingError, match="others may change it"):
        read_agents(settings)


def test_an_unknown_agent_is_found_before_a_plan_runs(settings: Settings) -> None:
    plan = Plan.model_validate(
        {
            "title": "t",
            "steps": [
                {"id": "a", "tool": "coding_agent", "args": {"agent": "cluade", "prompt": "x"}},
                {"id": "b", "tool": "coding_agent", "args": {"agent": "own", "prompt": "x"}},
            ],
        }
    )
    (problem,) = check.problems(plan, written(settings, TWO))
    assert (problem.code, problem.step_id, problem.field) == ("NO_CODING_AGENT", "a", "args.agent")
    assert "did you mean 'claude'?" in problem.message
    file_of(settings).unlink()
    assert "write [agents.cluade]" in check.problems(plan, settings)[0].message


def test_limits_of_a_budget_that_do_not_hold_an_agent_are_warned_of(settings: Settings) -> None:
    written(settings, TWO)
    step = {"id": "a", "tool": "coding_agent", "args": {"agent": "own", "prompt": "x"}}

    def warned(budget: dict[str, float]) -> list[str]:
        found = check.problems(Plan.model_validate({"title": "t", "steps": [step], "budget": budget}), settings)
        assert {(each.code, each.step_id, each.severity) for each in found} <= {("BUDGET_NOT_HELD", "a", "warning")}
        return [each.message for each in found]

    assert warned({"calls": 5}) == []
    (unknown,) = warned({"tokens": 5, "cost": 2})
    assert "whether `tokens` and `cost` of the budget hold 'own' is known once it has worked here" in unknown
    note("own", Reported(command=["sh"]), settings)
    assert [text.partition(" here:")[0] for text in warned({"tokens": 5, "cost": 2})] == [
        "'own' has never reported a cost", "'own' has never reported tokens",
    ]  # fmt: skip
    note("own", Reported(command=["sh"], tokens="at its end", cost=True), settings)
    (late,) = warned({"tokens": 5, "cost": 2})
    assert "`tokens` of the budget holds it between turns alone" in late
    note("own", Reported(command=["sh"], tokens="within a turn"), settings)
    assert warned({"tokens": 5, "cost": 2}) == [], "what it has reported once counts"
    note("own", Reported(command=["another"]), settings)
    assert len(warned({"cost": 2})) == 1, "another program"


def test_the_line_that_opens_a_session_quotes_what_the_agent_has_named() -> None:
    agent = CodingAgent(command=["x"], open=["claude", "--resume", "{session}"])
    assert agent.opening("a; b", "/h", "/my work") == "cd '/my work' && HOME=/h claude --resume 'a; b'"
    assert CodingAgent(command=["x"]).opening("a", "/h", "/w") == ""


def test_doctor_says_what_an_agent_lacks(settings: Settings) -> None:
    assert doctor.findings(settings, {}) == []
    (found,) = doctor.findings(written(settings, TWO), {"THE_KEY": "x"})
    assert (found.verdict, found.text) == (Verdict.GOOD, "agents.toml: claude, own")
    (found,) = doctor.findings(settings, {})
    assert found.verdict == Verdict.WARNING
    assert "claude: the variable THE_KEY is not set; set it for the worker" in found.text
    written(settings, '[agents.a]\ncommand = ["no-such-program"]')
    assert "there is no program `no-such-program`" in doctor.findings(settings, {})[0].text
    written(settings, "[agents.a]")
    assert doctor.findings(settings, {})[0].verdict == Verdict.BAD


def test_values_of_variables_are_masked_and_agents_that_ask_nothing_are_exempt(settings: Settings) -> None:
    from plansurvive.activities.tools.durable import coding_agent

    assert masked(written(settings, TWO), {"THE_KEY": " secret-value "}).seen == ["secret-value"]
    spec = tool_specs.described(settings)(coding_agent.spec)
    assert not spec.asks_by_default({"agent": "own"})
    assert spec.asks_by_default({"agent": "claude"})


def test_each_kind_of_call_of_the_protocol_is_a_tool_that_always_asks() -> None:
    specs = permission_specs(judged=False)
    assert {name.partition(".")[2] for name in specs} == {*KINDS}
    assert all(spec.asks_by_default({}) for spec in specs.values())
    assert {*AskPermission.model_fields["kind"].annotation.__args__} == {*KINDS}  # type: ignore[union-attr]
