"""One module a table format: identity, snapshots, files, deletes, column keys."""
