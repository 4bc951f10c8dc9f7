"""One folder at a URL: manifests, arrays, checksums, retries and leases."""
