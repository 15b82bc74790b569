"""The public functions of `import metastore`, by what they do."""
