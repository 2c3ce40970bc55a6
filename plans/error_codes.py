"""What every error code means, and what to do about it: the source of docs/reference/errors.md.

A code is stable: users, scripts and `catch` rely on it. It stands in the table of the place where it is seen; a test
finds codes that are in none. `docs/PAGE.md` in a text becomes a link.
"""

from __future__ import annotations

Table = dict[str, tuple[str, ...]]
"""The cells of a code's row: its meaning, then a remedy, whether it is retried, or an exit code or status."""

PLAIN = frozenset((
    "ALREADY_DECIDED", "BAD_SIGNATURE", "CLOSING", "DIGEST_REQUIRED", "IS_A_QUESTION", "MESSAGE_TOO_LARGE",
    "NONE_AWAITS", "NOT_A_QUESTION", "NOT_CLOSING", "NOT_IN_REVIEW", "NOT_PAUSED", "NOT_RUNNING", "PLAN_CLOSED",
    "REPLAYED", "RESET", "STALE_DIGEST", "STALE_VERSION", "TOO_EARLY", "TOO_LATE", "UNKNOWN_SIGNAL", "UNKNOWN_STEP",
    "UNSIGNED", "VOID",
))  # fmt: skip
"""Codes of refused messages whose sentences name steps, people, versions and statuses only: they quote nothing sent."""

EXIT_CODES: Table = {
    "0": ("success; every step was completed, or skipped by a reviewer or a condition",),
    "1": (
        "the plan ended as `partial`, `failed` or `cancelled`, a replay or record differs, or the command failed "
        "unexpectedly",
    ),
    "2": ("invalid plan, argument, message or setting; nothing was started or changed",),
    "3": ("no Temporal server could be reached or started, or no worker answers",),
    "4": ("no plan with that id, no schedule with that name, no record to replay",),
    "5": ("the plan ended as `partial`, for no other reason than decisions that did not come in time",),
    "130": ("interrupted with Ctrl-C; the plan keeps running",),
}

