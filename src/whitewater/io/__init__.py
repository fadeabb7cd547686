"""Files, folders, downloads and Zarr stores."""
