"""Agents of pydantic-ai, LangGraph, the OpenAI Agents SDK and Google ADK, as objects in Python."""
