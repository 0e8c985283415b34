"""Refinement to the exact answer: a few passes of products over the rows, preconditioned, instead of a factor of them.

The factor of n rows and d columns costs n·d² operations; a pass costs n·d, or the stored entries of sparse rows. A pass
returns d numbers per segment of rows, whatever engine runs it.
"""
