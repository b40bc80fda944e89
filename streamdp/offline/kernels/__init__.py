"""What samplers and A* do to clusters, as kernels; nothing here is for users to call.

A store holds clusters' statistics behind one contract, so that a sampler is written once for words and
vectors.
"""
