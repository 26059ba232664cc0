"""The counter-based random generator, in Python's integers."""

MASK = 2**64 - 1


def mix(z):
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


def random(seed, number, counter):
    golden = 0x9E3779B97F4A7C15
    return mix(mix(seed + golden * (number + 1) & MASK) + golden * (counter + 1) & MASK)
