"""What an agent tells the plan it works for, and what the plan makes of it: `report` on its side, `accounts` there."""
