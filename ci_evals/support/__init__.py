"""The ground floor: text, JSON, digests, secrets and templates; it knows nothing of the domain."""
