"""What a planning prompt says about control flow: loops, blocks, alternatives, catches (DESIGN 2.8).

Several strict endpoints refuse a schema that contains itself, and one unrolled three levels repeats every tool in each
place; so what is inside a block is JSON written as text.
"""

from __future__ import annotations

from collections.abc import Iterable

_FIELDS = """\
A step may also have these fields. Use them only where they are needed.
- "when": "build.exitCode == `0`": a JMESPath condition over earlier steps and inputs; false skips the step. Numbers,
  true and false are in backticks, texts in single quotes.
- "forEach": "$list.files": runs the step once for each item of a list that an earlier step gives; "{{item}}",
  "{{index}}" and "{{key}}" may be used inside it. {"items": "$list.files", "key": "name", "tolerate": 1,
  "maxParallel": 4} also names the items by a field of theirs, and says how many may fail. The step's value is the list
  of values, in order. Never write the same steps once for each file: use "forEach".
- "repeat": {"until": "state == 'done'", "limit": 10, "delay": 30}: runs the step again until the condition over its own
  value holds.
- "express": true, of a loop or a block with dozens of steps that only read, search, write or edit files: they run many
  at a time, in milliseconds each. Not where a person should see each of them, or where steps take seconds.
- "catch": [{"codes": ["HTTP_STATUS"], "steps": [...]}]: steps that run instead when it has failed with one of these
  codes (none given: any); "{{error.code}}" and "{{error.message}}" say what happened.
Instead of a tool and args a step may have
- "steps": [...]: a block. Its steps are written as in a plan, with ids of their own, and may use each other and what is
  before the block. From outside only the block has a value, an object: "$work.report" is the value of its step
  "report". A block may have "forEach", "repeat", "catch" and "when"; that is how several steps run for each item.
- "switch": [{"when": "...", "steps": [...]}, {"steps": [...]}]: the first alternative that holds; the last has no
  "when"."""
EXAMPLE = """\
{"id": "convert", "description": "Copy each table, three at a time",
 "forEach": {"items": "$list", "key": "@", "maxParallel": 3},
 "steps": [
  {"id": "read", "description": "Read the table", "tool": "read_file", "args": {"path": "{{item}}"}},
  {"id": "save", "description": "Copy it", "tool": "write_file", "args": {"path": "out/{{item}}", "content": "$read"}}
 ]}"""
AGENT_EXAMPLE = """\
{"id": "review", "description": "Review each file", "forEach": "$list", "tool": "agent",
 "args": {"objective": "Review {{item}} and list its mistakes."}}"""
_OF_TOOLS = {
    "agent": f'The tool "agent" can be mapped as well, one agent for each item:\n{AGENT_EXAMPLE}',
    "ask": 'The tool "ask" asks a person a question; its value is the answer. Use it for what only people can know.',
    "wait_for": 'The tool "wait_for" waits for an event from outside; its value is the event\'s data.',
    "plan": 'The tool "plan" runs another plan: a file, a saved template, or steps; its value is that plan\'s outputs.',
}
_AS_TEXT = """\
Where the schema of the answer has text for "steps", "switch", "forEach", "repeat" or "catch", write their JSON as that
text."""


def control_flow(tools: Iterable[str]) -> str:
    """The section, with what is said about the tools that are available."""
    known = set(tools)
    rows = [_FIELDS, f"Two steps for each file of a list:\n{EXAMPLE}"]
    return "\n".join([*rows, *(text for name, text in _OF_TOOLS.items() if name in known), _AS_TEXT])
