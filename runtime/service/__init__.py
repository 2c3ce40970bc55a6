"""Parts of a server and of workers that run by themselves: locks of a start, signals that stop, arguments, queues.

`runtime.up` and `runtime.presence` put them together; `apps/service` makes a user service of `plan up`.
"""
