"""What surrounds the graph of a Core ML model: inputs, outputs, images, labels."""
