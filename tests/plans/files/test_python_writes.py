"""Python programs and the files they write: every one is found, and nothing is made up."""

from __future__ import annotations

import pytest

from plansurvive.plans.files.python_writes import MAX_VALUES, written_by_python

PATHLIB = "from pathlib import Path\n"
WRITES: dict[str, set[str]] = {
    "open('a', 'w')": {"a"},
    "open('a', mode='a')": {"a"},
    "open('a', 'x').close()": {"a"},
    "open('a', 'r+b')": {"a"},
    "open(file='a', mode='wb')": {"a"},
    "with open('out/a.txt', 'w', encoding='utf-8') as f:\n    f.write('x')": {"out/a.txt"},
    "import io\nio.open('a', 'w')": {"a"},
    "import codecs\ncodecs.open('a', 'w', 'utf-8')": {"a"},
    "import gzip\ngzip.open('a.gz', 'wt')": {"a.gz"},
    "import os\nos.open('a', os.O_WRONLY | os.O_CREAT)": {"a"},
    PATHLIB + "Path('a').write_text('x')": {"a"},
    PATHLIB + "(Path('out') / 'a').write_bytes(b'')": {"out/a"},
    PATHLIB + "p = Path('a')\nwith p.open('w') as f: f.write('x')": {"a"},
    PATHLIB + "Path('a').with_suffix('.md').write_text('x')": {"a.md"},
    PATHLIB + "Path('a').rename('b')": {"b"},
    "import pathlib as p\np.Path.cwd().joinpath('a', 'b').touch()": {"a/b"},
    "import shutil\nshutil.copy('a', 'b')": {"b"},
    "from shutil import move as mv\nmv('a', dst='b')": {"b"},
    "import os\nos.rename('a', 'b')": {"b"},
    "import os\nos.makedirs('out/deep', exist_ok=True)": {"out/deep"},
    "import json\nwith open('a.json', 'w') as f:\n    json.dump({}, f)": {"a.json"},
    "import csv\nwith open('a.csv', 'w', newline='') as f:\n    csv.writer(f).writerow([1])": {"a.csv"},
    "name = 'a'\nopen(name + '.txt', 'w')": {"a.txt"},
    "name = 'a'\nopen(f'out/{name}.txt', 'w')": {"out/a.txt"},
    "for i in range(3):\n    open(f'a{i}', 'w')": {"a0", "a1", "a2"},
    "def save(path, text):\n    open(path, 'w').write(text)\nsave('a', 'x')\nsave(path='b', text='y')": {"a", "b"},
    "import os\nopen(os.path.join('out', 'a'), 'w')": {"out/a"},
    "df.to_csv('a.csv')": {"a.csv"},
    "import zipfile\nzipfile.ZipFile('a.zip', 'w')": {"a.zip"},
    "import subprocess\nsubprocess.run('ls > a', shell=True)": set(),
}
WRITES_NOTHING = [
    'print(\'open("a", "w")\')',
    "open('a')",
    "open('a', 'r').read()",
    "open('a', 'rb')",
    "open('a', encoding='utf-8')",
    "from pathlib import Path\nPath('a').read_text()",
    "from pathlib import Path\nPath('a').open()",
    "import os\nos.open('a', os.O_RDONLY)",
    "import os\nos.listdir('w')",
    "import json\njson.load(open('a'))",
    "'abc'.replace('a', 'b')",
    "mode = 'r'\nopen('w', mode)",
    "# open('a', 'w')",
    "text = '''\nopen('a', 'w')\n'''",
    "open(1, 'w').write('x')",
    "open('/dev/null', 'w')",
    "import sqlite3\nsqlite3.connect(':memory:')",
    "def save(path):\n    open(path, 'w')",
    "not python at all >",
    "",
]


@pytest.mark.parametrize("code", WRITES)
def test_the_files_a_program_writes_are_found(code: str) -> None:
    assert set(written_by_python(code).paths) == WRITES[code]


@pytest.mark.parametrize("code", WRITES_NOTHING)
def test_a_program_that_writes_nothing_has_none(code: str) -> None:
    assert written_by_python(code).paths == []


def test_the_samples_are_as_many_as_promised() -> None:
    assert (len(WRITES), len(WRITES_NOTHING)) == (30, 20)


def test_shell_commands_a_program_runs_are_handed_on() -> None:
    code = "import os, subprocess\nos.system('ls > a')\nsubprocess.run('ls > b', shell=True)\nsubprocess.run(['ls'])"
    assert written_by_python(code).commands == ["ls > a", "ls > b"]


@pytest.mark.parametrize(
    "code", ["x = x\nopen(x, 'w')", "a = b\nb = a\nopen(a, 'w')", "def f(n):\n    f(n)\n    open(n, 'w')"]
)
def test_names_that_stand_for_themselves_end(code: str) -> None:
    assert written_by_python(code).paths == []


def test_the_work_is_bounded() -> None:
    many = "names = 1\n" + "".join(f"n = 'a{number}'\n" for number in range(500)) + "open(f'{n}{n}{n}', 'w')"
    assert len(written_by_python(many).paths) <= MAX_VALUES
    assert written_by_python("(" * 5_000 + ")" * 5_000).paths == []
    assert written_by_python("open(" + "'a' + " * 3_000 + "'a', 'w')").paths == []
