"""Where tables lie: one Parquet object per asset and run date, replaced atomically."""
