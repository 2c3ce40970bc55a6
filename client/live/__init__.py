"""What runs at this moment: attempts, waits and progress, read from the server's list of pending activities.

Plans do not know them (`plans.views.models.live`). Reading them adds nothing to a plan's history and needs no worker.
"""
