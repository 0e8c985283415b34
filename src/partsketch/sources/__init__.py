"""Where rows come from: arrays, data frames, Arrow streams and files, all read alike."""

from partsketch.sources.base import Block, FilePart, Source
from partsketch.sources.dense_block import DenseBlock
from partsketch.sources.encoding import Encoding
from partsketch.sources.memory.arrays import array_source
from partsketch.sources.opening import open_source

__all__ = ["Block", "DenseBlock", "Encoding", "FilePart", "Source", "array_source", "open_source"]
