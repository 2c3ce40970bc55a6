"""Coding agents as steps of plans, on a real server, with a real program that speaks the protocol."""

from __future__ import annotations

import pytest

from plansurvive.client import runs
from plansurvive.client.runs import Choice
from plansurvive.client.verbs import resume
from plansurvive.features.outputs.feed import raw
from plansurvive.plans.activity_io import STDOUT
from plansurvive.plans.errors import Refused
from plansurvive.runtime.connect import storage_of
from plansurvive.runtime.value_store import ValueStore
from tests.features.coding_agents.scene import AGAIN, Scene, agent_of, asked, code
from tests.kit.driving import Plans, Started, step
from tests.kit.lacking import require_sandbox

pytestmark = pytest.mark.uses("agents", "children", "outputs", "policy")


async def test_an_agents_text_files_and_usage_are_the_value_of_its_step(idle: Plans, scene: Scene) -> None:
    (idle.workspace / "in.txt").write_text("old")
    used = {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}
    scene.script(
        [
            {"plan": [["Read", "completed"], ["Write", "in_progress"]]},
            {"read": "in.txt"}, {"write": "in.txt", "content": "new"}, {"make": "own.txt", "content": "x"},
            {"say": ", done."}, {"usage": used},
        ],
        toml='approve = "never"\nopen = ["agent", "{session}"]',
    )  # fmt: skip
    async with scene.worker():
        plan = await idle.start([code()])
        view = await plan.ended()
        store = ValueStore(storage_of(scene.client, scene.settings))
        said = b"".join([data async for data in raw(scene.client, store, agent_of(plan).id, "call_1", STDOUT)])
    assert view["status"] == "completed", view["log"]
    opening = f"cd {idle.workspace} && HOME={scene.home} agent session-1"
    assert said.decode() == f"[to open its session, once the step has ended: {opening}]\nold, done."
    value = step(view, "code")["result"]["value"]
    assert value == {
        "text": "old, done.", "sessionId": "session-1", "stopReason": "end_turn", "usage": used,
        "files": ["in.txt", "own.txt"], "open": opening,
    }  # fmt: skip
    assert (idle.workspace / "in.txt").read_text() == "new"
    assert sorted(view["step_files"]["0"]) == ["in.txt", "own.txt"]
    assert [task["objective"] for task in step(view, "code")["tasks"]] == ["Read", "Write"]
    assert scene.prompts == ["Fix the test."]


async def test_a_permission_is_an_approval_and_is_selected_for_once(idle: Plans, scene: Scene) -> None:
    scene.script([{"ask": "make test", "yes": [{"say": "ran"}], "no": [{"say": "not run"}]}])
    async with scene.worker():
        plan = await idle.start([code()])
        _, item = await asked(plan)
        assert item["tool"] == "coding_agent.execute"
        assert item["args"] == {"agent": "scripted", "title": "make test", "input": {"command": "make test"}}
        await runs.approve(scene.client, plan.id, Choice(step_id="code/p1", digest=item["digest"]))
        view = await plan.ended()
    assert step(view, "code")["result"]["value"]["text"] == "ran"
    assert scene.chosen() == ["yes"]
    assert sorted(each["tool"] for each in view["step_tool_history"]["0"]) == ["coding_agent", "coding_agent.execute"]


async def test_a_denied_permission_is_rejected_once(idle: Plans, scene: Scene) -> None:
    scene.script([{"ask": "rm -rf build", "yes": [{"say": "ran"}], "no": [{"say": "not run"}]}])
    async with scene.worker():
        plan = await idle.start([code()])
        agent, item = await asked(plan)
        await agent.deny(item["stepId"])
        view = await plan.ended()
    assert step(view, "code")["result"]["value"]["text"] == "not run"
    assert scene.chosen() == ["no"]


async def test_a_process_that_waits_too_long_ends_and_the_decision_continues_its_session(
    idle: Plans, scene: Scene
) -> None:
    again = {"ask": "make test", "yes": [{"say": "ran"}], "no": [{"say": "not run"}]}
    scene.script([again], [again], toml='approve = "never"\nhold = 0.2')
    async with scene.worker():
        plan = await idle.start([code()])
        agent, item = await asked(plan)
        await agent.until(lambda view: step(view, "call_1")["status"] == "completed", "the turn has ended")
        assert scene.chosen() == [None]
        await agent.approve(item["stepId"], digest=item["digest"], comment="go on")
        view = await plan.ended()
    assert step(view, "code")["result"]["value"]["text"] == "ran"
    assert scene.chosen() == [None, "yes"]
    assert scene.prompts[0] == "Fix the test."
    assert scene.prompts[1].startswith("Continue the interrupted request.")
    assert "Allowed meanwhile: make test." in scene.prompts[1]
    assert [each["sessionId"] for each in scene.log("session/load")] == ["session-1"]


