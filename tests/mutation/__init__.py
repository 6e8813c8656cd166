"""What the suite notices: every operator, stride, barrier, guard and branch of the shaders altered in turn.

``make mutation`` runs it; docs/mutations.md has what came of it, and docs/development.md says how to read that.
"""
