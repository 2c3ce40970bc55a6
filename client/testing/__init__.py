"""Plans in tests of yours: a server and a worker of the test's own, tools replaced by fakes, approvals by rule.

`PlanTester` runs plans; `client.testing.fixtures` has it as a fixture of pytest. May import everything but worker.py.
"""

from plansurvive.client.testing.contexts import tool_context
from plansurvive.client.testing.fakes import fake
from plansurvive.client.testing.tester import Outcome, PlanTester

__all__ = ["Outcome", "PlanTester", "fake", "tool_context"]
