"""What guards a plan as a whole: its deadline, and a workspace that it has to itself. Decides; `workflows.guards` does.
Imports the run and the schedule, nothing that has to do with single tools.
"""
