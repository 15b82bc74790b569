"""The display of answers: plain text, terminal, notebook."""
