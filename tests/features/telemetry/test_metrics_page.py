"""The pages of several processes as one, and labels that stay few."""

from __future__ import annotations

from plansurvive.features.telemetry.instruments import LABELS, OTHER, Label
from plansurvive.features.telemetry.metrics_page import merged

FIRST = """# HELP a_total Attempts
# TYPE a_total counter
a_total{tool="x\\"}y"} 3
# HELP h Durations
# TYPE h histogram
h_bucket{le="1"} 1
h_bucket{le="+Inf"} 2
h_sum 4.5
h_count 2
"""
SECOND = """# HELP a_total Attempts
# TYPE a_total counter
a_total{tool="z"} 1
# TYPE b gauge
b 7
"""


def test_the_samples_of_a_metric_stand_together_with_the_process_of_each() -> None:
    assert merged([("1", FIRST), ("2", SECOND)]).splitlines() == [
        "# HELP a_total Attempts",
        "# TYPE a_total counter",
        'a_total{tool="x\\"}y",process="1"} 3',
        'a_total{tool="z",process="2"} 1',
        "# HELP h Durations",
        "# TYPE h histogram",
        'h_bucket{le="1",process="1"} 1',
        'h_bucket{le="+Inf",process="1"} 2',
        'h_sum{process="1"} 4.5',
        'h_count{process="1"} 2',
        "# TYPE b gauge",
        'b{process="2"} 7',
    ]


def test_no_process_gives_an_empty_page() -> None:
    assert merged([]) == ""
    assert merged([("1", "nonsense that is no sample\n\x00")]) == ""


def test_further_values_of_a_label_count_together() -> None:
    label = Label()
    assert [label.of(f"tool{number}") for number in range(LABELS)][-1] == f"tool{LABELS - 1}"
    assert label.of("one more") == OTHER
    assert label.of("tool0") == "tool0"


def test_a_label_is_text_of_a_bounded_length() -> None:
    assert len(Label().of("x" * 10_000)) == 100
    assert Label().of("\ud800") == "?"
