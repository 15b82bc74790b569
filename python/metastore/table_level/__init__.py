"""Value lists and histograms of a table, made of those of its data files. Tasks need numpy and pyarrow alone."""
