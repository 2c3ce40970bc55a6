"""What steps wait for besides a person's approval: the answer to a question (`ask`), and an event (`wait_for`).

questions: what a question is, and which values answer it. answers: which answers count, and which are refused.
events: what is kept of events, and which step an event is for. records: what a Run holds of all this. messages: how
answers and events arrive. Pure: `workflows.waiting` does what is decided here.
"""
