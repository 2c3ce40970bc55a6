"""The attacks on the web page: what is tried, what holds, and which tests try it. The table of docs/security.md."""

from __future__ import annotations

from typing import NamedTuple

from scripts.generated import between

BEGIN, END = "<!-- web attacks: begin (python -m scripts.attack_table --web) -->", "<!-- web attacks: end -->"
FOLDER = "tests/apps/web/"


class WebAttack(NamedTuple):
    """One attack. `tests`: node ids below tests/apps/web."""

    kind: str
    tried: str
    held_by: str
    tests: tuple[str, ...]


_BROWSER = "access/test_browser_attacks.py::"
_ROUTES = "access/test_routes.py::"
_OIDC = "access/test_oidc.py::"
_LIMITS = "access/test_limits.py::"
_LINKS = "one_time/test_links.py::"
ATTACKS = (
    WebAttack(
        "requests of another page (CSRF)",
        "a form, fetch with and without CORS; from another site, and from another port of this machine, where the"
        " cookie is sent; every form of the page",
        "`Origin`, `Sec-Fetch-Site`, a token of the session in every form",
        (
            _BROWSER + "test_a_page_of_another_site_or_port_changes_and_reads_nothing",
            _ROUTES + "test_each_form_is_refused_without_its_token_and_from_another_page",
        ),
    ),
    WebAttack(
        "another name for this machine (DNS rebinding)", "pages, forms and the link itself, in a browser",
        "`Host` is the page's own or nothing is answered",
        (_BROWSER + "test_a_name_that_was_pointed_at_this_machine_sees_nothing",),
    ),
    WebAttack(
        "frames, pictures, scripts (clickjacking)", "the page in a frame, as a picture and as a script of another one",
        "`Sec-Fetch-Dest`, `frame-ancestors 'none'`, `X-Frame-Options`",
        (
            _BROWSER + "test_a_page_of_another_site_or_port_changes_and_reads_nothing",
            _ROUTES + "test_other_pages_may_open_a_page_and_do_nothing_else",
        ),
    ),
    WebAttack(
        "a window opened by another page", "reaching into it from its opener", "`Cross-Origin-Opener-Policy`",
        (_BROWSER + "test_a_window_that_was_opened_by_another_page_is_out_of_its_reach",),
    ),
    WebAttack(
        "texts that would be scripts (XSS)",
        "titles, descriptions, arguments, values, errors, output, file names, diffs, keys of items, questions, choices,"
        " on every page in the table of routes",
        "everything is escaped, and no inline script runs",
        ("access/test_script_attacks.py::test_no_text_of_a_plan_runs_on_any_page",),
    ),
    WebAttack(
        "the secret link, used by another", "from the browser's history, `Referer`, the opener, scripts; guessing",
        "it leaves the address at once; a new one at each start; `HttpOnly`",
        (
            _BROWSER + "test_the_link_leaves_no_trace_and_is_of_no_use_to_another_page",
            "test_guard.py::test_the_secret_is_new_at_each_start_and_for_this_user_only",
            "access/test_sessions.py::test_wrong_secrets_of_one_address_are_counted_for_a_minute",
        ),
    ),
    WebAttack(
        "sessions", "an id chosen by the attacker (fixation), one that has ended, one that was changed",
        "an id is made at login only, in memory; a logout ends it",
        (
            _OIDC + "test_a_session_is_made_at_login_and_ends_with_the_logout",
            "test_guard.py::test_a_cookie_that_was_not_given_out_is_refused",
            "access/test_sessions.py::test_a_session_ends_when_it_is_not_used",
        ),
    ),
    WebAttack(
        "more than a role allows", "every route, with every lower role and with none",
        "`needs` at every handler that changes something, or nothing is served",
        (
            _ROUTES + "test_each_route_refuses_those_whose_role_is_too_low",
            _ROUTES + "test_each_route_asks_for_a_login_but_those_that_are_open",
            _ROUTES + "test_a_route_that_does_not_say_who_may_use_it_is_found",
            _OIDC + "test_a_role_that_is_taken_away_counts_at_once",
        ),
    ),
    WebAttack(
        "false tokens of a login",
        "another nonce, audience, issuer, key, kind of key; unsigned; signed with a public key or the client's secret;"
        " expired; without a name; an address that is not verified",
        "asymmetric algorithms, the issuer's keys, every claim is required",
        (_OIDC + "test_a_token_that_is_not_what_it_should_be_lets_nobody_in",),
    ),
    WebAttack(
        "logins of somebody else", "another state, another browser's answer, a code used twice, another issuer",
        "state, nonce and PKCE verifier in the browser that began",
        (
            _OIDC + "test_an_answer_counts_in_the_browser_that_began_and_for_its_state_only",
            _OIDC + "test_a_code_works_once",
            _OIDC + "test_an_issuer_that_leads_elsewhere_without_tls_is_refused",
        ),
    ),
    WebAttack(
        "the header of a proxy", "from another address, with forwarded addresses, twice, with a wrong secret",
        "the address of the connection, and a shared secret",
        (
            "access/test_proxy.py::test_the_header_is_refused_from_everywhere_else",
            "access/test_proxy.py::test_a_proxy_with_a_secret_must_send_it",
            "access/test_proxy.py::test_a_name_that_is_not_one_is_refused",
        ),
    ),
    WebAttack(
        "one-time links", "opened by a scanner, used twice, in the same moment, forged, for another call, expired",
        "a MAC of the whole call; a POST decides; a lock and a record of its use",
        (
            _LINKS + "test_opening_a_link_shows_the_whole_call_and_decides_nothing",
            _LINKS + "test_the_button_decides_once_in_the_name_of_the_person",
            _LINKS + "test_of_two_clicks_in_the_same_moment_one_decides_and_the_other_sees_what",
            _LINKS + "test_a_link_about_another_call_version_or_step_decides_nothing",
        ),
    ),
    WebAttack(
        "leading elsewhere", "open redirects after a login or a form; line breaks in headers",
        "only paths of the page itself",
        (
            _OIDC + "test_a_login_never_leads_to_another_site",
            "test_forms.py::test_the_answer_never_leads_to_another_site",
        ),
    ),
    WebAttack(
        "too much, or too slowly",
        "heads and bodies a byte at a time, large ones, 10,000 fields, 200 headers, long addresses; paths out of the"
        " static files",
        "limits of time and size before anything is read",
        (
            _LIMITS + "test_a_connection_that_sends_its_head_slowly_is_closed",
            _LIMITS + "test_a_body_that_comes_slowly_is_given_up",
            _LIMITS + "test_a_request_that_is_too_large_or_bent_is_refused",
            _LIMITS + "test_a_form_has_limits_of_bytes_and_fields",
        ),
    ),
)  # fmt: skip


def table() -> str:
    """The text between the markers."""
    rows = ["| attack | tried | held by |", "| --- | --- | --- |"]
    return "\n".join([*rows, *(f"| {each.kind} | {each.tried} | {each.held_by} |" for each in ATTACKS)])


def written(document: str) -> str:
    """The document with the table between its markers. Raises ValueError if it has no markers."""
    return between(document, BEGIN, END, table())
