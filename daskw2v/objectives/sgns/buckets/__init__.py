"""SGNS over buckets: pairs whose contexts are in one partition, and centers and negatives in another."""
