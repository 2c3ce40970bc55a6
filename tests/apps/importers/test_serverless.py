"""Serverless Workflow 1.0 documents become plans; what a plan cannot express is reported, with its place."""

from __future__ import annotations

from typing import Any

import pytest

from plansurvive.apps.importers.common.expressions import Made, NotCarried, Path, jmespath_of
from plansurvive.apps.importers.serverless.flow import MAX_TASKS
from plansurvive.apps.importers.serverless.jq import Data, evaluated
from plansurvive.apps.importers.serverless.tasks import seconds_of
from tests.apps.importers.importing import losses, plan_of, steps_of

HEAD = "document: {dsl: '1.0.3', namespace: test, name: example, version: '0.1.0'}\n"


def made(text: str) -> tuple[dict[str, Any], list[str]]:
    """The plan of a document with these tasks, and the losses."""
    from textwrap import dedent

    plan, result = plan_of(HEAD + dedent(text), "flow.yaml")
    return plan, losses(result)


def test_calls_follow_each_other_and_use_what_came_before() -> None:
    plan, lost = made("""\
        input:
          schema:
            document:
              type: object
              required: [id]
              properties: {id: {type: integer, description: Which one}, verbose: {type: boolean}}
        do:
          - getPet:
              call: http
              with:
                method: get
                endpoint: https://pets.example/pets/{id}
                query: {full: "${ .verbose }", page: 1}
          - sell:
              call: http
              with:
                method: post
                endpoint: {uri: https://pets.example/sales}
                headers: {x-kind: pet}
                body: {pet: "${ .name }", owner: "${ .owner.name }", price: 10}
        """)
    assert plan["title"] == "example"
    assert plan["inputs"] == {
        "id": {"type": "integer", "description": "Which one"}, "verbose": {"type": "boolean", "default": False},
    }  # fmt: skip
    get, sell = plan["steps"]
    assert get["args"] == {"url": "https://pets.example/pets/{{inputs.id}}?full={{inputs.verbose}}&page=1"}
    assert sell["args"] == {
        "url": "https://pets.example/sales", "method": "POST", "headers": {"x-kind": "pet"},
        "body": {"pet": "$getPet.body.name", "owner": "$getPet.body.owner.name", "price": 10},
    }  # fmt: skip
    assert sell["dependsOn"] == ["getPet"]
    assert plan["outputs"] == {"result": "sell.body"}
    assert lost == []


def test_set_export_and_output_need_no_step() -> None:
    plan, lost = made("""\
        do:
          - start: {set: {base: https://api.example, name: "${ .user.name }"}}
          - call:
              call: http
              with: {method: get, endpoint: "${ .base + \\"/users/\\" + .name }"}
              output: {as: "${ .data }"}
              export: {as: {count: "${ .total }", kind: user}}
          - tell:
              call: http
              with:
                method: post
                endpoint: https://log.example
                body: {count: "${ $context.count }", kind: "${ $context.kind }", first: "${ .items[0].id }"}
        output: {as: {status: "${ .status }"}}
        """)
    call, tell = plan["steps"]
    assert call["args"] == {"url": "https://api.example/users/{{inputs.user.name}}"}
    assert tell["args"]["body"] == {
        "count": "$call.body.data.total", "kind": "user", "first": "$call.body.data.items[0].id",
    }  # fmt: skip
    assert plan["outputs"] == {"status": "tell.body.status"}
    assert plan["inputs"]["user"]["type"] == "object"
    assert lost == []


def test_a_switch_has_the_tasks_of_each_case_up_to_where_they_meet() -> None:
    plan, lost = made("""\
        do:
          - sort:
              switch:
                - high: {when: '.priority == "high"', then: escalate}
                - low: {when: .priority == "low" and .age > 3, then: archive}
                - default: {then: assign}
          - escalate:
              wait: {seconds: 1}
              then: close
          - archive:
              wait: PT2S
              then: close
          - assign:
              wait: {seconds: 3}
          - close:
              wait: {minutes: 1}
        """)
    sort, close = plan["steps"]
    assert [(case.get("when"), [step["id"] for step in case["steps"]]) for case in sort["switch"]] == [
        ("inputs.priority == 'high'", ["escalate"]),
        ("(inputs.priority == 'low') && (inputs.age > `3`)", ["archive"]),
        (None, ["assign"]),
    ]
    assert (close["args"], close["dependsOn"]) == ({"seconds": 60}, ["sort"])
    assert lost == []


