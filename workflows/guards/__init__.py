"""What guards a plan as a whole, as it happens: its deadline, and a workspace of its own; `plans.guards` decides."""
