"""Resizing, sampling and rearranging of images."""
