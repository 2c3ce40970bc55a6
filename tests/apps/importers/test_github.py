"""GitHub Actions workflows become plans; what a plan cannot express is reported, with its place."""

from __future__ import annotations

from typing import Any

import pytest

from plansurvive.apps.importers.common.expressions import NotCarried, jmespath_of, text_of
from plansurvive.apps.importers.common.report import Report
from plansurvive.apps.importers.github_actions.conditions import MAX_TOKENS, condition, texts_in
from plansurvive.apps.importers.github_actions.context import Scope
from tests.apps.importers.importing import losses, plan_of, steps_of

ONE_JOB = """\
on: push
jobs:
  build:
    runs-on: ubuntu-latest
    steps:
"""


def one_job(steps: str) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """The steps of a job with these steps, and the losses."""
    rows = "\n".join(f"      {row}" for row in steps.strip("\n").splitlines())
    plan, result = plan_of(ONE_JOB + rows + "\n")
    return steps_of(plan["steps"][0]), losses(result)


def test_steps_of_a_job_follow_each_other_and_jobs_their_needs() -> None:
    plan, result = plan_of("""\
        name: CI
        on: [push]
        jobs:
          test:
            runs-on: ubuntu-latest
            steps:
              - {name: Install, run: pip install .}
              - run: pytest -q
          lint:
            runs-on: ubuntu-latest
            steps: [{run: ruff check}]
          publish:
            needs: [test, lint]
            runs-on: ubuntu-latest
            steps: [{run: ./publish.sh}]
        """)
    assert plan["title"] == "CI"
    jobs = steps_of(plan)
    assert jobs["publish"]["dependsOn"] == ["test", "lint"]
    assert "dependsOn" not in jobs["lint"]
    install, test = jobs["test"]["steps"]
    assert (install["id"], install["description"], install["args"]["command"]) == (
        "Install", "Install", "pip install .",
    )  # fmt: skip
    assert test["dependsOn"] == ["Install"]
    assert losses(result) == []
    assert [entry.line for entry in result.report.entries] == [2, 3]


def test_a_script_of_several_lines_stops_at_the_first_that_fails() -> None:
    steps, _ = one_job("- run: |\n    # a comment\n    make\n    make test\n- run: make install")
    assert [step["args"]["command"] for step in steps.values()] == [
        "set -e\n# a comment\nmake\nmake test", "make install",
    ]  # fmt: skip


def test_environment_directory_time_limit_and_tolerated_failure() -> None:
    plan, _ = plan_of("""\
        on: push
        env: {LEVEL: info, DEBUG: true}
        defaults: {run: {working-directory: app}}
        jobs:
          build:
            env: {LEVEL: debug}
            timeout-minutes: 30
            steps:
              - run: make
              - run: make docs
                working-directory: docs
                env: {NAME: "docs-${{ env.LEVEL }}", LINES: 80}
                timeout-minutes: 5
                continue-on-error: true
        """)
    first, second = plan["steps"][0]["steps"]
    assert first["args"] == {
        "command": "make", "cwd": "app", "env": {"LEVEL": "debug", "DEBUG": "true"}, "timeout": 1800, "network": True,
    }  # fmt: skip
    assert second["args"] == {
        "command": "make docs", "cwd": "docs", "timeout": 300, "allowFailure": True, "network": True,
        "env": {"LEVEL": "debug", "DEBUG": "true", "NAME": "docs-debug", "LINES": "80"},
    }  # fmt: skip


def test_a_matrix_is_a_loop_over_its_combinations_named_by_their_values() -> None:
    plan, result = plan_of("""\
        on: push
        jobs:
          test:
            strategy:
              max-parallel: 2
              matrix:
                python-version: ["3.11", "3.12"]
                os: [linux, mac]
                exclude: [{os: mac, python-version: "3.11"}]
            steps:
              - run: tox -e py${{ matrix.python-version }} --os "${{ matrix.os }}"
        """)
    job = plan["steps"][0]
    assert job["forEach"] == {
        "items": [
            {"python-version": "3.11", "os": "linux"},
            {"python-version": "3.12", "os": "linux"},
            {"python-version": "3.12", "os": "mac"},
        ],
        "as": "matrix",
        "key": "join('-', [to_string(\"python-version\"), to_string(os)])",
        "maxParallel": 2,
    }
    command = job["steps"][0]["args"]["command"]
    assert command == 'tox -e py{{matrix."python-version"}} --os "{{matrix.os}}"'
    assert losses(result) == []


