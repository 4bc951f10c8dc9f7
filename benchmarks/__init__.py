"""Every figure that the README quotes: one command each, peers measured in the same run."""
