"""Shell commands and the files they write: every one is found, and nothing is made up.

The last tests hold the samples against a real shell: what it makes is what was found.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from plansurvive.activities.provenance.shell_writes import written_by_shell

WRITES: dict[str, set[str]] = {
    "echo hi > a": {"a"},
    "echo hi >> a": {"a"},
    "echo hi >a;echo hi >>b": {"a", "b"},
    "echo hi >| a": {"a"},
    "ls nothing &> a": {"a"},
    "ls nothing 2> a": {"a"},
    "ls nothing 2>> a 1>&2": {"a"},
    "echo hi > 'a b'": {"a b"},
    'echo hi > "a b"': {"a b"},
    "echo hi > a\\ b": {"a b"},
    "echo hi > 'a'\"b\"c": {"abc"},
    "> a": {"a"},
    "echo hi | tee a": {"a"},
    "echo hi | tee -a a b > /dev/null": {"a", "b"},
    "cat <<EOF > a\n> b\nEOF\n": {"a"},
    "cat > a <<'EOF'\n$x > b\nEOF\n": {"a"},
    "cat <<-EOF >> a\n\thi\n\tEOF\n": {"a"},
    "(echo hi; echo ho) > a": {"a"},
    "{ echo hi; } > a": {"a"},
    "(mkdir sub && cd sub && echo hi > a); echo hi > b": {"sub", "sub/a", "b"},
    "mkdir sub; cd sub; echo hi > ../a; cd ..; echo hi > b": {"sub", "a", "b"},
    "if true; then echo hi > a; fi": {"a"},
    "for i in 1 2; do echo hi > a$i; done": {"a1", "a2"},
    'name=a; echo hi > "$name.txt"': {"a.txt"},
    "echo hi > $HOME/a; echo hi > ~/b": {"a", "b"},
    "echo `echo hi > a`": {"a"},
    "sh -c 'echo hi > a'": {"a"},
    "python3 - <<'EOF'\nopen('a', 'w')\nEOF\n": {"a"},
    "f() { echo hi > a; }; f": {"a"},
    "echo hi > a; cp a b; mv b c; touch d; ln -s d e": {"a", "b", "c", "d", "e"},
}
WRITES_NOTHING = [
    "echo 'a > b'",
    'echo "a > b"',
    "echo a \\> b",
    "echo hi >&2",
    "ls 2>&1",
    "echo hi > /dev/null 2>&1",
    "cat <<EOF\necho > a\nEOF\n",
    "cat <<'EOF'\necho > a\nEOF\n",
    "# echo > a",
    "echo hi # > a",
    "test 1 -gt 0",
    "echo $((3 > 2))",
    "cat < a",
    "grep '>' a",
    "awk '$1 > 5' a",
    "git log --format='%h -> %s'",
    "echo tee a",
    "sed s/a/b/ a",
    "[[ a > b ]]",
    "",
]
BEYOND = {  # programs that may not be there, or a shell that is no sh
    "curl -s -o page.html http://host/": {"page.html"},
    "curl --output=page.html http://host/": {"page.html"},
    "wget -O page.html http://host/": {"page.html"},
    "sed -i s/a/b/ f g": {"f", "g"},
    "sed -i.bak -e s/a/b/ f": {"f"},
    "dd if=a of=b bs=1": {"b"},
    "sort -o b a": {"b"},
    "cp a b dir": {"dir/a", "dir/b"},
    "cp -t dir a b": {"dir/a", "dir/b"},
    "tar czf out.tgz src": {"out.tgz"},
    "tar xzf in.tgz": set(),
    "python -c \"import os; os.system('ls > a')\"": {"a"},
    "env A=1 nohup sh -c 'date > a' &": {"a"},
    "cat a <(sort b > c)": {"c"},
    "coproc cat > a": {"a"},
    "echo hi > /elsewhere/a": {"/elsewhere/a"},
    "echo hi > $unknown/a": set(),
    "cd $unknown && echo hi > a": set(),
    "echo hi > *.txt": set(),
    "case x in x) echo hi > a;; esac": {"a"},
}


@pytest.mark.parametrize("command", [*WRITES, *BEYOND])
def test_the_files_a_command_writes_are_found(command: str) -> None:
    assert set(written_by_shell(command)) == {**WRITES, **BEYOND}[command]


@pytest.mark.parametrize("command", WRITES_NOTHING)
def test_a_command_that_writes_nothing_has_none(command: str) -> None:
    assert written_by_shell(command) == []


def test_the_samples_are_as_many_as_promised() -> None:
    assert (len(WRITES), len(WRITES_NOTHING)) == (30, 20)


@pytest.mark.parametrize("command", WRITES)
def test_a_real_shell_writes_just_the_files_that_were_found(command: str, tmp_path: Path) -> None:
    subprocess.run(["/bin/bash", "-c", command], cwd=tmp_path, env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"})
    made = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")}
    assert made - set(written_by_shell(command)) == set()
    assert set(written_by_shell(command)) - made <= {"b"}  # moved away again


@pytest.mark.parametrize("command", ["(" * 3_000 + ")" * 3_000, "$(" * 3_000, "a" * 100_000, "'", "<<", "\ud800 > a\0"])
def test_the_work_is_bounded(command: str) -> None:
    assert written_by_shell(command) in ([], ["a"])
