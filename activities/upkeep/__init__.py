"""The activity that collects garbage in the state directory of its worker, for a schedule. Imports `runtime.upkeep`."""
