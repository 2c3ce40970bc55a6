"""What rules say together, and what each condition of a rule compares. No server."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import product
from typing import Any

import pytest

from plansurvive.features.policy.judging import _NO, Asker, Judged, Verdict, _fits, host_of, judge
from plansurvive.features.policy.model import Spoken
from plansurvive.features.policy.policy_file import read
from plansurvive.features.policy.rule import Policy

ANN = Asker(plan=("Nightly report", "nightly-1"), starter="ann", is_proven=True)


def policy(*rules: str, more: str = "") -> Policy:
    text = "\n".join(f'[[rule]]\nname = "r{number}"\n{rule}' for number, rule in enumerate(rules))
    reading = read(f"{text}\n{more}", datetime(2026, 11, 28, tzinfo=UTC))
    assert reading.policy is not None, reading.mistakes
    return reading.policy


def said(
    rules: Policy, tool: str, args: Mapping[str, Any] | None = None, *, asker: Asker | None = ANN, **more: Any
) -> str:
    return judge(rules, Judged(tool, args or {}, asker=asker, **more)).decide


FITS = {"yes": 'args.x = "1"', "no": 'args.x = "2"', "unknown": 'args.y = "1"'}
"""How a rule can stand to the call `t(x=1, y=?)`."""


def expected(allow: str, ask: str, deny: str) -> str:
    """The decision table of DESIGN 2.11: deny beats ask beats allow; what is not known asks."""
    if deny == "yes":
        return "deny"
    if ask == "yes" or "unknown" in (ask, deny):
        return "ask"
    return {"yes": "allow", "unknown": "ask", "no": ""}[allow]


@pytest.mark.parametrize("fits", list(product(FITS, repeat=3)))
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_the_decision_table(fits: tuple[str, str, str], order: tuple[int, ...]) -> None:
    rules = [f'decide = "{decide}"\n{FITS[how]}' for decide, how in zip(("allow", "ask", "deny"), fits, strict=True)]
    found = policy(*(rules[index] for index in order))
    assert said(found, "t", {"x": "1"}, unknown=frozenset(("y",))) == expected(*fits)


MANY = [
    f'decide = "{decide}"\n{conditions}'
    for decide in ("allow", "ask", "deny")
    for conditions in (
        'tool = "t"', 'args.x = "docs/**"', 'args.x = ["docs/*", "src/*"]', 'args.x = "**/*.md"', "args.x = {max = 10}",
        'args.x = {regex = "d.*"}', 'args.x = "1"\nargs.y = {max = 3}', 'command = ["git status *", "ls"]',
        'command = "git *"\nargs.x = "docs/**"', 'origin = "agent"\nargs.x = "docs/**"', 'host = "a.*"\nargs.x = "s*"',
        'args.path = "docs/**"', 'args.command = "ls*"', 'command = "*"', 'plan = "other"\nargs.x = "docs/**"',
    )
]  # fmt: skip
CALLS: list[dict[str, Any]] = [
    *({"x": value} for value in ("docs/a", "./docs/a", "docs/../b", "src/a/b", 1, 10.5, True, None, [], ["src/a", 3])),
    *({"command": text} for text in ("ls", "git status -s && ls", "rm a; ls", "env ls", "ls $HOME", 5, "sh -c 'ls'")),
    *({"path": "link", "x": "1", "y": value} for value in (3, 4, "3", None)), {},
]  # fmt: skip


def test_a_rule_that_is_left_out_does_not_fit() -> None:
    rules, left = policy(*MANY), 0
    for args, unknown, path in product(CALLS, ((), ("x",), ("command",), ("y",)), ("docs/a", "src/a", None)):
        call = Judged("t", args, "command", {"path": path} if "path" in args else {}, frozenset(unknown), ANN)
        compared = rules.of_tool("t", ANN.plan).of(call)
        others = [each for each in rules.rules if each not in compared]
        assert [each.rule for each in others if _fits(rules, each, call) is not _NO] == [], (args, unknown, path)
        left += len(others)
    assert left > 3_000, "control: many are left out"


def test_of_many_rules_a_call_is_compared_with_few() -> None:
    numbers = range(100)
    rules = policy(
        *(f'decide = "deny"\nargs.path = "docs/{number}/**"' for number in numbers),
        *(f'decide = "deny"\ncommand = "make part-{number} *"' for number in numbers),
        *(f'decide = "deny"\nargs.x = {{max = -{number}}}' for number in numbers),
    )
    for args, names in (
        ({"path": "docs/7/a"}, ["r7"]),
        ({"command": "make part-7 b"}, ["r107"]),
        ({"x": -1.5}, ["r200", "r201"]),
    ):
        found = rules.of_tool("t").of(Judged("t", args, "command"))
        assert [each.rule.name for each in found] == names


def test_two_allows_of_which_one_is_not_known_allow() -> None:
    found = policy('decide = "allow"\nargs.x = "1"', 'decide = "allow"\nargs.y = "1"')
    assert said(found, "t", {"x": "1"}, unknown=frozenset(("y",))) == "allow"


def test_a_verdict_names_the_rules_that_decided() -> None:
    found = policy('decide = "allow"', 'decide = "ask"', 'decide = "ask"\ntool = "t*"', 'decide = "ask"\ntool = "x"')
    assert judge(found, Judged("tool", {})) == Verdict(
        "ask", ("r1", "r2"), "rule 'r1' and rule 'r2' of the policy asks"
    )


def test_without_a_rule_that_fits_nothing_is_said() -> None:
    assert said(policy('decide = "deny"\ntool = "other"'), "t") == ""


@pytest.mark.parametrize(
    ("pattern", "tool", "fits"),
    [
        ("read_file", "read_file", True), ("read_*", "read_file", True), ("read_*", "write_file", False),
        ("tracker.*", "tracker.create", True), ("tracker.*", "trackers.create", False), ("*", "anything", True),
        ("READ_FILE", "read_file", False), ("read_fil?", "read_file", True), ("[rw]*_file", "write_file", True),
    ],
)  # fmt: skip
def test_tools_by_glob(pattern: str, tool: str, fits: bool) -> None:
    assert (said(policy(f'decide = "deny"\ntool = "{pattern}"'), tool) == "deny") is fits


@pytest.mark.parametrize(
    ("condition", "value", "fits"),
    [
        ('"docs/**"', "docs/a.md", True), ('"docs/**"', "docs/a/b.md", True), ('"docs/**"', "docs", False),
        ('"docs/*"', "docs/a.md", True), ('"docs/*"', "docs/a/b.md", False), ('"**/*.md"', "a.md", True),
        ('"**/*.md"', "a/b/c.md", True), ('"a/**/b"', "a/b", True), ('"a/**/b"', "a/x/y/b", True),
        ('"a/**/b"', "ab", False), ('["a", "b"]', "b", True), ('["a", "b"]', "c", False), ('"true"', True, True),
        ('"1"', 1, True), ('{regex = "v[0-9]+"}', "v12", True), ('{regex = "v[0-9]+"}', "xv12", False),
        ('{regex = "v[0-9]+"}', "v12\n", False), ("{max = 10}", 10, True), ("{max = 10}", 10.5, False),
        ('"a*"', ["ab", "ac"], True), ('"a*"', ["ab", "b"], False), ('"*"', None, False),
    ],
)  # fmt: skip
def test_arguments(condition: str, value: object, fits: bool) -> None:
    assert (said(policy(f'decide = "allow"\nargs.x = {condition}'), "t", {"x": value}) == "allow") is fits


@pytest.mark.parametrize("value", ["10", True, None, [1]])
def test_what_is_no_number_is_never_small_enough(value: object) -> None:
    assert said(policy('decide = "allow"\nargs.x = {max = 10}'), "t", {"x": value}) != "allow"


def test_one_item_of_a_list_is_enough_for_a_deny() -> None:
    assert said(policy('decide = "deny"\nargs.x = "a*"'), "t", {"x": ["b", "ab"]}) == "deny"


def test_a_path_counts_after_its_links() -> None:
    allow, deny = policy('decide = "allow"\nargs.path = "docs/**"'), policy('decide = "deny"\nargs.path = "docs/**"')
    assert said(allow, "t", {"path": "docs/a"}, paths={"path": "docs/a"}) == "allow"
    assert said(allow, "t", {"path": "docs/link"}, paths={"path": "src/main.py"}) == ""
    assert said(allow, "t", {"path": "link"}, paths={"path": "docs/a"}) == "allow"
    assert said(allow, "t", {"path": "docs/../../x"}, paths={"path": None}) == "ask"
    assert said(deny, "t", {"path": "docs/link"}, paths={"path": "src/main.py"}) == "deny"
    assert said(deny, "t", {"path": "link"}, paths={"path": "docs/a"}) == "deny"


@pytest.mark.parametrize("value", ["docs/../src/x", "docs/..", "../docs/x", "docs\\..\\x"])
def test_a_path_that_climbs_is_not_known(value: str) -> None:
    assert said(policy('decide = "allow"\nargs.target = "docs/**"'), "t", {"target": value}) != "allow"


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://api.example.org/x", "api.example.org"), ("https://API.Example.ORG:443/x", "api.example.org"),
        ("http://example.org.", "example.org"), ("https://example.org@evil.net/", None), ("ftp://example.org", None),
        ("https://evil.net/?a=@example.org", "evil.net"), ("https://example.org\\@evil.net", None),
        ("https://evil.net#@example.org", "evil.net"), ("//example.org", None), ("example.org", None), (5, None),
        ("https:///x", None), ("https://exa\tmple.org", None), ("https://[::1]/", "::1"), ("https://[x/", None),
        ("https://evil.net\n.example.org", None),
    ],
)  # fmt: skip
def test_hosts_are_parsed_as_http_request_does(url: object, host: str | None) -> None:
    assert host_of(url) == host


def test_a_host_without_a_name_asks() -> None:
    found = policy('decide = "allow"\nhost = "*.example.org"')
    assert said(found, "http_request", {"url": "https://a.example.org/"}) == "allow"
    assert said(found, "http_request", {"url": "https://a.example.org@evil.net/"}) == "ask"
    assert said(found, "http_request", {"url": "https://evil.net/.example.org"}) == ""
    assert said(found, "http_request", {"url": "https://evilexample.org/"}) == ""


def test_plan_and_origin() -> None:
    found = policy('decide = "allow"\nplan = "nightly*"', 'decide = "deny"\norigin = "agent"')
    assert said(found, "t", asker=ANN) == "allow"
    assert said(found, "t", asker=Asker(plan=("nightly",), origin="agent")) == "deny"
    assert said(found, "t", asker=Asker(plan=("weekly",))) == ""
    assert said(found, "t", asker=None) == "ask"


def test_who_has_read_the_plan_may_not_be_known() -> None:
    assert said(policy('decide = "deny"\norigin = "agent"'), "t", asker=Asker(origin="")) == "ask"
    assert said(policy('decide = "allow"\norigin = "person"'), "t", asker=Asker(origin="")) == "ask"


def test_of_several_asks_the_shortest_time_counts() -> None:
    found = policy('decide = "ask"\nexpires = "4h"', 'decide = "ask"\nexpires = "30m"', 'decide = "ask"')
    assert judge(found, Judged("t", {})).expires == 1_800


PEOPLE = '[people]\nann = {logins = ["ann@example.org"]}\nbob = {logins = ["b"]}\n[groups]\nops = ["ann"]'


def test_a_starter_counts_for_an_allow_only_if_it_is_proven() -> None:
    found = policy('decide = "allow"\nstarter = "group:ops"', more=PEOPLE)
    assert said(found, "t", asker=Asker(starter="ann", is_proven=True)) == "allow"
    assert said(found, "t", asker=Asker(starter="Ann@example.org", is_proven=True)) == "allow"
    assert said(found, "t", asker=Asker(starter="bob", is_proven=True)) == ""
    assert said(found, "t", asker=Asker(starter="ann")) == "ask"
    assert said(found, "t", asker=Asker(starter="")) == ""


def test_a_signed_start_proves_who_started_the_plan() -> None:
    """By their own key, or by a page's which vouches for the login; the name that the options have counts no more."""
    key, other = "19bf44096984cdfe8541bac167dc3b96c85086aa30b6b6cb0c5c38ad703166e1", "ab" * 32
    written = "ed25519:MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE="
    people = f'[people]\nann = {{key = "{written}"}}\nbob = {{logins = ["b"]}}\n[groups]\nops = ["ann"]'
    found = policy('decide = "allow"\nstarter = "group:ops"', more=people)

    def started(signed: str, key: str, by: str = "ann", verified: bool = False) -> str:
        proof = Spoken(by=by, signed=signed, key=key, verified=verified)
        return said(found, "t", asker=Asker(starter=by, started=proof))

    assert started("ann", key) == "allow"
    assert [started("ann", other), started("eve", key), started("", "")] == ["ask", "ask", "ask"]
    paged = policy(
        'decide = "allow"\nstarter = "bob"', more=f'[people]\nbob = {{logins = ["b"]}}\n[pages]\nteam = "{written}"'
    )
    proof = Spoken(by="b", signed="page:team", key=key, verified=True)
    assert said(paged, "t", asker=Asker(starter="b", started=proof)) == "allow"
    unproven = proof.model_copy(update={"verified": False})
    assert said(paged, "t", asker=Asker(starter="b", started=unproven)) == "ask"


def test_whoever_a_deny_is_about_cannot_say_another_name() -> None:
    found = policy('decide = "deny"\nstarter = "bob"', more=PEOPLE)
    assert said(found, "t", asker=Asker(starter="bob")) == "deny"
    assert said(found, "t", asker=Asker(starter="ann")) == "ask"
    assert said(found, "t", asker=Asker(starter="ann", is_proven=True)) == ""
