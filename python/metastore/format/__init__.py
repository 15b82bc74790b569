"""The on-disk format (docs/format.md): columns, values, objects and the manifest, on pyarrow alone."""
