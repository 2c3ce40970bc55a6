"""Commands and programs that are made to stall the analysis of what they write: it ends, with what it has found."""

from __future__ import annotations

import ast
from collections.abc import Callable

import pytest

from plansurvive.activities.provenance.shell_writes import MAX_VARIABLES, written_by_shell
from plansurvive.plans.files.python_writes import MAX_CODE_CHARACTERS, written_by_python
from tests.kit.growth import cpu, growth

FIFTY = " ".join(f"'touch {n}'" for n in range(50))
NESTED = "touch last"
for _level in range(4):
    NESTED = f'for v{_level} in {FIFTY}; do sh -c "$v{_level}; eval $v{_level}"; {NESTED}; done'
COMMANDS = {
    "doubling": "touch first; a=xxxx; " + "a=$a$a; " * 60 + "touch $a; touch last",
    "doubling in quotes": "touch first; a=xxxx; " + 'a="$a $a"; ' * 60 + "touch last",
    "nested programs": f"touch first; {NESTED}",
    "names": "touch first; " + "".join(f"n{n}=x; " for n in range(5_000)) + "touch last",
    "folders": "touch first; " + "cd folder; " * 5_000 + "cd /; touch last",
    "copies": "touch first; for d in " + " ".join(f"d{n}" for n in range(50)) + f"; do cp {'a ' * 5_000} $d; done",
}
PROGRAMS = {
    "doubling": "a = 'x'\n" + "a = a + a\n" * 30,
    "circles": "a = a\n" * 50,
    "circles of paths": "a = a.parent\n" * 50 + "a.write_text('')\n",
    "long texts": f"a = '{'x' * 50_000}'\n" + "a = a + a\n" * 5,
    "formats": f"a = {' if b else '.join(repr(str(n)) for n in range(50))}\na = '{{q}}{{}}{{}}{{}}'.format(a, a, a)\n",
}
PLAIN = "".join(f"b{n} = 'name' + '{n}'\nopen(b{n}, 'w')\n" for n in range(500))


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_analysed_with_bounded_work(name: str) -> None:
    plain = "touch a b c; echo x > d; " * 400
    assert cpu(lambda: written_by_shell(COMMANDS[name])) < 20 * cpu(lambda: written_by_shell(plain))
    found = written_by_shell(COMMANDS[name])
    assert found[0] == "first"
    assert sum(map(len, found)) < 5_000_000


def test_what_comes_after_a_value_that_is_too_long_is_found() -> None:
    assert written_by_shell(COMMANDS["doubling"]) == ["first", "last"]
    assert written_by_shell(COMMANDS["names"]) == ["first", "last"]
    assert "/last" in written_by_shell(COMMANDS["folders"])


def test_so_many_variables_are_known_and_known_ones_can_change() -> None:
    many = "".join(f"n{n}=x{n}; " for n in range(2 * MAX_VARIABLES))
    assert written_by_shell(f"{many} n1=new; touch $n1 $n9 $n{2 * MAX_VARIABLES - 1}") == ["new", "x9"]


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.parametrize(
    "of", [lambda size: "sudo " * size + "touch a", lambda size: "cd a; " * size, lambda size: "touch a > b; " * size]
)
def test_the_analysis_of_a_command_takes_time_proportional_to_its_length(of: Callable[[int], str]) -> None:
    def sized(size: int) -> Callable[[], object]:
        text = of(size)
        return lambda: written_by_shell(text)

    assert growth(sized, 600) < 10


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_analysed_with_bounded_work(name: str) -> None:
    code = PROGRAMS[name] + "open(a, 'w')\n"
    assert cpu(lambda: written_by_python(code)) < 40 * cpu(lambda: written_by_python(PLAIN))
    assert written_by_python(f"open('first', 'w')\n{code}").paths[0] == "first"


@pytest.mark.slow
def test_many_commands_of_a_program_share_one_budget() -> None:
    code = "import os\nfor a in (" + ", ".join(repr(f"a=x{n}; {'a=$a$a; ' * 500}") for n in range(50))
    code += "):\n os.system(a)"
    commands = written_by_python(code).commands
    assert len(commands) == 50
    assert cpu(lambda: written_by_shell(*commands * 5)) < 3 * cpu(lambda: written_by_shell(*commands))


def test_a_program_that_is_too_long_is_not_analysed() -> None:
    code = "open('a', 'w')\n" + "#" * MAX_CODE_CHARACTERS
    ast.parse(code)
    assert written_by_python(code).paths == []
    assert written_by_python(code[: MAX_CODE_CHARACTERS - 1]).paths == ["a"]


def test_control_usual_programs_are_analysed_whole() -> None:
    assert len(written_by_python(PLAIN).paths) == 500
    assert len(written_by_shell(" ".join(f"touch a{n}; echo x > b{n};" for n in range(400)))) == 800
