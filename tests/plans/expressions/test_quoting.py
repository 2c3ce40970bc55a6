"""Values in code, really executed: nothing in a value runs, and what is not refused arrives byte for byte.

Each payload would create the file `canary` if any part of it were run. The controls put the same payloads into the same
commands by plain formatting, and there the canary must appear: else these tests would prove nothing.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from plansurvive.plans.errors import BadReference
from plansurvive.plans.expressions.references import check_code, fill_text

HIT = "touch canary"
PAYLOADS = [
    *(f"; {HIT}", f"x; {HIT};", f"& {HIT} &", f"&& {HIT}", f"| {HIT}", f"|| {HIT}", f"\n{HIT}\n", f"\r\n{HIT}"),
    *(f"$({HIT})", f"`{HIT}`", f"${{x:=$({HIT})}}", f"$(({HIT}))", f"$[`{HIT}`]", f"<({HIT})", f">({HIT})", "> canary"),
    *(f"'; {HIT}; '", f'"; {HIT}; "', f"'\"; {HIT}; #", f"\\'; {HIT}; #", f'\\"; {HIT}; #', f"\\; {HIT}", "\\"),
    *(f"'$({HIT})'", f'"$({HIT})"', f"'\"`{HIT}`\"'", f"\\$({HIT})", f"\\`{HIT}\\`", f"!!; {HIT}", f"#\n{HIT}"),
    *(f"){HIT}", f") ; {HIT} ; (", f"}}; {HIT}; {{", f"' ) ; {HIT} ; ( '", f'" ) ; {HIT} ; ( "', f"EOF\n{HIT}\nEOF"),
    *(
        f"a[$({HIT})]",
        f"({HIT})",
        f"{{{HIT},}}",
        "*",
        "~",
        "~root",
        "$HOME",
        "if",
        "A=b",
        "-n",
        "",
        " ",
        "'",
        '"',
        "$",
        "''",
    ),
    *(
        "{{step}}",
        "$step",
        "it's",
        'say "hi"',
        "tab\there",
        "new\nline\n\n",
        "ünï ☃ 🎉",
        "%s%n",
        "\u202eabc",
        "\x01\x7f",
    ),
]
CONTEXTS = {
    "plain": ("printf '%s\\0' {{v}}", "printf '%s\\0' VALUE"),
    "double": ('printf "%s\\0" "{{v}}"', 'printf "%s\\0" "VALUE"'),
    "single": ("printf '%s\\0' '{{v}}'", "printf '%s\\0' 'VALUE'"),
    "substitution": ("x=$(printf '%s.' {{v}}); printf '%s\\0' \"${x%.}\"", "x=$(printf '%s.' VALUE)"),
    "quoted substitution": ('x="$(printf "%s." "{{v}}")"; printf "%s\\0" "${x%.}"', 'x="$(printf "%s." "VALUE")"'),
    "single in substitution": ("x=\"$(printf '%s.' '{{v}}')\"; printf '%s\\0' \"${x%.}\"", "x=\"$(echo 'VALUE')\""),
    "amid a word": ("x=a{{v}}b; x=${x#a}; printf '%s\\0' \"${x%b}\"", "x=aVALUEb"),
    "after a comment's look-alike": ("printf '%s' a#b >&2; printf '%s\\0' {{v}}", "echo a#b; echo VALUE"),
    "after an escape": ("printf '%s' \\' \\\" >&2; printf '%s\\0' {{v}}", "echo \\' ; echo VALUE"),
    "argument of an inner shell": ('sh -c \'printf "%s\\0" "$1"\' _ {{v}}', "sh -c 'echo VALUE'"),
}
SHELLS = ["/bin/sh", "/bin/bash"]


def run(shell: str, command: str, at: Path) -> list[str]:
    """What the command printed, parted at NUL."""
    done = subprocess.run([shell, "-c", command], cwd=at, capture_output=True, timeout=20, check=False)
    return done.stdout.decode(errors="surrogateescape").split("\0")


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("context", CONTEXTS)
def test_no_payload_runs_and_each_arrives_unchanged(shell: str, context: str, tmp_path: Path) -> None:
    template = CONTEXTS[context][0]
    commands = [fill_text(template, {"v": payload}, "shell") for payload in PAYLOADS]
    printed = run(shell, "\n".join(commands), tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert printed == [*PAYLOADS, ""]


@pytest.mark.parametrize("context", CONTEXTS)
def test_control_plain_formatting_runs_the_payloads(context: str, tmp_path: Path) -> None:
    template = CONTEXTS[context][1]
    for payload in [f"; {HIT} ;", f'"; {HIT}; "', f"'; {HIT}; '", f"$({HIT})"]:
        run("/bin/sh", template.replace("VALUE", payload), tmp_path)
    assert (tmp_path / "canary").exists()


def test_several_values_in_one_command_stay_apart(tmp_path: Path) -> None:
    values: dict[str, Any] = {"a": "'", "b": f"; {HIT} #", "c": {"k": ["it's"]}}
    command = fill_text("printf '%s\\0' {{a}} \"{{b}}\" '{{c}}' {{b}}{{a}}", values, "shell")
    assert run("/bin/bash", command, tmp_path) == ["'", f"; {HIT} #", '{"k": ["it\'s"]}', f"; {HIT} #'", ""]
    assert list(tmp_path.iterdir()) == []


REFUSED = [
    *(
        "echo `echo {{v}}`",
        "echo ${x:-{{v}}}",
        "echo $(( {{v}} ))",
        "(( x = {{v}} ))",
        "[[ {{v}} -eq 1 ]]",
        "echo $'{{v}}'",
    ),
    *(
        "echo ${{v}}",
        'echo "${{v}}"',
        'echo "a$' + "{{v}}" + '"',
        "echo \\{{v}}",
        "cat <<EOF\n{{v}}\nEOF",
        "cat <<< {{v}}",
    ),
    *("true # it's {{v}}", "(true)# it's\necho {{v}}", "echo $[ {{v}} ]", 'sh -c "echo {{v}}"', "bash -c 'echo {{v}}'"),
    *("sh -c {{v}}", "eval echo {{v}}", "eval {{v}}", 'ssh host "ls {{v}}"', "ssh host ls {{v}}", "echo {{v}} | sh"),
    *("echo {{v}} | python3 -", "python3 -c \"print('{{v}}')\"", "perl -e 'print \"{{v}}\"'", 'awk "{print {{v}}}"'),
    *('sed "s/x/{{v}}/" f', 'echo "$(case x in x) echo "{{v}}" ;; esac)"', "su -c 'x {{v}}'", "/bin/sh -c {{v}}"),
    *("xargs -I% sh -c 'echo {{v}} %'", 'find . -exec sh -c "echo {{v}}" \\;', "let x={{v}}", "trap {{v}} EXIT"),
]


@pytest.mark.parametrize("template", REFUSED)
def test_where_the_shell_cannot_be_told_apart_the_value_is_refused_with_a_way_out(template: str) -> None:
    with pytest.raises(BadReference) as caught:
        fill_text(template, {"v": "x"}, "shell")
    assert any(way in caught.value.message for way in ("earlier step", "as an argument instead", "use `if`"))
    with pytest.raises(BadReference):
        check_code(template, "shell")


ACCEPTED = [
    *('git commit -m "{{v}}"', "cat {{v}} <<EOF\nx\nEOF", "find . -name '{{v}}'", "cd {{v}} && make", "a=({{v}})"),
    *("tr -d '[[:space:]]' < {{v}}", "grep --ignore-case {{v}} f", 'x=$(cat {{v}}); echo "$x"', 'bash run.sh "{{v}}"'),
    *("docker ps --format '{{{{.Names}}}}' {{v}}", 'echo "$HOME" {{v}} # done', "python3 tool.py --name={{v}}"),
]


@pytest.mark.parametrize("template", ACCEPTED)
def test_ordinary_commands_take_values(template: str) -> None:
    assert "'x'" in fill_text(template, {"v": "x"}, "shell") or '"x"' in fill_text(template, {"v": "x"}, "shell")


def test_control_what_is_refused_would_run_the_value(tmp_path: Path) -> None:
    for template in [
        "echo `echo VALUE`",
        'echo "$VALUE"',
        "eval echo VALUE",
        "sh -c VALUE",
        "(true)# it's\necho VALUE",
    ]:
        (tmp_path / "canary").unlink(missing_ok=True)
        for value in (f"; {HIT}; :", f"'; {HIT}; '", f"({HIT})", HIT):
            run("/bin/bash", template.replace("VALUE", value), tmp_path)
        assert (tmp_path / "canary").exists(), template


def test_a_nul_cannot_be_part_of_a_command() -> None:
    with pytest.raises(BadReference, match="NUL"):
        fill_text("echo {{v}}", {"v": "a\0b"}, "shell")


PYTHON_PAYLOADS: list[Any] = [
    *PAYLOADS,
    *("'; open('canary', 'w'); '", '"; open("canary", "w"); "', "__import__('os').system('touch canary')", "\\", "'''"),
    *('"""', "{open('canary', 'w')}", "_inserted_value_0_", "_inserted_value_1_", "\0", "\ud800", None, True, 1, -2.5),
    *([1, "it's", {"a": None}], {"k": "v'", "x": [True]}, 10**30, ""),
]


