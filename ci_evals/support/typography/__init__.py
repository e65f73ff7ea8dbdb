"""Text without its typography: what a reader takes for the same text is the same text."""
