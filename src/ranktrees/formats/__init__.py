"""Model formats: each module turns an `~ranktrees.model.ensemble.Ensemble` into bytes or text, or back."""