PLANS: Table = {
    "FEATURE_MISSING": (
        "the worker lacks a feature that the plan was started with; its workflow task fails, and the plan waits",
        "start a worker that has the feature",
    ),
    "NO_PLANNER": (
        "the plan is asked for in words, and no feature of its worker writes plans",
        "start a worker that has the feature `planning`, or write the steps",
    ),
    "INVALID_PLAN": ("the plan has problems; all of them are listed", "fix them; `plan check`"),
    "PLAN_NOT_JSON": ("invalid JSON at that position", "fix the file"),
    "PLAN_NOT_YAML": ("invalid YAML at that position, or YAML that JSON cannot express", "fix the file"),
    "PLAN_TOO_LARGE": ("too many bytes, steps or arguments", "split the plan, or put the data into files"),
    "PLAN_TOO_DEEP": (
        "nested deeper than 64 levels, or steps inside each other more than 16 levels deep",
        "flatten the arguments; move a part into another plan",
    ),
    "PLAN_NOT_FINITE": ("NaN or an infinity", "write a number or a string"),
    "PLAN_BAD_TEXT": ("a lone surrogate, or NUL in a path or id", "write the whole character"),
    "PLAN_SCHEMA": (
        "a field is missing, unknown, or of the wrong type",
        "the message names the field, and the nearest known one",
    ),
    "BAD_PLAN_ID": (
        "the workflow was started under an id that no plan can have, or the plan gives another id than its workflow",
        "start it as `plan-<planId>`; leave `id` out of the plan",
    ),
    "PLAN_DUPLICATE_KEY": ("a key occurs twice in one object", "remove one"),
    "FILE_RACE": (
        "a warning: two steps use one file, one of them changes it, and neither depends on the other",
        "if the order matters, add one to `dependsOn` of the other",
    ),
    "PLAN_DUPLICATE_ID": ("two steps have the same id", "rename one"),
    "PLAN_CYCLE": ("steps depend on each other in a circle; they are named", "remove one dependency"),
    "BAD_APPROVAL": (
        "`approval` says who must approve a step, and the worker cannot tell, or the step makes no call that it judges;"
        " a warning: a name that policy.toml does not have",
        "`[people]` in the worker's policy.toml (docs/policy.md)",
    ),
    "UNKNOWN_DEPENDENCY": (
        "`dependsOn` names a step that does not exist, or is not in the same block",
        "fix the name; name the block",
    ),
    "UNKNOWN_TOOL": ("the worker has no tool with that name", "`plan tools`; `PLANS_TOOLS` for your own"),
    "INVALID_ARGS": ("arguments the tool does not accept", "`plan tools NAME`"),
    "BAD_KEY": ("two items of a `forEach` have the same `key`, or one has none", "name a field that differs"),
    "UNKNOWN_SECRET": (
        "the plan names a secret (docs/secrets.md) that secrets.toml does not have",
        "`plan secrets list`",
    ),
    "SECRET_REFUSED": (
        "a tool, a host or a model may not have that secret (docs/secrets.md); a worker says so too",
        "secrets.toml on the worker",
    ),
    "SECRET_MISPLACED": (
        "a secret (docs/secrets.md) where it has no value or others would see it: in a condition, code, an output, "
        "beside another reference",
        "the message says where it can stand",
    ),
    "BAD_REFERENCE": (
        "a reference to an unknown step, to itself, to a step inside a block from outside of it, to a field that its"
        " value cannot have, or in a place where a value cannot be inserted safely",
        "the message says how to write it",
    ),
    "BAD_EXPRESSION": ("a JMESPath expression that cannot be parsed or evaluated", "fix it"),
    "EXPRESSION_TOO_COSTLY": (
        "a condition, or the paths of a step's references, take more than a million operations or make a value that "
        "large",
        "select less, or compute the value in a step",
    ),
    "NO_DEFAULT_CASE": (
        "a warning: a `switch` in which nothing runs if no condition holds",
        "add a case without `when`, if that is not meant",
    ),
    "NEVER_RUNS": ("a warning: a `catch` that never catches anything", "remove it, or move it before the other"),
    "UNKNOWN_CODE": ("a warning: a `catch` of a code that is probably misspelt", "use the code that the message names"),
    "UNKNOWN_TARGET": (
        "a warning: `notify` names a target that notify.toml does not have; an error of `plan notify test`",
        "name one of them (docs/notifications.md#targets); `plan notify list`",
    ),
    "HIDDEN_NAME": ("a warning: the variable of a loop hides a step of the same name", "choose another name with `as`"),
    "ALWAYS_NULL": (
        "a warning: an expression that gives null whatever happens, because it begins with a name that has no "
        "meaning there",
        "the message says what the expression is about",
    ),
    "NEVER_TRUE": (
        "a warning: a comparison of a number with a text, of texts by size, or with a word that names a field",
        "the message says how to write it",
    ),
    "BUDGET_NOT_HELD": (
        "a warning: a coding agent does not report what it spends, or is not known to, and a limit of the budget "
        "counts what it reports",
        "the message says which limit; a `timeout` of the step holds as well",
    ),
    "CONSTANT_CONDITION": ("a warning: a condition that uses no value", "remove it, or name a step or an input"),
    "NOT_A_REFERENCE": (
        "a warning: the name of a step that is not a reference, as in `{{length(a)}}`, or `$a` in a shell command",
        "`{{a | length(@)}}`, `{{a}}`, or `{{{{...}}}}` for the text",
    ),
    "NO_EFFECT": ("a warning: a field that blocks do not use", "set it on the steps of the block"),
    "UNKNOWN_INPUT": ("`--input` names an input the plan does not declare", "fix the name"),
    "MISSING_INPUT": ("an input without a default was not given", "`--input name=value`"),
    "BAD_INPUT": ("an input of the wrong type, or not of the form `name=value`", "pass a value of the declared type"),
    "BAD_WORKSPACE": ("the workspace is not a usable directory", "create it, or name another"),
    "WORKSPACE_MOVED": (
        "a plan is resumed, or a child begins, and under the workspace's path is another directory than before",
        "put it back, or `plan resume ID --workspace DIR`",
    ),
    "WORKSPACE_REFUSED": (
        "the directory is never a workspace, or the worker's settings do not allow it",
        "name another (docs/files.md#which-directories-may-be-workspaces), with `--workspace`; `PLANS_WORKSPACES`",
    ),
    "ARGS_TOO_LARGE": ("the arguments are too large once references are filled in", "pass the values in a file"),
    "BAD_REQUEST": ("the request to the LLM is empty or too long", "say what the plan should achieve"),
    "MORE_PROBLEMS": (
        "there are more problems than are listed; after 2,000 the check stops",
        "fix the listed ones first",
    ),
    "UNKNOWN_TEMPLATE": (
        "neither the project nor you have a template of this name, or it has no such version",
        "the message has the nearest name; `plan template list`",
    ),
    "AMBIGUOUS_TEMPLATE": (
        "the name or the hash fits several templates or versions",
        "write `NAME@HASH`, or more of the hash",
    ),
    "TEMPLATE_CHANGED": (
        "a file of a template was edited or removed after it was saved",
        "save it as a new version, or restore it",
    ),
    "NOT_A_DIRECTORY": (
        "`plan init`: a file is where a directory must be",
        "name another directory, or move the file away",
    ),
    "UNKNOWN_FORMAT": (
        "`plan import`: neither a GitHub Actions workflow nor a Serverless Workflow",
        "nothing else can be imported; `plan init` makes a first plan to write from",
    ),
    "NOTHING_CARRIED": ("`plan import`: no job or task could be carried over", "write the plan by hand"),
    "BAD_TEMPLATE": (
        "the name cannot be one, or a link, a pipe or a file of more than 8 MB is in its place",
        "the message says which",
    ),
    "AGENT_FAILED": (
        "the agent's model could not be reached, or gave no usable answer; a coding agent reported an error",
        "`plan show ID`, then `plan resume ID`",
    ),
    "AGENT_SCHEMA": ("the agent's workflow was started with malformed input", "the message shows valid input"),
    "RUN_INVALID": (
        "the state that a plan or an agent was started with is inconsistent, or no draft",
        "the message says what; `plan resume` makes a sound one",
    ),
    "CHANGES_SCHEMA": ("the request for a plan's file changes was malformed", "the message shows valid input"),
    "BAD_EXPRESS": (
        "a step that calls one tool asks for `express` (docs/express.md): it is one activity in any case",
        "set `express` on the plan, or on the block or loop that the step is in",
    ),
    "BAD_WORKTREE": (
        "`worktree: true` (docs/worktrees.md) of a step that works on no files, inside another one that has it, or "
        "where workers have a workspace each",
        "the message says where it belongs",
    ),
    "EXPRESS_PAYS": (
        "a warning: more than 200 calls of the plan are quick, and each would be an activity of its own",
        "set `express: true` on the plan (docs/express.md), or `express: false`",
    ),
    "BAD_CACHE": (
        "a pattern of `cache.reads` leads out of the workspace or cannot be read",
        "the message says how to write it",
    ),
    "CACHE_NEVER": (
        "a warning: the step asks for results of earlier runs (docs/cache.md) and can never take one",
        "the message says why: list what it reads, say `cache.outside`, or remove `cache`",
    ),
    "BAD_OWNS": (
        "a pattern of `owns` leads out of the workspace or cannot be read",
        "the message says how to write it",
    ),
    "PLAN_FAILED": ("a critical step failed; the failure carries the summary", "`plan summary ID`"),
    "PLAN_TIMEOUT": (
        "the plan's deadline (docs/plan-files.md#deadline) has passed; its running steps are `CANCELLED`; the "
        "failure carries the summary",
        "`plan resume ID`, with more time",
    ),
    "PLAN_PARTIAL": (
        "the plan ended, and steps failed, were denied or never ran; the failure carries the summary",
        "`plan summary ID`, then `plan resume ID`",
    ),
    "RUNS_ITSELF": (
        "a warning: a plan file runs itself as a step",
        "end it with `when`; child plans are 8 deep at most",
    ),
    "PLAN_ERROR": ("an error that has no code", "read the message"),
}

