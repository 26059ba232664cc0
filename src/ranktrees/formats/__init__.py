"""Model formats: each module turns an `~ranktrees.ensemble.Ensemble` into bytes or text, or back."""
