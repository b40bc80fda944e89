"""Reference implementations by definition: slow, plain, and sharing no code with streamdp."""