def test_a_condition_with_a_jump_is_a_switch_and_one_without_is_a_condition() -> None:
    plan, _ = made("""\
        do:
          - check:
              if: .customer.age < 18
              raise: {error: {type: https://x.example/denied, status: 400, title: Access denied}}
              then: end
          - remind:
              if: ${ .customer.mail != null }
              call: http
              with: {method: post, endpoint: https://mail.example}
          - bet: {wait: {seconds: 1}}
        """)
    [check] = plan["steps"]
    refuse, otherwise = check["switch"]
    assert refuse["when"] == "inputs.customer.age < `18`"
    assert "Access denied" in refuse["steps"][0]["args"]["command"]
    assert [(step["id"], step.get("when")) for step in otherwise["steps"]] == [
        ("remind", "inputs.customer.mail != `null`"), ("bet", None),
    ]  # fmt: skip


def test_for_is_a_loop_one_item_after_the_other() -> None:
    plan, lost = made("""\
        do:
          - loop:
              for: {each: pet, in: .pets, at: i}
              do:
                - check:
                    call: http
                    with: {method: get, endpoint: "https://x.example/{name}", body: {p: "${ $pet.id }", at: "${ $i }"}}
          - last:
              call: http
              with: {method: post, endpoint: https://x.example, body: "${ . }"}
        """)
    loop, last = plan["steps"]
    assert loop["forEach"] == {"items": "$inputs.pets", "as": "pet", "maxParallel": 1}
    assert loop["steps"][0]["args"]["body"] == {"p": "$pet.id", "at": "$index"}
    assert loop["output"] == "check.body"
    assert last["args"]["body"] == "$loop[-1]"
    assert plan["inputs"]["pets"]["type"] == "array"
    assert lost == []


def test_fork_runs_its_branches_side_by_side_and_gives_their_outputs() -> None:
    plan, lost = made("""\
        do:
          - both:
              fork:
                branches:
                  - nurse: {call: http, with: {method: put, endpoint: https://x.example/nurse}}
                  - doctor:
                      do:
                        - page: {call: http, with: {method: put, endpoint: https://x.example/page}}
                        - wait: {wait: {seconds: 5}}
          - after: {call: http, with: {method: post, endpoint: https://x.example, body: "${ .[0].id }"}}
        """)
    both, after = plan["steps"]
    assert steps_of(both)["doctor"]["output"] == "page.body"
    assert [step.get("dependsOn") for step in both["steps"]] == [None, None]
    assert after["args"]["body"] == "$both.nurse.body.id"
    assert lost == []


def test_try_retries_and_catches_by_code() -> None:
    plan, lost = made("""\
        use:
          retries:
            often: {delay: PT3S, backoff: {exponential: {}}, limit: {attempt: {count: 5}}}
        do:
          - attempt:
              try:
                - get: {call: http, with: {method: get, endpoint: https://x.example}}
              catch:
                errors: {with: {type: https://serverlessworkflow.io/spec/1.0.0/errors/communication}}
                as: problem
                retry: often
                do:
                  - tell:
                      call: http
                      with: {method: post, endpoint: https://log.example, body: {why: "${ $problem.detail }"}}
        """)
    [attempt] = plan["steps"]
    assert attempt["steps"][0]["retry"] == {"attempts": 5, "delay": 3, "factor": 2}
    [catch] = attempt["catch"]
    assert catch["codes"] == ["HTTP_STATUS", "HTTP_UNREACHABLE", "HTTP_TIMEOUT"]
    assert catch["steps"][0]["args"]["body"] == {"why": "$error.message"}
    assert lost == []


