"""Tests of partsketch; the folders are named as the rooms."""

import os
import sys

# Where bytecode is not kept, every process that a test starts would compile the whole package anew: seconds each.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
