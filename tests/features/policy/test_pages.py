"""The page `/policy`: what came of calls, and a form that says what would come of one."""

from __future__ import annotations

import httpx
import pytest

from plansurvive.runtime.settings import Settings
from tests.apps.web.decisions.conftest import ann as ann
from tests.apps.web.decisions.conftest import service as service

pytestmark = pytest.mark.uses("policy")

TEXT = '[[rule]]\nname = "docs"\ntool = "write_file"\nargs.path = "docs/**"\ndecide = "ask"\ncount = 2\n'


async def test_a_call_is_tried_on_the_page_as_by_command(settings: Settings, ann: httpx.AsyncClient) -> None:
    path = settings.state_dir / "policy.toml"
    path.write_text(TEXT)
    path.chmod(0o600)

    async def said(**given: str) -> str:
        return " ".join((await ann.get("/policy", params=given)).text.split())

    assert "Try a call" in await said()
    text = await said(tool="write_file", args='{"path": "docs/a.md", "content": "x"}')
    assert "<strong>ask</strong>: rule &#39;docs&#39; of the policy asks; rule &#39;docs&#39;: 2 of" in text
    assert "<strong>as without a policy</strong>" in await said(tool="write_file", args='{"path": "a.md"}')
    assert "did you mean &#39;write_file&#39;" in await said(tool="wirte_file")
    assert "write an object" in await said(tool="write_file", args="[]")
