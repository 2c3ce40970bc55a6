"""What the shell completes: ids of plans and of their steps. May import what commands import; never starts anything."""