STEPS: Table = {
    "NOT_FOUND": ("the file, directory or workspace does not exist", "no"),
    "EXISTS": ("something exists at that path already", "no"),
    "NO_PERMISSION": ("the worker's user has no permission", "no"),
    "NO_SPACE": ("disk full, quota or file size limit reached; where `values` is full, `plan prune` may help", "yes"),
    "NOT_REGULAR": ("a directory, device, FIFO, socket, or a file with several hard links", "no"),
    "PATH_OUTSIDE": ("the path leads out of the workspace", "no"),
    "WORKSPACE_REFUSED": (
        "the workspace leads elsewhere than when the plan was checked, or is not allowed any more",
        "no",
    ),
    "WORKSPACE_MOVED": (
        "under the workspace's path is another directory than when the plan was checked: put it back and `plan "
        "resume ID`, or continue in the present one with `plan resume ID --workspace DIR`",
        "no",
    ),
    "PATH_INVALID": ("not a usable path", "no"),
    "BINARY_FILE": ("not a text file", "no"),
    "FILE_TOO_LARGE": ("larger than the tool reads", "no"),
    "BAD_JSON": ("the file is not valid JSON", "no"),
    "CONFLICT": ("the file was modified since last read, or deleted", "no; `read_file` it again"),
    "NOT_READ": ("with `PLANS_EDITS=strict`: the run has not read the file", "no; `read_file` it first"),
    "NOT_KEPT": ("the earlier content of the file is no longer stored", "no"),
    "FILE_BUSY": ("another step is changing the file", "yes"),
    "EFFECTS_UNAVAILABLE": (
        "the effect log is locked, damaged or of another version; the message says how to repair it",
        "when locked",
    ),
    "EDIT_NO_MATCH": ("the passage does not occur; similar lines are shown", "no"),
    "EDIT_NOT_UNIQUE": ("the passage occurs more than once; the lines are listed", "no"),
    "EDIT_NO_CHANGE": ("old and new text are the same", "no"),
    "COMMAND_INVALID": ("the command or code is empty, contains NUL, or a command is longer than 128 KiB", "no"),
    "COMMAND_NOT_FOUND": ("no such program (exit code 127)", "no"),
    "COMMAND_FAILED": ("an exit code other than 0; the last lines are shown", "yes"),
    "COMMAND_TIMEOUT": ("over its time limit; killed with every process it started", "yes"),
    "RESOURCE_LIMIT": (
        "a limit of memory, CPU time or file size was reached, or the workspace has more protected files than can be"
        " guarded from a command",
        "no",
    ),
    "NO_NETWORK": ("the step asks for network access and the worker has `PLANS_SANDBOX_NETWORK=off`", "no"),
    "SANDBOX_UNAVAILABLE": (
        "the worker requires a sandbox that this host does not support, or a root worker cannot give its commands an"
        " unprivileged user",
        "no; `plan doctor`, or run the worker as an ordinary user",
    ),
    "OUTPUT_LIMIT": (
        "the command wrote more to stdout and stderr than `PLANS_OUTPUT_MB` and was killed; `plan logs` has what it "
        "wrote before",
        "no; write to a file, or raise the limit",
    ),
    "HTTP_STATUS": ("status 400 or above, or too many redirects", "for 5xx, 408, 409, 425, 429"),
    "ADDRESS_REFUSED": (
        "not a public address, or a server that the worker itself uses",
        "no; `PLANS_HTTP_ALLOW` on the worker opens it",
    ),
    "HTTP_TIMEOUT": ("no response in time", "yes"),
    "HTTP_UNREACHABLE": ("the connection failed", "yes"),
    "MCP_UNAVAILABLE": (
        "a tool server (docs/tool-servers.md) is not in mcp.toml, does not start, or cannot be reached; nothing was "
        "sent to it",
        "where it may pass",
    ),
    "NO_CODING_AGENT": (
        "agents.toml (docs/coding-agents.md) has no coding agent of that name",
        "no; add it there, or correct the name",
    ),
    "AGENTS_UNREADABLE": ("agents.toml cannot be used", "no; the message says which line, and what to do"),
    "AGENT_UNAVAILABLE": (
        "a coding agent does not start, gives no answer, or speaks another version of the protocol",
        "where it may pass",
    ),
    "AGENT_LOGIN": ("a coding agent is not logged in", "no; give it its key in `env`, or log in with its own command"),
    "AGENT_ENDED": ("a coding agent's process ended in the middle of its work", "yes, in the same session"),
    "AGENT_LOST": (
        "a coding agent's process is gone, and it cannot load its session; what it did may be half done",
        "no; look at the files, then `plan resume`, which begins a new session",
    ),
    "MCP_NO_TOOL": ("mcp.toml keeps plans from using that tool of the server", "no; `tools` and `deny` there"),
    "TOOL_CHANGED": (
        "a server's tool is not what it was when the call was decided on (docs/tool-servers.md#when-a-tool-changes),"
        " and does not take its arguments; nothing was called",
        "no; `plan tools NAME`, then edit the step",
    ),
    "MCP_ERROR": ("the tool failed; the message is the server's", "no"),
    "MCP_LOST": ("the tool server exited or disconnected during a call that may be repeated", "yes"),
    "MCP_TIMEOUT": ("the call took longer than `timeout` in mcp.toml", "if it may be repeated"),
    "MCP_LIMIT": ("the tool server sent too much: a result, messages, a list of tools", "no; ask it for less"),
    "MCP_PROTOCOL": ("the tool server's messages are not those of the protocol", "no; report it to its makers"),
    "MCP_NEEDS_INPUT": ("the tool wants to ask a person or a model something", "no; pass all it needs as arguments"),
    "MCP_LOGIN_FAILED": (
        "`plan mcp login`: the person, or the server, did not complete it",
        "no; the message says why",
    ),
    "SECRET_MISSING": (
        "a reference in mcp.toml or secrets.toml (docs/secrets.md) leads to no secret: the variable is not set, the "
        "file cannot be read",
        "only if it comes from a command; set it, and for mcp.toml start the worker again",
    ),
    "LIMIT_REACHED": (
        "a limit (docs/limits.md) is used up, and the server allows no further attempt; usually such steps wait",
        "no; `plan resume ID` later",
    ),
    "STEP_TIMEOUT": ("over the step's timeout", "yes"),
    "WORKTREE_REFUSED": (
        "the workspace is not a repository that can have worktrees (docs/worktrees.md): bare, without a commit, with "
        "submodules, Git LFS or filters, or with links in `.git`; nothing was changed",
        "no; the message says what to do",
    ),
    "WORKTREE_DIRTY": (
        "tracked files of the workspace differ from its last commit; nothing was changed",
        "no; commit or stash them, then `plan resume ID`",
    ),
    "WORKTREE_MOVED": (
        "a worktree or its branch is not as the plan left it: replaced, moved or deleted",
        "no; the message says how to put it back",
    ),
    "WORKTREE_CONFLICT": (
        "the work of steps in worktrees (docs/worktrees.md), or what undoes a merge, changes the same lines as the "
        "branch; nothing was merged. A merge asks a person, if no `catch` takes this",
        "no; `git merge` the branch by hand, or let the steps follow each other",
    ),
    "WORKTREE_NESTED": (
        "the step has made a git repository inside its worktree, whose files would be in no commit",
        "no; have it clone elsewhere, or ignore it",
    ),
    "WORKTREE_FAILED": ("git failed in a worktree; the message has its words", "no"),
    "POLICY_DENIED": (
        "a rule of the worker's policy.toml denies the call (docs/policy.md); no approval changes that",
        "no",
    ),
    "APPROVAL_EXPIRED": (
        "a rule of policy.toml says how long a decision counts (docs/policy.md), and the call began later: it asks",
        "after the decision",
    ),
    "POLICY_UNREADABLE": (
        "policy.toml is broken, gone, or others may write it (docs/policy.md); every call asks",
        "after the decision; correct the file",
    ),
    "APPROVAL_REQUIRED": ("the tool found that a person must decide; the plan asks for approval", "after the decision"),
    "APPROVAL_TIMEOUT": ("no decision in time, and `onTimeout` is `fail`", "no"),
    "ANSWER_TIMEOUT": ("no answer came in time, and `onTimeout` is `fail`, or there is no default", "no"),
    "EVENT_TIMEOUT": ("the event did not come in time", "no"),
    "DENIED": ('a person denied it: "User denied approval"; the step is skipped', "no; `plan resume` asks again"),
    "NOBODY_ANSWERED": (
        "no decision in time, and `onTimeout` is `deny`, or its `approve` does not count; the step is skipped, and "
        "counted as `unanswered`",
        "no; `plan resume` asks again",
    ),
    "AGENT_ITERATIONS": ("the step's agent reached its limit of LLM requests", "no; raise it"),
    "AGENT_TOKENS": ("the step's agent reached its limit of tokens", "no; raise it"),
    "AGENT_TIMEOUT": ("the step's agent reached its time limit", "no; raise it"),
    "AGENT_STALLED": ("the agent's model made no tool call and finished no task, three reminders included", "no"),
    "LLM_BUDGET": (
        "the plan's LLM budget is spent, and no person extended it; the error says what the agent did",
        "no; raise it and `plan resume`",
    ),
    "AGENT_INTERRUPTED": ("the agent was interrupted together with its plan", "no; `plan resume`"),
    "PLAN_FAILED": ("the step's child plan failed; the error names what failed", "no; `plan resume`"),
    "PLAN_PARTIAL": ("the step's child plan ended as partial; the error names what failed", "no; `plan resume`"),
    "PLAN_CANCELLED": ("the step's child plan was cancelled on its own", "no; `plan resume`"),
    "PLAN_INTERRUPTED": ("the step's child plan was interrupted", "no; `plan resume`"),
    "PLAN_NOT_LOADED": ("the file or template of a plan step could not be read", "no; the error says why"),
    "NESTED_TOO_DEEP": (
        "a child plan 8 levels below the plan that was started would run another one",
        "no; does a plan run itself?",
    ),
    "BAD_OUTPUT": ("an expression in the `outputs` of a plan cannot be evaluated", "no; fix it"),
    "LEFT_OUT": ("the step was not part of this rerun", "no"),
    "SKIPPED_AFTER_FAILURE": ("the step failed, and its recovery decided to skip it", "no"),
    "CANCELLED": ("the plan was cancelled while the step was running", "no"),
    "WORKER_LOST": ("20 workers died while running it", "no; `plan doctor`"),
    "TOOL_FAILED": ("the tool raised an exception", "yes"),
    "BAD_PROGRESS": ("the tool reported progress that is not a number", "no; fix the tool"),
    "BAD_VALUE": ("the tool's value cannot be written as JSON", "no; fix the tool"),
    "VALUE_TOO_LARGE": (
        "a value of more than 64 MiB, or output of more than that in a longer text",
        "no; write a file",
    ),
    "VALUE_MISSING": ("a large value is not in the storage", "no; all workers must share it"),
    "VALUE_CORRUPT": (
        "a stored value does not match its hash, or was changed after it was encrypted",
        "no; rerun the step that produced it",
    ),
    "KEY_MISSING": (
        "something was encrypted (docs/encryption.md) with a key that this process does not have; the message names "
        "the key",
        "once a minute, for 20 minutes at least, beside the step's own attempts; add the key to `PLANS_KEYS`",
    ),
    "ITEMS_DENIED": (
        "more items of a `forEach` failed or were denied than it tolerates, some of them denied; no `catch` handles "
        "that",
        "no; `plan resume` asks again about them, or raise `tolerate`",
    ),
    "ITEMS_FAILED": (
        "more items of a `forEach` failed than it tolerates; the first failure is shown",
        "no; fix it and `plan resume`, or raise `tolerate`",
    ),
    "NOT_A_LIST": ("`forEach` was given a value that is not a list", "no"),
    "LIST_TOO_LARGE": (
        "the list of a `forEach` is too large to be loaded; the message says the limit",
        "no; make it smaller in a step before",
    ),
    "TOO_MANY_ITEMS": ("a `forEach` has more items than one plan can run", "no; `mode: plans` with `batch`"),
    "NOT_FINISHED": ("a block ended before all of its steps could run; the reason is shown", "no; `plan resume`"),
    "STEP_FAILED": ("a step inside the block failed with an error that has no code", "no"),
    "REPEAT_LIMIT": ("the condition of a `repeat` did not hold after its last round", "no; raise `limit`"),
    "OUTCOME_UNKNOWN": (
        "the worker, or the tool server, died in a call that must not be repeated: whether it took effect is "
        "unknown; or its host (docs/scaling.md#a-workspace-each) was lost",
        "no; check what it did; when the plan has ended, `plan resume`, or `plan rerun` from this step, calls it again",
    ),
    "HOST_UNSUPPORTED": (
        "the step runs a plan that names another `workspace`, and the files are on one host "
        "(docs/scaling.md#a-workspace-each); or an agent or a plan, in a plan that began before these could share "
        "its place",
        "no; leave `workspace` out; resume the plan",
    ),
    "CHECKPOINT_TOO_LARGE": (
        "the plan's directory has more files, or larger ones, than a checkpoint takes; the message says the limit",
        "no; `.plansignore`, or `PLANS_CHECKPOINT_MB`",
    ),
    "CHECKPOINT_FAILED": (
        "the checkpoint after the step could not be stored, a file may not be read, or a checkpoint is damaged",
        "yes where the storage is out of reach",
    ),
    "EXPRESS_UNAVAILABLE": (
        "a warning: a worker cannot run several steps in one activity; the plan continues step by step",
        "no; the log says why; update that worker, or repair its state directory",
    ),
    "SEGMENT_DIFFERS": (
        "a warning: a worker with other code has called a step as the plan does not; the plan continues step by step",
        "no; run one version of the code",
    ),
    "NO_HOST": (
        "a worker without `PLANS_HOST` was asked for a place for the plan's files (tried again at another worker of "
        "the queue); or the plan's directory at its host is gone, or its plan could not move it",
        "no; `plan resume`",
    ),
}

