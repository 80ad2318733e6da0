"""Pages of a model's attention, from Python; t2t-attention makes them from the command
line.

    import t2tlite
    from t2tlite.programs import visualise

    attention = t2tlite.load("RUN").attention("A man rides a bicycle.")
    attention  # as the last line of a notebook's cell: the page itself
    attention.save("attention.html")  # the page in a file
    text = visualise.page(attention)

The page saves what it shows as PNG or SVG. The weights are NumPy arrays; docs/python.md
draws them with matplotlib.
"""

from t2tlite.programs.visualise.attention import Attention, page

__all__ = ["Attention", "page"]
