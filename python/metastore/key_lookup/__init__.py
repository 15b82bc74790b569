"""Locates many keys at once: statistics choose the data files that may have them, and Spark reads these files."""