async def test_an_agent_that_dies_is_started_again_in_its_session_and_not_sent_the_request_twice(
    idle: Plans, scene: Scene
) -> None:
    scene.script([{"say": "half"}, {"exit": 3}], [{"say": "whole"}])
    async with scene.worker():
        view = await (await idle.start([code()])).ended()
    assert step(view, "code")["result"]["value"]["text"] == "whole"
    assert scene.prompts == ["Fix the test.", AGAIN]


async def test_an_agent_that_dies_before_its_request_has_arrived_gets_it_with_the_next_process(
    idle: Plans, scene: Scene
) -> None:
    scene.script([{"say": "whole"}], dies="session/new")
    async with scene.worker():
        view = await (await idle.start([code()])).ended()
    assert step(view, "code")["result"]["value"]["text"] == "whole"
    assert scene.prompts == [AGAIN]


async def test_an_agent_that_dies_and_loads_no_session_is_lost(idle: Plans, scene: Scene) -> None:
    scene.script([{"exit": 3}], loads=False)
    async with scene.worker():
        view = await (await idle.start([code()])).ended()
    result = step(view, "code")["result"]
    assert (step(view, "code")["status"], result["code"]) == ("failed", "AGENT_LOST")
    assert "cannot load a session" in result["error"]
    assert len(scene.prompts) == 1


async def test_what_a_lost_agent_has_asked_for_is_asked_no_longer(idle: Plans, scene: Scene) -> None:
    go = idle.workspace / "go"
    scene.script([{"together": [{"ask": "make test"}, {"until": str(go), "exit": 3}]}], loads=False)
    async with scene.worker():
        plan = await idle.start([code()])
        agent, _ = await asked(plan)
        go.write_text("")
        view = await plan.ended()
        of_agent = await agent.view()
    assert step(view, "code")["result"]["code"] == "AGENT_LOST"
    assert (step(of_agent, "p1")["status"], of_agent["pending"]) == ("skipped", [])


async def test_a_session_is_resumed_where_the_agent_offers_that(idle: Plans, scene: Scene) -> None:
    scene.script([{"exit": 3}], [{"say": "whole"}], loads=False, resumes=True)
    async with scene.worker():
        view = await (await idle.start([code()])).ended()
    assert step(view, "code")["result"]["value"]["text"] == "whole"
    assert [each["sessionId"] for each in scene.log("session/resume")] == ["session-1"]
    assert scene.log("session/load") == []


async def test_a_host_that_is_not_in_the_list_is_refused_and_in_the_record_of_the_agent(
    idle: Plans, scene: Scene
) -> None:
    require_sandbox("bwrap")
    scene.script([{"reach": "example.org:443"}], toml='approve = "never"\nnetwork = ["api.example.org"]')
    async with scene.worker():
        plan = await idle.start([code()])
        view = await plan.ended()
        log = (await agent_of(plan).view())["log"]
    assert step(view, "code")["result"]["value"]["text"] == "HTTP/1.1 403 Forbidden"
    said = "the coding agent 'scripted' got no connection to example.org:443: it is not in `network` of agents.toml"
    assert [each["text"] for each in log if each["kind"] == "warning"] == [said]


@pytest.mark.parametrize("level", ["landlock", "off"])
async def test_single_hosts_are_refused_where_the_proxy_is_not_the_only_way_out(
    level: str, idle: Plans, scene: Scene
) -> None:
    scene.script([{"say": "hi"}], toml='approve = "never"\nnetwork = ["example.org"]')
    async with scene.worker(sandbox=level):
        view = await (await idle.start([code()])).ended()
    result = step(view, "code")["result"]
    assert (result["code"], scene.prompts) == ("AGENT_UNAVAILABLE", [])
    assert "single hosts in `network` need sandbox level 2" in result["error"]


async def test_an_agent_without_a_home_has_one_where_the_setting_says(idle: Plans, scene: Scene) -> None:
    scene.script([{"say": "hi"}])
    file = scene.settings.state_dir / "agents.toml"
    file.write_text("".join(line for line in file.read_text().splitlines(True) if not line.startswith("home")))
    async with scene.worker(agents_home=scene.place / "homes"):
        await (await idle.start([code()])).ended()
    assert (scene.place / "homes" / "scripted" / "session-1.json").exists()


async def test_an_answer_that_does_not_fit_the_schema_is_asked_for_again(idle: Plans, scene: Scene) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    scene.script([{"say": "three"}], [{"say": '```json\n{"n": 3}\n```'}])
    async with scene.worker():
        view = await (await idle.start([code(schema=schema)])).ended()
    assert step(view, "code")["result"]["value"] == {"n": 3}
    assert "does not conform to the schema" in scene.prompts[1]


async def test_a_cancelled_plan_cancels_the_session_and_ends_its_process(idle: Plans, scene: Scene) -> None:
    scene.script([{"say": "working"}, {"until": str(idle.workspace / "never")}])
    async with scene.worker():
        plan = await idle.start([code()])
        await agent_of(plan).until(lambda _: bool(scene.prompts), "the agent works")
        await plan.handle.cancel()
        view = await plan.ended()
    assert view["status"] == "cancelled"
    assert len(scene.log("session/cancel")) == 1


