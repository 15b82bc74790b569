"""Analyzing tables: which files to read, the job that reads them, and the computing kernel."""
