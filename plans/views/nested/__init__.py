"""The steps inside blocks and loops, in the views of a run: counted, in words, and the few that are listed.

A loop may have 20,000 instances: everything here is bounded, or counts without building anything per instance. May
import the models, `safe_text` and `abridged` of `plans.views`; the other views import it.
"""
