"""Plans as tasks: the extension `io.modelcontextprotocol/tasks` of MCP 2026-07-28. A task has the id of its plan.

`extension.py` serves tasks/get, tasks/update, tasks/cancel and answers tools/call with a task; `looking.py` reads the
plan, `wire.py` says what it is as a task (pure), `listen.py` tells of changes. May import what `client` may.
"""