def test_commands_and_scripts() -> None:
    plan, lost = made("""\
        do:
          - shell:
              run:
                shell: {command: 'echo "Hello, ${ .user.name }" $HOME', environment: {A: "${ .a }"}, arguments: [x y]}
          - python: {run: {script: {language: python, code: "print(1)"}, return: all}}
          - node: {run: {script: {language: js, code: "console.log('x')"}}}
          - use:
              call: http
              with: {method: post, endpoint: https://x.example, body: {out: "${ . }"}}
        """)
    shell, python, node, use = plan["steps"]
    assert shell["args"]["command"] == "set -- 'x y'\necho \"Hello, {{inputs.user.name}}\" $HOME"
    assert shell["args"]["env"] == {"A": "{{inputs.a}}"}
    assert python["args"] == {"code": "print(1)"}
    assert node["args"]["command"].startswith("node -e ")
    assert use["args"]["body"] == {"out": "$node.stdout"}
    assert lost == []


def test_events_are_awaited_by_name_and_condition() -> None:
    plan, lost = made("""\
        do:
          - one:
              listen: {to: {one: {with: {type: com.example.paid, data: "${ .total > 10 and .ok }"}}}}
              timeout: {after: {hours: 1}}
          - all:
              listen: {to: {all: [{with: {type: a.b}}, {with: {type: c.d}}]}}
          - use: {call: http, with: {method: post, endpoint: https://x.example, body: "${ .[1].id }"}}
        """)
    one, both, use = plan["steps"]
    assert one["args"] == {"event": "com.example.paid", "match": "(total > `10`) && ok", "timeout": 3600}
    assert [step["args"]["event"] for step in both["steps"]] == ["a.b", "c.d"]
    assert use["args"]["body"] == "$all[1].id"
    assert lost == []


def test_what_no_tool_does_asks_a_person_and_is_reported() -> None:
    plan, lost = made("""\
        do:
          - publish:
              emit: {event: {with: {source: https://x.example, type: order.placed, data: {id: "${ .id }"}}}}
          - rpc: {call: grpc, with: {service: {name: X}, method: go}}
          - sub: {run: {workflow: {namespace: n, name: other, version: '1', input: {a: "${ $context.id }"}}}}
        """)
    publish, rpc, sub = plan["steps"]
    assert (publish["tool"], rpc["tool"]) == ("ask", "ask")
    assert "with.type: order.placed\nevent.with.data.id: {{inputs.id}}" in publish["args"]["question"]
    assert sub["args"] == {"file": "other.plan.yaml", "inputs": {"a": "$inputs.id"}}
    assert [row.partition(":")[0] for row in lost] == [
        "do[0].publish", "do[1].rpc.call", "do[2].sub.run.workflow",
    ]  # fmt: skip


def test_what_a_plan_has_no_place_for_is_reported() -> None:
    _, lost = made("""\
        timeout: {after: PT1H}
        use: {secrets: [token], extensions: [{log: {extend: all}}], functions: {f: {call: http}}}
        do:
          - a:
              call: http
              with: {method: get, endpoint: {uri: https://x.example, authentication: {use: basic}}}
          - b: {listen: {to: {any: [{with: {type: x}}, {with: {type: y}}], until: .done}}}
          - c: {wait: {seconds: 1}, then: a}
          - d: {fork: {compete: true, branches: [{e: {wait: PT1S}}]}}
          - f: {call: http, with: {method: get, endpoint: https://x.example, body: "${ [.[] | select(.x)] }"}}
        """)
    text = "\n".join(lost)
    for part in ("time limit of the whole", "use.secrets", "use.extensions", "authentication of the call",
                 "any of several events", "until a condition", "comes before it"):  # fmt: skip
        assert part in text, part
    assert "use.functions" not in text


def test_a_workflow_that_events_start_takes_them_as_an_input() -> None:
    plan, _ = made("""\
        schedule: {on: {one: {with: {type: x.y}}}}
        do:
          - call:
              call: http
              with: {method: post, endpoint: https://x.example, body: {id: "${ $workflow.input[0].data.id }"}}
        """)
    assert plan["inputs"]["events"]["type"] == "array"
    assert plan["steps"][0]["args"]["body"] == {"id": "$inputs.events[0].data.id"}