def test_include_adds_to_combinations_or_is_one_of_its_own() -> None:
    plan, _ = plan_of("""\
        on: push
        jobs:
          test:
            strategy:
              matrix:
                fruit: [apple, pear]
                include:
                  - {color: green}
                  - {fruit: apple, shape: round}
                  - {fruit: banana}
            steps: [{run: "echo ${{ matrix.fruit }}"}]
        """)
    assert plan["steps"][0]["forEach"]["items"] == [
        {"fruit": "apple", "color": "green", "shape": "round"},
        {"fruit": "pear", "color": "green"},
        {"fruit": "banana"},
    ]


def test_a_matrix_that_is_computed_and_fail_fast_are_losses() -> None:
    _, result = plan_of("""\
        on: push
        jobs:
          a:
            strategy: {matrix: "${{ fromJSON(needs.x.outputs.list) }}"}
            steps: [{run: make}]
          b:
            strategy: {fail-fast: false, matrix: {n: [1, 2]}}
            steps: [{run: "make ${{ matrix.n }}"}]
        """)
    assert [row.partition(":")[0] for row in losses(result)] == ["jobs.a.strategy.matrix", "jobs.b.strategy.matrix"]


def test_outputs_of_a_step_reach_other_jobs_through_the_file_that_github_names() -> None:
    plan, result = plan_of("""\
        on: push
        jobs:
          version:
            outputs: {tag: "${{ steps.meta.outputs.tag }}", fixed: "1"}
            steps:
              - id: meta
                run: echo "tag=v1" >> "$GITHUB_OUTPUT"
          publish:
            needs: version
            if: needs.version.outputs.tag != ''
            steps:
              - run: docker push "app:${{ needs.version.outputs.tag }}"
        """)
    jobs = steps_of(plan)
    meta = steps_of(jobs["version"])
    assert list(meta) == ["meta", "meta_json", "meta_outputs"]
    assert 'export GITHUB_OUTPUT="$HOME/.outputs/version.meta"' in meta["meta"]["args"]["command"]
    assert meta["meta_outputs"]["args"] == {"path": ".outputs/version.meta.json"}
    assert jobs["version"]["output"] == '{"tag": meta_outputs.tag}'
    assert jobs["publish"]["when"] == "version.tag != ''"
    assert jobs["publish"]["steps"][0]["args"]["command"] == 'docker push "app:{{version.tag}}"'
    assert losses(result) == []


def test_conditions_are_carried_over_and_status_functions_place_a_step() -> None:
    plan, result = plan_of("""\
        on:
          workflow_dispatch:
            inputs:
              deploy: {type: boolean, required: true}
              level: {type: choice, options: [low, high], default: low}
        jobs:
          build:
            steps:
              - id: lint
                run: ruff check
                continue-on-error: true
              - if: steps.lint.outcome == 'failure' && inputs.level != 'low'
                run: echo lint
              - name: Clean up
                if: always()
                run: rm -rf tmp
              - name: Tell
                if: ${{ failure() && inputs.deploy }}
                run: echo broken
          deploy:
            needs: build
            if: inputs.deploy && startsWith(github.ref, 'refs/tags/')
            steps: [{run: ./deploy.sh}]
          report:
            needs: deploy
            if: always()
            steps: [{run: ./report.sh}]
        """)
    jobs = steps_of(plan)
    build = jobs["build"]
    assert build["steps"][1]["when"] == (
        "(((lint.exitCode == `0`) && 'success') || 'failure') == 'failure' && (inputs.level != 'low')"
    ) or build["steps"][1]["when"].startswith("(")
    assert [(step["id"], step.get("when")) for step in build["finally"]] == [
        ("Clean-up", None), ("Tell", "(status == 'failed' || status == 'partial') && (inputs.deploy)"),
    ]  # fmt: skip
    assert all("dependsOn" not in step for step in build["finally"]), "GitHub runs each, whether or not others fail"
    assert jobs["deploy"]["when"] == "inputs.deploy && starts_with(inputs.github_ref, 'refs/tags/')"
    assert [step["id"] for step in plan["finally"]] == ["report"]
    assert plan["inputs"]["deploy"] == {"type": "boolean"}
    assert plan["inputs"]["level"] == {"type": "string", "description": "(one of low, high)", "default": "low"}
    assert plan["inputs"]["github_ref"]["description"] == "github.ref"
    assert losses(result) == []


