"""The metrics of a worker: Temporal's SDK's and our own, in one registry with one Prometheus endpoint (sdk-core's).

Labels are bounded: outcomes and kinds of a fixed set, names of tools and models as many as LABELS, then `other`. No
plan, step, person or workspace is ever a label.
"""

from __future__ import annotations

import socket
import time

from temporalio.runtime import PrometheusConfig, Runtime, TelemetryConfig

LABELS = 200
"""Values that one label takes at most; all further ones count as `other`."""
OTHER = "other"
SECONDS = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3_600.0)
"""Upper limits of the buckets of durations."""
ENDS = ("completed", "partial", "failed", "cancelled")
"""Statuses of plans that have ended."""
WAITS = (0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3_600.0)
"""Upper limits of the buckets of how long a step waits for a worker. The SDK has none between 10 and 100 seconds, where
the alert's 30 are."""
OF_WAITS = "temporal_activity_schedule_to_start_latency"
DURATIONS = ("plans_attempt_duration_seconds", "plans_llm_request_duration_seconds", "plans_plan_duration_seconds")

METRICS: dict[str, tuple[str, str]] = {
    "plans_open": ("status", "Plans that have not ended: `draft`, `review`, `running`, `paused`"),
    "plans_awaiting_decision": ("", "Plans and agents that await a decision"),
    "plans_oldest_decision_awaited_seconds": ("", "Age of the oldest decision awaited; 0: none is"),
    "plans_ended_total": ("status", "Plans that ended as `completed`, `partial`, `failed`, `cancelled`"),
    "plans_with_failures_total": (
        "",
        "Plans that ended as `failed`, or with a step that failed; not those of which a step was only denied",
    ),
    "plans_plan_duration_seconds": ("status", "Histogram: from the start of a plan to its end"),
    "plans_steps_total": (
        "tool, outcome",
        "Steps of ended plans: `completed`, `failed`, `skipped`, `denied`, `unanswered`, `blocked`",
    ),
    "plans_attempts_total": (
        "tool, outcome",
        "Attempts of tool calls: `completed`, `failed`, `cancelled`, and `lost` with their worker",
    ),
    "plans_attempt_duration_seconds": ("tool, outcome", "Histogram: duration of attempts of tool calls"),
    "plans_llm_requests_total": ("model, outcome", "Attempts of LLM requests: `completed`, `failed`, `cancelled`"),
    "plans_llm_request_duration_seconds": ("model, outcome", "Histogram: duration of LLM requests"),
    "plans_llm_tokens_total": ("model, type", "Tokens, `input` and `output`"),
    "plans_llm_request_cost": ("model", "Histogram; its `_sum` is the cost, with `PLANS_LLM_PRICES`"),
    "plans_workflow_tasks_failed_total": (
        "",
        "Workflow tasks that the worker's code failed: their plan waits until one succeeds. Temporal's own counter has "
        "late queries in it, with which nothing is wrong",
    ),
    "plans_worker_start_time_seconds": ("", "When the process began, in seconds since 1970"),
}
"""Labels and meaning of each metric, by its name at the endpoint."""


def _text(name: str) -> str:
    return METRICS[name][1]


def prometheus(address: str) -> Runtime:
    """The runtime for Temporal's clients that serves /metrics at `address`. Raises ValueError if it is taken."""
    buckets = {**dict.fromkeys(DURATIONS, SECONDS), OF_WAITS: WAITS}
    config = PrometheusConfig(
        bind_address=address, counters_total_suffix=True, unit_suffix=True, durations_as_seconds=True,
        histogram_bucket_overrides=buckets,
    )  # fmt: skip
    try:
        return Runtime(telemetry=TelemetryConfig(metrics=config, attach_service_name=False))
    except (RuntimeError, ValueError) as error:  # the first is what the SDK raises
        raise ValueError(str(error)) from error


