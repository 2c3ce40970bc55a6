"""What the page loads is in the tree, is what its makers published, and leads nowhere else."""

from __future__ import annotations

import re

from plansurvive.apps.web.common.assets import STATIC, files
from plansurvive.apps.web.common.rendering import TEMPLATES, environment
from scripts import vendor


def test_vendored_files_are_those_of_the_manifest() -> None:
    assert vendor.problems() == []
    assert all(entry["licence"] for entry in vendor.entries())


def test_a_changed_or_unlisted_file_would_be_found() -> None:
    name = vendor.entries()[0]["files"][0]["to"]
    listed = {name: "0" * 64, "gone.js": "0" * 64}
    present = {name: vendor.digest(b"x"), "more.js": "1" * 64}
    said = [vendor._difference(each, listed, present) for each in (name, "gone.js", "more.js")]
    assert said == ["differs from the manifest", "missing", "not in the manifest"]


def test_our_styles_and_scripts_name_no_address_outside() -> None:
    own = [path for name, path in files().items() if path.suffix in (".js", ".css") and not name.startswith("vendor/")]
    assert own
    for path in own:
        assert not re.search(r"https?://(?!www\.w3\.org/)", path.read_text()), path
    assert (STATIC / "icon.svg").is_file()


def test_every_template_compiles_and_none_ends_escaping() -> None:
    names = [path.relative_to(TEMPLATES).as_posix() for path in TEMPLATES.rglob("*.html")]
    assert "base.html" in names
    for name in names:
        environment().get_template(name)
        text = (TEMPLATES / name).read_text()
        assert "autoescape" not in text
        assert not re.search(r"<script(?![^>]*\ssrc=)|<style|\sstyle=|\son[a-z]+=|javascript:|\sjs:", text), name


def test_the_filter_that_usually_ends_escaping_escapes_more() -> None:
    shown = environment().from_string("{{ x | safe }} {{ x }} {{ x | verbatim }}").render(x="<b>\u202e")
    assert shown == "&lt;b&gt;\\u202e &lt;b&gt;\\u202e &lt;b&gt;\u202e"
