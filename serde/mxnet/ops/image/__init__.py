"""Images: resampled, rearranged, read at coordinates."""
