"""A new version of a model, from the last text to what is served: trained, judged, aligned, published, and told of."""
