"""What every part of the page uses: its service, its templates and words, its assets."""
