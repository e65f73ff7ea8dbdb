"""Extensions: what a run does without. `extension_registry` says what the parts of one are."""