MESSAGES: Table = {
    "REFUSED": ("cannot be accepted in the present state",),
    "BAD_MESSAGE": ("not one JSON object of the expected shape",),
    "MESSAGE_TOO_LARGE": ("more than 16 KiB",),
    "UNDECODABLE": (
        "not JSON, or a reference to content that is not in the workers' storage; the message says which. As a start"
        " argument, a problem of a plan that fails at once; as the argument of an activity, a failure without a "
        "retry",
    ),
    "UNKNOWN_SIGNAL": ("no signal with that name",),
    "UNKNOWN_STEP": ("the plan has no such step",),
    "NO_SUCH_ATTEMPT": ("`plan logs --attempt`: the step has fewer recorded attempts",),
    "ALREADY_DECIDED": ("there was a decision before; the first one counts",),
    "REASON_REQUIRED": ("an override says in its comment why the step cannot wait (docs/policy.md#who-approves)",),
    "OVERRIDDEN": ("in a plan's log: one person has approved a step alone, in place of all who must",),
    "NOT_DECIDED": ("`plan withdraw`: the sender has decided nothing about the step, or has withdrawn it before",),
    "WITHDRAWN": ("a decision was taken back by who had made it (`plan withdraw`); the step awaits another one",),
    "INVALID_ANSWER": ("the answer does not fit the question; the text says why, and the question stays",),
    "IS_A_QUESTION": ("the step asks a question; answer it with `plan answer`",),
    "NOT_A_QUESTION": ("the step asks no question",),
    "IN_CHILD_PLAN": (
        "a batch of a loop with `mode: plans` cannot be edited: its items run in a child plan; edit a step of the "
        "loop for batches that have not started, or of that child plan",
    ),
    "UNKNOWN_AGENT": ("a report is not from the agent that works on the step",),
    "NOT_ASKED": ("the agent did not ask for this LLM request",),
    "TOO_LATE": (
        "the step is running or has ended, or the block or loop around it has; or it does not run again, and a "
        "resume cannot change it",
    ),
    "TOO_EARLY": (
        "arguments can be replaced once the plan has been checked; a step inside a block that runs cannot use one "
        "further out that is not done, and `resize.thumb` cannot be skipped for all items at once",
    ),
    "STALE_VERSION": ("the decision is about another version of the plan",),
    "NONE_AWAITS": ("no step that fits the pattern, as in `resize[*]`, awaits approval now",),
    "STALE_DIGEST": (
        "the decision is about another call than the step would make now, or the answer to another question; `plan "
        "pending` shows that",
    ),
    "DIGEST_REQUIRED": (
        "the call, or the question, has changed since it was first asked, and the message does not say which one it "
        "is about; send `digest` (or `version`, with an approval)",
    ),
    "UNSIGNED": (
        "the plan's worker takes only signed decisions and edits (`PLANS_DECISIONS=signed`), and this one is not; "
        "set the same here, with the worker's state directory",
    ),
    "BAD_SIGNATURE": (
        "the signature is by another key, or of another message or plan, or from before the plan was started again "
        "or reset; look at the plan and decide again",
    ),
    "UNVERIFIED": (
        "a rule of policy.toml says who must approve, and it is not proven who has sent this; sign with a key of your "
        "own, or decide on a page with a login (docs/policy.md#people)",
    ),
    "MAY_NOT_DECIDE": (
        "a rule of policy.toml lets others approve: those that it names, no author of the call, and each person once",
    ),
    "UNKNOWN_SIGNER": (
        "the signature names a person or page that the worker's policy.toml had no key of when the plan began, or the "
        "message says that it is by somebody else (docs/policy.md#people)",
    ),
    "RESET": (
        "in a plan's log and record: the plan was reset before this decision, answer or event was used, so it is "
        "void; decide again",
    ),
    "REPLAYED": ("a signed message that has been accepted before was sent again",),
    "NOT_IN_REVIEW": ("`begin`, but the plan is not in review",),
    "BUSY": ("the LLM is revising the plan already",),
    "CHECK_FAILED": ("the worker could not list its tools, which the change needs; the plan stays as it was",),
    "CLOSING": ("`interrupt`, but the plan is rolling back or runs its `finally`; cancel it again to end it at once",),
    "NOT_CLOSING": ("`abandon`, but the plan neither rolls back nor runs its `finally`",),
    "NOT_RUNNING": ("`pause`, but the plan is not running",),
    "NOT_PAUSED": ("`unpause`, but the plan is not paused",),
    "BAD_EDIT": ("not an edit of the expected shape",),
    "BAD_MOVE": ("the step cannot be moved there; a step inside a block is not moved, set its `dependsOn` instead",),
    "NOT_A_BLOCK": (
        "steps are added to and removed from blocks only, beside the steps of one; the one named is a loop, a "
        "repetition, an item, a round, a call, a `catch` or a `finally`",
    ),
    "UNKNOWN_FIELD": ("a step has no such field",),
    "UNKNOWN_QUEUE": ("no worker serves the task queue that the step should be bound to",),
    "NOT_SKIPPED": ("`unskip`, but the step is not skipped",),
    "PLAN_EMPTY": ("a plan needs at least one step",),
    "NOTHING_TO_DO": ("every step is done: there is nothing to resume",),
    "NOT_A_PLAN": (
        "an agent has no steps to rerun; use `plan resume`. A plan that undoes another one has none either; use "
        "`plan undo`",
    ),
    "NOT_DONE": ("the rerun needs the value of a step that was never done",),
    "NOT_ENDED": ("the plan has not ended, so it cannot be resumed, rerun or undone yet",),
    "UNDO_RUNNING": ("the plan is being undone at this moment, and the plan that does it has not ended in time",),
    "UNDO_FAILED": ("undo ended unexpectedly; it can be repeated",),
    "ALREADY_RESUMED": ("the plan was resumed under another id; continue with that one",),
    "TOO_MANY_RUNS": ("the plan was resumed too often; start a new one",),
    "PLAN_CLOSED": ("the plan has ended",),
    "ILLEGAL_MOVE": ("a status that cannot follow from the present one; this is a bug, please report it",),
}

