"""Jobs of one Spark session: shipping, packing, progress and cancellation, and the store as tasks reach it."""
