"""Images: resampled, rearranged, read at places."""
