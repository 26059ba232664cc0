"""The records' NumPy dtypes, taken from the C structs."""
import numpy as np

from ranktrees._core.support.records cimport (
    Bin, Centroid, Column, Digit, Group, Leaf, Member, Node, Offer, PartedLeaf, Plan, Plane, Split,
)

cdef Bin one_bin
cdef Digit one_digit
cdef Member one_member
cdef Centroid one_centroid
cdef Offer one_offer
cdef Split one_split
cdef Leaf one_leaf
cdef PartedLeaf one_parted_leaf
cdef Node one_node
cdef Column one_column
cdef Plane one_plane
cdef Plan one_plan
cdef Group one_group

BIN = np.asarray(<Bin[:1]> &one_bin).dtype
DIGIT = np.asarray(<Digit[:1]> &one_digit).dtype
MEMBER = np.asarray(<Member[:1]> &one_member).dtype
CENTROID = np.asarray(<Centroid[:1]> &one_centroid).dtype
OFFER = np.asarray(<Offer[:1]> &one_offer).dtype
SPLIT = np.asarray(<Split[:1]> &one_split).dtype
LEAF = np.asarray(<Leaf[:1]> &one_leaf).dtype
PARTED_LEAF = np.asarray(<PartedLeaf[:1]> &one_parted_leaf).dtype
NODE = np.asarray(<Node[:1]> &one_node).dtype
COLUMN = np.asarray(<Column[:1]> &one_column).dtype
PLANE = np.asarray(<Plane[:1]> &one_plane).dtype
PLAN = np.asarray(<Plan[:1]> &one_plan).dtype
GROUP = np.asarray(<Group[:1]> &one_group).dtype
