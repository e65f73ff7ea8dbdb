"""Agents in Python: functions, objects, plug-ins, and agents of frameworks."""
