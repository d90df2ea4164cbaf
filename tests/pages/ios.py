"""What docs/ios.md takes for granted: a net of four classes, and their names."""

from support.page_nets import write_checkpoint, write_labels

write_checkpoint("net")
write_labels()