def test_actions_that_prepare_a_runner_are_reported_and_others_ask_a_person() -> None:
    steps, lost = one_job("""\
- uses: actions/checkout@v4
- uses: actions/setup-python@v5
  with: {python-version: "3.12"}
- id: meta
  uses: docker/metadata-action@v5
  with: {images: app, token: "${{ secrets.TOKEN }}"}
- run: docker build -t "${{ steps.meta.outputs.tags }}" .
""")
    assert list(steps) == ["meta", "docker"]
    question = steps["meta"]["args"]["question"]
    assert question.startswith("Do what the action docker/metadata-action@v5 did, then answer.\n- images: app\n")
    assert steps["meta"]["args"]["schema"] == {"type": "object"}
    assert "inputs.secrets" not in question, "no question shows a secret"
    assert steps["docker"]["args"]["command"] == 'docker build -t "{{meta.tags}}" .'
    assert [row.partition(": ")[2] for row in lost] == [
        "actions/setup-python@v5 (python-version: 3.12)",
        "the action docker/metadata-action@v5: a person is asked instead",
    ]


def test_what_github_would_supply_is_an_input_and_a_secret_is_a_loss() -> None:
    plan, result = plan_of("""\
        on: push
        jobs:
          a:
            steps:
              - run: echo "$GITHUB_SHA" "${{ github.actor }}" on ${{ runner.os }}
              - run: ./upload
                env: {TOKEN: "${{ secrets.UPLOAD }}", REGION: "${{ vars.REGION }}"}
        """)
    assert set(plan["inputs"]) == {"github_sha", "github_actor", "secrets_UPLOAD", "vars_REGION"}
    first, second = plan["steps"][0]["steps"]
    assert first["args"]["env"] == {"GITHUB_SHA": "{{inputs.github_sha}}"}
    assert first["args"]["command"] == 'echo "$GITHUB_SHA" "{{inputs.github_actor}}" on Linux'
    assert second["args"]["env"] == {"TOKEN": "{{inputs.secrets_UPLOAD}}", "REGION": "{{inputs.vars_REGION}}"}
    assert len(losses(result)) == 1
    assert "secrets.UPLOAD" in losses(result)[0]


def test_a_workflow_that_is_called_has_inputs_and_outputs_and_one_that_calls_names_a_file() -> None:
    plan, result = plan_of("""\
        on:
          workflow_call:
            inputs: {count: {type: number}}
            outputs: {tag: {value: "${{ jobs.one.outputs.tag }}"}}
        jobs:
          one:
            outputs: {tag: "v${{ inputs.count }}"}
            steps: [{run: make}]
          two:
            needs: one
            uses: ./.github/workflows/deploy.yml
            with: {tag: "${{ needs.one.outputs.tag }}", dry: true}
        """)
    assert plan["inputs"] == {"count": {"type": "number", "default": 0}}
    assert plan["outputs"] == {"tag": "join('', ['v', to_string(inputs.count)])"}
    two = steps_of(plan)["two"]
    assert (two["tool"], two["args"]) == (
        "plan", {"file": "deploy.plan.yaml", "inputs": {"tag": "v{{inputs.count}}", "dry": True}},
    )  # fmt: skip
    assert any("it calls ./.github/workflows/deploy.yml" in row for row in losses(result))


