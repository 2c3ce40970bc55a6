"""The user service: `plan up` as a service of this user, under systemd or launchd (`plan up --install`).

`unit.py` is what the service manager is told, `install.py` tells it.
"""
