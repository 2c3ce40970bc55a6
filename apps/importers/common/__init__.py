"""What both importers use: expressions, names, the report, and the YAML of the plan that they write."""