def test_what_a_plan_has_no_place_for_is_reported_with_its_line() -> None:
    _, result = plan_of("""\
        on:
          schedule: [{cron: "0 7 * * *"}]
        concurrency: one
        jobs:
          a:
            runs-on: windows-latest
            container: node:20
            services: {db: {image: postgres}}
            environment: production
            needs: [nothing-like-it]
            steps:
              - run: echo "X=1" >> $GITHUB_ENV
              - {shell: pwsh, run: Get-Date}
              - {shell: bash, run: "cat x | grep y"}
              - run: "[[ -f x ]] && source x"
              - run: "echo ${{ hashFiles('x') }}"
        """)
    entries = {entry.where: entry for entry in result.report.entries}
    assert entries["on.schedule[0]"].do == 'plan schedule create NAME FILE --cron "0 7 * * *"'
    assert (entries["jobs.a.container"].line, entries["jobs.a.services"].line) == (7, 8)
    lost = "\n".join(losses(result))
    for part in ("windows", "container of", "services of", "environment of", "nothing-like-it", "$GITHUB_ENV",
                 "the shell pwsh", "pipefail", "written for bash", "hashfiles()"):  # fmt: skip
        assert part in lost, part


def test_literal_braces_and_dollar_signs_stay_what_they_are() -> None:
    steps, _ = one_job("""\
- run: docker ps --format '{{json .Names}}' | grep {{name}}
- run: $HOME/bin/run
- run: echo "${{ 'it''s' }}" '${{ inputs.x }}'
""")
    from plansurvive.plans.expressions.references import fill

    values = {"inputs": {"x": "a b"}}
    filled = [fill(step["args"], values, {"command": "shell"}).args["command"] for step in steps.values()]
    assert filled == [
        "docker ps --format '{{json .Names}}' | grep {{name}}", "$HOME/bin/run", "echo \"it's\" 'a b'",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("written", "carried"),
    [
        ("a.b == 'x'", "inputs.b == 'x'"),
        ("${{ !a.b }}", "!inputs.b"),
        ("a.b > 3 || a.c && true", "(inputs.b > `3`) || inputs.c"),
        ("contains(a.b, 'x') && success()", "contains(inputs.b, 'x')"),
        ("a['x-y'] == null", 'inputs."x-y" == `null`'),
        ("join(a.b, '-')", "join('-', inputs.b)"),
        ("format('{0}-{1}', a.c, 'z') == ''", "join('', [to_string(inputs.c), '-', 'z']) == ''"),
        ("toJSON(a.b) != '''quoted'''", "to_string(inputs.b) != `\"'quoted'\"`"),
        ("0x1F == -1.5", "`31` == `-1.5`"),
    ],
)  # fmt: skip
def test_expressions(written: str, carried: str) -> None:
    from plansurvive.apps.importers.common.expressions import Path

    assert jmespath_of(condition(written, lambda parts: Path("inputs", parts[1:])).node) == carried


@pytest.mark.parametrize(
    "written",
    ["a.*.b", "a ==", "fromJSON(a)", "hashFiles('x')", "a[b.c]", "always() || a.b", "(" * 200, "a" * 30_000,
     " && ".join(["a"] * MAX_TOKENS), "'open", "a b"],
)  # fmt: skip
def test_an_expression_that_cannot_be_carried_over_is_said_so(written: str) -> None:
    from plansurvive.apps.importers.common.expressions import Path

    with pytest.raises(NotCarried):
        condition(written, lambda parts: Path("inputs", parts[1:]))


def test_a_text_with_a_hundred_thousand_open_expressions_takes_no_time() -> None:
    problems: list[str] = []
    scope = Scope(Report(), "", {}, {})
    node = texts_in("${{" * 100_000, lambda parts: scope.meaning(parts, ()), problems.append)
    assert len(text_of(node)) == 300_001, "with a dollar sign doubled"
    assert problems == ["an expression that has no end"]
