"""At most so many plans at a time with the same label: docs/quotas.md."""

REACHES_OUT = True
READS = {"quotas.toml": ("", "quotas_file:read_quotas")}
ACTIVITIES = ("ask_for_place", "ended_of_quota")
COMMANDS = {"quotas": ("commands:quotas", "Show the limits of plans per label, and which wait.")}
LISTED = {"quotas": ("Look", "diff")}
OPTIONS = {"list": {"label": ("NAME[=VALUE]...", "Only plans with this label; may be given more than once.")}}
