"""Images: resized, cropped, and read at the positions of a grid."""
