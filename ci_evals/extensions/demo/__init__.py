"""The embedded agent: an HTTP server that speaks the AUI task API and plays its domains from data files."""
