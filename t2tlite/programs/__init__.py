"""The programs around the model: each uses the core, and the core imports none of
them.
"""
