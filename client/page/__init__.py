"""The web page as others meet it: what they add to it (`pages`), and where it is served."""