LINKS: Table = {
    "LINK_INVALID": (
        "this machine has not given out the link, part of it is missing, its key has been replaced, or its plan's id"
        " is another plan's by now",
    ),
    "LINK_EXPIRED": ("its time is over; `plan pending` shows what the plan awaits",),
    "LINK_USED": ("it was used before; the message says what was decided",),
    "LINK_BUSY": ("another request is using it at this moment",),
}

COMMANDS: Table = {
    "BAD_SETTING": ("`BAD_SETTING:<name>`: an unusable value, or an unknown name", "2"),
    "NOT_DELIVERED": (
        "a notification (docs/notifications.md) did not reach its target; the message says why. Of a plan, it is "
        "tried again",
        "1",
    ),
    "WORKTREE_MISSING": ("the step has no worktree on this machine (docs/worktrees.md)", "2"),
    "NO_TERMINAL": ("`plan review` without a terminal; use `--web`, or the commands", "2"),
    "NO_EDITOR": ("the program in `VISUAL` or `EDITOR` cannot be run, or failed; nothing was changed", "2"),
    "APP_MISSING": ("the command, or a part of it, is not installed; the message says what to type", "2"),
    "BAD_USAGE": ("the command line cannot be parsed", "2"),
    "BAD_TOOL": ("one of your tools lacks a type or a line under `Args:`", "2"),
    "CONVERTER_TAKEN": (
        "`PlansPlugin` (docs/embedding.md) was given to a client that has another data converter",
        "-",
    ),
    "NAME_TAKEN": ("an activity or a tool has the name of one of ours; rename it", "-"),
    "UNDECIDED": ("in a test (docs/embedding.md#tests-of-yours), a step awaits a decision that no rule makes", "-"),
    "BAD_PLAN_ID": ("not a usable id: letters, digits, `_`, `-`, `.`; at most 200", "2"),
    "PLAN_EXISTS": ("that id was used before; ids are never reused", "2"),
    "PLAN_NOT_FOUND": ("the server knows no such plan", "4"),
    "SCHEDULE_NOT_FOUND": ("the server has no schedule of plans with this name; the nearest is named", "4"),
    "SCHEDULE_EXISTS": ("the name of the schedule is taken", "2"),
    "BAD_SCHEDULE": (
        "a time, interval, time zone, policy or name of a schedule that cannot be; the message names the option",
        "2",
    ),
    "NOT_CONNECTED": ("no Temporal server answers at that address", "3"),
    "NO_VERSIONS": (
        "the server has no versions of workers (docs/upgrades.md#versions-for-teams), or has them turned off",
        "2",
    ),
    "BAD_VERSION": (
        "a version that the server does not know, or that this cannot be done with now; the message says why",
        "2",
    ),
    "NOT_DRAINED": ("plans are still at a version after `plan worker drain --within TIME`", "2"),
    "NEWER_STATE": ("the state directory was written by a newer program; use that, or another `PLANS_STATE_DIR`", "2"),
    "BAD_STATE": ("the version of the state directory cannot be read or written; the message says why", "2"),
    "NO_NAMESPACE": ("the server has no such namespace", "3"),
    "SERVICE_REFUSED": (
        "`plan up --install` or `--uninstall`: the service cannot be installed or removed here; the text says what "
        "to do",
        "2",
    ),
    "SERVER_FAILED": ("the embedded server did not start; its log is shown", "3"),
    "SERVER_OLDER": (
        "the embedded server's data were last opened by a newer server than the one to be started; the text says "
        "what to do",
        "3",
    ),
    "SERVER_REFUSED": ("the server rejected the request", "2"),
    "NO_TEMPORAL": (
        "there is no `temporal` program and none could be installed, or the one in the cache is not what "
        "was installed there",
        "3",
    ),
    "LIMITER_AWAY": (
        "what keeps the limits (docs/limits.md) of the queue does not answer; steps with a limit wait for it",
        "1",
    ),
    "NO_WORKER": (
        "no worker polls the plan's task queue, and the plan waits for one. A message that was sent to it, such as a"
        " decision, takes effect when a worker comes, unless the Temporal server restarts before",
        "3",
    ),
    "PLAN_STUCK": ("the plan's workflow task fails repeatedly; the worker's log and the Temporal UI say why", "3"),
    "WORKER_FAILED": ("the background worker did not start; its log is shown", "3"),
    "QUERY_FAILED": ("the plan could not answer, for example because it was refused at its start", "2"),
    "WEB_NEEDS_LOGIN": ("the page would be served beyond this machine without a login (docs/web.md)", "2"),
    "PORT_IN_USE": ("another program listens on that port", "2"),
    "AUDIT_UNREADABLE": ("the kept audit record (docs/operations.md#who-did-what) is damaged", "2"),
    "AUDIT_CHANGED": ("`plan audit --verify`: an entry is not as it was written", "1"),
    "AUDIT_BROKEN": ("an entry does not follow the one before it", "1"),
    "AUDIT_CUT": (
        "the end of the record was cut off or exchanged; or the plan went on after it, as by a reset; or the server "
        "has deleted earlier runs and no whole record is kept",
        "1",
    ),
    "AUDIT_DIFFERS": ("the kept record is not what the plan's history on the server says", "1"),
    "AUDIT_SIGNATURE": ("a decision, or the end of the record, is not signed by this state directory's key", "1"),
    "AUDIT_POLICY": ("the record lacks the text of a policy that answered, or says of it what the text does not", "1"),
    "AUDIT_CONSENT": ("a rule asks about a call that was made, and the record lacks an approval that it wants", "1"),
    "AUDIT_MISSING": ("the ledger names a plan or a record that neither server nor state directory has", "1"),
    "AUDIT_NO_KEY": ("this state directory has no key to check signatures with", "1"),
    "RECORD_GONE": (
        "`plan evaluate`: the server has no history of that run (any more), or what it refers to is not in the storage",
        "4",
    ),
    "NOTHING_TO_REPLAY": ("`plan evaluate`: no LLM was asked in these runs", "2"),
    "REPLAY_FAILED": (
        "`plan evaluate`: this version's code fails on what was recorded; in the report of that run",
        "1",
    ),
    "BAD_PROMPT_SET": (
        "`--prompt-set`: that file cannot be used as a prompt set (docs/evaluation.md#prompt-sets)",
        "2",
    ),
    "PRUNE_REFUSED": ("what is still needed cannot be determined, so nothing is removed", "2"),
    "KEY_EXISTS": ("`plan keys person`, `page`: the state directory has a key of another name", "2"),
    "BAD_KEYS": ("what `PLANS_KEYS` names is not a key ring, or a key cannot be added to it", "2"),
    "PLAIN_REFUSED": ("a payload is not encrypted, and `PLANS_PLAIN=refuse` reads encrypted ones only", "2"),
    "UNREADABLE": ("a file cannot be read", "2"),
    "SYSTEM_ERROR": ("the operating system refused an operation", "1"),
    "UNEXPECTED": ("an unforeseen error; `plan --debug` shows the traceback", "1"),
}

