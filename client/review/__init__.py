"""The review screen: a plan is looked at, changed and begun on a terminal or in a browser, by keyboard alone."""
