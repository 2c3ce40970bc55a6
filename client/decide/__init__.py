"""What a person sees who decides about a call: the change that it would make to a file as it is now.

Beside `plans.views.steps.call_text`, which shows the call itself. The terminal and the web page use both. Imports
plans, runtime and the safe file access of activities.
"""
