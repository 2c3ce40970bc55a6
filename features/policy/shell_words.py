"""The simple commands of a shell command, as words, or why they cannot be known before it runs. Nothing is run.

Only what is listed here counts as known: words, quotes, pipes and lists. Everything else asks: redirections of files,
assignments, substitutions, expansions outside quotes and inside double ones, functions, loops, comments, `eval`. The
words that tree-sitter found are compared with those of `shlex`; where two parsers read different words, nobody knows
what a third one runs.

A deny looks at more: at the commands inside of what is not known, and at what programs such as `env` and `bash -c` run.
"""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from plansurvive.features.policy.patterns import INNER_SPACE, UNKNOWN_PART

MAX_CHARACTERS = 50_000
"""Of a command; what a longer one runs counts as unknown."""
MAX_NODES = 100_000
MAX_NESTED = 3
"""Depth of commands in the arguments of commands."""
_BASH = Language(tree_sitter_bash.language())
_CONTAINERS = frozenset(("program", "list", "pipeline", "subshell"))
_OPERATORS = frozenset((";", "&&", "||", "|", "|&", "&", "\n", "(", ")"))
_RESERVED = frozenset(
    "! { } [[ ]] case coproc do done elif else esac fi for function if in select then time until while".split()  # noqa: SIM905
)
NEVER_KNOWN = frozenset(
    "eval source . alias unalias exec builtin command enable hash trap export declare typeset local readonly set unset"  # noqa: SIM905
    " shopt read mapfile readarray getopts printf let bind complete fc history".split()
)
"""Commands that run their arguments as commands, or change what later commands mean. `printf -v` is one of them."""
_RUNNERS = frozenset(
    "env xargs sudo doas su runuser nohup nice ionice chrt taskset timeout time stdbuf setsid script watch parallel"  # noqa: SIM905
    " entr flock strace ltrace gdb valgrind unshare nsenter chroot bwrap firejail systemd-run at batch crontab ssh"
    " docker podman kubectl busybox toybox sh bash dash zsh ksh mksh ash fish csh tcsh rbash awk gawk mawk nawk".split()
)
"""Programs that run what their arguments say: a `*` in a pattern does not cover it."""
_WITH_CODE = re.compile(r"(?:python|pypy|perl|ruby|node|nodejs|deno|bun|php|lua|luajit|tclsh|osascript)[\d.]*")
_CODE = re.compile(r"-[A-Za-z]*[ceErRp].*|--(?:eval|execute|print|run|command|exec).*|eval|exec|-")
_RUN_WITH = {
    "find": re.compile(r"-(?:exec|execdir|ok|okdir|delete|fls|fprint|fprint0|fprintf)"),
    "fd": re.compile(r"-[A-Za-z]*[xX].*|--exec.*"),
    "git": re.compile(
        r"-[cOx].*|--(?:config-env|exec-path|upload-pack|receive-pack|ext-diff|open-files-in-pager|exec|output).*"
    ),
    "rg": re.compile(r"--(?:pre|hostname-bin).*"),
    "sed": re.compile(r"(?!-n$|-[Er]$|[0-9,$]+p$)(?:-.*|[^/.]*[^\w./-].*|[ewWrR])", re.DOTALL),
    "sort": re.compile(r"-o.*|--output.*|--compress-program.*"),
    "tar": re.compile(r"-I.*|--(?:checkpoint-action|to-command|use-compress-program|rsh-command|info-script).*"),
}
"""Options by which these programs run others, or write files of any name."""
_DUPLICATES = re.compile(r"[0-9]*>&[0-9]+-?|[0-9]*>&-|[0-9]*<&[0-9]+-?|[0-9]*<&-")
_GLOB = re.compile(r"[*?\[\]{}]")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_IN_QUOTES = re.compile(r'\\([\\"$`])')


@dataclass(frozen=True)
class Words:
    """One simple command."""

    words: tuple[str, ...]
    runs_others: bool = False
    """It runs what its arguments say, or may."""

    @cached_property
    def text(self) -> str:
        """What patterns are compared with: the words, joined by one space."""
        return " ".join(_without_spaces(word) for word in self.words)

    @cached_property
    def variants(self) -> list[str]:
        """What a deny is compared with: also by the program's own name, and of a runner what follows in its words."""
        found = [self.words[index:] for index in range(len(self.words) if self.runs_others else 1)]
        named = [(each[0].rpartition("/")[2], *each[1:]) for each in found if each]
        return list(dict.fromkeys(Words(each).text for each in (*found, *named)))


