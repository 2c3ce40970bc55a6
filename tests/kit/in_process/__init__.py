"""Temporal in this process: workers and clients of ours as they are, without a server and without the SDK's core.

The real `Client`, `Worker`, converter, runner and activities run; what they would send to a server goes to `Server`, an
object of this process, which gives workflow tasks and activity tasks to the workers made with its client. So a plan in
a test costs no process, no connection and no protocol. Everything of ours is real: workflow code, activities, files,
payloads. What only a server has (visibility, schedules, versions of workers, limits of sizes, its own histories on
disk) is refused with UNIMPLEMENTED: such a test says so with the mark `on_server`.

| module | what it is |
| --- | --- |
| server | the service that a client calls: executions by id, task queues, each call of the API |
| execution | one run of a workflow: its history, what it has not been told yet, what its commands set off |
| activity | one activity as the server sees it: attempts, time limits, heartbeats, cancellation |
| core | what the SDK's core is to a worker: tasks are polled from it, and it keeps runs cached or replays them |
| clock | the time of all runs; it skips what nothing but timers would fill while somebody awaits a result |

A replay compares commands with those of the first time, so code that is not deterministic fails as it would elsewhere.
"""

from tests.kit.in_process.server import Server

__all__ = ["Server"]
