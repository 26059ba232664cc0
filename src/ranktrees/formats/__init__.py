"""Model formats: each module turns an `~ranktrees.ensemble.Ensemble` into its bytes or text, or back."""
