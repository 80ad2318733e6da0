"""Writes the map of strings in the normaliser of a SentencePiece model.

SentencePiece reads text from left to right and replaces the longest string that is in
the map; a character that begins no such string stays. In binary form the map is the
size of a trie in bytes, the trie, and the replacements, each ended by a NUL. The value
of a key is the offset of its replacement. The trie is a double array as in Darts-clone:
from a node at position p with offset o, the byte b leads to position p ^ o ^ b.
SentencePiece's own trainer makes such maps too, but refuses to map a string to itself,
which the rule for joiners needs.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping

BLOCK = 256  # units; the array has a whole number of blocks
OPEN_BLOCKS = 8  # the last blocks, which are searched for free units
HAS_LEAF, IS_LEAF = 1 << 8, 1 << 31
OFFSET_BIT = 10  # the bit of a unit at which its offset begins
MAX_OFFSET = 1 << 21  # of a unit

# numbers of fields in SentencePiece's messages (sentencepiece_model.proto), with the
# wire types of Protocol Buffers
NORMALIZER_SPEC = (3 << 3) | 2  # of ModelProto
NAME = (1 << 3) | 2  # of NormalizerSpec, like the following
CHARACTER_MAP = (2 << 3) | 2
REMOVE_EXTRA_WHITESPACES = 4 << 3

Trie = dict[int, "Trie"]


def with_normalizer(model: bytes, characters: bytes, name: str) -> bytes:
    """Gives a SentencePiece model a map as its normaliser, which also removes extra
    spaces.

    The new message is appended, so the file ends with the name: readers of Protocol
    Buffers merge the fields of a message that occurs twice.
    """
    spec = (
        bytes([REMOVE_EXTRA_WHITESPACES, 1])
        + _field(CHARACTER_MAP, characters)
        + _field(NAME, name.encode())
    )
    return model + _field(NORMALIZER_SPEC, spec)


def character_map(rules: Mapping[str, str]) -> bytes:
    """The binary form of a map, which must not be empty or contain a NUL."""
    replacements = bytearray()
    offsets: dict[str, int] = {}
    for replacement in sorted(set(rules.values())):
        offsets[replacement] = len(replacements)
        replacements += replacement.encode() + b"\0"
    values = {key.encode(): offsets[value] for key, value in rules.items()}
    units = _double_array(values)
    trie = struct.pack(f"<{len(units)}I", *units)
    return struct.pack("<I", len(trie)) + trie + bytes(replacements)


def _field(number: int, content: bytes) -> bytes:
    """A field of a message, with the length of its content as a varint."""
    size = len(content)
    length = bytearray()
    while size >= 0x80:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    length.append(size)
    return bytes([number]) + bytes(length) + content


def _double_array(values: Mapping[bytes, int]) -> list[int]:
    """The units of a double-array trie that maps keys to values."""
    array = _Array()
    waiting = [(0, _trie_of(values), b"")]
    while waiting:
        position, children, prefix = waiting.pop()
        labels = sorted(children)
        if prefix in values:
            labels.insert(0, 0)  # the leaf
        offset = array.place(labels)
        array.units[position] |= (position ^ offset) << OFFSET_BIT
        if position ^ offset >= MAX_OFFSET:
            raise ValueError("The map has too many strings for a double array.")
        for label in labels:
            child = offset ^ label
            if label == 0:
                array.units[position] |= HAS_LEAF
                array.units[child] = values[prefix] | IS_LEAF
            else:
                array.units[child] = label
                waiting.append((child, children[label], prefix + bytes([label])))
    return array.finished()


def _trie_of(keys: Iterable[bytes]) -> Trie:
    root: Trie = {}
    for key in keys:
        node = root
        for byte in key:
            node = node.setdefault(byte, {})
    return root


class _Array:
    """A double array that grows by blocks; its first unit is the root."""

    def __init__(self) -> None:
        self.units: list[int] = []
        # the free positions of each block, in order
        self._free: list[dict[int, None]] = []
        self._offsets: set[int] = {0}  # in use; no two nodes share one
        self._grow()
        del self._free[0][0]

    def place(self, labels: list[int]) -> int:
        """Takes the positions of a node's children, and returns the node's offset."""
        while True:
            for free in self._free[-OPEN_BLOCKS:]:
                offset = self._offset_in(free, labels)
                if offset is not None:
                    self._offsets.add(offset)
                    for label in labels:
                        del free[offset ^ label]
                    return offset
            self._grow()

    def _offset_in(self, free: dict[int, None], labels: list[int]) -> int | None:
        """An offset that puts all children into this block, or None."""
        if len(free) < len(labels):
            return None
        first, *others = labels
        for position in free:
            offset = position ^ first
            fits = offset not in self._offsets
            if fits and all(offset ^ label in free for label in others):
                return offset
        return None

    def _grow(self) -> None:
        start = len(self.units)
        self.units += [0] * BLOCK
        # one offset of each block stays free for `finished`
        self._offsets.add(start ^ (BLOCK - 1))
        self._free.append(dict.fromkeys(range(start, start + BLOCK)))

    def finished(self) -> list[int]:
        """The units. A free unit gets a label that only an unused offset would lead to,
        so that no text leads there.
        """
        for free in self._free:
            for position in free:
                self.units[position] = (position ^ (BLOCK - 1)) & 0xFF
        return self.units