def test_a_function_of_the_document_is_called_with_its_own_arguments() -> None:
    plan, lost = made("""\
        use:
          functions:
            get: {call: http, with: {method: get, endpoint: https://x.example}}
            me: {call: me}
        do:
          - a: {call: get, with: {headers: {x: y}}}
          - b: {call: me}
        """)
    assert plan["steps"][0]["args"] == {"url": "https://x.example", "headers": {"x": "y"}}
    assert plan["steps"][1]["tool"] == "ask"
    assert lost[0] == "do[1].b.call: a call of me: a person is asked instead"


def test_what_is_exported_where_it_may_not_happen_is_not_taken_for_granted() -> None:
    _, lost = made("""\
        do:
          - attempt:
              try: [{a: {wait: PT1S}}]
              catch:
                do:
                  - note: {set: {x: 1}, export: {as: {failed: true}}}
          - next: {if: "$context.failed", wait: PT1S}
        """)
    assert any("what the catch of attempt exports" in row for row in lost)


def test_cases_that_multiply_their_tasks_are_bounded() -> None:
    tasks = [
        f"- s{number}: {{switch: [{{a: {{when: .x, then: t{number}}}}}, {{b: {{then: s{number + 1}}}}}]}}\n"
        f"- t{number}: {{wait: PT1S, then: exit}}"
        for number in range(60)
    ]
    plan, lost = made("do:\n" + "\n".join(tasks) + "\n- s60: {wait: PT1S}\n")
    assert str(plan).count("'id'") < 2 * MAX_TASKS
    assert any("deeper than" in row or "tasks, split" in row or "more than" in row for row in lost)


@pytest.mark.parametrize(
    ("written", "carried"),
    [
        (".a.b", "inputs.a.b"),
        ('."x-y"[0]', 'inputs."x-y"[0]'),
        (".a | length", "length(inputs.a)"),
        (".a // \"none\"", "inputs.a || 'none'"),
        ("(.a == 1) and (.b | not)", "(inputs.a == `1`) && (!inputs.b)"),
        (".a | startswith(\"x\")", "starts_with(inputs.a, 'x')"),
        ("[.a[] | .b]", "inputs.a[*].b"),
        (".a | map(.b.c)", "inputs.a[*].b.c"),
        ("{a: .x, b: 2, c}", "{a: inputs.x, b: `2`, c: inputs.c}"),
        ("{a: 1} + {b: .x}", "{a: `1`, b: inputs.x}"),
        (". + {b: 1}", "merge(inputs, {b: `1`})"),
        ('"Hello \\(.name)!"', "join('', ['Hello ', to_string(inputs.name), '!'])"),
        ("$context.total >= -2", "ctx.total >= `-2`"),
        (". == null or has(\"x\")", "(inputs == `null`) || (inputs.x != `null`)"),
    ],
)  # fmt: skip
def test_expressions(written: str, carried: str) -> None:
    data = Data(Path("inputs"), {"context": Path("ctx")})
    found = jmespath_of(evaluated(written, data))
    assert found.replace("(!inputs.b)", "!inputs.b") == carried.replace("(!inputs.b)", "!inputs.b")


@pytest.mark.parametrize(
    "written",
    ["[.[] | select(.x)]", "(" * 100, '"open', "$secrets.x", ".a + .b", "reduce .[] as $x (0; . + $x)",
     "if .a then 1 else 2 end",
     "def f: 1; f", ".a[.b]", "now", ".a |", "{(.a): 1}", "1 +", " and ".join([".a"] * 400), '"\\(.a"'],
)  # fmt: skip
def test_an_expression_that_cannot_be_carried_over_is_said_so(written: str) -> None:
    with pytest.raises(NotCarried):
        evaluated(written, Data(Path("inputs"), {"context": Made({})}))


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("PT30S", 30), ("P1DT2H", 93_600), ("PT0.5S", 0.5), ({"minutes": 2, "milliseconds": 500}, 120.5), ("soon", None),
     ({"seconds": "x"}, None), ({}, None), ("P", None)],
)  # fmt: skip
def test_durations(written: Any, seconds: float | None) -> None:
    assert seconds_of(written) == seconds