MCP: Table = {
    "BAD_ARGUMENTS": (
        "arguments that the tool does not accept; unknown ones are not ignored",
        "the message names them; `tools/list`",
    ),
    "BAD_CURSOR": ("the cursor of `plan_logs` is not one of its answers", "leave it out"),
}

WEB: Table = {
    "FORBIDDEN": (
        "no session, a request from another site, a role that may not do this, or what only people may do",
        "403",
    ),
    "OUTSIDE_ROOTS": (
        "a plan file or workspace that the web page, or an agent, may not use: it is not below one of the "
        "directories that their server was started with",
        "400",
    ),
    "LOGIN_FAILED": ("the login did not end in a person: the message says why; log in again", "403"),
    "LOGIN_UNAVAILABLE": ("the issuer that people log in with does not answer as it should", "403"),
    "BODY_TOO_SLOW": ("the form took too long to arrive; send it again", "408"),
    "BAD_FORM": ("the form has expired, is too large, or was not sent by the page", "400"),
    "NO_VALUE": ("the step has no value: it has not been completed", "404"),
    "VALUE_UNAVAILABLE": (
        "an output of the plan is stored in a place that this process cannot read: give it the same storage settings"
        " as the worker",
    ),
}

LLM: Table = {
    "LLM_NO_KEY": ("`OPENAI_API_KEY` is missing",),
    "LLM_KEY": ("the endpoint rejects the key",),
    "LLM_MODEL": ("the endpoint does not know the model",),
    "LLM_REQUEST": ("the endpoint rejects the request",),
    "NOT_RECORDED": (
        "only within `plan evaluate --continue` (docs/evaluation.md): the recorded run made no such call, so there is "
        "no answer to it",
    ),
    "LLM_TOO_LONG": (
        "the request exceeds the model's context, for an agent although its older results were compacted "
        "(docs/agents.md#prompts); set `PLANS_CONTEXT_TOKENS`, use a larger model, or split the request",
    ),
    "LLM_QUOTA": ("the account has no credit left",),
    "LLM_UNAVAILABLE": ("no response, or a server error; retried",),
    "LLM_BAD_ANSWER": ("not an answer of the requested shape; sent back a bounded number of times",),
    "LLM_TRUNCATED": ("the answer was cut off",),
    "LLM_REFUSED": ("the model declines",),
    "LLM_BUDGET": ("the plan's budget or the worker's limit is reached",),
    "HISTORY_WRITE_FAILED": ("the history of agent runs could not be written, three times; the plan continues",),
}

