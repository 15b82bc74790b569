"""How answers look: plain text, terminal, notebook."""
