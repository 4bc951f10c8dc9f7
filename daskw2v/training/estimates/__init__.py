"""What a run takes of workers, and whether it fits: by the strategies' own formulas."""
