"""Images: resized, cropped, and read at the places of a grid."""