def free_address() -> str:
    """An address of this machine that nothing listens at."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{found.getsockname()[1]}"


class Label:
    """The values of one label, of which only the first LABELS are told apart."""

    def __init__(self, most: int = LABELS) -> None:
        self._most, self._known = most, set[str]()

    def of(self, value: str) -> str:
        """The label for a value."""
        text = value.encode("utf-8", "replace").decode()[:100]
        if text not in self._known:
            if len(self._known) >= self._most:
                return OTHER
            self._known.add(text)
        return text


class Instruments:
    """Our own metrics. Those that nothing has counted yet are not at the endpoint."""

    def __init__(self, runtime: Runtime) -> None:
        meter = runtime.metric_meter
        self._tool, self._model = Label(), Label(20)
        self._attempts = meter.create_counter("plans_attempts", _text("plans_attempts_total"))
        self._attempt_seconds = meter.create_histogram_float(
            "plans_attempt_duration_seconds", _text("plans_attempt_duration_seconds")
        )
        self._steps = meter.create_counter("plans_steps", _text("plans_steps_total"))
        self._plans = meter.create_counter("plans_ended", _text("plans_ended_total"))
        self._with_failures = meter.create_counter("plans_with_failures", _text("plans_with_failures_total"))
        self._plan_seconds = meter.create_histogram_float(
            "plans_plan_duration_seconds", _text("plans_plan_duration_seconds")
        )
        self._failed_tasks = meter.create_counter(
            "plans_workflow_tasks_failed", _text("plans_workflow_tasks_failed_total")
        )
        self._requests = meter.create_counter("plans_llm_requests", _text("plans_llm_requests_total"))
        self._request_seconds = meter.create_histogram_float(
            "plans_llm_request_duration_seconds", _text("plans_llm_request_duration_seconds")
        )
        self._tokens = meter.create_counter("plans_llm_tokens", _text("plans_llm_tokens_total"))
        self._cost = meter.create_histogram_float("plans_llm_request_cost", _text("plans_llm_request_cost"))
        self._open = meter.create_gauge("plans_open", _text("plans_open"))
        self._awaiting = meter.create_gauge("plans_awaiting_decision", _text("plans_awaiting_decision"))
        self._oldest = meter.create_gauge_float(
            "plans_oldest_decision_awaited_seconds", _text("plans_oldest_decision_awaited_seconds")
        )
        for status in ENDS:  # a rate is only known of what was there before
            self._plans.add(0, {"status": status})
        self._with_failures.add(0)
        self._failed_tasks.add(0)
        # What a process counts before it is first asked is in no rate: alerts take its counters as they are at first.
        meter.create_gauge_float("plans_worker_start_time_seconds", _text("plans_worker_start_time_seconds")).set(
            time.time()
        )

    def attempt(self, tool: str, outcome: str, seconds: float | None) -> None:
        """An attempt has ended: completed, failed, cancelled or lost. `seconds`: None if they are not known."""
        labels = {"tool": self._tool.of(tool), "outcome": outcome}
        self._attempts.add(1, labels)
        if seconds is not None:
            self._attempt_seconds.record(max(0.0, seconds), labels)

    def steps(self, tool: str, outcome: str, number: int) -> None:
        """Steps of a plan that has ended: completed, failed, skipped, denied, unanswered or blocked."""
        self._steps.add(number, {"tool": self._tool.of(tool), "outcome": outcome})

    def plan(self, status: str, seconds: float, has_failures: bool) -> None:
        """A plan has ended with a status. `has_failures`: it failed, or a step of it did."""
        self._plans.add(1, {"status": status})
        if has_failures:
            self._with_failures.add(1)
        self._plan_seconds.record(max(0.0, seconds), {"status": status})

    def failed_task(self) -> None:
        """The code of the worker has failed a workflow task (`features.telemetry.failed_tasks`)."""
        self._failed_tasks.add(1)

    def request(self, model: str, outcome: str, seconds: float) -> None:
        """An LLM request has ended: completed or failed."""
        labels = {"model": self._model.of(model), "outcome": outcome}
        self._requests.add(1, labels)
        self._request_seconds.record(max(0.0, seconds), labels)

    def tokens(self, model: str, prompt: int, completion: int, cost: float | None) -> None:
        """What an LLM request has used. `cost`: None without a price for its model."""
        name = self._model.of(model)
        self._tokens.add(prompt, {"model": name, "type": "input"})
        self._tokens.add(completion, {"model": name, "type": "output"})
        if cost is not None:
            self._cost.record(max(0.0, cost), {"model": name})

    def standing(self, by_status: dict[str, int], awaiting: int, oldest: float | None) -> None:
        """How plans stand now. `oldest`: seconds, None if that is not known."""
        for status, number in by_status.items():
            self._open.set(number, {"status": status})
        self._awaiting.set(awaiting)
        if oldest is not None:
            self._oldest.set(max(0.0, oldest))
