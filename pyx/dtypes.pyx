"""The records' NumPy dtypes, taken from the C structs."""
import numpy as np

from records cimport Bin, Digit, Leaf, Node, Split

cdef Bin one_bin
cdef Digit one_digit
cdef Split one_split
cdef Leaf one_leaf
cdef Node one_node

BIN = np.asarray(<Bin[:1]> &one_bin).dtype
DIGIT = np.asarray(<Digit[:1]> &one_digit).dtype
SPLIT = np.asarray(<Split[:1]> &one_split).dtype
LEAF = np.asarray(<Leaf[:1]> &one_leaf).dtype
NODE = np.asarray(<Node[:1]> &one_node).dtype
