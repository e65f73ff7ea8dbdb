"""Personas: tests are also played with users who make them harder."""