@dataclass(frozen=True)
class Commands:
    """What a command runs."""

    simple: tuple[Words, ...]
    """The simple commands in order."""
    seen: tuple[Words, ...]
    """These, and whatever else looks like one: for a deny."""
    why: str
    """Why it is not known what it runs; empty if it is."""

    @cached_property
    def variants(self) -> list[str]:
        """What a deny is compared with."""
        return list(dict.fromkeys(text for words in self.seen for text in words.variants))

    @cached_property
    def hidden(self) -> Words | None:
        """The first simple command that runs what its arguments say."""
        return next((words for words in self.simple if words.runs_others), None)


def commands_of(text: str) -> Commands:
    """What a shell command runs."""
    if len(text) > MAX_CHARACTERS:
        return Commands((), (), f"it has more than {MAX_CHARACTERS:,} characters")
    root = Parser(_BASH).parse(text.encode("utf-8", "replace")).root_node
    simple, why = _known(root, text)
    return Commands(tuple(simple), tuple(_seen(root, 0)), why)


def _known(root: Node, text: str) -> tuple[list[Words], str]:
    odd = next((char for char in text if not _is_plain(char)), "")
    if odd:
        return [], f"it has the character U+{ord(odd):04X}, which shells and people read differently"
    if root.has_error:
        return [], "it cannot be parsed"
    found, duplicates = list[Words](), list[Node]()
    for node in _walk(root):
        if node.type == "command":
            words, why = _words(node, duplicates)
            if not why and words[0] in NEVER_KNOWN:
                why = f"`{words[0]}` runs or changes what cannot be seen here"
            if why:
                return found, why
            found.append(Words(tuple(words), _runs_others(words)))
        elif node.type == "file_redirect":
            if not _DUPLICATES.fullmatch(_text(node)):
                return found, "it has a redirection"
            duplicates.append(node)
        elif node.is_named and node.type not in _CONTAINERS and node.type != "redirected_statement":
            return found, _NAMES.get(
                node.type, f"it has a part that is not looked into ({node.type.replace('_', ' ')})"
            )
        elif not node.is_named and node.type not in _OPERATORS:
            return found, f"it has `{node.type}`"
    if not found:
        return found, "it runs nothing"
    if _by_shlex(text, duplicates) != [list(each.words) for each in found]:
        return found, "shells may read its words differently"
    return found, ""


_NAMES = {
    "comment": "it has a comment",
    "variable_assignment": "it has an assignment",
    "variable_assignments": "it has an assignment",
    "declaration_command": "it has an assignment",
    "unset_command": "it changes variables",
    "function_definition": "it defines a function",
    "command_substitution": "it has a substitution",
    "process_substitution": "it has a substitution",
    "heredoc_redirect": "it has a here-document",
    "herestring_redirect": "it has a here-document",
    "simple_expansion": "it has an expansion",
    "expansion": "it has an expansion",
    "arithmetic_expansion": "it has an expansion",
    "brace_expression": "it has an expansion",
    "ansi_c_string": "it has a text with escapes ($'...')",
    "translated_string": 'it has a translated text ($"...")',
}


def _walk(root: Node) -> Iterator[Node]:
    """What must be known: the nodes in order, down to simple commands and redirections."""
    left = [root]
    while left:
        node = left.pop()
        yield node
        if node.type in _CONTAINERS or node.type == "redirected_statement":
            left += reversed(node.children)


def _words(command: Node, duplicates: list[Node]) -> tuple[list[str], str]:
    """The words of a simple command, and why they are not known; empty if they are."""
    words = list[str]()
    for child in command.children:
        if child.type == "file_redirect":
            if not _DUPLICATES.fullmatch(_text(child)):
                return words, "it has a redirection"
            duplicates.append(child)
            continue
        word, why = _word(child)
        if why:
            return words, why
        words.append(word)
    if not words or not words[0]:
        return words, "it runs a program without a name"
    if words[0] in _RESERVED:
        return words, f"it has `{words[0]}`"
    return words, ""


