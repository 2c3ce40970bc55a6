"""What a policy adds to a step that does nothing: CPU time of an attempt, without a file and with a hundred rules.

Measured as `step_cost` measures: each part alone, the shortest time counts. The bar is a share of the whole step.
"""

from __future__ import annotations

from benchmarks import graphs, step_cost
from benchmarks.bench import Bench
from benchmarks.tables import Table
from plansurvive.activities.feature import Layer
from plansurvive.features.policy.current import Current
from plansurvive.features.policy.in_worker import Judge
from plansurvive.features.policy.model import JudgedCall
from plansurvive.features.policy.policy_file import FILE
from plansurvive.features.policy.ruling import Rulings
from plansurvive.runtime.settings import Settings

BAR = 0.05
"""Of a step that does nothing."""
RULES = 100
WAYS = {
    "100 rules about other tools": 'tool = "other{number}"\nargs.path = "docs/{number}/**"',
    "100 rules about its tool": 'tool = "noop"\nargs.number = {{max = -{number}}}',
    "100 rules about plans of other names": 'plan = "nightly-{number}*"',
}


async def measure(bench: Bench) -> list[Table]:
    """Measure an attempt each way."""
    table = Table(
        title="What a policy costs",
        columns=["policy", "attempt ms", "adds ms", "of a step", "bar"],
        note="CPU time of a worker per step that does nothing; a step is deciding and an attempt without a policy.",
    )
    async with bench.stand(kinds=("plan",)) as stand:
        step = (await step_cost.deciding(stand, "plan", graphs.chain(20 if bench.quick else 200))).milliseconds
        none = (await step_cost.attempt(stand, "")).milliseconds
        table.add("none: the layer is not there", f"{none:.4f}", "", "", "")
        for name, layers in _ways(stand.settings("plan")):
            said = JudgedCall(names=["a plan"], origin="person") if name in WAYS else None
            spent = (await step_cost.attempt(stand, "", layers, *([said] if said else []))).milliseconds
            share = (spent - none) / (step + none)
            cells = [f"{spent:.4f}", f"{spent - none:.4f}", f"{share:.3f}", f"{BAR:.2f}"]
            table.add(name, *cells, reached=share <= BAR)
    return [table]


def _ways(settings: Settings) -> list[tuple[str, list[Layer]]]:
    """The layer as a worker with each policy has it; first without a file."""
    found: list[tuple[str, list[Layer]]] = [("no file", [Judge(Rulings(Current(settings)))])]
    for index, (name, conditions) in enumerate(WAYS.items()):
        folder = settings.state_dir / f"policy-{index}"
        folder.mkdir(mode=0o700, parents=True)
        rules = [
            f'[[rule]]\nname = "r{number}"\n{conditions.format(number=number)}\ndecide = "deny"\n'
            for number in range(1, RULES + 1)
        ]
        (folder / FILE).write_text("\n".join(rules))
        found.append((name, [Judge(Rulings(Current(settings.with_flags(policy=folder / FILE))))]))
    return found
