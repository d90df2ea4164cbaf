"""Models as pages of HTML: graph, weights, and what differs between two.

What is in `assets` stands in a page as it is; `dagre`, which lays out, is bundled with its licence.
"""
