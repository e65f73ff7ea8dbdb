"""Agents that are code: functions, objects, programs and plug-ins."""
