"""Skip-gram with hierarchical softmax over the bucket of two partitions."""