def _word(node: Node) -> tuple[str, str]:
    """The word without its quotes, with UNKNOWN_PART for what is not known, and why something is not."""
    kind, text = node.type, _text(node)
    if kind in ("word", "number"):
        return _plain_word(text)
    if kind == "raw_string":
        return text[1:-1], ""
    if kind == "string":
        return _quoted(text)
    if kind in ("concatenation", "command_name"):
        parts = [_word(child) for child in node.children]
        return "".join(word for word, _ in parts), next((why for _, why in parts if why), "")
    return UNKNOWN_PART, _NAMES.get(kind, f"it has a part that is not looked into ({kind.replace('_', ' ')})")


def _plain_word(text: str) -> tuple[str, str]:
    bare = _ESCAPED.sub("", text)
    plain = _ESCAPED.sub(r"\1", text)
    if (_GLOB.search(bare) and text != "{}") or "$" in bare or "`" in bare:
        return _GLOB.sub(UNKNOWN_PART, plain), "it has an expansion outside quotes"
    if re.search(r"(?:^|[=:])~", bare):
        return plain, "it has an expansion outside quotes (~)"
    if "\\\n" in text:
        return plain, "a line of it is continued in the next one"
    return plain, ""


def _quoted(text: str) -> tuple[str, str]:
    inner = text[1:-1]
    bare = _ESCAPED.sub("", inner)
    if "$" in bare or "`" in bare:
        return re.sub(r"\$(?:\{[^}]*\}|\([^)]*\)|\w+|.)|`[^`]*`", UNKNOWN_PART, inner), "it has an expansion in quotes"
    if "\\\n" in inner:
        return inner, "a line of it is continued in the next one"
    return _IN_QUOTES.sub(r"\1", inner), ""


def _runs_others(words: Sequence[str]) -> bool:
    """Whether a command runs what its arguments say."""
    name, arguments = words[0].rpartition("/")[2], words[1:]
    if name in _RUNNERS or name in NEVER_KNOWN or UNKNOWN_PART in name:
        return True
    if _WITH_CODE.fullmatch(name):
        # What follows a script or `-m MODULE` is that program's own.
        options = list(takewhile(lambda each: each.startswith("-") and not each.startswith("-m"), arguments))
        return len(options) == len(arguments) or any(_CODE.fullmatch(each) for each in options)
    with_options = _RUN_WITH.get(name)
    return with_options is not None and any(with_options.fullmatch(each) for each in arguments)


def _seen(root: Node, depth: int) -> Iterator[Words]:
    """Everything that looks like a simple command, wherever it is, also in the arguments of others."""
    left, count = [root], 0
    while left and count < MAX_NODES:
        node = left.pop()
        count += 1
        left += reversed(node.children)
        if node.type != "command":
            continue
        words = [
            _word(child)[0]
            for child in node.children
            if child.type not in ("file_redirect", "variable_assignment", "herestring_redirect", "heredoc_redirect")
        ]
        if not words:
            continue
        runs_others = _runs_others(words)
        yield Words(tuple(words), runs_others)
        if runs_others and depth < MAX_NESTED:
            for word in words[1:]:
                if re.search(r"\s", word):
                    yield from _seen(Parser(_BASH).parse(word.encode("utf-8", "replace")).root_node, depth + 1)


def _by_shlex(text: str, duplicates: Sequence[Node]) -> list[list[str]] | None:
    """The words of the simple commands as Python's own reader has them; None if it cannot read them."""
    data = bytearray(text.encode())
    for node in duplicates:
        data[node.start_byte : node.end_byte] = b" " * (node.end_byte - node.start_byte)
    reader = shlex.shlex(data.decode(), posix=True, punctuation_chars=";&|()<>\n")
    reader.whitespace, reader.whitespace_split, reader.commenters = " \t", True, ""
    groups: list[list[str]] = [[]]
    try:
        for token in reader:
            if token and not token.strip(";&|()<>\n"):
                groups.append([])
            else:
                groups[-1].append(token)
    except ValueError:
        return None
    return [group for group in groups if group]


def _is_plain(char: str) -> bool:
    """Whether shells and people agree what the character is: visible, a space, a tab or a line end."""
    return char in " \t\n" or (char.isprintable() and not char.isspace() and unicodedata.category(char) != "Cf")


def _without_spaces(word: str) -> str:
    return re.sub(r"\s", INNER_SPACE, word) if word else "''"


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")
