"""What compilers of GPUs make of the shaders.

``make gpu-compilers`` runs it; docs/gpu-compilers.md has what came of it, and says what that shows.
"""
