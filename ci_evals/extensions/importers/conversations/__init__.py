"""Importers of real conversations: transcripts, spans and trajectories."""
