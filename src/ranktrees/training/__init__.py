"""The two loops, boosting.py and forest.py, and what follows them: callbacks, checkpoints, refitting."""
