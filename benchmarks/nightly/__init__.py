"""The benchmark of nightly retraining: a week of it, what a night costs, and nights that are killed."""
