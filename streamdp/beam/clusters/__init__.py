"""What clusters hold: words, categories or vectors, and how records are scored against them."""