WEAKNESSES: Table = {
    "ROOT_WORKER": ("plans are run by root",),
    "SANDBOX_OFF": ("`PLANS_SANDBOX=off`: commands run with all permissions of the worker's user",),
    "SANDBOX_LEVEL_0": ("this machine offers no sandbox",),
    "SANDBOX_LEVEL_1": ("commands run at level 1, with the gaps that security (docs/security.md) names",),
    "NO_USER_NAMESPACES": ("a setting of the kernel keeps ordinary users from bubblewrap",),
    "OLD_LANDLOCK": ("the kernel's Landlock is too old for all that level 1 promises",),
    "NETWORK_ON": ("`PLANS_SANDBOX_NETWORK=on`: every command has network access",),
    "STATE_READABLE": ("other users can read the state directory",),
    "STATE_REPLACEABLE": ("it belongs to another user, or others could replace it",),
    "OTHER_USERS": ("other people can log in, and `PLANS_DECISIONS` is not `signed`",),
    "WEB_UNSIGNED": ("the web page has a login (docs/web.md), and `PLANS_DECISIONS` is not `signed`",),
    "UI_WITHOUT_GUARD": ("the proxy in front of the Temporal UI has ended",),
    "METRICS_FOR_BROWSERS": ("web pages may read the server's metrics",),
    "SERVER_WITHOUT_TLS": ("the server is on another machine, and the connection is not encrypted",),
    "WORKSPACE_WRITABLE": ("everybody can change files of `PLANS_WORKSPACE`",),
    "PATH_WRITABLE": ("others can put programs into a directory of `PATH`",),
    "PATH_IN_WORKSPACE": ("plans can",),
    "PATH_RELATIVE": ("`PATH` has an entry that depends on the working directory",),
    "KEY_READABLE": ("other users can read a file with an API key",),
    "TEMPORAL_PASSED_OVER": ("a `temporal` program is not used, since others could have put it there",),
    "TEMPORAL_UNCHECKED": ("the `temporal` program in the cache has no checksum",),
    "CRASHES_COLLECTED": ("the memory of a command that crashes goes to a program that root runs",),
}
