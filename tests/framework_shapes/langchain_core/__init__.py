"""The core that LangGraph is built on."""