def test_values_in_python_code_arrive_as_they_are_and_never_run(tmp_path: Path) -> None:
    template = "seen = [{{v}}, ({{w}}, 'text'), {'k': {{v}}}['k']]\nassert seen[0] == seen[2]\nout.append(seen[1][0])"
    blocks = [fill_text(template, {"v": value, "w": value}, "python") for value in PYTHON_PAYLOADS]
    script = tmp_path / "script.py"
    script.write_text("\n".join(["out = []", *blocks, "print(ascii(out))"]), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-I", str(script)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == ascii(PYTHON_PAYLOADS), done.stderr[-500:]
    assert [path.name for path in tmp_path.iterdir()] == ["script.py"]


def test_control_plain_formatting_runs_python_payloads(tmp_path: Path) -> None:
    code = "x = '{{v}}'".replace("{{v}}", "'; open('canary', 'w'); '")
    subprocess.run([sys.executable, "-I", "-c", code], cwd=tmp_path, check=True)
    assert (tmp_path / "canary").exists()


@pytest.mark.parametrize(
    "code",
    [
        *("x = '{{v}}'", 'x = "a {{v}} b"', "x = f'{ {{v}} }'", "x = '''\n{{v}}\n'''", "# {{v}}", "def {{v}}(): pass"),
        *("{{v}} = 1", "import {{v}}", "f({{v}}=1)", "x = r{{v}}", "x = {{v}}y", "x.{{v}}", "x = {{v}} {{v}}"),
        "(" * 5_000 + "{{v}}",
    ],
)
def test_python_code_in_which_a_literal_cannot_stand_is_refused(code: str) -> None:
    with pytest.raises(BadReference, match="Python code"):
        fill_text(code, {"v": "x"}, "python")


def test_a_placeholder_that_the_code_itself_holds_is_not_taken_for_one() -> None:
    assert fill_text("a = '_inserted_value_0_'; b = {{v}}", {"v": "'"}, "python") == (
        "a = '_inserted_value_0_'; b = (\"'\")"
    )


@pytest.mark.parametrize(
    "code", ["_inserted_value_", "_inserted_value_x0_", "_inserted_value_0_", "_inserted_value" * 3]
)
def test_code_that_uses_the_names_of_placeholders_is_left_as_it_is(code: str) -> None:
    text = f"y = '{code}_inserted_value_x1_0_'\nx = {{{{a}}}}\n"
    assert fill_text(text, {"a": "v"}, "python") == text.replace("{{a}}", "('v')")
