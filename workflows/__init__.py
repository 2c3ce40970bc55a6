"""When things happen: deterministic workflows over the decisions of `plans`."""
