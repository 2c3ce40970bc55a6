"""Steps in the views of a run: a row for each, those inside blocks and loops counted, in words, and the few that are
listed.

A loop may have 20,000 instances: everything here is bounded, or counts without building anything per instance. Imports
the models of `plans.views`; the other views import it.
"""