async def test_an_agent_that_is_not_logged_in_says_what_to_do(idle: Plans, scene: Scene) -> None:
    scene.script([], login=True)
    async with scene.worker():
        view = await (await idle.start([code()])).ended()
    result = step(view, "code")["result"]
    assert result["code"] == "AGENT_LOGIN"
    assert "log in once" in result["error"]


async def test_an_agent_asks_before_it_begins_unless_agents_toml_says_never(idle: Plans, scene: Scene) -> None:
    scene.script([{"say": "hi"}], toml='approve = "always"')
    async with scene.worker():
        plan = await idle.start([code()])
        view = await plan.until(lambda view: bool(view["pending"]), "the step asks")
        assert view["pending"][0]["stepId"] == "code"
        assert scene.prompts == []
        await plan.approve("code")
        assert (await plan.ended())["status"] == "completed"


async def test_a_resumed_plan_continues_the_session_with_what_was_decided_before(idle: Plans, scene: Scene) -> None:
    scene.script([{"ask": "one", "yes": []}, {"ask": "two", "yes": [{"say": "both"}]}], [{"say": "the rest"}])
    async with scene.worker():
        plan = await idle.start([code()])
        agent, item = await asked(plan)
        await agent.approve(item["stepId"], digest=item["digest"])
        await agent.until(lambda view: [each["args"]["title"] for each in view["pending"]] == ["two"], "it asks again")
        await plan.signal("interrupt")
        assert (await plan.ended())["status"] == "cancelled"
        again = await resume.resume(scene.client, plan.id.removeprefix("plan-"))
        view = await Started(scene.client, f"plan-{again.plan_id}").ended()
    assert step(view, "code")["result"]["value"]["text"] == "the rest"
    assert scene.prompts == ["Fix the test.", "Continue the interrupted request."]
    assert len(scene.log("session/new")) == 1


async def test_a_coding_agent_is_resumed_with_its_plan_alone(idle: Plans, scene: Scene) -> None:
    scene.script([{"say": "hi"}])
    async with scene.worker():
        plan = await idle.start([code()])
        await plan.ended()
        with pytest.raises(Refused, match="`plan resume` of its plan"):
            await resume.resume(scene.client, agent_of(plan).id)


async def test_a_permission_that_has_no_way_to_be_allowed_once_is_denied_unasked(idle: Plans, scene: Scene) -> None:
    always = [{"optionId": "a", "name": "Always", "kind": "allow_always"}]
    scene.script([{"ask": "make test", "options": always, "no": [{"say": "not run"}]}])
    async with scene.worker():
        view = await (await idle.start([code()])).ended()
    assert step(view, "code")["result"]["value"]["text"] == "not run"
    assert scene.chosen() == [None]


async def test_overwriting_a_file_that_the_run_does_not_know_asks_with_the_difference(
    idle: Plans, scene: Scene
) -> None:
    (idle.workspace / "a.txt").write_text("old\n")
    scene.script([{"write": "a.txt", "content": "new\n"}])
    async with scene.worker():
        plan = await idle.start([code()])
        agent, item = await asked(plan)
        assert item["tool"] == "coding_agent.edit"
        assert "-old\n+new" in item["args"]["content"][0]
        assert (idle.workspace / "a.txt").read_text() == "old\n"
        await agent.approve(item["stepId"], digest=item["digest"])
        await plan.ended()
    assert (idle.workspace / "a.txt").read_text() == "new\n"


async def test_nobodys_answer_in_time_is_no_denial_by_a_person(idle: Plans, scene: Scene) -> None:
    scene.script([{"ask": "make test", "yes": [{"say": "ran"}], "no": [{"say": "not run"}]}])
    async with scene.worker():
        plan = await idle.start([code() | {"approval": {"timeout": 0.2, "onTimeout": "deny"}}])
        view = await plan.ended()
        permission = step(await agent_of(plan).view(), "p1")
    assert step(view, "code")["result"]["value"]["text"] == "not run"
    assert (permission["status"], scene.chosen()) == ("skipped", ["no"])


async def test_a_policy_allows_and_denies_what_agents_ask_for(idle: Plans, scene: Scene) -> None:
    policy = scene.settings.state_dir / "policy.toml"
    policy.write_text(
        '[[rule]]\nname = "reads"\ntool = "coding_agent.read"\ndecide = "allow"\n'
        '[[rule]]\nname = "no pushes"\ntool = "coding_agent.execute"\nargs.title = "git push*"\ndecide = "deny"\n'
    )
    policy.chmod(0o600)
    read = {"ask": "a.txt", "kind": "read", "yes": [{"say": "read"}], "no": [{"say": "not read"}]}
    push = {"ask": "git push", "yes": [{"say": ", pushed"}], "no": [{"say": ", not pushed"}]}
    scene.script([read, push])
    async with scene.worker():
        view = await (await idle.start([code()])).ended()
    assert step(view, "code")["result"]["value"]["text"] == "read, not pushed"
